//! Steps: op, inputs, parameters, types.

use std::collections::BTreeMap;
use std::path::Path;

use super::keys;
use super::later::{Later, later_columns};
use super::rows::{HandedOn, Rows};
use super::scope::{Maker, Scope, ScopeColumn};
use super::source::Named;
use crate::diag::{Diagnostic, Span, nearest};
use crate::ops::{self, Args, BindError, Bound, ErasedOp, Kernel, RowsClass};
use crate::pipeline::ast::{Table, Value, ValueKind};
use crate::pipeline::cut::{BY_REFERENCE, SOURCE_BYTES};
use crate::pipeline::graph::READ;
use crate::types::ColumnType;

/// A step without errors, its columns and relations as places in the scope.
pub struct CheckedStep {
    /// Its place in the text.
    pub at: usize,
    /// Its name.
    pub name: String,
    /// Its op.
    pub op: &'static dyn ErasedOp,
    /// Its arguments.
    pub args: Args,
    /// What its op reads.
    pub inputs: Vec<usize>,
    /// What its op makes.
    pub outputs: Vec<usize>,
    /// What it hands on.
    pub carried: Vec<HandedOn>,
    /// The relations that it reads.
    pub reads: Vec<usize>,
    /// The relation that it makes, or works on.
    pub relation: usize,
    /// Draws that are frozen.
    pub variants: Option<u32>,
    /// Where it stands.
    pub span: Span,
}

/// Checks the steps from top to bottom, adding their columns to the scope.
pub fn check(
    values: &[Value],
    sources: &[Named],
    folder: &Path,
    scope: &mut Scope,
    list: &mut Vec<Diagnostic>,
) -> Vec<CheckedStep> {
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
        let step = StepChecker { at, table, span: &value.span, sources, folder, later: &later, previous };
        let outcome = step.check(scope, &mut names, list);
        previous = outcome.output;
        checked.extend(outcome.step);
    }
    checked
}

/// The op that a step names by its first word, such as `filter = "..."`, with that key.
pub fn form(table: &Table) -> Option<(&'static dyn ErasedOp, &'static str)> {
    let op = ops::OPS.iter().find(|op| {
        let info = op.info();
        info.params.first().is_some_and(|param| param.name == info.name && table.get(info.name).is_some())
    });
    op.map(|op| (*op, op.info().name))
}

/// The most bytes that one row of a column may take.
const MAX_ROW_BYTES: usize = 1 << 30;

/// A step being checked.
pub struct StepChecker<'a> {
    /// Its place in the text.
    pub at: usize,
    /// Its keys.
    pub table: &'a Table,
    /// Where it stands.
    pub span: &'a Span,
    /// The sources.
    pub sources: &'a [Named],
    /// The folder that the pipeline lies in.
    pub folder: &'a Path,
    /// What later steps make.
    pub later: &'a [Later],
    /// What the step before made first.
    pub previous: Option<usize>,
}

/// What a step left behind, whether or not it has errors.
struct Outcome {
    step: Option<CheckedStep>,
    output: Option<usize>,
}

/// An op bound to its inputs, with its final arguments.
struct BoundStep {
    bound: Bound,
    args: Args,
}

impl StepChecker<'_> {
    fn check(&self, scope: &mut Scope, names: &mut BTreeMap<String, Span>, list: &mut Vec<Diagnostic>) -> Outcome {
        let op = self.op(list);
        let from = self.from(scope, list);
        let name = self.name(op, names, list);
        let outs = self.outs(list);
        let variants = self.variants(op, list);
        let args = op.and_then(|op| self.arguments(op, list));
        let args = match (op, args) {
            (Some(op), Some(args)) => self.located(op, args, outs.as_deref(), list),
            (_, args) => args,
        };
        let rows = Rows { step: self, from };
        if let (Some(op), Some(args)) = (op, &args)
            && matches!(op.info().name, "join" | "union" | "sql")
        {
            let step = rows.relational(op, args, scope, list);
            let output = step.as_ref().and_then(|step| step.outputs.first().copied());
            let step = step.zip(name).map(|(step, name)| CheckedStep { name, ..step });
            return Outcome { step, output };
        }
        let read = self.inputs(op, args, from, scope, list);
        for input in read.iter().flat_map(|read| &read.0) {
            scope.columns[*input].read = true;
        }
        let bound = match (op, &read) {
            (Some(op), Some((inputs, Some(args)))) => self.bind(op, args.clone(), inputs, scope, list),
            _ => None,
        };
        let inputs = read.map(|(inputs, _)| inputs);
        let output_names = self.output_names(op, outs, inputs.as_deref(), scope, list);
        // An unknown op's rows are those that it works on.
        let class = op.map_or(RowsClass::Map, |op| op.info().rows);
        let random_inputs = inputs.iter().flatten().any(|input| scope.columns[*input].random);
        let random = op.is_some_and(|op| op.info().random) || random_inputs;
        if op.is_some() && !class.is_row_local() && (random_inputs || scope.relations[from].random) {
            rows.refuse_random(op.map_or("", |op| op.info().name), list);
        }
        let (relation, carried) = rows.made(class, random, scope, list);
        let types: Vec<Option<ColumnType>> = match &bound {
            Some(step) => step.bound.outputs.iter().cloned().map(Some).collect(),
            None => vec![None; output_names.len()],
        };
        let mut outputs = Vec::new();
        for ((name, span), column_type) in output_names.into_iter().zip(types) {
            scope.columns.push(ScopeColumn {
                name,
                column_type,
                maker: Maker::Step(self.at),
                relation,
                read: false,
                random: random || scope.relations[relation].random,
                content_of: None,
                span,
            });
            outputs.push(scope.columns.len() - 1);
        }
        scope.relations[relation].visible.extend(&outputs);
        // A step that makes no column leaves the one before at hand.
        let output = outputs.first().copied().or(self.previous);
        let step = match (op, bound, inputs, name) {
            (Some(op), Some(BoundStep { args, .. }), Some(inputs), Some(name)) => Some(CheckedStep {
                at: self.at,
                name,
                op,
                args,
                inputs,
                outputs,
                carried,
                reads: vec![from],
                relation,
                variants,
                span: self.span.clone(),
            }),
            _ => None,
        };
        Outcome { step, output }
    }

    /// The relation that the step works on.
    fn from(&self, scope: &mut Scope, list: &mut Vec<Diagnostic>) -> usize {
        if let Some(name) = keys::text(self.table, "from", list) {
            match scope.relation(&name) {
                Some(relation) => scope.current = relation,
                None => list.push(scope.unknown_relation(&name, self.key_span("from"))),
            }
        }
        scope.current
    }

    /// Where a key's value stands; the step, where there is none.
    pub fn key_span(&self, key: &str) -> Span {
        self.table.get(key).map_or(self.span.clone(), |entry| entry.value.span.clone())
    }

    /// The names that `out` gives.
    fn outs(&self, list: &mut Vec<Diagnostic>) -> Option<Vec<(String, Span)>> {
        let named = keys::texts(self.table.get("out")?, list)?;
        for (name, span) in &named {
            if name.starts_with("__") || name.is_empty() {
                let message = format!("a column can't be called `{name}`");
                let label = "names that start with `__` are parbake's own";
                list.push(Diagnostic::error("reserved-name", message, span.clone(), label));
            }
        }
        Some(named)
    }

    /// The names of what the op makes: by `out`, or its products, or its first input's.
    fn output_names(
        &self,
        op: Option<&'static dyn ErasedOp>,
        outs: Option<Vec<(String, Span)>>,
        inputs: Option<&[usize]>,
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Vec<(String, Span)> {
        // An unknown op's columns are guessed from the op that was probably meant: what reads them isn't in error.
        let meant = op.or_else(|| self.meant());
        let Some(info) = meant.map(ErasedOp::info) else { return outs.unwrap_or_default() };
        let makes_none = info.products.is_empty() && matches!(info.rows, RowsClass::Filter | RowsClass::Relational);
        // A command makes what it says that it makes.
        let is_command = info.name.starts_with("exec");
        let count = match (makes_none, is_command, &outs) {
            (true, ..) => 0,
            (false, true, Some(outs)) => outs.len(),
            _ => info.products.len().max(1),
        };
        let span = self.table.get("op").map_or(self.span.clone(), |entry| entry.value.span.clone());
        if let Some(outs) = outs {
            if outs.len() > count {
                let message = format!("`{}` makes {}", info.name, plural(count, "column"));
                let span = outs.get(count).map_or(span, |(_, span)| span.clone());
                list.push(Diagnostic::error("wrong-outputs", message, span, "one too many"));
            }
            let rest = info.products.iter().skip(outs.len()).map(|name| ((*name).to_owned(), span_of(self)));
            return outs.into_iter().take(count).chain(rest).collect();
        }
        if !info.products.is_empty() {
            return info.products.iter().map(|name| ((*name).to_owned(), span.clone())).collect();
        }
        let first = inputs.and_then(|inputs| inputs.first()).map(|input| scope.columns[*input].name.clone());
        first.into_iter().take(count).map(|name| (name, span.clone())).collect()
    }

    /// The op that was probably meant by an unknown name.
    fn meant(&self) -> Option<&'static dyn ErasedOp> {
        let name = self.table.get("op")?.value.text()?;
        ops::find(nearest(name, ops::OPS.iter().map(|op| op.info().name))?)
    }

    /// The table's header is all that a step without keys has.
    pub fn head(&self) -> Span {
        self.table.get("op").or(self.table.entries.first()).map_or(self.span.clone(), |entry| entry.key_span.clone())
    }

    fn op(&self, list: &mut Vec<Diagnostic>) -> Option<&'static dyn ErasedOp> {
        let Some(entry) = self.table.get("op") else {
            if let Some((op, _)) = form(self.table) {
                return Some(op);
            }
            let help = "write `op = \"image.decode\"`; `parbake ops` lists all ops";
            let forms = ["op", "filter", "compute", "join", "union", "sql"];
            let near = self.table.entries.iter().find_map(|entry| Some((nearest(&entry.key, forms)?, entry)));
            let error = Diagnostic::error("missing-key", "the step has no op", self.head(), "`op` is missing");
            list.push(match near {
                Some((meant, entry)) => error.help(format!("did you mean `{meant}` by `{}`?", entry.key)),
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

    fn name(
        &self,
        op: Option<&'static dyn ErasedOp>,
        names: &mut BTreeMap<String, Span>,
        list: &mut Vec<Diagnostic>,
    ) -> Option<String> {
        if self.table.get("name").is_some() {
            let name = keys::text(self.table, "name", list)?;
            let span = self.key_span("name");
            let is_word = [BY_REFERENCE, SOURCE_BYTES, READ].contains(&name.as_str());
            if is_word || name.is_empty() || name.starts_with("__") || name.contains(['+', '!', ' ']) {
                let message = format!("a step can't be called `{name}`");
                let label = "reserved: `source`, `bytes` and `read` are words for cuts, which `+` and `!` put together";
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
        while names.contains_key(&name) || [BY_REFERENCE, SOURCE_BYTES, READ].contains(&name.as_str()) {
            number += 1;
            name = format!("{word}{number}");
        }
        names.insert(name.clone(), self.key_span("op"));
        Some(name)
    }

    fn bind(
        &self,
        op: &'static dyn ErasedOp,
        args: Args,
        inputs: &[usize],
        scope: &Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<BoundStep> {
        let types: Option<Vec<ColumnType>> =
            inputs.iter().map(|input| scope.columns[*input].column_type.clone()).collect();
        let types = types?;
        let fitted = match self.paths_of(inputs, scope) {
            Some(paths) => op.fit(&args, &paths),
            None => Ok(None),
        };
        let bound = fitted.and_then(|fitted| {
            let args = fitted.unwrap_or(args);
            op.bind(&args, &types).map(|bound| BoundStep { bound, args })
        });
        match bound {
            Ok(step) if matches!(step.bound.kernel, Kernel::Rows(_) | Kernel::Select(_) | Kernel::Elementwise(_)) => {
                // Such kernels see bytes and tensors alone.
                match types.first() {
                    Some(ColumnType::Text | ColumnType::Scalar(_)) | None => None,
                    Some(_) => self.of_fair_size(step, list),
                }
            }
            Ok(step) => self.of_fair_size(step, list),
            Err(error) => {
                let names: Vec<&str> = inputs.iter().map(|input| scope.columns[*input].name.as_str()).collect();
                self.report(error, &names, list);
                None
            }
        }
    }

    /// The step, if one row of what it makes can be held in memory.
    fn of_fair_size(&self, step: BoundStep, list: &mut Vec<Diagnostic>) -> Option<BoundStep> {
        let too_large = |output: &&ColumnType| output.row_bytes().is_some_and(|bytes| bytes > MAX_ROW_BYTES);
        let Some(output) = step.bound.outputs.iter().find(too_large) else { return Some(step) };
        let bytes = crate::types::units::show_bytes(output.row_bytes().unwrap_or(0) as f64);
        let message = format!("one row of {output} takes {bytes}");
        let error = Diagnostic::error("too-large", message, span_of(self), "1 GiB is the most");
        list.push(error.help("make the window or the picture smaller"));
        None
    }

    /// Reports what an op says of its parameters or inputs.
    pub fn report(&self, error: BindError, inputs: &[&str], list: &mut Vec<Diagnostic>) {
        let BindError { param, message, help } = error;
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
            None => format!("reads {}", keys::quoted(inputs)),
        };
        let error = Diagnostic::error(code, message, span, label);
        list.push(match help {
            Some(help) => error.help(help),
            None => error,
        });
    }

    /// The paths of the source's files, if the first input is that source's path column.
    fn paths_of(&self, inputs: &[usize], scope: &Scope) -> Option<Vec<&str>> {
        let mut at = *inputs.first()?;
        // What was handed on through a join is still that column.
        while let Some(origin) = scope.handed_on(at) {
            at = origin;
        }
        let column = &scope.columns[at];
        let Maker::Source(source) = column.maker else { return None };
        let named = self.sources.get(source).filter(|named| named.is_files && column.name == crate::format::PATH)?;
        let fragments = &named.source.as_ref()?.listing.fragments;
        Some(fragments.iter().map(|fragment| fragment.path.as_str()).collect())
    }
}

fn span_of(step: &StepChecker<'_>) -> Span {
    step.table.get("op").map_or(step.span.clone(), |entry| entry.value.span.clone())
}

/// A number of things, in words.
pub fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
