//! Verification: what is stored against its checksums, and against what the sources give now.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use super::pending::Pending;
use crate::diag::{Error, Result};
use crate::exec::{self, ShardFile, ShardOutcome, ShardStore};
use crate::format::shard::ShardReader;
use crate::pipeline::Program;
use crate::store::{Dataset, Manifest, Reason, ShardRecord, State};
use crate::types::row_digest::value_digests;
use crate::types::{BufferPool, Digesting, Fingerprint, NamedColumn, RowKey};
use crate::world::{LocalFile, ReadAt, files};

/// What is wrong with a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The shard.
    pub shard: Fingerprint,
    /// What is wrong, in words.
    pub what: String,
    /// The first step whose column differs, if it is that.
    pub step: Option<String>,
}

/// What a verification found.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// Shards of the data set.
    pub shards: usize,
    /// Shards whose files were compared with their checksums.
    pub checked: usize,
    /// Shards that were computed again from the sources and compared bit for bit.
    pub recomputed: usize,
    /// Shards that can't be computed again because their sources are others now.
    pub stale: usize,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Compares every shard's file with its checksum.
///
/// # Errors
/// When a file can't be read.
pub fn checksums(dataset: &Dataset, manifest: &Manifest, verified: &mut Verified) -> Result<()> {
    verified.shards = manifest.shards.len();
    for record in &manifest.shards {
        let path = dataset.shard_path(record.id);
        let wrong = match files::length_if_there(&path)? {
            None => Some("its file is missing".to_owned()),
            Some(length) if length != record.bytes => {
                Some(format!("its file has {length} bytes, and had {} when it was built", record.bytes))
            }
            Some(_) => {
                let digest = digest(&LocalFile::open(&path)?).map_err(|error| Error::io("reading", &path, error))?;
                verified.checked += 1;
                (Some(digest) != record.checksum).then(|| "its bytes aren't those that were built".to_owned())
            }
        };
        if let Some(what) = wrong {
            verified.findings.push(Finding { shard: record.id, what, step: None });
        }
    }
    Ok(())
}

fn digest(file: &dyn ReadAt) -> std::io::Result<Fingerprint> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    while at < file.len() {
        let count = usize::try_from((file.len() - at).min(piece.len() as u64)).unwrap_or(piece.len());
        file.read_at(at, &mut piece[..count])?;
        hasher.update(&piece[..count]);
        at += count as u64;
    }
    Ok(Fingerprint::of_hash(&hasher.finalize()))
}

/// Computes the shards at those places again and compares them with what is stored. `pending` has to be for the very
/// definition that is published.
///
/// # Errors
/// When a source can't be read or a step fails that didn't before.
pub fn recompute(
    pending: Pending<'_>,
    dataset: &Dataset,
    manifest: &Manifest,
    places: &BTreeSet<usize>,
    jobs: usize,
    verified: &mut Verified,
) -> Result<()> {
    // A shard whose own file is gone is told of by its checksum.
    let has_changed = |shard: &crate::store::ShardState| match &shard.state {
        State::Fresh(_) => false,
        State::Stale(reasons) => reasons.iter().any(|reason| !matches!(reason, Reason::Lost(_))),
    };
    verified.stale = pending.freshness().shards.iter().filter(|shard| has_changed(shard)).count();
    // What a damaged shard should hold says where the damage is.
    let damaged: BTreeSet<Fingerprint> = verified.findings.iter().map(|finding| finding.shard).collect();
    let is_damaged = |at: &usize| manifest.shards.get(*at).is_some_and(|record| damaged.contains(&record.id));
    let places: BTreeSet<usize> =
        (0..manifest.shards.len()).filter(|at| places.contains(at) || is_damaged(at)).collect();
    let (job, wanted) = pending.again(dataset, &places, jobs)?;
    let records: Vec<Option<ShardRecord>> =
        wanted.iter().map(|id| manifest.shards.iter().find(|record| record.id == *id).cloned()).collect();
    let comparing = Arc::new(Comparing {
        dataset: dataset.clone(),
        columns: manifest.columns.clone(),
        offline: manifest.offline.clone(),
        records,
        damaged,
        found: Mutex::new((0, Vec::new())),
    });
    let job = exec::Job { store: Some(Arc::new(Shared(Arc::clone(&comparing)))), ..job };
    exec::run(job)?;
    let (recomputed, findings) = &mut *comparing.found.lock().unwrap_or_else(PoisonError::into_inner);
    verified.recomputed = *recomputed;
    verified.findings.append(findings);
    Ok(())
}

/// Compares shards that are computed again with those that are stored.
struct Comparing {
    dataset: Dataset,
    columns: Vec<NamedColumn>,
    offline: Program,
    /// The stored shards, by task; none where what is computed now isn't stored.
    records: Vec<Option<ShardRecord>>,
    /// Shards whose files aren't what was built.
    damaged: BTreeSet<Fingerprint>,
    found: Mutex<(usize, Vec<Finding>)>,
}

struct Shared(Arc<Comparing>);

impl ShardStore for Shared {
    fn create(&self, task: usize) -> Result<Box<dyn ShardFile>> {
        // A data set that can't be written to can be verified all the same.
        let name = format!("verify-{task}");
        let beside = self.0.dataset.temporary(&name).and_then(|path| Ok((files::create(&path)?, path)));
        let (file, path) = beside.or_else(|_| -> Result<_> {
            let path = tempfile::env::temp_dir().join(format!("parbake-{name}-{}", std::process::id()));
            Ok((files::create(&path)?, path))
        })?;
        let file = Digesting::new(file);
        Ok(Box::new(Again { file: Some(file), path, comparing: Arc::clone(&self.0) }))
    }
}

/// A shard that is computed again, in a file of its own.
struct Again {
    file: Option<Digesting<std::fs::File>>,
    path: std::path::PathBuf,
    comparing: Arc<Comparing>,
}

impl Write for Again {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.as_mut().ok_or_else(|| std::io::Error::other("it is closed"))?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let _ = files::remove_if_there(&self.path);
    }
}

impl ShardFile for Again {
    fn commit(mut self: Box<Self>, outcome: &ShardOutcome) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let (_, digest, _) = file.finish();
        let record = self.comparing.records.get(outcome.task).cloned().flatten();
        let finding = match record {
            None => None,
            Some(record) if record.checksum == Some(digest) && !self.comparing.damaged.contains(&record.id) => None,
            Some(record) => self.comparing.difference(&record, &self.path)?,
        };
        let mut found = self.comparing.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.0 += 1;
        found.1.extend(finding);
        Ok(())
    }
}

impl Comparing {
    /// The first difference between a stored shard and the same computed again: by row, then by column.
    fn difference(&self, record: &ShardRecord, again: &std::path::Path) -> Result<Option<Finding>> {
        let finding = |what: String, step| Some(Finding { shard: record.id, what, step });
        let open = |path: &std::path::Path| -> Result<std::result::Result<ShardReader, String>> {
            Ok(ShardReader::open(Arc::new(LocalFile::open(path)?), &self.columns))
        };
        let stored = match open(&self.dataset.shard_path(record.id)) {
            Ok(Ok(reader)) => reader,
            Ok(Err(error)) => return Ok(finding(format!("it can't be read: {error}"), None)),
            Err(error) => return Ok(finding(error.to_string(), None)),
        };
        let again = open(again)?.map_err(|error| Error::internal("the verification", error))?;
        let keys = |reader: &ShardReader| reader.keys().map_err(|error| Error::internal("the verification", error));
        let (stored_keys, again_keys) = match keys(&stored) {
            Ok(stored_keys) => (stored_keys, keys(&again)?),
            Err(error) => return Ok(finding(error.to_string(), None)),
        };
        if stored_keys != again_keys {
            let row = stored_keys.iter().zip(&again_keys).position(|(one, other)| one != other);
            let row = row.unwrap_or(stored_keys.len().min(again_keys.len()));
            let what = format!(
                "it has {} rows and {} come of the sources; row {row} is the first that isn't the same",
                stored_keys.len(),
                again_keys.len()
            );
            return Ok(finding(what, None));
        }
        let pool = BufferPool::new(0);
        for (row, key) in stored_keys.iter().enumerate() {
            let (one, other) = (stored.fetch(&[row], &pool), again.fetch(&[row], &pool));
            let (one, other) = match (one, other) {
                (Ok(one), Ok(other)) => (one, other),
                (Err(error), _) | (_, Err(error)) => {
                    return Ok(finding(format!("{}: {error}", place(record, row, *key)), None));
                }
            };
            for (at, column) in self.columns.iter().enumerate() {
                let values = |array| value_digests(std::slice::from_ref(array), &[&column.column_type], 1);
                if values(&one[at]) != values(&other[at]) {
                    let step = self.maker(&column.name);
                    let by = step.as_ref().map_or("the source".to_owned(), |step| format!("step `{step}`"));
                    let place = place(record, row, *key);
                    return Ok(finding(format!("{place}: column `{}`, made by {by}, differs", column.name), step));
                }
            }
        }
        Ok(finding("its rows are the same, but not the bytes of its file: another writer made it".to_owned(), None))
    }

    /// The step that makes a stored column.
    fn maker(&self, name: &str) -> Option<String> {
        let at = self.offline.names.iter().position(|other| other == name)?;
        let column = self.offline.outputs.get(at)?;
        self.offline.calls.iter().find(|call| call.outputs.contains(column)).map(|call| call.step.clone())
    }
}

/// Where a row comes from, in words.
fn place(record: &ShardRecord, row: usize, key: RowKey) -> String {
    let mut before = 0;
    for fragment in &record.fragments {
        if (row as u64) < before + fragment.rows {
            return format!("row {row}, of {}", fragment.path);
        }
        before += fragment.rows;
    }
    format!("row {row}, key {:032x}", u128::from_be_bytes(key.0))
}
