//! What a build has to do, and doing it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::files;
use super::shards::{Desk, Shards, Wanted as WantedShard, quarantined};
use crate::diag::{Error, Result};
use crate::exec::{self, Gathered, Job, Progress, Relations, Scan, ShardStore, ShardTask, SpoolPlace, gather};
use crate::format::{FileSource, Fragment, Listing, Source, SourceKind};
use crate::pipeline::{
    CompileOptions, Compiled, Cut, Files, Graph, OnError, Producer, Program, ROWS, RelationId, gathered_fingerprint,
};
use crate::store::{
    self, BuildFigures, BuildLock, Dataset, Freshness, InputRecord, Manifest, Quarantined, Reason, ShardRecord,
    ShardState, SourceRecord, State, Wanted,
};
use crate::types::{Codec, ColumnType, Fingerprint, NamedColumn};
use crate::world::machine::{now, peak_resident_bytes, process_cpu_seconds, unix_milliseconds};

/// What is to be built.
pub struct Request<'a> {
    /// The pipeline.
    pub graph: &'a Graph,
    /// Which steps run offline.
    pub cut: &'a Cut,
    /// How stored columns are compressed.
    pub codec: Codec,
    /// How programs are compiled.
    pub options: CompileOptions,
    /// Files, or rows that were put together, of a shard, about; none: as many as suit their size.
    pub shard_rows: Option<u32>,
    /// What was predicted, kept in the manifest.
    pub plan: Value,
}

/// What a build would do, or has found.
pub struct Pending<'a> {
    graph: &'a Graph,
    manifest: Manifest,
    offline: Compiled,
    structure: Option<Program>,
    base: RelationId,
    freshness: Freshness,
    previous: Option<Manifest>,
    tasks: Vec<(usize, ShardTask)>,
    options: CompileOptions,
    files: Arc<Files>,
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
/// Rows that were put together of a shard, on average.
pub const GATHERED_ROWS: u32 = 256;

/// What stored bytes depend on besides the source files.
#[must_use]
pub fn definition(graph: &Graph, cut: &Cut, codec: Codec, options: CompileOptions) -> Fingerprint {
    let structure = structure(&cut.remainder(graph, options));
    definition_of(graph, cut, &cut.offline_program(graph, options), structure.as_ref(), codec)
}

fn definition_of(
    graph: &Graph,
    cut: &Cut,
    offline: &Compiled,
    structure: Option<&Program>,
    codec: Codec,
) -> Fingerprint {
    let gathered = gathered_fingerprint(graph, graph.base(cut.stored), &offline.inputs);
    store::definition(&offline.program, gathered, structure, codec)
}

/// Which rows a stored row becomes online, where that is decided by the remainder.
fn structure(remainder: &Program) -> Option<Program> {
    remainder.expands().then(|| remainder.structure())
}

impl<'a> Pending<'a> {
    /// Compares what is wanted with `previous`, what is published in the data set; digests files whose size is the
    /// same and whose time is not.
    ///
    /// # Errors
    /// When a source file can't be read.
    pub fn find(request: &Request<'a>, dataset: &Dataset, previous: Option<Manifest>) -> Result<Self> {
        let (graph, cut, options) = (request.graph, request.cut, request.options);
        let offline = cut.offline_program(graph, options);
        let remainder = cut.remainder(graph, options);
        let structure = structure(&remainder);
        let base = graph.base(cut.stored);
        let rows = structure.iter().map(|_| NamedColumn { name: ROWS.to_owned(), column_type: ColumnType::Bytes });
        let columns: Vec<NamedColumn> = offline.program.output_columns().chain(rows).collect();
        let definition = definition_of(graph, cut, &offline, structure.as_ref(), request.codec);
        let listings: Vec<&Listing> = graph.sources.iter().map(|source| &source.listing).collect();
        let readers: Vec<FileSource> =
            graph.sources.iter().map(|source| FileSource::new(source.root())).collect::<Result<_>>()?;
        let was = previous.as_ref().map(|manifest| manifest.files_per_shard);
        let wanted = |listing, files_per_shard| Wanted {
            definition,
            listing,
            files_per_shard,
            offline: &offline.program,
            cut: &cut.word,
            codec: request.codec,
            on_error: graph.on_error,
        };
        let (freshness, tasks, files_per_shard) = match graph.relation(base).producer {
            Producer::Source(source) => {
                let listing = listings[source];
                let files_per_shard = store::files_per_shard(listing, was, request.shard_rows);
                let mut digest =
                    |fragment: &Fragment| Ok(Fingerprint::of_bytes(&readers[source].read_blocking(fragment)?));
                let freshness =
                    store::compare(previous.as_ref(), &wanted(listing, files_per_shard), dataset, &mut digest)?;
                let mut tasks = Vec::new();
                for (at, shard) in freshness.shards.iter().enumerate() {
                    if matches!(shard.state, State::Stale(_)) {
                        let fragments = listing.fragments[shard.range.clone()].to_vec();
                        tasks.push((at, ShardTask { fragments, first: shard.range.start, part: 0 }));
                    }
                }
                (freshness, tasks, files_per_shard)
            }
            Producer::Step(_) => {
                let rows_per_shard = request.shard_rows.or(was).unwrap_or(GATHERED_ROWS).max(1);
                let mut digest = |source: usize, fragment: &Fragment| {
                    Ok(Fingerprint::of_bytes(&readers[source].read_blocking(fragment)?))
                };
                let empty = Listing::default();
                let mut reasons = store::compare_inputs(
                    previous.as_ref(),
                    &wanted(&empty, rows_per_shard),
                    &listings,
                    dataset,
                    &mut digest,
                )?;
                if reasons.is_empty() && was != Some(rows_per_shard) {
                    reasons.push(Reason::Dealt);
                }
                let shards = match (&previous, reasons.is_empty()) {
                    (Some(previous), true) => {
                        let fresh =
                            |record: &ShardRecord| ShardState { range: 0..0, state: State::Fresh(record.clone()) };
                        previous.shards.iter().map(fresh).collect()
                    }
                    _ => vec![ShardState { range: 0..0, state: State::Stale(reasons) }],
                };
                (Freshness { shards, orphans: Vec::new() }, Vec::new(), rows_per_shard)
            }
        };
        let record = |source: &Source| SourceRecord {
            name: source.name.clone(),
            root: source.root().to_owned(),
            files: source.kind == SourceKind::Files,
        };
        let manifest = Manifest {
            version: store::MANIFEST_VERSION,
            generation: previous.as_ref().map_or(1, |manifest| manifest.generation + 1),
            name: graph.name.clone(),
            written_ms: unix_milliseconds(),
            parbake: env!("CARGO_PKG_VERSION").to_owned(),
            cut: cut.word.clone(),
            codec: request.codec,
            sources: graph.sources.iter().map(record).collect(),
            inputs: Vec::new(),
            left_out: Vec::new(),
            files_per_shard,
            definition,
            offline: offline.program.clone(),
            remainder,
            columns,
            on_error: graph.on_error,
            shards: Vec::new(),
            previous: Vec::new(),
            plan: request.plan.clone(),
            built: BuildFigures::default(),
        };
        let files = Arc::new(files(graph)?);
        Ok(Self { graph, manifest, offline, structure, base, freshness, previous, tasks, options, files })
    }

    /// What was found, shard by shard.
    #[must_use]
    pub const fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Whether rows are put together from several relations.
    fn is_gathered(&self) -> bool {
        matches!(self.graph.relation(self.base).producer, Producer::Step(_))
    }

    /// Shards that have to be built, as far as that is known before rows are put together.
    #[must_use]
    pub fn stale_shards(&self) -> usize {
        self.freshness.shards.iter().filter(|shard| matches!(shard.state, State::Stale(_))).count()
    }

    /// Rows that have to be processed, as far as that is known: a file is at least one.
    #[must_use]
    pub fn stale_rows(&self) -> u64 {
        self.tasks.iter().map(|(_, task)| task.fragments.len() as u64).sum()
    }

    /// Whether the published data set is just what is wanted: no shard to build, none too many, the same remainder.
    #[must_use]
    pub fn is_up_to_date(&self) -> bool {
        let Some(previous) = &self.previous else { return false };
        let kept = self.freshness.shards.iter().filter_map(|shard| match &shard.state {
            State::Fresh(record) => Some(record),
            State::Stale(_) => None,
        });
        self.stale_shards() == 0
            && kept.eq(previous.shards.iter())
            && previous.remainder == self.manifest.remainder
            && previous.on_error == self.manifest.on_error
            && previous.sources == self.manifest.sources
            && previous.cut == self.manifest.cut
            && previous.name == self.manifest.name
    }

    /// Builds what is stale and publishes. The lock is the proof that nobody else builds here.
    ///
    /// # Errors
    /// When a sample is bad and the pipeline doesn't skip such, or a file can't be read or written; finished shards
    /// stay, and the published data set is as it was.
    pub fn build(
        mut self,
        dataset: &Dataset,
        _lock: &BuildLock,
        jobs: usize,
        progress: Arc<Progress>,
    ) -> Result<Built> {
        if self.is_up_to_date() {
            let manifest = self.previous.ok_or_else(|| Error::internal("the build", "nothing is published"))?;
            return Ok(Built { manifest, changed: false });
        }
        let (started, cpu) = (now(), process_cpu_seconds());
        let scan = if self.is_gathered() {
            if self.stale_shards() == 0 {
                // Only the remainder is another one.
                if let Some(previous) = &self.previous {
                    self.manifest.inputs.clone_from(&previous.inputs);
                    self.manifest.left_out.clone_from(&previous.left_out);
                }
                None
            } else {
                Some(self.gather(dataset, jobs)?)
            }
        } else {
            Some(self.source_scan()?)
        };
        let made = match scan {
            Some(scan) if !self.tasks.is_empty() => self.run(dataset, scan, jobs, progress)?,
            _ => Vec::new(),
        };
        let built = made.len() as u64;
        let mut made = made.into_iter();
        let mut manifest = self.manifest;
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

    /// The job of computing the shards at those places again, which are as they should be, and what they are called.
    ///
    /// # Errors
    /// When rows can't be put together again.
    pub fn again(
        mut self,
        dataset: &Dataset,
        places: &BTreeSet<usize>,
        jobs: usize,
    ) -> Result<(Job, Vec<Fingerprint>)> {
        let scan = if self.is_gathered() { self.gather(dataset, jobs)? } else { self.source_scan()? };
        let (mut tasks, mut ids) = (Vec::new(), Vec::new());
        for (at, shard) in self.freshness.shards.iter().enumerate() {
            let State::Fresh(record) = &shard.state else { continue };
            if places.contains(&at) {
                let fragments = match self.graph.relation(self.base).producer {
                    Producer::Source(source) => {
                        self.graph.sources[source].listing.fragments[shard.range.clone()].to_vec()
                    }
                    Producer::Step(_) => Vec::new(),
                };
                tasks.push(ShardTask { fragments, first: shard.range.start, part: at });
                ids.push(record.id);
            }
        }
        Ok((self.job(scan, tasks, jobs), ids))
    }

    /// The job of making the shards of those tasks, which puts them nowhere yet and tells nobody how far it is.
    fn job(&self, scan: Scan, tasks: Vec<ShardTask>, jobs: usize) -> Job {
        Job {
            scan,
            files: Arc::clone(&self.files),
            tasks,
            program: self.offline.program.clone(),
            structure: self.structure.clone(),
            codec: self.manifest.codec,
            on_error: self.manifest.on_error,
            jobs,
            batch_bytes: BATCH_BYTES,
            store: None,
            progress: Arc::default(),
        }
    }

    fn source_scan(&self) -> Result<Scan> {
        let Producer::Source(source) = self.graph.relation(self.base).producer else {
            return Err(Error::internal("the build", "rows that were put together are no source's"));
        };
        Scan::of(&self.graph.sources[source], &self.files)
    }

    /// Puts rows together; what was built of the same rows before is taken over.
    fn gather(&mut self, dataset: &Dataset, jobs: usize) -> Result<Scan> {
        let place = SpoolPlace { path: dataset.temporary("rows")?, rows_per_part: self.manifest.files_per_shard };
        let relations = relations(self.graph, &self.files, self.options, jobs);
        let Gathered { spool, bad, digests } = gather(&relations, self.base, &self.offline.inputs, &place)?;
        self.manifest.left_out = bad.iter().map(quarantined).collect::<Vec<Quarantined>>();
        self.manifest.inputs = inputs(self.graph, &digests);
        self.freshness.shards.clear();
        self.tasks.clear();
        for (at, part) in spool.parts().iter().enumerate() {
            let id = store::part_fingerprint(self.manifest.definition, part.digest);
            let strict = self.manifest.on_error == OnError::Fail;
            let kept = dataset.finished(id).filter(|record| !strict || record.quarantined.is_empty());
            let state = match kept {
                Some(record) => State::Fresh(record),
                None => {
                    self.tasks.push((at, ShardTask { fragments: Vec::new(), first: 0, part: at }));
                    State::Stale(vec![Reason::Gathered])
                }
            };
            self.freshness.shards.push(ShardState { range: 0..0, state });
        }
        Ok(Scan::Spool(Arc::new(spool)))
    }

    fn run(&self, dataset: &Dataset, scan: Scan, jobs: usize, progress: Arc<Progress>) -> Result<Vec<ShardRecord>> {
        let definition = self.manifest.definition;
        let spool = match &scan {
            Scan::Spool(spool) => Some(Arc::clone(spool)),
            _ => None,
        };
        let wanted = self.tasks.iter().map(|(_, task)| match spool.as_ref().and_then(|s| s.parts().get(task.part)) {
            Some(part) => {
                let id = store::part_fingerprint(definition, part.digest);
                WantedShard { id, fragments: Vec::new(), part: Some(part.digest) }
            }
            None => {
                let id = store::shard_fingerprint(definition, &task.fragments);
                WantedShard { id, fragments: task.fragments.clone(), part: None }
            }
        });
        let shards = Arc::new(Shards::new(dataset.clone(), wanted.collect()));
        let tasks = self.tasks.iter().map(|(_, task)| task.clone()).collect();
        let store: Arc<dyn ShardStore> = Arc::new(Desk(Arc::clone(&shards)));
        exec::run(Job { store: Some(store), progress, ..self.job(scan, tasks, jobs) })?;
        shards.finished()
    }
}

/// What is needed to put a graph's rows together.
#[must_use]
pub fn relations<'g>(graph: &'g Graph, files: &Arc<Files>, options: CompileOptions, jobs: usize) -> Relations<'g> {
    let deal = |listing: &Listing| {
        let files_per_task = store::files_per_shard(listing, None, None);
        store::assign(listing, files_per_task)
            .into_iter()
            .map(|range| ShardTask {
                fragments: listing.fragments[range.clone()].to_vec(),
                first: range.start,
                part: 0,
            })
            .collect()
    };
    Relations {
        graph,
        files: Arc::clone(files),
        options,
        jobs,
        batch_bytes: BATCH_BYTES,
        tasks: graph.sources.iter().map(|source| deal(&source.listing)).collect(),
        memory_limit: exec::MEMORY_LIMIT,
        on_error: graph.on_error,
        progress: Arc::default(),
    }
}

fn inputs(graph: &Graph, digests: &[Vec<Option<Fingerprint>>]) -> Vec<InputRecord> {
    let mut inputs = Vec::new();
    for (source, of) in graph.sources.iter().enumerate() {
        for (at, fragment) in of.listing.fragments.iter().enumerate() {
            inputs.push(InputRecord {
                source,
                path: fragment.path.clone(),
                size: fragment.size,
                modified_ns: fragment.modified_ns,
                digest: digests.get(source).and_then(|digests| digests.get(at)).copied().flatten(),
            });
        }
    }
    inputs
}
