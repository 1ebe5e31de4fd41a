//! Estimates from measured facts.

use serde::{Deserialize, Serialize};

use crate::profile::{CutFacts, Measured, Profile, Representation};

/// What limits the online rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The loader's cores.
    Cpu,
    /// Reading what is stored.
    Storage,
    /// The trainer takes no more.
    Trainer,
}

impl Limit {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Storage => "storage",
            Self::Trainer => "trainer",
        }
    }
}

/// What the estimate depends on besides the facts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostSettings {
    /// How often the stream will be read.
    pub epochs: u64,
    /// The most rows a second that the trainer takes.
    pub trainer_rate: Option<f64>,
}

/// Everything that is predicted of one way of storing a cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Bytes of all shards.
    pub stored_bytes: Measured,
    /// Seconds that the build takes.
    pub offline_seconds: Measured,
    /// Rows a second that the stream gives.
    pub online_rows_per_second: Measured,
    /// What limits that.
    pub limited_by: Limit,
    /// Seconds of the build and all epochs.
    pub total_seconds: Measured,
}

/// Estimates one way of storing a cut.
///
/// The build takes the sum of two: its CPU work (read, run, encode) shared by the threads, and writing all bytes with
/// syncs at the storage's rate. The two overlap in time and yet add up: the system's write-back takes its CPU time and
/// memory bandwidth from the same cores. The stream is limited by the CPU (read from the page cache, decode, remainder,
/// shared by the threads), by the storage if what is stored doesn't fit into memory, or by the trainer.
#[must_use]
pub fn estimate(profile: &Profile, cut: &CutFacts, stored: &Representation, settings: CostSettings) -> Estimate {
    let base_rows = profile.rows_total as f64;
    let threads = profile.threads.max(1) as f64;
    let shards = stored.shard_bytes.scaled(profile.shards as f64);
    let stored_bytes = stored.stored_bytes.times(cut.stored_rows).scaled(base_rows).plus(shards);
    let encode = stored.encode.times(cut.stored_rows);
    let work = profile.read_source.plus(cut.offline).plus(encode).scaled(base_rows / threads);
    let rows = base_rows * cut.stream_rows.estimate;
    let writing = stored_bytes.times(profile.storage.write_bytes_per_second.inverse(1.0));
    // A shard is a file and its record, the data set a manifest and the quarantine; shards wait side by side.
    let commits = (2.0 * profile.shards as f64 / threads + 2.0) * profile.storage.commit_seconds;
    let offline_seconds = work.plus(writing).plus(Measured::exact(commits));
    let mut rate = stored.decode.plus(cut.online).inverse(threads);
    let mut limited_by = Limit::Cpu;
    let memory = profile.machine.available_memory_bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
    let referred = if cut.refers { profile.source_bytes_total as f64 } else { 0.0 };
    let read_bytes = stored_bytes.estimate + referred;
    if read_bytes > memory && rows > 0.0 {
        let storage = profile.storage.read_bytes_per_second.scaled(rows / read_bytes);
        if storage.estimate < rate.estimate {
            (rate, limited_by) = (storage, Limit::Storage);
        }
    }
    if let Some(trainer) = settings.trainer_rate.filter(|trainer| *trainer < rate.estimate) {
        (rate, limited_by) = (Measured::exact(trainer), Limit::Trainer);
    }
    let epochs = rate.inverse(rows).scaled(settings.epochs as f64);
    Estimate {
        stored_bytes,
        offline_seconds,
        online_rows_per_second: rate,
        limited_by,
        total_seconds: offline_seconds.plus(epochs),
    }
}
