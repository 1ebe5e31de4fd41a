//! How far a run is, for whoever wants to show it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters that a run raises and a face reads.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    bad_rows: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Rows that have been processed, bad ones included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Rows that couldn't be processed.
    #[must_use]
    pub fn bad_rows(&self) -> u64 {
        self.bad_rows.load(Ordering::Relaxed)
    }

    /// Asks the run to stop at the next batch.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn add_rows(&self, rows: u64, bad: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bad_rows.fetch_add(bad, Ordering::Relaxed);
    }
}
