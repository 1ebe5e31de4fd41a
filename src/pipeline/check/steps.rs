//! Steps: op, inputs, parameters, types.

use std::collections::BTreeMap;

use super::columns::{self, Scope, ScopeColumn};
use super::keys;
use crate::diag::{Diagnostic, Span, nearest};
use crate::ops::{self, Args, BindError, ErasedOp};
use crate::pipeline::ast::{Table, Value, ValueKind};
use crate::pipeline::cut::{BY_REFERENCE, SOURCE_BYTES};
use crate::pipeline::parse::parse_value;
use crate::types::ColumnType;

/// A step without errors, its columns as places in the scope.
pub struct CheckedStep {
    /// Its name.
    pub name: String,
    /// Its op.
    pub op: &'static dyn ErasedOp,
    /// Its arguments.
    pub args: Args,
    /// What it reads.
    pub inputs: Vec<usize>,
    /// What it makes.
    pub output: usize,
    /// Where it stands.
    pub span: Span,
}

/// The keys that every step takes besides its op's parameters.
const COMMON: &[&str] = &["op", "in", "out", "name"];

/// Checks the steps from top to bottom, adding their columns to the scope.
pub fn check(values: &[Value], paths: &[&str], scope: &mut Scope, list: &mut Vec<Diagnostic>) -> Vec<CheckedStep> {
    let later = later_columns(values);
    let mut names: BTreeMap<String, Span> = BTreeMap::new();
    let mut checked = Vec::new();
    let mut previous = None;
    for (at, value) in values.iter().enumerate() {
        let ValueKind::Table(table) = &value.kind else {
            let message = "a step is a table";
            list.push(
                Diagnostic::error("bad-type", message, value.span.clone(), "not a table").help("write `[[step]]`"),
            );
            continue;
        };
        let step = StepChecker { at, table, span: &value.span, paths, later: &later, previous };
        let outcome = step.check(scope, &mut names, list);
        previous = outcome.output;
        checked.extend(outcome.step);
    }
    checked
}

/// The names of columns that steps make, as far as the text says so without looking ops up.
struct Later {
    step: usize,
    name: String,
    span: Span,
    reads: Vec<String>,
}

fn later_columns(values: &[Value]) -> Vec<Later> {
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
        let op = text("op").and_then(|name| ops::find(name));
        let product = op.and_then(|op| op.info().product).map(ToOwned::to_owned);
        let name = text("out").cloned().or(product).or_else(|| reads.first().cloned());
        if let Some(name) = &name {
            let span = table.get("out").map_or(value.span.clone(), |entry| entry.value.span.clone());
            found.push(Later { step, name: name.clone(), span, reads });
        }
        previous = name;
    }
    found
}

/// The arguments of an op from TOML text, such as `size = 256`, defaults filled in.
///
/// # Errors
/// The first thing that is wrong with the text.
pub fn arguments(op: &dyn ErasedOp, text: &str) -> Result<Args, String> {
    let (table, mut list) = crate::pipeline::parse(text);
    let checker = StepChecker { at: 0, table: &table, span: &(0..text.len()), paths: &[], later: &[], previous: None };
    let args = checker.arguments(op, &mut list);
    match list.into_iter().next() {
        Some(wrong) => {
            let label = wrong.labels.into_iter().next().map(|(_, label)| label).unwrap_or_default();
            Err(format!("{} ({label})", wrong.message))
        }
        None => args.ok_or_else(|| "its parameters are wrong".to_owned()),
    }
}

struct StepChecker<'a> {
    at: usize,
    table: &'a Table,
    span: &'a Span,
    paths: &'a [&'a str],
    later: &'a [Later],
    previous: Option<usize>,
}

/// What a step left behind, whether or not it has errors.
struct Outcome {
    step: Option<CheckedStep>,
    output: Option<usize>,
}

impl StepChecker<'_> {
    fn check(&self, scope: &mut Scope, names: &mut BTreeMap<String, Span>, list: &mut Vec<Diagnostic>) -> Outcome {
        let op = self.op(list);
        let inputs = self.inputs(op, scope, list);
        let name = self.name(op, names, list);
        let out = keys::text(self.table, "out", list);
        if let Some(reserved) = out.as_ref().filter(|name| name.starts_with("__") || name.is_empty()) {
            let span = self.key_span("out");
            let message = format!("a column can't be called `{reserved}`");
            list.push(Diagnostic::error(
                "reserved-name",
                message,
                span,
                "names that start with `__` are parbake's own",
            ));
        }
        let args = op.map(|op| self.arguments(op, list));
        // An unknown op's column is guessed from the op that was probably meant, so that what reads it isn't in error.
        let meant = op.or_else(|| self.meant());
        let product = meant.and_then(|op| op.info().product).map(ToOwned::to_owned);
        let first_input =
            inputs.as_ref().and_then(|inputs| inputs.first()).map(|input| scope.columns[*input].name.clone());
        let out_name = out.or(product).or(first_input.filter(|_| meant.is_some()));
        let bound = match (op, args.flatten(), &inputs) {
            (Some(op), Some(args), Some(inputs)) => self.bind(op, args, inputs, scope, list),
            _ => None,
        };
        for input in inputs.iter().flatten() {
            scope.columns[*input].read = true;
        }
        let Some(out_name) = out_name else { return Outcome { step: None, output: None } };
        let (column_type, args) = bound.unzip();
        let span = self.table.get("out").or(self.table.get("op")).map_or(self.span.clone(), |e| e.value.span.clone());
        scope.columns.push(ScopeColumn { name: out_name, column_type, step: Some(self.at), read: false, span });
        let output = scope.columns.len() - 1;
        let step = match (op, args, inputs, name) {
            (Some(op), Some(args), Some(inputs), Some(name)) => {
                Some(CheckedStep { name, op, args, inputs, output, span: self.span.clone() })
            }
            _ => None,
        };
        Outcome { step, output: Some(output) }
    }

    fn key_span(&self, key: &str) -> Span {
        self.table.get(key).map_or(self.span.clone(), |entry| entry.value.span.clone())
    }

    /// The op that was probably meant by an unknown name.
    fn meant(&self) -> Option<&'static dyn ErasedOp> {
        let name = self.table.get("op")?.value.text()?;
        ops::find(nearest(name, ops::OPS.iter().map(|op| op.info().name))?)
    }

    /// The table's header is all that a step without keys has.
    fn head(&self) -> Span {
        self.table.get("op").or(self.table.entries.first()).map_or(self.span.clone(), |entry| entry.key_span.clone())
    }

    fn op(&self, list: &mut Vec<Diagnostic>) -> Option<&'static dyn ErasedOp> {
        let Some(entry) = self.table.get("op") else {
            let help = "write `op = \"image.decode\"`; `parbake ops` lists all ops";
            let near = self.table.entries.iter().find(|entry| nearest(&entry.key, ["op"]).is_some());
            let error = Diagnostic::error("missing-key", "the step has no op", self.head(), "`op` is missing");
            list.push(match near {
                Some(entry) => error.help(format!("did you mean `op` by `{}`?", entry.key)),
                None => error.help(help),
            });
            return None;
        };
        let name = keys::text(self.table, "op", list)?;
        let found = ops::find(&name);
        if found.is_none() {
            let all: Vec<&str> = ops::OPS.iter().map(|op| op.info().name).collect();
            let help = match nearest(&name, all.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the ops are {}", keys::quoted(&all)),
            };
            let message = format!("there is no op `{name}`");
            list.push(Diagnostic::error("unknown-op", message, entry.value.span.clone(), "unknown op").help(help));
        }
        found
    }

    fn inputs(
        &self,
        op: Option<&'static dyn ErasedOp>,
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<Vec<usize>> {
        if let Some(entry) = self.table.get("in") {
            let named = keys::texts(entry, list)?;
            let mut found = Vec::new();
            for (name, span) in &named {
                match scope.find(name) {
                    Some(at) => found.push(at),
                    None => list.push(self.unknown(name, span.clone(), scope)),
                }
            }
            if found.len() < named.len() {
                return None;
            }
            let wanted = op.map_or(found.len(), |op| op.info().inputs.len());
            if found.len() != wanted {
                let name = op.map_or("the step", |op| op.info().name);
                let ports: Vec<&str> =
                    op.map(|op| op.info().inputs.iter().map(|port| port.name).collect()).unwrap_or_default();
                let message = format!(
                    "`{name}` reads {wanted} column{}, and {} are given",
                    if wanted == 1 { "" } else { "s" },
                    found.len()
                );
                let error = Diagnostic::error("wrong-inputs", message, entry.value.span.clone(), "these");
                list.push(error.help(format!("it reads {}", keys::quoted(&ports))));
                return None;
            }
            return Some(found);
        }
        if self.at > 0 {
            return self.previous.map(|previous| vec![previous]);
        }
        // The first step has no step before it: an op that reads one of the source's columns by its own name finds it.
        let op = op?;
        let found: Option<Vec<usize>> = op.info().inputs.iter().map(|port| scope.find(port.name)).collect();
        if found.is_none() {
            let message = format!("`{}` is the first step and names no input", op.info().name);
            let help = format!("write `in = \"...\"`; the source has {}", keys::quoted(&scope.names()));
            list.push(Diagnostic::error("missing-key", message, self.head(), "`in` is missing").help(help));
        }
        found
    }

    /// A column that isn't there now: maybe a later step makes it, maybe from what this step makes.
    fn unknown(&self, name: &str, span: Span, scope: &Scope) -> Diagnostic {
        let Some(maker) = self.later.iter().find(|later| later.step > self.at && later.name == name) else {
            return columns::unknown(name, span, scope);
        };
        if let Some(mine) = self.later.iter().find(|later| later.step == self.at)
            && self.leads_to(maker, &mine.name, 0)
        {
            let message = format!("`{name}` is made from what this step makes: a cycle");
            let error = Diagnostic::error("cycle", message, span, format!("needed here to make `{}`", mine.name));
            return error.label(maker.span.clone(), format!("`{name}` is made here"));
        }
        let message = format!("`{name}` is made only by a later step");
        let error = Diagnostic::error("unknown-column", message, span, "not there yet");
        error.label(maker.span.clone(), "made here").help("steps run from top to bottom: move that step up")
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

    fn name(
        &self,
        op: Option<&'static dyn ErasedOp>,
        names: &mut BTreeMap<String, Span>,
        list: &mut Vec<Diagnostic>,
    ) -> Option<String> {
        if self.table.get("name").is_some() {
            let name = keys::text(self.table, "name", list)?;
            let span = self.key_span("name");
            if name == BY_REFERENCE || name == SOURCE_BYTES || name.is_empty() || name.starts_with("__") {
                let message = format!("a step can't be called `{name}`");
                let label = "reserved: `source` and `bytes` are words for cuts";
                list.push(Diagnostic::error("reserved-name", message, span, label));
                return None;
            }
            if let Some(first) = names.get(&name) {
                let message = format!("two steps are called `{name}`");
                let error = Diagnostic::error("duplicate-name", message, span, "again here");
                list.push(error.label(first.clone(), "first here"));
                return None;
            }
            names.insert(name.clone(), span);
            return Some(name);
        }
        let word = op?.info().name.rsplit('.').next().unwrap_or("step");
        let mut name = word.to_owned();
        let mut number = 1;
        while names.contains_key(&name) {
            number += 1;
            name = format!("{word}{number}");
        }
        names.insert(name.clone(), self.key_span("op"));
        Some(name)
    }

    fn arguments(&self, op: &dyn ErasedOp, list: &mut Vec<Diagnostic>) -> Option<Args> {
        let params = op.info().params;
        let known: Vec<&str> = params.iter().map(|param| param.name).chain(COMMON.iter().copied()).collect();
        let before = list.len();
        keys::unknown(self.table, &known, &format!("`{}`", op.info().name), list);
        let mut args = BTreeMap::new();
        for param in params {
            let Some(entry) = self.table.get(param.name) else {
                match param.default.and_then(parse_value).and_then(|value| value.argument()) {
                    Some(default) => {
                        if let Ok(value) = param.kind.check(&default) {
                            args.insert(param.name.to_owned(), value);
                        }
                    }
                    None if param.required => {
                        let message = format!("`{}` needs `{}`", op.info().name, param.name);
                        let error = Diagnostic::error(
                            "missing-key",
                            message,
                            self.head(),
                            format!("`{}` is missing", param.name),
                        );
                        list.push(error.help(format!("{}: {}", param.name, param.kind.expected())));
                    }
                    None => {}
                }
                continue;
            };
            let checked = match entry.value.argument() {
                Some(value) => param.kind.check(&value),
                None => Err(format!("expected {}, found {}", param.kind.expected(), entry.value.describe())),
            };
            match checked {
                Ok(value) => {
                    args.insert(param.name.to_owned(), value);
                }
                Err(label) => {
                    let message = format!("`{}` can't have this value", param.name);
                    list.push(Diagnostic::error("bad-value", message, entry.value.span.clone(), label));
                }
            }
        }
        (list.len() == before).then_some(Args(args))
    }

    fn bind(
        &self,
        op: &'static dyn ErasedOp,
        args: Args,
        inputs: &[usize],
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<(ColumnType, Args)> {
        let types: Option<Vec<ColumnType>> =
            inputs.iter().map(|input| scope.columns[*input].column_type.clone()).collect();
        let types = types?;
        let reads_paths = inputs
            .first()
            .is_some_and(|input| scope.columns[*input].step.is_none() && scope.columns[*input].name == "path");
        let fitted = if reads_paths { op.fit(&args, self.paths) } else { Ok(None) };
        let bound = fitted.and_then(|fitted| {
            let args = fitted.unwrap_or(args);
            op.bind(&args, &types).map(|bound| (bound.output, args))
        });
        match bound {
            Ok(bound) => Some(bound),
            Err(BindError { param, message, help }) => {
                let (code, key) = match param {
                    Some(param) => ("bad-value", param),
                    None => ("wrong-column-type", "in"),
                };
                let span = match self.table.get(key) {
                    Some(entry) => entry.value.span.clone(),
                    None => self.key_span("op"),
                };
                let label = match param {
                    Some(param) if self.table.get(param).is_none() => format!("`{param}` is not given"),
                    Some(_) => "this value".to_owned(),
                    None => {
                        let names: Vec<&str> = inputs.iter().map(|input| scope.columns[*input].name.as_str()).collect();
                        format!("reads {}", keys::quoted(&names))
                    }
                };
                let error = Diagnostic::error(code, message, span, label);
                list.push(match help {
                    Some(help) => error.help(help),
                    None => error,
                });
                None
            }
        }
    }
}
