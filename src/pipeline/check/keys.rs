//! Keys of tables: which are known, and values of simple types.

use crate::diag::{Diagnostic, nearest};
use crate::pipeline::ast::{Entry, Table, ValueKind};

/// Reports the keys that aren't among `known`.
pub fn unknown(table: &Table, known: &[&str], place: &str, list: &mut Vec<Diagnostic>) {
    for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let help = match nearest(&entry.key, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("{place} takes {}", quoted(known)),
        };
        let message = format!("{place} has no key `{}`", entry.key);
        list.push(Diagnostic::error("unknown-key", message, entry.key_span.clone(), "unknown key").help(help));
    }
}

/// Names in backquotes, with commas.
pub fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reports a value of the wrong type.
pub fn wrong_type(entry: &Entry, expected: &str, list: &mut Vec<Diagnostic>) {
    let message = format!("`{}` takes {expected}", entry.key);
    let label = format!("expected {expected}, found {}", entry.value.describe());
    list.push(Diagnostic::error("bad-type", message, entry.value.span.clone(), label));
}

/// The text of that key, if it is there.
pub fn text(table: &Table, key: &str, list: &mut Vec<Diagnostic>) -> Option<String> {
    let entry = table.get(key)?;
    match &entry.value.kind {
        ValueKind::Text(text) => Some(text.clone()),
        _ => {
            wrong_type(entry, "a string", list);
            None
        }
    }
}

/// The whole number of that key, if it is there.
pub fn int(table: &Table, key: &str, list: &mut Vec<Diagnostic>) -> Option<i64> {
    let entry = table.get(key)?;
    match &entry.value.kind {
        ValueKind::Int(number) => Some(*number),
        _ => {
            wrong_type(entry, "a whole number", list);
            None
        }
    }
}

/// The table of that key, if it is there.
pub fn table<'t>(tree: &'t Table, key: &str, list: &mut Vec<Diagnostic>) -> Option<(&'t Entry, &'t Table)> {
    let entry = tree.get(key)?;
    match &entry.value.kind {
        ValueKind::Table(table) => Some((entry, table)),
        _ => {
            wrong_type(entry, &format!("a table: `[{key}]`"), list);
            None
        }
    }
}

/// Texts with their spans: one string, or a list of strings.
pub fn texts(entry: &Entry, list: &mut Vec<Diagnostic>) -> Option<Vec<(String, crate::diag::Span)>> {
    let expected = "a string or a list of strings";
    let values = match &entry.value.kind {
        ValueKind::Text(_) => std::slice::from_ref(&entry.value),
        ValueKind::List(values) => values.as_slice(),
        _ => {
            wrong_type(entry, expected, list);
            return None;
        }
    };
    let texts: Option<Vec<_>> = values.iter().map(|value| Some((value.text()?.clone(), value.span.clone()))).collect();
    if texts.is_none() {
        wrong_type(entry, expected, list);
    }
    texts
}
