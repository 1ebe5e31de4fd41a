//! TOML text to syntax tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ast::{Entry, Table, Value, ValueKind};
use crate::diag::{Diagnostic, Span};

/// Parses a pipeline's text. What can be read is in the tree even when there are errors.
#[must_use]
pub fn parse(text: &str) -> (Table, Vec<Diagnostic>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut diagnostics: Vec<Diagnostic> = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            Diagnostic::error("syntax", format!("this is not valid TOML: {}", error.message()), span, "here")
        })
        .collect();
    let tree = table(document.get_ref(), &mut diagnostics);
    (tree, diagnostics)
}

/// A value given as text, such as a parameter's default.
#[must_use]
pub fn parse_value(text: &str) -> Option<Value> {
    let document = format!("value = {text}");
    let (tree, diagnostics) = parse(&document);
    diagnostics.is_empty().then(|| tree.get("value").map(|entry| entry.value.clone()))?
}

fn table(source: &DeTable<'_>, diagnostics: &mut Vec<Diagnostic>) -> Table {
    let mut entries: Vec<Entry> = source
        .iter()
        .map(|(key, found)| Entry {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            value: value(found, diagnostics),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Table { entries }
}

fn value(source: &Spanned<DeValue<'_>>, diagnostics: &mut Vec<Diagnostic>) -> Value {
    let span = source.span();
    let kind = match source.get_ref() {
        DeValue::String(text) => ValueKind::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            ValueKind::Int(i64::from_str_radix(&digits, number.radix()).unwrap_or_else(|_| {
                diagnostics.push(out_of_range(&span));
                0
            }))
        }
        DeValue::Float(number) => ValueKind::Float(number.as_str().replace('_', "").parse().unwrap_or_else(|_| {
            diagnostics.push(out_of_range(&span));
            0.0
        })),
        DeValue::Boolean(value) => ValueKind::Bool(*value),
        DeValue::Datetime(_) => ValueKind::Date,
        DeValue::Array(values) => ValueKind::List(values.iter().map(|item| value(item, diagnostics)).collect()),
        DeValue::Table(inner) => ValueKind::Table(table(inner, diagnostics)),
    };
    Value { kind, span }
}

fn out_of_range(span: &Span) -> Diagnostic {
    Diagnostic::error("syntax", "this number can't be represented", span.clone(), "too large")
}
