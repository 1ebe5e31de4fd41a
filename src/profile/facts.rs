//! Measured facts, as they are stored.

use serde::{Deserialize, Serialize};

use crate::types::random::StreamKey;
use crate::types::{Codec, Fingerprint, RowKey};

/// A figure with its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The best estimate.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Resamples of the bootstrap.
const RESAMPLES: usize = 400;

impl Measured {
    /// A figure that is known exactly.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { estimate: value, low: value, high: value }
    }

    /// The mean of some values, with a percentile-bootstrap interval (Efron 1979; 400 resamples, a fixed seed).
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let pairs: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        Self::bootstrap(&pairs)
    }

    /// The ratio of two sums, with a bootstrap interval over the pairs.
    #[must_use]
    pub fn ratio(numerators: &[f64], denominators: &[f64]) -> Self {
        let pairs: Vec<(f64, f64)> = numerators.iter().copied().zip(denominators.iter().copied()).collect();
        Self::bootstrap(&pairs)
    }

    fn bootstrap(pairs: &[(f64, f64)]) -> Self {
        let ratio = |sum: (f64, f64)| if sum.1 == 0.0 { 0.0 } else { sum.0 / sum.1 };
        let add = |a: (f64, f64), b: &(f64, f64)| (a.0 + b.0, a.1 + b.1);
        let estimate = ratio(pairs.iter().fold((0.0, 0.0), add));
        let Ok(count) = u32::try_from(pairs.len()) else { return Self::exact(estimate) };
        if count < 2 {
            return Self::exact(estimate);
        }
        let mut random = StreamKey::new(0, "__bootstrap").stream(0, RowKey([0; 16]));
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let sum = (0..count).fold((0.0, 0.0), |sum, _| add(sum, &pairs[random.below(count) as usize]));
                ratio(sum)
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        let (low, high) = (drawn[RESAMPLES / 20], drawn[RESAMPLES - 1 - RESAMPLES / 20]);
        Self { estimate, low: low.min(estimate), high: high.max(estimate) }
    }

    /// The sum of two figures; the errors are taken as independent, so half-widths add as squares.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let width = |a: f64, b: f64| a.hypot(b);
        let estimate = self.estimate + other.estimate;
        Self {
            estimate,
            low: estimate - width(self.estimate - self.low, other.estimate - other.low),
            high: estimate + width(self.high - self.estimate, other.high - other.estimate),
        }
    }

    /// The product of two figures that aren't negative; relative half-widths add as squares.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let estimate = self.estimate * other.estimate;
        let relative = |part: f64, whole: f64| if whole == 0.0 { 0.0 } else { part / whole };
        let down = relative(self.estimate - self.low, self.estimate)
            .hypot(relative(other.estimate - other.low, other.estimate));
        let up = relative(self.high - self.estimate, self.estimate)
            .hypot(relative(other.high - other.estimate, other.estimate));
        Self { estimate, low: (estimate * (1.0 - down)).max(0.0), high: estimate * (1.0 + up) }
    }

    /// The figure times a number that is known exactly.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { estimate: self.estimate * factor, low: self.low * factor, high: self.high * factor }
    }

    /// A number over the figure: a rate from a time.
    #[must_use]
    pub fn inverse(self, numerator: f64) -> Self {
        Self { estimate: numerator / self.estimate, low: numerator / self.high, high: numerator / self.low }
    }
}

/// The machine that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Logical cores.
    pub cores: usize,
    /// Memory that was free, in bytes.
    pub available_memory_bytes: Option<u64>,
}

/// What a step costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFacts {
    /// The step's name.
    pub step: String,
    /// Its op.
    pub op: String,
    /// Thread-seconds a row, run by itself.
    pub seconds: Measured,
    /// Bytes a row that it makes.
    pub bytes: Measured,
    /// Rows that come out for each that goes in.
    pub rows: Measured,
    /// Whether it can only run online.
    pub online_only: bool,
}

/// What storing a cut in one way costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Representation {
    /// How columns are compressed.
    pub codec: Codec,
    /// Bytes a row of a shard's file.
    pub stored_bytes: Measured,
    /// Bytes of a shard's file besides its rows.
    pub shard_bytes: Measured,
    /// Thread-seconds a row to encode and write.
    pub encode: Measured,
    /// Thread-seconds a row to read and decode, in random order, from the page cache.
    pub decode: Measured,
}

/// What a cut costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutFacts {
    /// Its word.
    pub cut: String,
    /// Thread-seconds a row of the offline program, without reading and writing.
    pub offline: Measured,
    /// Thread-seconds a row of the remainder, without reading; where stored rows become several, of one of them alone.
    pub online: Measured,
    /// Bytes a row of what is stored, as they lie in memory.
    pub raw_bytes: Measured,
    /// Whether source files are read online.
    pub refers: bool,
    /// Stored rows for each row of the base.
    pub stored_rows: Measured,
    /// Rows that a stream goes through for each row of the base.
    pub stream_rows: Measured,
    /// The ways of storing it.
    pub representations: Vec<Representation>,
}

/// What the storage can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageFacts {
    /// Sequential writing, with syncs.
    pub write_bytes_per_second: Measured,
    /// Making a small file last (write, sync, rename, sync of the folder), in seconds.
    pub commit_seconds: f64,
    /// Sequential reading from the device.
    pub read_bytes_per_second: Measured,
}

/// The version of profiles that this parbake writes and reads.
pub const PROFILE_VERSION: u32 = 2;

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The version of this layout.
    pub version: u32,
    /// The definition that it is of.
    pub definition: Fingerprint,
    /// The data that it is of.
    pub data: Fingerprint,
    /// The machine.
    pub machine: Machine,
    /// Threads that ran at once.
    pub threads: usize,
    /// Rows of the whole source.
    pub rows_total: u64,
    /// Bytes of the whole source.
    pub source_bytes_total: u64,
    /// Shards that the data set will have, about.
    pub shards: u64,
    /// Rows that were run.
    pub rows_sampled: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Rows of the sample that couldn't be processed.
    pub bad_rows: u64,
    /// Thread-seconds a row to read and digest a source file as a build does.
    pub read_source: Measured,
    /// The steps.
    pub steps: Vec<StepFacts>,
    /// The cuts.
    pub cuts: Vec<CutFacts>,
    /// The storage.
    pub storage: StorageFacts,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the mean of 1..=9 is 5; 3 +- 0.3 plus 4 +- 0.4 is 7 +- 0.5; 10 +- 3 % times 10 +- 4 % is 100 +- 5 %.
    #[test]
    fn figures_combine_as_independent_errors_do() {
        let mean = Measured::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert!((mean.estimate - 5.0).abs() < 1e-12 && mean.low < 4.5 && mean.high > 5.5 && mean.low > 2.0, "{mean:?}");
        let figure = |estimate: f64, half: f64| Measured { estimate, low: estimate - half, high: estimate + half };
        let sum = figure(3.0, 0.3).plus(figure(4.0, 0.4));
        assert!((sum.low - 6.5).abs() < 1e-9 && (sum.high - 7.5).abs() < 1e-9, "{sum:?}");
        let product = figure(10.0, 0.3).times(figure(10.0, 0.4));
        assert!((product.low - 95.0).abs() < 1e-9 && (product.high - 105.0).abs() < 1e-9, "{product:?}");
        assert_eq!(figure(4.0, 1.0).inverse(12.0), Measured { estimate: 3.0, low: 2.4, high: 4.0 });
    }
}
