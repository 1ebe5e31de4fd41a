//! The shards of one build, as the engine sees them.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::diag::{Error, Result};
use crate::exec::{BadRow, ShardFile, ShardOutcome, ShardStore};
use crate::format::Fragment;
use crate::store::{Dataset, FragmentRecord, PendingShard, Quarantined, ShardRecord};
use crate::types::Fingerprint;

/// What a shard is made of.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its name.
    pub id: Fingerprint,
    /// Its source files, if it is made of a source's.
    pub fragments: Vec<Fragment>,
    /// The digest of its rows, if those were put together.
    pub part: Option<Fingerprint>,
}

/// The shards that are built.
pub struct Shards {
    dataset: Dataset,
    wanted: Vec<Wanted>,
    records: Mutex<Vec<Option<ShardRecord>>>,
}

impl Shards {
    /// Those shards, in that data set.
    pub fn new(dataset: Dataset, wanted: Vec<Wanted>) -> Self {
        let records = Mutex::new(vec![None; wanted.len()]);
        Self { dataset, wanted, records }
    }

    /// The record of a shard, but for what only its finished file can tell.
    fn record(&self, outcome: &ShardOutcome) -> ShardRecord {
        let wanted = &self.wanted[outcome.task];
        let record = |(at, fragment): (usize, &Fragment)| FragmentRecord {
            path: fragment.path.clone(),
            size: fragment.size,
            modified_ns: fragment.modified_ns,
            digest: outcome.digests.get(at).copied().unwrap_or(Fingerprint([0; 16])),
            rows: outcome.rows_of.get(at).copied().unwrap_or(0),
        };
        ShardRecord {
            id: wanted.id,
            fragments: wanted.fragments.iter().enumerate().map(record).collect(),
            part: wanted.part,
            rows: outcome.rows,
            bytes: 0,
            checksum: None,
            quarantined: outcome.bad.iter().map(quarantined).collect(),
            seconds: outcome.seconds,
            cpu_seconds: outcome.cpu_seconds,
        }
    }

    /// The records of all shards, in the order of the tasks.
    pub fn finished(&self) -> Result<Vec<ShardRecord>> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let records: Option<Vec<ShardRecord>> = records.iter().cloned().collect();
        records.ok_or_else(|| Error::internal("the build", "a shard was not finished"))
    }
}

/// A bad row as it is filed.
pub fn quarantined(bad: &BadRow) -> Quarantined {
    Quarantined { path: bad.file.clone(), row: bad.row, step: bad.step.clone(), reason: bad.reason.clone() }
}

/// A shard's file while it is written.
struct Pen {
    pending: PendingShard,
    shards: Arc<Shards>,
}

/// The shards as a place to write to.
pub struct Desk(pub Arc<Shards>);

impl ShardStore for Desk {
    fn create(&self, task: usize) -> Result<Box<dyn ShardFile>> {
        let wanted = self.0.wanted.get(task).ok_or_else(|| Error::internal("the build", "there is no such shard"))?;
        let pending = self.0.dataset.begin_shard(wanted.id)?;
        Ok(Box::new(Pen { pending, shards: Arc::clone(&self.0) }))
    }
}

impl Write for Pen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pending.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pending.flush()
    }
}

impl ShardFile for Pen {
    fn commit(self: Box<Self>, outcome: &ShardOutcome) -> Result<()> {
        let record = self.pending.commit(self.shards.record(outcome))?;
        let mut records = self.shards.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = records.get_mut(outcome.task) {
            *slot = Some(record);
        }
        Ok(())
    }
}
