//! The arguments of a step: checked values, defaults, what the op takes from files, and frozen draws.

use std::collections::BTreeMap;
use std::path::Path;

use super::keys;
use super::steps::StepChecker;
use crate::diag::{Diagnostic, Span};
use crate::ops::{ArgValue, Args, ErasedOp, OUTS, RowsClass};
use crate::pipeline::parse::parse_value;

/// The keys that every step takes besides its op's parameters.
const COMMON: &[&str] = &["op", "in", "out", "name", "from", "rows", "variants"];
/// The most draws that can be frozen.
const MAX_VARIANTS: i64 = 64;

/// The arguments of an op from TOML text, such as `size = 256`, defaults filled in.
///
/// # Errors
/// The first thing that is wrong with the text.
pub fn arguments(op: &dyn ErasedOp, text: &str) -> Result<Args, String> {
    let (table, mut list) = crate::pipeline::parse(text);
    let checker = StepChecker {
        at: 0,
        table: &table,
        span: &(0..text.len()),
        sources: &[],
        folder: Path::new("."),
        later: &[],
        previous: None,
    };
    let args = checker.arguments(op, &mut list);
    match list.into_iter().next() {
        Some(wrong) => {
            let label = wrong.labels.into_iter().next().map(|(_, label)| label).unwrap_or_default();
            Err(format!("{} ({label})", wrong.message))
        }
        None => args.ok_or_else(|| "its parameters are wrong".to_owned()),
    }
}

impl StepChecker<'_> {
    /// The arguments with what the op takes from the pipeline's folder, and the names that `out` gives.
    pub fn located(
        &self,
        op: &'static dyn ErasedOp,
        mut args: Args,
        outs: Option<&[(String, Span)]>,
        list: &mut Vec<Diagnostic>,
    ) -> Option<Args> {
        match op.locate(&args, self.folder) {
            Ok(Some(located)) => args = located,
            Ok(None) => return Some(args),
            Err(error) => {
                self.report(error, &[], list);
                return None;
            }
        }
        let names = match outs {
            Some(outs) => outs.iter().map(|(name, _)| name.clone()).collect(),
            None => op.info().products.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
        };
        args.0.insert(OUTS.to_owned(), ArgValue::List(names.into_iter().map(ArgValue::Text).collect()));
        Some(args)
    }

    /// The number of frozen draws.
    pub fn variants(&self, op: Option<&'static dyn ErasedOp>, list: &mut Vec<Diagnostic>) -> Option<u32> {
        let variants = keys::int(self.table, "variants", list)?;
        let span = self.key_span("variants");
        if !(1..=MAX_VARIANTS).contains(&variants) {
            let label = format!("expected a whole number from 1 to {MAX_VARIANTS}");
            list.push(Diagnostic::error("bad-value", "`variants` can't have this value", span, label));
            return None;
        }
        if op.is_some_and(|op| !op.info().random || op.info().rows != RowsClass::Map) {
            let message = "only a random step that keeps all rows has draws to freeze";
            list.push(Diagnostic::error("bad-value", message, span, "the step isn't one"));
            return None;
        }
        u32::try_from(variants).ok()
    }

    /// Checked arguments, defaults filled in.
    pub fn arguments(&self, op: &dyn ErasedOp, list: &mut Vec<Diagnostic>) -> Option<Args> {
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
}
