//! What a pipeline asks of the planner and the build besides its steps.

use serde::{Deserialize, Serialize};

use crate::types::Codec;

/// What to do with a row that a step can't process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The build stops and publishes nothing.
    #[default]
    Fail,
    /// The row goes to the quarantine table, counted in every summary.
    Skip,
}

/// What the planner makes best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The least total time: the build and all epochs.
    #[default]
    TrainTime,
    /// The most rows a second online.
    Throughput,
    /// The least stored bytes.
    Storage,
}

impl Objective {
    /// The words that `objective` takes.
    pub const WORDS: &'static [&'static str] = &["train-time", "throughput", "storage"];

    /// The objective of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "train-time" => Some(Self::TrainTime),
            "throughput" => Some(Self::Throughput),
            "storage" => Some(Self::Storage),
            _ => None,
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TrainTime => "train-time",
            Self::Throughput => "throughput",
            Self::Storage => "storage",
        }
    }
}

/// The `[plan]` table of a pipeline; every key is a flag too.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanSettings {
    /// What to make best.
    pub objective: Objective,
    /// The most bytes that may be stored.
    pub storage_budget: Option<u64>,
    /// How often the stream will be read; 90 when not given.
    pub epochs: Option<u64>,
    /// The most rows a second that the trainer takes.
    pub trainer_rate: Option<f64>,
    /// A cut to take whatever the costs.
    pub cut: Option<String>,
    /// A codec to take whatever the costs.
    pub codec: Option<Codec>,
}
