//! Columns: which there are at each place of the text, which come out, and which nobody needs.

use super::keys;
use super::steps::CheckedStep;
use crate::diag::{Diagnostic, Span, nearest};
use crate::pipeline::ast::Table;
use crate::pipeline::graph::{ColumnId, GraphColumn, Producer, Step, StepId};
use crate::types::{ColumnType, DType};

/// The columns made so far. A column whose type couldn't be worked out has none, and silences what follows from it.
pub struct Scope {
    /// All columns, the source's first.
    pub columns: Vec<ScopeColumn>,
}

/// A column of the scope.
pub struct ScopeColumn {
    /// Its name.
    pub name: String,
    /// Its type; none after an error.
    pub column_type: Option<ColumnType>,
    /// The step that makes it; none: the source.
    pub step: Option<usize>,
    /// Whether a step reads it.
    pub read: bool,
    /// Where its name is given, for steps.
    pub span: Span,
}

impl Scope {
    /// The scope before the first step: a file source's columns.
    pub fn new() -> Self {
        let columns =
            [("path", ColumnType::Text), ("bytes", ColumnType::Bytes), ("size", ColumnType::Scalar(DType::I64))];
        let column = |(name, column_type): (&str, ColumnType)| ScopeColumn {
            name: name.to_owned(),
            column_type: Some(column_type),
            step: None,
            read: false,
            span: 0..0,
        };
        Self { columns: columns.map(column).into() }
    }

    /// The last column of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().rposition(|column| column.name == name)
    }

    /// The names that can be used now.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for column in &self.columns {
            if !names.contains(&column.name.as_str()) {
                names.push(&column.name);
            }
        }
        names
    }
}

/// The columns that come out.
pub fn outputs(tree: &Table, scope: &Scope, steps: usize, list: &mut Vec<Diagnostic>) -> Option<Vec<usize>> {
    if let Some((entry, table)) = keys::table(tree, "output", list) {
        keys::unknown(table, &["columns"], "`[output]`", list);
        if let Some(columns) = table.get("columns") {
            return listed(columns, scope, list);
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
        }
        return None;
    } else if tree.get("output").is_some() {
        return None;
    }
    if steps == 0 {
        // Nothing is done to the source: it comes out as it is.
        return Some((0..scope.columns.len()).collect());
    }
    // Whatever a step made and no step read.
    let made = |at: &usize| {
        let column = &scope.columns[*at];
        column.step.is_some() && !column.read && scope.find(&column.name) == Some(*at)
    };
    Some((0..scope.columns.len()).filter(made).collect())
}

fn listed(entry: &crate::pipeline::ast::Entry, scope: &Scope, list: &mut Vec<Diagnostic>) -> Option<Vec<usize>> {
    let names = keys::texts(entry, list)?;
    if names.is_empty() {
        list.push(Diagnostic::error("no-output", "nothing comes out", entry.value.span.clone(), "no column"));
        return None;
    }
    let mut found: Vec<usize> = Vec::new();
    let mut seen: Vec<(&str, &Span)> = Vec::new();
    for (name, span) in &names {
        if let Some((_, first)) = seen.iter().find(|(other, _)| other == name) {
            let message = format!("the output has `{name}` twice");
            let error = Diagnostic::error("duplicate-output", message, span.clone(), "again here");
            list.push(error.label((*first).clone(), "first here"));
            continue;
        }
        seen.push((name, span));
        match scope.find(name) {
            Some(at) => found.push(at),
            None => list.push(unknown(name, span.clone(), scope)),
        }
    }
    Some(found)
}

/// Reports a column that there isn't.
pub fn unknown(name: &str, span: Span, scope: &Scope) -> Diagnostic {
    let names = scope.names();
    let help = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the columns here are {}", keys::quoted(&names)),
    };
    Diagnostic::error("unknown-column", format!("there is no column `{name}`"), span, "unknown column").help(help)
}

/// What is left of columns, steps and outputs when nobody's columns are dropped.
type Needed = (Vec<GraphColumn>, Vec<Step>, Vec<ColumnId>);

/// Drops the steps whose columns nobody needs, with a warning each, and numbers the others anew.
pub fn drop_unused(
    scope: Scope,
    steps: Vec<CheckedStep>,
    outputs: Vec<usize>,
    list: &mut Vec<Diagnostic>,
) -> Option<Needed> {
    let mut needed = vec![false; scope.columns.len()];
    for output in &outputs {
        needed[*output] = true;
    }
    for step in steps.iter().rev() {
        if needed[step.output] {
            for input in &step.inputs {
                needed[*input] = true;
            }
        }
    }
    let mut places = vec![None; scope.columns.len()];
    let mut columns = Vec::new();
    for (at, column) in scope.columns.into_iter().enumerate() {
        if column.step.is_some() && !needed[at] {
            let message = format!("nobody uses column `{}`: its step is left out", column.name);
            let warning = Diagnostic::warning("unused-column", message, column.span, "made here");
            list.push(warning.help("name it in `[output] columns`, or remove the step"));
            continue;
        }
        places[at] = Some(ColumnId(columns.len()));
        columns.push(GraphColumn { name: column.name, column_type: column.column_type?, producer: Producer::Source });
    }
    let mut kept: Vec<Step> = Vec::new();
    for step in steps {
        let Some(output) = places[step.output] else { continue };
        let inputs = step.inputs.iter().map(|input| places[*input]).collect::<Option<Vec<_>>>()?;
        let online_before = inputs.iter().any(|input| match columns[input.0].producer {
            Producer::Source => false,
            Producer::Step(step) => kept[step.0].online_only,
        });
        columns[output.0].producer = Producer::Step(StepId(kept.len()));
        kept.push(Step {
            name: step.name,
            op: step.op,
            args: step.args,
            online_only: online_before || step.op.info().random,
            inputs,
            output,
            span: step.span,
        });
    }
    let outputs = outputs.into_iter().map(|output| places[output]).collect::<Option<Vec<_>>>()?;
    Some((columns, kept, outputs))
}
