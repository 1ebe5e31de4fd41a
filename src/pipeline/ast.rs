//! The syntax tree of a pipeline: TOML values with their spans, nothing looked up yet.

use crate::diag::Span;
use crate::ops::ArgValue;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The value.
    pub kind: ValueKind,
    /// Where it stands.
    pub span: Span,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    /// Text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A date or time, which no key takes.
    Date,
    /// Several values.
    List(Vec<Value>),
    /// A table.
    Table(Table),
}

/// A table: its entries in the order of the text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Value,
}

impl Table {
    /// The entry of that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Value {
    /// What it is, in words.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self.kind {
            ValueKind::Text(_) => "a string",
            ValueKind::Int(_) => "a whole number",
            ValueKind::Float(_) => "a number",
            ValueKind::Bool(_) => "a boolean",
            ValueKind::Date => "a date",
            ValueKind::List(_) => "a list",
            ValueKind::Table(_) => "a table",
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub const fn text(&self) -> Option<&String> {
        match &self.kind {
            ValueKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a parameter, if it can be one.
    #[must_use]
    pub fn argument(&self) -> Option<ArgValue> {
        Some(match &self.kind {
            ValueKind::Text(text) => ArgValue::Text(text.clone()),
            ValueKind::Int(number) => ArgValue::Int(*number),
            ValueKind::Float(number) => ArgValue::Float(*number),
            ValueKind::Bool(value) => ArgValue::Bool(*value),
            ValueKind::List(values) => ArgValue::List(values.iter().map(Self::argument).collect::<Option<_>>()?),
            ValueKind::Date | ValueKind::Table(_) => return None,
        })
    }
}
