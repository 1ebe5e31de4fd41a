//! Whole builds: a graph and a choice become a published data set; what is still good is kept.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::diag::{Error, Result};
use crate::exec::{self, Job, Progress, ShardFile, ShardOutcome, ShardStore, ShardTask};
use crate::format::{FileSource, Fragment};
use crate::pipeline::{Cut, Graph};
use crate::store::{
    self, BuildFigures, BuildLock, Dataset, FragmentRecord, Freshness, Manifest, PendingShard, Quarantined,
    ShardRecord, State, Wanted,
};
use crate::types::{Codec, Fingerprint, NamedColumn};
use crate::world::machine::{now, peak_resident_bytes, process_cpu_seconds, unix_milliseconds};

/// What is to be built.
pub struct Request<'a> {
    /// The pipeline.
    pub graph: &'a Graph,
    /// Which steps run offline.
    pub cut: &'a Cut,
    /// How stored columns are compressed.
    pub codec: Codec,
    /// What was predicted, kept in the manifest.
    pub plan: Value,
}

/// What a build would do, or has found.
pub struct Pending {
    manifest: Manifest,
    freshness: Freshness,
    previous: Option<Manifest>,
    tasks: Vec<(usize, Vec<Fragment>)>,
}

/// What a build did.
#[derive(Debug)]
pub struct Built {
    /// The published manifest.
    pub manifest: Manifest,
    /// Whether anything had to be done at all.
    pub changed: bool,
}

/// Source bytes that a batch of the offline side takes in.
const BATCH_BYTES: u64 = 2 << 20;

impl Pending {
    /// Compares what is wanted with `previous`, what is published in the data set; digests files whose size is the same and whose time is not.
    ///
    /// # Errors
    /// When a source file can't be read.
    pub fn find(request: &Request<'_>, dataset: &Dataset, previous: Option<Manifest>) -> Result<Self> {
        let graph = request.graph;
        let listing = &graph.source.listing;
        let offline = request.cut.offline_program(graph);
        let remainder = request.cut.remainder(graph);
        let columns: Vec<NamedColumn> =
            if request.cut.by_reference { Vec::new() } else { offline.output_columns().cloned().collect() };
        let definition = store::definition(&offline, request.codec, request.cut.by_reference);
        let files_per_shard =
            store::files_per_shard(listing, previous.as_ref().map(|manifest| manifest.files_per_shard));
        let source = FileSource::new(&listing.root)?;
        let mut digest = |fragment: &Fragment| Ok(Fingerprint::of_bytes(&source.read_blocking(fragment)?));
        let wanted = Wanted {
            definition,
            listing,
            files_per_shard,
            offline: &offline,
            cut: &request.cut.word,
            codec: request.codec,
            on_error: graph.on_error,
        };
        let freshness = store::compare(previous.as_ref(), &wanted, dataset, &mut digest)?;
        let mut tasks = Vec::new();
        for (at, shard) in freshness.shards.iter().enumerate() {
            if matches!(shard.state, State::Stale(_)) {
                tasks.push((at, listing.fragments[shard.range.clone()].to_vec()));
            }
        }
        let manifest = Manifest {
            version: store::MANIFEST_VERSION,
            generation: previous.as_ref().map_or(1, |manifest| manifest.generation + 1),
            name: graph.name.clone(),
            written_ms: unix_milliseconds(),
            parbake: env!("CARGO_PKG_VERSION").to_owned(),
            cut: request.cut.word.clone(),
            codec: request.codec,
            by_reference: request.cut.by_reference,
            root: listing.root.clone(),
            files_per_shard,
            definition,
            offline,
            remainder,
            columns,
            on_error: graph.on_error,
            shards: Vec::new(),
            previous: Vec::new(),
            plan: request.plan.clone(),
            built: BuildFigures::default(),
        };
        Ok(Self { manifest, freshness, previous, tasks })
    }

    /// What was found, shard by shard.
    #[must_use]
    pub const fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Shards that have to be built.
    #[must_use]
    pub fn stale_shards(&self) -> usize {
        self.tasks.len()
    }

    /// Rows that have to be processed.
    #[must_use]
    pub fn stale_rows(&self) -> u64 {
        self.tasks.iter().map(|(_, fragments)| fragments.len() as u64).sum()
    }

    /// Whether the published data set is just what is wanted: no shard to build, none too many, the same remainder.
    #[must_use]
    pub fn is_up_to_date(&self) -> bool {
        let Some(previous) = &self.previous else { return false };
        let kept = self.freshness.shards.iter().filter_map(|shard| match &shard.state {
            State::Fresh(record) => Some(record),
            State::Stale(_) => None,
        });
        self.tasks.is_empty()
            && kept.eq(previous.shards.iter())
            && previous.remainder == self.manifest.remainder
            && previous.on_error == self.manifest.on_error
            && previous.root == self.manifest.root
            && previous.cut == self.manifest.cut
            && previous.name == self.manifest.name
    }

    /// Builds what is stale and publishes. The lock is the proof that nobody else builds here.
    ///
    /// # Errors
    /// When a sample is bad and the pipeline doesn't skip such, or a file can't be read or written; finished shards
    /// stay, and the published data set is as it was.
    pub fn build(self, dataset: &Dataset, _lock: &BuildLock, jobs: usize, progress: Arc<Progress>) -> Result<Built> {
        if self.is_up_to_date() {
            let manifest = self.previous.ok_or_else(|| Error::internal("the build", "nothing is published"))?;
            return Ok(Built { manifest, changed: false });
        }
        let (started, cpu) = (now(), process_cpu_seconds());
        let mut manifest = self.manifest;
        let made = if self.tasks.is_empty() {
            Vec::new()
        } else {
            let store: Arc<Shards> = Arc::new(Shards {
                dataset: dataset.clone(),
                definition: manifest.definition,
                tasks: self.tasks.iter().map(|(_, fragments)| fragments.clone()).collect(),
                records: Mutex::new(vec![None; self.tasks.len()]),
            });
            let job = Job {
                source: FileSource::new(&manifest.root)?,
                tasks: self.tasks.iter().map(|(_, fragments)| ShardTask { fragments: fragments.clone() }).collect(),
                program: manifest.offline.clone(),
                codec: manifest.codec,
                on_error: manifest.on_error,
                jobs,
                batch_bytes: BATCH_BYTES,
                store: (!manifest.by_reference).then(|| Arc::new(Arc::clone(&store)) as Arc<dyn ShardStore>),
                progress,
            };
            let outcomes = exec::run(job)?;
            if manifest.by_reference {
                outcomes.iter().map(|outcome| store.record(outcome)).collect()
            } else {
                store.finished()?
            }
        };
        let built = made.len() as u64;
        let mut made = made.into_iter();
        for shard in self.freshness.shards {
            match shard.state {
                State::Fresh(record) => manifest.shards.push(record),
                State::Stale(_) => {
                    let record = made.next().ok_or_else(|| Error::internal("the build", "a shard is missing"))?;
                    manifest.shards.push(record);
                }
            }
        }
        manifest.previous =
            self.previous.map(|previous| previous.shards.iter().map(|shard| shard.id).collect()).unwrap_or_default();
        manifest.built = BuildFigures {
            seconds: started.elapsed().as_secs_f64(),
            cpu_seconds: process_cpu_seconds() - cpu,
            rows: manifest.rows(),
            stored_bytes: manifest.stored_bytes(),
            shards_built: built,
            shards_kept: manifest.shards.len() as u64 - built,
            peak_memory_bytes: peak_resident_bytes(),
        };
        dataset.publish(&manifest)?;
        Ok(Built { manifest, changed: true })
    }
}

/// The shards of one build, as the engine sees them.
struct Shards {
    dataset: Dataset,
    definition: Fingerprint,
    tasks: Vec<Vec<Fragment>>,
    records: Mutex<Vec<Option<ShardRecord>>>,
}

impl Shards {
    /// The record of a shard, but for what only its finished file can tell.
    fn record(&self, outcome: &ShardOutcome) -> ShardRecord {
        let fragments = &self.tasks[outcome.task];
        let bad = |at: usize| outcome.bad.iter().any(|bad| bad.fragment == at);
        ShardRecord {
            id: store::shard_fingerprint(self.definition, fragments),
            fragments: fragments
                .iter()
                .zip(&outcome.digests)
                .enumerate()
                .map(|(at, (fragment, digest))| FragmentRecord {
                    path: fragment.path.clone(),
                    size: fragment.size,
                    modified_ns: fragment.modified_ns,
                    digest: *digest,
                    rows: u32::from(!bad(at)),
                })
                .collect(),
            rows: outcome.rows,
            bytes: 0,
            checksum: None,
            quarantined: outcome
                .bad
                .iter()
                .map(|bad| Quarantined {
                    path: fragments.get(bad.fragment).map_or(String::new(), |fragment| fragment.path.clone()),
                    row: 0,
                    step: bad.step.clone(),
                    reason: bad.reason.clone(),
                })
                .collect(),
            seconds: outcome.seconds,
            cpu_seconds: outcome.cpu_seconds,
        }
    }

    /// The records of all shards, in the order of the tasks.
    fn finished(&self) -> Result<Vec<ShardRecord>> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let records: Option<Vec<ShardRecord>> = records.iter().cloned().collect();
        records.ok_or_else(|| Error::internal("the build", "a shard was not finished"))
    }
}

/// A shard's file while it is written.
struct Pen {
    pending: PendingShard,
    shards: Arc<Shards>,
}

impl ShardStore for Arc<Shards> {
    fn create(&self, task: usize) -> Result<Box<dyn ShardFile>> {
        let fragments = self.tasks.get(task).ok_or_else(|| Error::internal("the build", "there is no such shard"))?;
        let pending = self.dataset.begin_shard(store::shard_fingerprint(self.definition, fragments))?;
        Ok(Box::new(Pen { pending, shards: Arc::clone(self) }))
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

/// The folder of a pipeline's data set when none is named: `out/NAME`.
#[must_use]
pub fn default_folder(graph: &Graph) -> std::path::PathBuf {
    Path::new("out").join(&graph.name)
}
