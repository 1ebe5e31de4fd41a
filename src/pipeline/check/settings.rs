//! `on_error` and the `[plan]` table.

use super::keys;
use crate::diag::{Diagnostic, nearest};
use crate::pipeline::ast::{Entry, Table, Value, ValueKind};
use crate::pipeline::settings::{Objective, OnError, PlanSettings};
use crate::types::Codec;
use crate::types::units::parse_bytes;

/// The keys of `[plan]`; each is a flag of the command line too.
const SETTINGS: &[&str] = &["objective", "storage_budget", "epochs", "trainer_rate", "cut", "codec"];

/// Reads `on_error`.
pub fn on_error(tree: &Table, list: &mut Vec<Diagnostic>) -> OnError {
    let Some(text) = keys::text(tree, "on_error", list) else { return OnError::Fail };
    match text.as_str() {
        "fail" => OnError::Fail,
        "skip" => OnError::Skip,
        _ => {
            let span = tree.get("on_error").map_or(0..0, |entry| entry.value.span.clone());
            let label = "expected \"fail\" or \"skip\"";
            list.push(Diagnostic::error("bad-value", format!("`on_error` can't be \"{text}\""), span, label));
            OnError::Fail
        }
    }
}

/// Reads `[plan]`.
pub fn plan(tree: &Table, list: &mut Vec<Diagnostic>) -> PlanSettings {
    let mut settings = PlanSettings::default();
    let Some((_, table)) = keys::table(tree, "plan", list) else { return settings };
    keys::unknown(table, SETTINGS, "`[plan]`", list);
    for entry in table.entries.iter().filter(|entry| SETTINGS.contains(&entry.key.as_str())) {
        if let Err(expected) = read_setting(&mut settings, &entry.key, &entry.value) {
            report(entry, &expected, list);
        }
    }
    settings
}

fn report(entry: &Entry, expected: &str, list: &mut Vec<Diagnostic>) {
    let message = format!("`{}` takes something else", entry.key);
    list.push(Diagnostic::error("bad-value", message, entry.value.span.clone(), expected.to_owned()));
}

/// Sets one key of the plan.
///
/// # Errors
/// What was expected.
fn read_setting(settings: &mut PlanSettings, key: &str, value: &Value) -> Result<(), String> {
    let word = |known: &[&str]| -> Result<String, String> {
        let expected = format!("expected one of {}", keys::quoted(known));
        let text = value.text().ok_or_else(|| format!("{expected}, found {}", value.describe()))?;
        if known.contains(&text.as_str()) {
            return Ok(text.clone());
        }
        Err(match nearest(text, known.iter().copied()) {
            Some(near) => format!("{expected}: did you mean `{near}`?"),
            None => expected,
        })
    };
    match key {
        "objective" => settings.objective = Objective::parse(&word(Objective::WORDS)?).unwrap_or_default(),
        "codec" => settings.codec = Codec::parse(&word(Codec::WORDS)?),
        "storage_budget" => {
            settings.storage_budget = Some(match &value.kind {
                ValueKind::Text(text) => parse_bytes(text)?,
                ValueKind::Int(bytes) => u64::try_from(*bytes).map_err(|_| "expected 0 or more bytes".to_owned())?,
                _ => return Err(format!("expected a size such as \"150 GB\", found {}", value.describe())),
            });
        }
        "epochs" => match value.kind {
            ValueKind::Int(epochs) if epochs > 0 => settings.epochs = u64::try_from(epochs).ok(),
            _ => return Err("expected a whole number of at least 1".to_owned()),
        },
        "trainer_rate" => {
            let rate = match value.kind {
                ValueKind::Int(rate) => rate as f64,
                ValueKind::Float(rate) => rate,
                _ => f64::NAN,
            };
            if !(rate > 0.0 && rate.is_finite()) {
                return Err("expected rows a second, a number above 0".to_owned());
            }
            settings.trainer_rate = Some(rate);
        }
        "cut" => {
            settings.cut = Some(value.text().ok_or("expected the name of a step, \"bytes\" or \"source\"")?.clone());
        }
        _ => {}
    }
    Ok(())
}
