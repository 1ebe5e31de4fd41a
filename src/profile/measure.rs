//! Runs a sample: times every step, every cut's two programs, and really encodes and decodes each representation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow::array::{ArrayRef, BinaryViewArray, Int64Array, StringArray};
use bytes::Bytes;

use super::candidate::{Bench, candidate_facts};
use super::facts::{Machine as MachineFacts, Measured, Profile, StepFacts};
use super::identity::{data_fingerprint, definition_fingerprint};
use super::meeting::Meeting;
use super::reading;
use super::sample::stratified;
use super::seen::Seen;
use super::storage;
use crate::diag::{DataError, Error, Result};
use crate::format::{BYTES, DIGEST, FileSource, Fragment, PATH, SIZE, SourceKind, batches};
use crate::pipeline::{
    Action, ColumnId, CompileOptions, Cut, Files, Graph, Machine, OnError, Producer, relation_program,
};
use crate::types::batch::binary_view_of_rows;
use crate::types::{Batch, BufferPool, Fingerprint, RowKey};
use crate::world::files;
use crate::world::machine::{available_memory_bytes, cores, now};

/// How long a profile may take.
#[derive(Debug, Clone, Copy)]
pub struct ProfileLimit {
    /// The most rows.
    pub rows: usize,
    /// The most seconds, about: what each candidate needs at least is done whatever it takes.
    pub seconds: f64,
}

impl ProfileLimit {
    /// What a command takes that isn't told otherwise.
    pub const DEFAULT: Self = Self { rows: 256, seconds: 10.0 };
}

/// Rows of a base relation that were put together for a profile.
#[derive(Debug, Clone, Default)]
pub struct BaseRows {
    /// Which columns there are.
    pub columns: Vec<ColumnId>,
    /// Some of the rows, in batches.
    pub batches: Vec<Batch>,
    /// Where each of them comes from: a file, or what stands for one, and the row in it.
    pub places: Vec<Vec<(String, u64)>>,
    /// How many rows there are.
    pub total: u64,
    /// Thread-seconds a row to put them together.
    pub seconds: f64,
}

/// What a profile is made of.
pub struct Subject<'g> {
    /// The pipeline.
    pub graph: &'g Graph,
    /// Its cuts.
    pub cuts: &'g [Cut],
    /// The source files.
    pub files: &'g Files,
    /// Rows of the base relation, where its rows aren't files.
    pub base: Option<BaseRows>,
    /// How programs are compiled.
    pub options: CompileOptions,
    /// Shards that the data set will have, about.
    pub shards: u64,
}

/// Rows that are timed together: enough to hide the clock, few enough to see the spread.
const GROUP: usize = 16;
/// Source bytes of a group, unless it is one large file: decoded, they may be fifty times as many.
const GROUP_BYTES: u64 = 1 << 20;
/// Groups that make a batch on which candidates are tried: as many rows as a stream's batch has, so that they don't
/// stay in a processor's cache as fewer would.
const BATCH_GROUPS: usize = 4;
/// Groups that a thread tries each candidate on.
const CANDIDATE_GROUPS: usize = 2 * BATCH_GROUPS;

/// Rows of the base relation as a batch, with what messages call them.
#[derive(Clone)]
pub struct Group {
    /// The keys.
    pub keys: Vec<RowKey>,
    /// The columns.
    pub columns: BTreeMap<ColumnId, ArrayRef>,
    /// Where each row comes from.
    places: Vec<(String, u64)>,
    bytes: u64,
}

impl Group {
    /// A batch of those columns.
    pub fn batch(&self, columns: &[ColumnId]) -> Result<Batch> {
        let missing = || Error::internal("the profile", "a column is missing");
        let columns = columns.iter().map(|id| self.columns.get(id).cloned().ok_or_else(missing));
        Ok(Batch { keys: self.keys.clone(), columns: columns.collect::<Result<_>>()? })
    }

    fn join(groups: &[Self]) -> Result<Self> {
        let Some(first) = groups.first() else { return Err(Error::internal("the profile", "no group")) };
        let mut joined = Self { keys: Vec::new(), columns: BTreeMap::new(), places: Vec::new(), bytes: 0 };
        for group in groups {
            joined.keys.extend(&group.keys);
            joined.places.extend(group.places.iter().cloned());
            joined.bytes += group.bytes;
        }
        for id in first.columns.keys() {
            let parts: Vec<&dyn arrow::array::Array> =
                groups.iter().filter_map(|group| group.columns.get(id)).map(AsRef::as_ref).collect();
            let whole = arrow::compute::concat(&parts).map_err(|error| Error::internal("the profile", error))?;
            joined.columns.insert(*id, whole);
        }
        Ok(joined)
    }
}

/// Where the sample's groups come from.
enum Source<'g> {
    Files { reader: FileSource, groups: Vec<&'g [Fragment]>, columns: Vec<(ColumnId, &'static str)> },
    Rows(Vec<Group>),
}

impl Source<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Files { groups, .. } => groups.len(),
            Self::Rows(groups) => groups.len(),
        }
    }

    /// The group of that number; files that can't be read are failures.
    fn group(&self, at: usize, failures: &mut Vec<DataError>) -> Result<Group> {
        let (reader, groups, columns) = match self {
            Self::Rows(groups) => return Ok(groups[at].clone()),
            Self::Files { reader, groups, columns } => (reader, groups, columns),
        };
        let mut read: Vec<(&Fragment, Bytes)> = Vec::new();
        for fragment in groups[at] {
            match reader.read_blocking(fragment) {
                Ok(bytes) => read.push((fragment, bytes)),
                Err(error) => failures.push(DataError {
                    file: fragment.path.clone(),
                    row: 0,
                    step: "source".to_owned(),
                    reason: error.to_string(),
                }),
            }
        }
        let column = |name: &str| -> Result<ArrayRef> {
            Ok(match name {
                PATH => Arc::new(read.iter().map(|(file, _)| Some(&file.path)).collect::<StringArray>()),
                SIZE => {
                    let sizes = read.iter().map(|(file, _)| i64::try_from(file.size).unwrap_or(i64::MAX));
                    Arc::new(Int64Array::from_iter_values(sizes))
                }
                DIGEST => Arc::new(BinaryViewArray::from_iter_values(
                    read.iter().map(|(_, bytes)| Fingerprint::of_bytes(bytes).0),
                )),
                _ => Arc::new(
                    binary_view_of_rows(read.iter().map(|(_, bytes)| bytes.clone()).collect())
                        .map_err(|error| Error::internal("the profile", error))?,
                ),
            })
        };
        Ok(Group {
            keys: read.iter().map(|(file, _)| RowKey::of_fragment(&file.path, 0)).collect(),
            columns: columns.iter().map(|(id, name)| Ok((*id, column(name)?))).collect::<Result<_>>()?,
            places: read.iter().map(|(file, _)| (file.path.clone(), 0)).collect(),
            bytes: read.iter().map(|(file, _)| file.size).sum(),
        })
    }
}

/// Profiles a pipeline with `threads` threads at once; temporary files go into `scratch`, a folder on the file system
/// that the data set will be on.
///
/// # Errors
/// When a sample can't be processed and the pipeline doesn't skip such, when all of them can't, or when `scratch`
/// can't be written.
pub fn profile(subject: &Subject<'_>, threads: usize, limit: ProfileLimit, scratch: &Path) -> Result<Profile> {
    let started = now();
    let (graph, cuts) = (subject.graph, subject.cuts);
    files::make_folder(scratch)?;
    let threads = threads.max(1);
    let base = graph.base(graph.output_relation);
    let sample: Vec<Fragment>;
    let (source, read_source, rows_total) = match (graph.relation(base).producer, &subject.base) {
        (Producer::Source(at), None) if graph.sources[at].kind == SourceKind::Files => {
            let listing = &graph.sources[at].listing;
            sample = stratified(&listing.fragments, limit.rows, graph.seed);
            let groups = batches(&sample, GROUP_BYTES, GROUP).into_iter().map(|range| &sample[range]).collect();
            let reader = FileSource::new(&listing.root)?;
            let read = reading::measure(&reader, &sample, threads)?;
            let columns = file_columns(graph, at);
            (Source::Files { reader, groups, columns }, read, listing.fragments.len() as u64)
        }
        (_, Some(rows)) => {
            let mut groups = Vec::new();
            for (batch, places) in rows.batches.iter().zip(&rows.places) {
                for from in (0..batch.rows()).step_by(GROUP) {
                    let count = GROUP.min(batch.rows() - from);
                    let columns = rows.columns.iter().zip(&batch.columns);
                    groups.push(Group {
                        keys: batch.keys[from..from + count].to_vec(),
                        columns: columns.map(|(id, column)| (*id, column.slice(from, count))).collect(),
                        places: places[from..from + count].to_vec(),
                        bytes: 0,
                    });
                }
            }
            (Source::Rows(groups), Measured::exact(rows.seconds), rows.total)
        }
        _ => return Err(Error::internal("the profile", "no rows of the base relation")),
    };
    let next = AtomicUsize::new(0);
    let workers = threads.min(source.len()).max(1);
    let bench = Bench::new(subject, scratch, limit.seconds / 2.0);
    let stepped: Vec<Result<(Seen, Vec<Group>)>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|_| {
                let (bench, source, next) = (&bench, &source, &next);
                scope.spawn(move || run_steps(bench, subject, source, next, started, limit))
            })
            .collect();
        handles.into_iter().map(joined).collect()
    });
    let mut all = Seen::default();
    let mut batches: Vec<Vec<Group>> = Vec::new();
    for stepped in stepped {
        let (seen, kept) = stepped?;
        all.merge(seen);
        batches.extend((!kept.is_empty()).then_some(kept));
    }
    // All threads try the same candidate at the same time, as those of a build or a stream do: they share caches and
    // the memory's bandwidth.
    let rounds = batches.iter().map(Vec::len).min().unwrap_or(0);
    let meeting = Meeting::new(batches.len());
    let tried: Vec<Result<Seen>> = std::thread::scope(|scope| {
        let handles: Vec<_> = batches
            .iter()
            .enumerate()
            .map(|(worker, batches)| {
                let (bench, meeting) = (&bench, &meeting);
                let batches = &batches[..rounds];
                scope.spawn(move || run_candidates(bench, worker, batches, meeting, started, limit))
            })
            .collect();
        handles.into_iter().map(joined).collect()
    });
    for seen in tried {
        all.merge(seen?);
    }
    if !all.failures.is_empty() && graph.on_error == OnError::Fail {
        return Err(Error::Data(all.failures));
    }
    let storage = storage::measure(scratch)?;
    let source_bytes_total: u64 = graph.sources.iter().map(crate::format::Source::bytes).sum();
    let totals = (rows_total, source_bytes_total);
    if all.cuts.len() < cuts.len() {
        // No thread has tried anything: no row of the sample was left to try it on.
        all.cuts = bench.nothing_seen().cuts;
    }
    let facts = cuts.iter().zip(&all.cuts).map(|(cut, seen)| candidate_facts(graph, cut, seen, totals)).collect();
    let steps = graph
        .steps
        .iter()
        .zip(&all.steps)
        .filter(|(_, seen)| !seen.seconds.is_empty())
        .map(|(step, seen)| StepFacts {
            step: step.name.clone(),
            op: step.op_name().to_owned(),
            seconds: Measured::of(&seen.seconds),
            bytes: Measured::of(&seen.bytes),
            rows: Measured::ratio(&seen.rows_out, &seen.rows_in),
            online_only: step.online_only,
        })
        .collect();
    Ok(Profile {
        version: super::facts::PROFILE_VERSION,
        definition: definition_fingerprint(graph, cuts),
        data: data_fingerprint(graph),
        machine: MachineFacts { cores: cores(), available_memory_bytes: available_memory_bytes() },
        threads,
        rows_total,
        source_bytes_total,
        shards: subject.shards,
        rows_sampled: all.rows,
        seconds: started.elapsed().as_secs_f64(),
        bad_rows: all.failures.len() as u64,
        read_source,
        steps,
        cuts: facts,
        storage,
    })
}

/// The columns of a file source, and what each is.
fn file_columns(graph: &Graph, source: usize) -> Vec<(ColumnId, &'static str)> {
    let named = [PATH, SIZE, DIGEST];
    let mut columns: Vec<(ColumnId, &'static str)> = graph
        .source_columns(source)
        .filter_map(|id| Some((id, *named.iter().find(|name| **name == graph.column(id).name)?)))
        .collect();
    for step in &graph.steps {
        if matches!(step.action, Action::Read(of) if of == source)
            && graph.relation(step.relation).producer == Producer::Source(source)
        {
            columns.extend(step.outputs.iter().map(|id| (*id, BYTES)));
        }
    }
    columns
}

fn joined<T>(handle: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|_| Err(Error::internal("the profile", "a thread panicked")))
}

/// Runs groups through every step, one at a time; gives some of them, as batches, to try candidates on.
fn run_steps(
    bench: &Bench<'_>,
    subject: &Subject<'_>,
    source: &Source<'_>,
    next: &AtomicUsize,
    started: Instant,
    limit: ProfileLimit,
) -> Result<(Seen, Vec<Group>)> {
    let graph = subject.graph;
    let mut seen = bench.nothing_seen();
    let pool = BufferPool::new(2 * BATCH_GROUPS * GROUP);
    // Every step by itself, from the base to what comes out.
    let whole = relation_program(graph, graph.output_relation, &graph.outputs, CompileOptions { fused: false });
    let mut machine = Machine::new(&whole.program, pool.clone(), subject.files)?;
    let mut kept: Vec<Vec<Group>> = Vec::new();
    let (mut groups_kept, mut room) = (0, 0_u64);
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        // Half of the time is for the steps, half for the candidates; each thread sees one group at least.
        let late = started.elapsed().as_secs_f64() > limit.seconds / 2.0 && !kept.is_empty();
        if at >= source.len() || late {
            break;
        }
        let group = source.group(at, &mut seen.failures)?;
        if group.keys.is_empty() {
            continue;
        }
        let mut times = Vec::new();
        let outcome = machine.run_timed(&group.batch(&whole.inputs)?, &mut times)?;
        for time in times {
            let Some(at) = graph.steps.iter().position(|step| step.name == time.step) else { continue };
            let step = &mut seen.steps[at];
            step.seconds.push(time.seconds / time.rows_in.max(1) as f64);
            step.bytes.push(time.bytes as f64 / time.rows_out.max(1) as f64);
            step.rows_in.push(time.rows_in as f64);
            step.rows_out.push(time.rows_out as f64);
        }
        seen.rows += group.keys.len() as u64;
        let all_bad = outcome.failures.len() >= group.keys.len();
        seen.failures.extend(outcome.failures.into_iter().map(|failure| {
            let (file, row) = group.places.get(failure.row).cloned().unwrap_or_default();
            DataError { file, row, step: failure.step, reason: failure.reason }
        }));
        if groups_kept == CANDIDATE_GROUPS || all_bad {
            continue;
        }
        // A batch has some groups, or one group of one large file.
        let bytes = group.bytes;
        match kept.last_mut().filter(|batch| batch.len() < BATCH_GROUPS && bytes <= room) {
            Some(batch) => batch.push(group),
            None => {
                kept.push(vec![group]);
                room = GROUP_BYTES * BATCH_GROUPS as u64;
            }
        }
        room = room.saturating_sub(bytes);
        groups_kept += 1;
    }
    let batches = kept.iter().map(|groups| Group::join(groups)).collect::<Result<_>>()?;
    Ok((seen, batches))
}

/// Tries every candidate on every batch, all threads the same at the same time.
fn run_candidates(
    bench: &Bench<'_>,
    worker: usize,
    batches: &[Group],
    meeting: &Meeting,
    started: Instant,
    limit: ProfileLimit,
) -> Result<Seen> {
    let mut seen = bench.nothing_seen();
    let mut meets = meeting.meets(batches.len() * bench.len() * (2 + Bench::MEETS));
    for (round, batch) in batches.iter().enumerate() {
        for at in 0..bench.len() {
            // Memory of one candidate's sizes is of no use to the next.
            let pool = BufferPool::new(2 * BATCH_GROUPS * GROUP);
            let mut machines = bench.machines(at, &pool)?;
            let late = started.elapsed().as_secs_f64() > limit.seconds && round > 0;
            if meets.agree(late) {
                (0..Bench::MEETS).for_each(|_| meets.meet());
            } else {
                bench.run(at, &mut machines, batch, worker, &pool, &mut meets, &mut seen.cuts[at])?;
            }
        }
    }
    Ok(seen)
}
