//! What the threads of a profile saw.

use crate::diag::DataError;

/// Everything that one thread saw. Times are seconds a row, one value a group.
#[derive(Default)]
pub struct Seen {
    /// Reading.
    pub read: Vec<f64>,
    /// Reading once more, as a stream does.
    pub read_again: Vec<f64>,
    /// Seconds and bytes a row of each step.
    pub steps: Vec<(Vec<f64>, Vec<f64>)>,
    /// The cuts.
    pub cuts: Vec<CutSeen>,
    /// Rows that could not be processed.
    pub failures: Vec<DataError>,
    /// Rows that could.
    pub rows: u64,
}

/// What was seen of a cut.
#[derive(Default)]
pub struct CutSeen {
    /// Of the offline program.
    pub offline: Vec<f64>,
    /// Of the remainder.
    pub online: Vec<f64>,
    /// Bytes a row of what would be stored.
    pub raw_bytes: Vec<f64>,
    /// By codec.
    pub codecs: Vec<CodecSeen>,
}

/// What was seen of a codec.
#[derive(Default)]
pub struct CodecSeen {
    /// Encoding and writing.
    pub encode: Vec<f64>,
    /// Reading and decoding.
    pub decode: Vec<f64>,
    /// Bytes of the file.
    pub stored: Vec<f64>,
    /// Bytes of what went in.
    pub raw: Vec<f64>,
}

impl Seen {
    /// Takes in what another thread saw.
    pub fn merge(&mut self, other: Self) {
        self.read.extend(other.read);
        self.read_again.extend(other.read_again);
        self.failures.extend(other.failures);
        self.rows += other.rows;
        if self.steps.is_empty() {
            self.steps = other.steps;
            self.cuts = other.cuts;
            return;
        }
        for (mine, theirs) in self.steps.iter_mut().zip(other.steps) {
            mine.0.extend(theirs.0);
            mine.1.extend(theirs.1);
        }
        for (mine, theirs) in self.cuts.iter_mut().zip(other.cuts) {
            mine.offline.extend(theirs.offline);
            mine.online.extend(theirs.online);
            mine.raw_bytes.extend(theirs.raw_bytes);
            for (mine, theirs) in mine.codecs.iter_mut().zip(theirs.codecs) {
                mine.encode.extend(theirs.encode);
                mine.decode.extend(theirs.decode);
                mine.stored.extend(theirs.stored);
                mine.raw.extend(theirs.raw);
            }
        }
    }
}
