//! What the threads of a profile saw.

use crate::diag::DataError;

/// Everything that one thread saw. Times are seconds a row, one value a group.
#[derive(Default)]
pub struct Seen {
    /// The steps.
    pub steps: Vec<StepSeen>,
    /// The cuts.
    pub cuts: Vec<CutSeen>,
    /// Rows that could not be processed.
    pub failures: Vec<DataError>,
    /// Rows that went in.
    pub rows: u64,
}

/// What was seen of a step.
#[derive(Default, Clone)]
pub struct StepSeen {
    /// Seconds a row that goes in.
    pub seconds: Vec<f64>,
    /// Bytes of what it makes a row that comes out.
    pub bytes: Vec<f64>,
    /// Rows that came out, group by group.
    pub rows_out: Vec<f64>,
    /// Rows that went in, group by group.
    pub rows_in: Vec<f64>,
}

/// What was seen of a cut.
#[derive(Default)]
pub struct CutSeen {
    /// Of the offline program, a row of the base.
    pub offline: Vec<f64>,
    /// Of the remainder, a row of the stream's order.
    pub online: Vec<f64>,
    /// Bytes a stored row of what would be stored.
    pub raw_bytes: Vec<f64>,
    /// Stored rows and rows of the base, batch by batch.
    pub stored_rows: (Vec<f64>, Vec<f64>),
    /// Rows of the stream's order and rows of the base, batch by batch.
    pub stream_rows: (Vec<f64>, Vec<f64>),
    /// By codec.
    pub codecs: Vec<CodecSeen>,
}

/// What was seen of a codec.
#[derive(Default)]
pub struct CodecSeen {
    /// Encoding and writing, a stored row.
    pub encode: Vec<f64>,
    /// Reading and decoding, a row of the stream's order.
    pub decode: Vec<f64>,
    /// Bytes of the rows in the file.
    pub stored: Vec<f64>,
    /// Bytes of the file besides its rows.
    pub fixed: Vec<f64>,
    /// Bytes of what went in.
    pub raw: Vec<f64>,
}

impl Seen {
    /// Takes in what another thread saw.
    pub fn merge(&mut self, other: Self) {
        self.failures.extend(other.failures);
        self.rows += other.rows;
        if self.cuts.is_empty() {
            self.steps = other.steps;
            self.cuts = other.cuts;
            return;
        }
        for (mine, theirs) in self.steps.iter_mut().zip(other.steps) {
            mine.seconds.extend(theirs.seconds);
            mine.bytes.extend(theirs.bytes);
            mine.rows_out.extend(theirs.rows_out);
            mine.rows_in.extend(theirs.rows_in);
        }
        for (mine, theirs) in self.cuts.iter_mut().zip(other.cuts) {
            mine.offline.extend(theirs.offline);
            mine.online.extend(theirs.online);
            mine.raw_bytes.extend(theirs.raw_bytes);
            mine.stored_rows.0.extend(theirs.stored_rows.0);
            mine.stored_rows.1.extend(theirs.stored_rows.1);
            mine.stream_rows.0.extend(theirs.stream_rows.0);
            mine.stream_rows.1.extend(theirs.stream_rows.1);
            for (mine, theirs) in mine.codecs.iter_mut().zip(theirs.codecs) {
                mine.encode.extend(theirs.encode);
                mine.decode.extend(theirs.decode);
                mine.stored.extend(theirs.stored);
                mine.fixed.extend(theirs.fixed);
                mine.raw.extend(theirs.raw);
            }
        }
    }
}
