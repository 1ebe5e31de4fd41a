//! What later steps make, so that a column which isn't there yet can be told from one that never is.

use super::keys;
use super::scope::Scope;
use super::steps::{StepChecker, form};
use crate::diag::{Diagnostic, Span};
use crate::ops;
use crate::pipeline::ast::{Value, ValueKind};

/// The names of columns that steps make, as far as the text says so without looking ops up.
pub struct Later {
    /// Its step's place.
    pub step: usize,
    /// Its name.
    pub name: String,
    /// Where that stands.
    pub span: Span,
    /// The names of what it is made from.
    pub reads: Vec<String>,
}

/// The columns that steps make.
pub fn later_columns(values: &[Value]) -> Vec<Later> {
    let mut previous: Option<String> = None;
    let mut found = Vec::new();
    for (step, value) in values.iter().enumerate() {
        let ValueKind::Table(table) = &value.kind else { continue };
        let text = |key: &str| table.get(key).and_then(|entry| entry.value.text());
        let reads: Vec<String> = match table.get("in") {
            None => previous.clone().into_iter().collect(),
            Some(entry) => {
                keys::texts(entry, &mut Vec::new()).unwrap_or_default().into_iter().map(|(name, _)| name).collect()
            }
        };
        let op = text("op").and_then(|name| ops::find(name)).or_else(|| form(table).map(|(op, _)| op));
        let product = op.and_then(|op| op.info().products.first()).map(|name| (*name).to_owned());
        let name = text("out").cloned().or(product).or_else(|| reads.first().cloned());
        if let Some(name) = &name {
            let span = table.get("out").map_or(value.span.clone(), |entry| entry.value.span.clone());
            found.push(Later { step, name: name.clone(), span, reads });
        }
        previous = name;
    }
    found
}

impl StepChecker<'_> {
    /// A column that isn't there now: maybe a later step makes it, maybe from what this step makes.
    pub fn unknown(&self, name: &str, span: Span, from: usize, scope: &Scope) -> Option<Diagnostic> {
        let Some(maker) = self.later.iter().find(|later| later.step > self.at && later.name == name) else {
            return scope.unknown(from, name, span);
        };
        if let Some(mine) = self.later.iter().find(|later| later.step == self.at)
            && self.leads_to(maker, &mine.name, 0)
        {
            let message = format!("`{name}` is made from what this step makes: a cycle");
            let error = Diagnostic::error("cycle", message, span, format!("needed here to make `{}`", mine.name));
            return Some(error.label(maker.span.clone(), format!("`{name}` is made here")));
        }
        let message = format!("`{name}` is made only by a later step");
        let error = Diagnostic::error("unknown-column", message, span, "not there yet");
        Some(error.label(maker.span.clone(), "made here").help("steps run from top to bottom: move that step up"))
    }

    fn leads_to(&self, maker: &Later, name: &str, depth: usize) -> bool {
        depth <= self.later.len()
            && maker.reads.iter().any(|read| {
                read == name
                    || self
                        .later
                        .iter()
                        .filter(|later| later.step >= self.at && later.step != maker.step && later.name == *read)
                        .any(|later| self.leads_to(later, name, depth + 1))
            })
    }
}
