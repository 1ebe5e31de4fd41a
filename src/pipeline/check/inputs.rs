//! Which columns a step reads.

use super::keys;
use super::scope::Scope;
use super::steps::{StepChecker, plural};
use crate::diag::Diagnostic;
use crate::ops::expression::{ExpressionError, mentioned};
use crate::ops::{ArgValue, Args, COLUMNS, ErasedOp, Reads};
use crate::types::NamedColumn;

impl StepChecker<'_> {
    /// The columns that the op reads, and its arguments with their names where it needs those.
    pub fn inputs(
        &self,
        op: Option<&'static dyn ErasedOp>,
        args: Option<Args>,
        from: usize,
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<(Vec<usize>, Option<Args>)> {
        match op.map(|op| op.info().reads) {
            Some(Reads::Expression(param)) => {
                if let Some(entry) = self.table.get("in") {
                    let message = "the columns that an expression reads are those that it names";
                    list.push(Diagnostic::error("unknown-key", message, entry.key_span.clone(), "not needed"));
                }
                let mut args = args?;
                let inputs = self.mentioned(param, args.text(param)?, from, scope, list)?;
                let names = inputs.iter().map(|at| ArgValue::Text(scope.columns[*at].name.clone())).collect();
                args.0.insert(COLUMNS.to_owned(), ArgValue::List(names));
                Some((inputs, Some(args)))
            }
            Some(Reads::Several) => {
                let mut args = args?;
                let inputs = self.listed_inputs(op, true, from, scope, list)?;
                let names = inputs.iter().map(|at| ArgValue::Text(scope.columns[*at].name.clone())).collect();
                args.0.insert(COLUMNS.to_owned(), ArgValue::List(names));
                Some((inputs, Some(args)))
            }
            _ => self.listed_inputs(op, false, from, scope, list).map(|inputs| (inputs, args)),
        }
    }

    /// The columns that an expression names.
    fn mentioned(
        &self,
        param: &str,
        text: &str,
        from: usize,
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<Vec<usize>> {
        // A column of unknown type is in error already: what is made of it isn't said to be wrong too.
        let visible = scope.visible(from);
        let (typed, untyped): (Vec<usize>, Vec<usize>) =
            visible.into_iter().partition(|at| scope.columns[*at].column_type.is_some());
        let known: Vec<NamedColumn> = typed
            .iter()
            .filter_map(|at| {
                let column = &scope.columns[*at];
                column.column_type.clone().map(|column_type| NamedColumn { name: column.name.clone(), column_type })
            })
            .collect();
        match mentioned(text, &known) {
            Ok(places) => Some(places.into_iter().map(|place| typed[place]).collect()),
            Err(ExpressionError::UnknownColumn(name)) if untyped.iter().any(|at| scope.columns[*at].name == name) => {
                None
            }
            Err(ExpressionError::UnknownColumn(name)) => {
                list.extend(self.unknown(&name, self.key_span(param), from, scope));
                None
            }
            Err(ExpressionError::Other(message, help)) => {
                let error = Diagnostic::error("bad-expression", message, self.key_span(param), "in this expression");
                list.push(match help {
                    Some(help) => error.help(help),
                    None => error,
                });
                None
            }
        }
    }

    fn listed_inputs(
        &self,
        op: Option<&'static dyn ErasedOp>,
        several: bool,
        from: usize,
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<Vec<usize>> {
        if let Some(entry) = self.table.get("in") {
            let named = keys::texts(entry, list)?;
            let mut found = Vec::new();
            for (name, span) in &named {
                match scope.find(from, name) {
                    Some(at) => found.push(at),
                    None => list.extend(self.unknown(name, span.clone(), from, scope)),
                }
            }
            if found.len() < named.len() {
                return None;
            }
            let wanted = op.map_or(found.len(), |op| op.info().inputs.len());
            if !several && found.len() != wanted {
                let name = op.map_or("the step", |op| op.info().name);
                let ports: Vec<&str> =
                    op.map(|op| op.info().inputs.iter().map(|port| port.name).collect()).unwrap_or_default();
                let message = format!("`{name}` reads {}, and {} are given", plural(wanted, "column"), found.len());
                let error = Diagnostic::error("wrong-inputs", message, entry.value.span.clone(), "these");
                list.push(error.help(format!("it reads {}", keys::quoted(&ports))));
                return None;
            }
            return Some(found);
        }
        // What the step before made, if these rows have it.
        if let Some(previous) = self.previous
            && scope.find(from, &scope.columns[previous].name) == Some(previous)
        {
            return Some(vec![previous]);
        }
        // An op that reads columns by its own names for them finds those.
        let op = op?;
        let found: Option<Vec<usize>> = op.info().inputs.iter().map(|port| scope.find(from, port.name)).collect();
        if found.is_none() && (self.at == 0 || self.previous.is_some()) && !scope.relations[from].broken {
            let message = format!("`{}` names no input, and no step before it made one of these rows", op.info().name);
            let message = if self.at == 0 {
                format!("`{}` is the first step and names no input", op.info().name)
            } else {
                message
            };
            let help = format!("write `in = \"...\"`; the columns here are {}", keys::quoted(&scope.names(from)));
            list.push(Diagnostic::error("missing-key", message, self.head(), "`in` is missing").help(help));
        }
        found
    }
}
