//! The choice: which cut, which codec, and why.

use serde_json::{Value, json};

use crate::cost::{CostSettings, Estimate, estimate};
use crate::diag::{Error, Result};
use crate::pipeline::cut::BY_REFERENCE;
use crate::pipeline::{Objective, PlanSettings};
use crate::profile::Profile;
use crate::types::Codec;
use crate::types::units::{show_bytes, show_rate, show_seconds};

/// Epochs when the pipeline doesn't say: what a training on `ImageNet` has.
pub const DEFAULT_EPOCHS: u64 = 90;
/// Of candidates whose scores differ by less than this, the smaller is taken.
const TIE: f64 = 0.02;

/// One way of storing one cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The cut's word.
    pub cut: String,
    /// The codec.
    pub codec: Codec,
    /// What is predicted.
    pub estimate: Estimate,
    /// Why it can't be taken, if it can't.
    pub obstacle: Option<String>,
}

/// The choice among all candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All candidates, by cut and codec.
    pub candidates: Vec<Candidate>,
    /// The place of the chosen one.
    pub chosen: usize,
    /// Why, in words.
    pub reason: String,
    /// What was made best.
    pub objective: Objective,
    /// Epochs that were counted on.
    pub epochs: u64,
}

/// How much better another candidate has to be than what is built already: the model's own error.
const KEEP: f64 = 0.25;

/// Chooses from a profile. `disk` is how many bytes are free where the data set goes; `built` is the cut and codec of
/// a published data set that is still good: it needs no build, and is left only for something clearly better, so that
/// a new measurement alone never causes a rebuild.
///
/// # Errors
/// When the forced cut or codec isn't there, or nothing fits the budget: with the least budget that would do.
pub fn plan(
    profile: &Profile,
    settings: &PlanSettings,
    disk: Option<u64>,
    built: Option<(&str, Codec)>,
) -> Result<Plan> {
    let epochs = settings.epochs.unwrap_or(DEFAULT_EPOCHS);
    let cost = CostSettings { epochs, trainer_rate: settings.trainer_rate };
    let mut candidates: Vec<Candidate> = profile
        .cuts
        .iter()
        .flat_map(|cut| cut.representations.iter().map(move |stored| (cut, stored)))
        .map(|(cut, stored)| Candidate {
            cut: cut.cut.clone(),
            codec: stored.codec,
            estimate: estimate(profile, cut, stored, cost),
            obstacle: None,
        })
        .collect();
    let forced_cut = settings.cut.clone();
    if let Some(word) = forced_cut.as_ref().filter(|word| profile.cuts.iter().all(|cut| cut.cut != **word)) {
        return Err(Error::internal("the plan", format!("the cut `{word}` wasn't measured")));
    }
    for candidate in &mut candidates {
        candidate.obstacle = obstacle(candidate, settings, forced_cut.as_deref(), disk);
    }
    let score = |candidate: &Candidate| match settings.objective {
        Objective::TrainTime => candidate.estimate.total_seconds.estimate,
        Objective::Throughput => 1.0 / candidate.estimate.online_rows_per_second.estimate,
        Objective::Storage => candidate.estimate.stored_bytes.estimate,
    };
    let mut order: Vec<usize> = (0..candidates.len()).filter(|at| candidates[*at].obstacle.is_none()).collect();
    order.sort_by(|a, b| score(&candidates[*a]).total_cmp(&score(&candidates[*b])));
    let Some(best) = order.first().copied() else {
        return Err(infeasible(&candidates, settings, forced_cut.as_deref()));
    };
    // Storing a little less for as good a score is worth more than the score's own error.
    let bound = score(&candidates[best]) * (1.0 + TIE);
    let chosen = order
        .iter()
        .copied()
        .filter(|at| settings.objective != Objective::Storage && score(&candidates[*at]) <= bound)
        .min_by(|a, b| stored(&candidates[*a]).total_cmp(&stored(&candidates[*b])).then(a.cmp(b)))
        .unwrap_or(best);
    let kept = order.iter().copied().find(|at| {
        let candidate = &candidates[*at];
        let paid = match settings.objective {
            Objective::TrainTime => candidate.estimate.offline_seconds.estimate,
            Objective::Throughput | Objective::Storage => 0.0,
        };
        built == Some((candidate.cut.as_str(), candidate.codec))
            && score(candidate) - paid <= score(&candidates[best]) * (1.0 + KEEP)
    });
    let (chosen, best) = kept.map_or((chosen, best), |kept| (kept, kept));
    let runner_up = order.iter().copied().find(|at| candidates[*at].cut != candidates[chosen].cut);
    let mut reason = reason(&candidates, chosen, best, runner_up, settings, epochs);
    if kept.is_some() {
        reason = format!("it is built already and nothing is clearly better: {reason}");
    }
    Ok(Plan { candidates, chosen, reason, objective: settings.objective, epochs })
}

fn stored(candidate: &Candidate) -> f64 {
    candidate.estimate.stored_bytes.estimate
}

fn obstacle(candidate: &Candidate, settings: &PlanSettings, cut: Option<&str>, disk: Option<u64>) -> Option<String> {
    if cut.is_some_and(|cut| cut != candidate.cut) {
        return Some("another cut is asked for".to_owned());
    }
    if settings.codec.is_some_and(|codec| codec != candidate.codec) {
        return Some("another codec is asked for".to_owned());
    }
    if let Some(budget) = settings.storage_budget.filter(|budget| stored(candidate) > *budget as f64) {
        return Some(format!("over the storage budget of {}", show_bytes(budget as f64)));
    }
    let free = disk.map(|bytes| bytes as f64 * 0.95);
    free.filter(|free| stored(candidate) > *free).map(|free| format!("only {} are free on the disk", show_bytes(free)))
}

fn infeasible(candidates: &[Candidate], settings: &PlanSettings, cut: Option<&str>) -> Error {
    let fits = |candidate: &&Candidate| {
        cut.is_none_or(|cut| cut == candidate.cut) && settings.codec.is_none_or(|codec| codec == candidate.codec)
    };
    let least = candidates.iter().filter(fits).min_by(|a, b| stored(a).total_cmp(&stored(b)));
    let obstacle = least.and_then(|candidate| candidate.obstacle.clone());
    let help = least.map(|candidate| {
        let bytes = show_bytes(stored(candidate));
        format!("the smallest candidate stores {bytes}: allow at least that much, or build elsewhere with `--out`")
    });
    let why = obstacle.unwrap_or_else(|| "there is none".to_owned());
    Error::Usage { message: format!("no candidate can be taken: {why}"), help }
}

fn label(candidate: &Candidate) -> String {
    match (candidate.cut.as_str(), candidate.codec) {
        ("source", _) => "reading the source files as they are".to_owned(),
        ("bytes", Codec::None) => "storing the files' bytes".to_owned(),
        (cut, Codec::None) => format!("storing what `{cut}` makes, uncompressed"),
        (cut, codec) => format!("storing what `{cut}` makes with {}", codec.word()),
    }
}

fn reason(
    candidates: &[Candidate],
    chosen: usize,
    best: usize,
    runner_up: Option<usize>,
    settings: &PlanSettings,
    epochs: u64,
) -> String {
    let winner = &candidates[chosen];
    let mut text = String::new();
    if settings.cut.is_some() {
        text.push_str("as asked, ");
    }
    text.push_str(&label(winner));
    let figures = &winner.estimate;
    text.push_str(&match settings.objective {
        Objective::TrainTime => {
            format!(" takes {} for the build and {epochs} epochs", show_seconds(figures.total_seconds.estimate))
        }
        Objective::Throughput => format!(" streams {} rows/s", show_rate(figures.online_rows_per_second.estimate)),
        Objective::Storage => format!(" takes {}", show_bytes(stored(winner))),
    });
    text.push_str(&format!(", limited by the {}", figures.limited_by.word()));
    if chosen != best {
        text.push_str(&format!(
            "; {} is less than 2 % better and takes {}",
            label(&candidates[best]),
            show_bytes(stored(&candidates[best]))
        ));
    }
    if let Some(other) = runner_up.map(|at| &candidates[at]) {
        let times = other.estimate.total_seconds.estimate / figures.total_seconds.estimate;
        text.push_str(&match times {
            times if times < 1.01 => format!("; {} would do as well", label(other)),
            times => format!("; the next best, {}, takes {times:.2} times as long", label(other)),
        });
    }
    let told = runner_up.is_some_and(|at| candidates[at].cut == BY_REFERENCE);
    if let Some(other) = candidates.iter().find(|other| other.cut == BY_REFERENCE && other.cut != winner.cut && !told) {
        let times = other.estimate.total_seconds.estimate / figures.total_seconds.estimate;
        text.push_str(&format!("; {} takes {times:.2} times as long", label(other)));
    }
    text
}

impl Plan {
    /// The chosen candidate.
    #[must_use]
    pub fn choice(&self) -> &Candidate {
        &self.candidates[self.chosen]
    }

    /// The plan as JSON: `candidates`, each figure as estimate, low and high, and `chosen`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let figures = |candidate: &Candidate| {
            let mut value = serde_json::to_value(candidate.estimate).unwrap_or_default();
            value["cut"] = json!(candidate.cut);
            value["codec"] = json!(candidate.codec.word());
            value
        };
        let candidates: Vec<Value> = self
            .candidates
            .iter()
            .map(|candidate| {
                let mut value = figures(candidate);
                value["feasible"] = json!(candidate.obstacle.is_none());
                value["obstacle"] = json!(candidate.obstacle);
                value
            })
            .collect();
        let mut chosen = figures(self.choice());
        chosen["reason"] = json!(self.reason);
        json!({ "objective": self.objective.word(), "epochs": self.epochs, "candidates": candidates, "chosen": chosen })
    }
}

/// The prediction for the chosen candidate, from a plan's JSON.
#[must_use]
pub fn predicted(plan: &Value) -> Option<Estimate> {
    serde_json::from_value(plan.get("chosen")?.clone()).ok()
}

#[cfg(test)]
mod tests;
