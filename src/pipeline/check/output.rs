//! The columns that come out.

use super::keys;
use super::scope::{Maker, Scope};
use crate::diag::{Diagnostic, Span};
use crate::pipeline::ast::{Entry, Table};

/// What comes out: a relation, and columns of it.
pub struct Output {
    /// The relation.
    pub relation: usize,
    /// The columns, in order.
    pub columns: Vec<usize>,
}

/// Reads `[output]`; none after an error.
pub fn output(tree: &Table, scope: &mut Scope, steps: usize, list: &mut Vec<Diagnostic>) -> Option<Output> {
    let mut relation = scope.current;
    let table = keys::table(tree, "output", list);
    if table.is_none() && tree.get("output").is_some() {
        return None;
    }
    if let Some((entry, table)) = table {
        keys::unknown(table, &["columns", "from"], "`[output]`", list);
        if let Some(from) = keys::text(table, "from", list) {
            match scope.relation(&from) {
                Some(named) => relation = named,
                None => {
                    let span = table.get("from").map_or(entry.key_span.clone(), |entry| entry.value.span.clone());
                    list.push(scope.unknown_relation(&from, span));
                    return None;
                }
            }
        }
        if let Some(columns) = table.get("columns") {
            return listed(columns, relation, scope, list).map(|columns| Output { relation, columns });
        }
        if table.entries.is_empty() {
            let help = "write `columns = [\"image\", \"label\"]`, or leave `[output]` out";
            let error = Diagnostic::error(
                "missing-key",
                "the output names no columns",
                entry.key_span.clone(),
                "`columns` is missing",
            );
            list.push(error.help(help));
            return None;
        }
    }
    let visible = scope.visible(relation);
    if steps == 0 {
        // Nothing is done to the source: it comes out as it is.
        return Some(Output { relation, columns: visible });
    }
    // Whatever a step made and no step read; all columns, if that is none.
    let made = |at: &usize| matches!(scope.columns[*at].maker, Maker::Step(_)) && !scope.columns[*at].read;
    let columns: Vec<usize> = visible.iter().copied().filter(made).collect();
    Some(Output { relation, columns: if columns.is_empty() { visible } else { columns } })
}

fn listed(entry: &Entry, relation: usize, scope: &Scope, list: &mut Vec<Diagnostic>) -> Option<Vec<usize>> {
    let names = keys::texts(entry, list)?;
    if names.is_empty() {
        list.push(Diagnostic::error("no-output", "nothing comes out", entry.value.span.clone(), "no column"));
        return None;
    }
    let mut found: Vec<usize> = Vec::new();
    let mut seen: Vec<(&str, &Span)> = Vec::new();
    let mut missing = false;
    for (name, span) in &names {
        if let Some((_, first)) = seen.iter().find(|(other, _)| other == name) {
            let message = format!("the output has `{name}` twice");
            let error = Diagnostic::error("duplicate-output", message, span.clone(), "again here");
            list.push(error.label((*first).clone(), "first here"));
            continue;
        }
        seen.push((name, span));
        match scope.find(relation, name) {
            Some(at) => found.push(at),
            None => {
                missing = true;
                list.extend(scope.unknown(relation, name, span.clone()));
            }
        }
    }
    (!missing).then_some(found)
}
