//! Runs a sample: times every step, every cut's two programs, and really encodes and decodes each representation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray};

use super::facts::{CutFacts, Machine as MachineFacts, Measured, Profile, Representation, StepFacts};
use super::identity::{data_fingerprint, definition_fingerprint};
use super::sample::stratified;
use super::seen::{CodecSeen, CutSeen, Seen};
use super::storage;
use crate::diag::{DataError, Error, Result};
use crate::format::shard::{ShardReader, ShardWriter};
use crate::format::{FileSource, Fragment, batches};
use crate::pipeline::cut::BY_REFERENCE;
use crate::pipeline::{Cut, Graph, Machine, OnError, Program, StepFailure};
use crate::types::batch::{array_bytes, binary_view_of_rows};
use crate::types::{Batch, BufferPool, Codec, Digesting, Fingerprint, NamedColumn, RowKey};
use crate::world::machine::{available_memory_bytes, cores, now};
use crate::world::{LocalFile, files};

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

/// Rows that are timed together: enough to hide the clock, few enough to see the spread.
const GROUP: usize = 16;
/// Source bytes of a group, unless it is one large file: decoded, they may be fifty times as many.
const GROUP_BYTES: u64 = 1 << 20;
/// Groups that make a batch on which candidates are tried: as many rows as a stream's batch has, so that they don't
/// stay in a processor's cache as fewer would.
const BATCH_GROUPS: usize = 4;
/// How often, at most, and for how many seconds, about, reading and processing a batch is repeated.
const REPEATS: u64 = 12;
const REPEAT_SECONDS: f64 = 0.1;
/// Groups that a thread tries each candidate on.
const CANDIDATE_GROUPS: usize = 2 * BATCH_GROUPS;

/// Profiles a pipeline with `threads` threads at once; temporary files go into `scratch`, a folder on the file system
/// that the data set will be on.
///
/// # Errors
/// When a sample can't be processed and the pipeline doesn't skip such, when all of them can't, or when `scratch`
/// can't be written.
pub fn profile(graph: &Graph, cuts: &[Cut], threads: usize, limit: ProfileLimit, scratch: &Path) -> Result<Profile> {
    let started = now();
    let sample = stratified(&graph.source.listing.fragments, limit.rows, graph.seed);
    files::make_folder(scratch)?;
    let groups: Vec<&[Fragment]> =
        batches(&sample, GROUP_BYTES, GROUP).into_iter().map(|range| &sample[range]).collect();
    let next = AtomicUsize::new(0);
    let threads = threads.max(1);
    let workers = threads.min(groups.len()).max(1);
    let bench = Bench::new(graph, cuts, scratch)?;
    let seen: Vec<Result<Seen>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let (bench, groups, next) = (&bench, &groups, &next);
                scope.spawn(move || bench.work(worker, groups, next, started, limit))
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(Error::internal("the profile", "a thread panicked"))))
            .collect()
    });
    let mut all = Seen::default();
    for seen in seen {
        all.merge(seen?);
    }
    if graph.on_error == OnError::Fail && !all.failures.is_empty() {
        return Err(Error::Data(all.failures));
    }
    if all.rows == 0 && !all.failures.is_empty() {
        return Err(Error::Data(all.failures));
    }
    let storage = storage::measure(scratch)?;
    let fragments = &graph.source.listing.fragments;
    let source_bytes_total: u64 = fragments.iter().map(|fragment| fragment.size).sum();
    let rows_total = fragments.len() as u64;
    let read_source = Measured::of(&all.read);
    let facts = cuts
        .iter()
        .zip(&all.cuts)
        .map(|(cut, seen)| {
            cut_facts(cut, seen, Measured::of(&all.read_again), &bench, (rows_total, source_bytes_total))
        })
        .collect();
    let steps = graph
        .steps
        .iter()
        .zip(&all.steps)
        .map(|(step, (seconds, bytes))| StepFacts {
            step: step.name.clone(),
            op: step.op.info().name.to_owned(),
            seconds: Measured::of(seconds),
            bytes: Measured::of(bytes),
            online_only: step.online_only,
        })
        .collect();
    Ok(Profile {
        version: 1,
        definition: definition_fingerprint(graph, cuts),
        data: data_fingerprint(graph),
        machine: MachineFacts { cores: cores(), available_memory_bytes: available_memory_bytes() },
        threads,
        rows_total,
        source_bytes_total,
        rows_sampled: all.rows,
        seconds: started.elapsed().as_secs_f64(),
        bad_rows: all.failures.len() as u64,
        read_source,
        steps,
        cuts: facts,
        storage,
    })
}

fn cut_facts(cut: &Cut, seen: &CutSeen, read_again: Measured, bench: &Bench<'_>, total: (u64, u64)) -> CutFacts {
    let raw_bytes = bench.raw_bytes(cut, seen, total);
    let representations = if cut.word == BY_REFERENCE {
        vec![Representation {
            codec: Codec::None,
            stored_bytes: Measured::exact(0.0),
            encode: Measured::exact(0.0),
            decode: read_again,
        }]
    } else {
        Codec::ALL
            .iter()
            .zip(&seen.codecs)
            .filter(|(_, codec)| !codec.stored.is_empty())
            .map(|(codec, seen)| Representation {
                codec: *codec,
                // The ratio varies far less from row to row than the size, whose mean is known from more rows.
                stored_bytes: Measured::ratio(&seen.stored, &seen.raw).times(raw_bytes),
                encode: Measured::of(&seen.encode),
                decode: Measured::of(&seen.decode),
            })
            .collect()
    };
    CutFacts {
        cut: cut.word.clone(),
        offline: Measured::of(&seen.offline),
        online: Measured::of(&seen.online),
        raw_bytes,
        representations,
    }
}

/// What all threads share.
struct Bench<'g> {
    source: FileSource,
    graph: &'g Graph,
    steps: Vec<Program>,
    cuts: Vec<(Cut, Program, Program)>,
    scratch: PathBuf,
}

/// A group's column values by graph column.
type Columns = Vec<Option<ArrayRef>>;

impl<'g> Bench<'g> {
    fn new(graph: &'g Graph, cuts: &[Cut], scratch: &Path) -> Result<Self> {
        Ok(Self {
            source: FileSource::new(&graph.source.listing.root)?,
            graph,
            steps: (0..graph.steps.len()).map(|step| single(graph, step)).collect(),
            cuts: cuts.iter().map(|cut| (cut.clone(), cut.offline_program(graph), cut.remainder(graph))).collect(),
            scratch: scratch.to_owned(),
        })
    }

    fn work(
        &self,
        worker: usize,
        groups: &[&[Fragment]],
        next: &AtomicUsize,
        started: Instant,
        limit: ProfileLimit,
    ) -> Result<Seen> {
        let mut seen = Seen {
            steps: self.steps.iter().map(|_| Default::default()).collect(),
            cuts: self
                .cuts
                .iter()
                .map(|_| CutSeen {
                    codecs: Codec::ALL.iter().map(|_| CodecSeen::default()).collect(),
                    ..CutSeen::default()
                })
                .collect(),
            ..Seen::default()
        };
        let pool = BufferPool::new(2 * BATCH_GROUPS * GROUP);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| Error::internal("the runtime", error))?;
        let mut steps: Vec<Machine> =
            self.steps.iter().map(|program| Machine::new(program, pool.clone())).collect::<Result<_>>()?;
        let mut candidates = self
            .cuts
            .iter()
            .map(|(_, offline, online)| Ok((Machine::new(offline, pool.clone())?, Machine::new(online, pool.clone())?)))
            .collect::<Result<Vec<_>>>()?;
        let mut kept: Vec<Vec<(Vec<RowKey>, Columns)>> = Vec::new();
        let (mut groups_kept, mut room) = (0, 0_u64);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            // Half of the time is for the steps, half for the candidates; each thread sees one group at least.
            let late = started.elapsed().as_secs_f64() > limit.seconds / 2.0 && !kept.is_empty();
            let Some(group) = groups.get(at).filter(|_| !late) else { break };
            let bytes: u64 = group.iter().map(|fragment| fragment.size).sum();
            let group = self.run_steps(&runtime, group, &mut steps, &mut seen)?;
            if group.0.is_empty() || groups_kept == CANDIDATE_GROUPS {
                continue;
            }
            // A batch has some groups, or one group of one large file.
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
        let path = self.scratch.join(format!(".profile-{}-{worker}.parquet", std::process::id()));
        for (round, groups) in kept.iter().enumerate() {
            let (keys, columns) = &join(groups)?;
            for (at, machines) in candidates.iter_mut().enumerate() {
                let late = started.elapsed().as_secs_f64() > limit.seconds && round > 0;
                if !late {
                    self.run_candidate(at, machines, keys, columns, &path, &pool, &mut seen.cuts[at])?;
                }
            }
        }
        files::remove_if_there(&path)?;
        Ok(seen)
    }

    /// Reads a group and runs every step over it, one at a time. Gives the good rows' keys and source columns.
    fn run_steps(
        &self,
        runtime: &tokio::runtime::Runtime,
        group: &[Fragment],
        steps: &mut [Machine],
        seen: &mut Seen,
    ) -> Result<(Vec<RowKey>, Columns)> {
        let begun = now();
        let mut files = Vec::with_capacity(group.len());
        for fragment in group {
            match runtime.block_on(self.source.read(fragment)) {
                Ok(bytes) => {
                    std::hint::black_box(Fingerprint::of_bytes(&bytes));
                    files.push((fragment, bytes));
                }
                Err(error) => seen.failures.push(DataError {
                    file: fragment.path.clone(),
                    row: 0,
                    step: "source".to_owned(),
                    reason: error.to_string(),
                }),
            }
        }
        seen.read.push(per_row(begun, group.len()));
        // A stream reads without the detour through a runtime, and, from the second epoch on, from the page cache.
        let begun = now();
        for (fragment, _) in &files {
            std::hint::black_box(Fingerprint::of_bytes(&self.source.read_blocking(fragment)?));
        }
        seen.read_again.push(per_row(begun, files.len()));
        let mut keys: Vec<RowKey> = files.iter().map(|(fragment, _)| RowKey::of_fragment(&fragment.path, 0)).collect();
        let mut paths: Vec<&str> = files.iter().map(|(fragment, _)| fragment.path.as_str()).collect();
        let bytes = files.iter().map(|(_, bytes)| bytes.clone()).collect();
        let mut columns: Columns = vec![None; self.graph.columns.len()];
        for (slot, column) in columns.iter_mut().zip(&self.graph.columns) {
            *slot = match column.name.as_str() {
                "path" => Some(Arc::new(paths.iter().copied().map(Some).collect::<StringArray>())),
                "bytes" => Some(Arc::new(
                    binary_view_of_rows(Clone::clone(&bytes)).map_err(|e| Error::internal("the profile", e))?,
                )),
                "size" => {
                    let sizes = files.iter().map(|(fragment, _)| i64::try_from(fragment.size).unwrap_or(i64::MAX));
                    Some(Arc::new(Int64Array::from_iter_values(sizes)))
                }
                _ => None,
            };
            if column.producer != crate::pipeline::Producer::Source {
                break;
            }
        }
        for (machine, (step, (seconds, sizes))) in steps.iter_mut().zip(self.graph.steps.iter().zip(&mut seen.steps)) {
            let inputs: Vec<ArrayRef> = step.inputs.iter().filter_map(|input| columns[input.0].clone()).collect();
            let begun = now();
            let outcome = machine.run(&Batch { keys: keys.clone(), columns: inputs }, 0)?;
            let elapsed = per_row(begun, keys.len());
            if !outcome.failures.is_empty() {
                // Bad rows leave the group, so that the steps after see what they will see in a build.
                note(&mut seen.failures, &outcome.failures, &paths);
                let good: Vec<bool> =
                    (0..keys.len()).map(|row| outcome.failures.iter().all(|f| f.row != row)).collect();
                let mask = arrow::array::BooleanArray::from(good.clone());
                for column in columns.iter_mut().flatten() {
                    *column = arrow::compute::filter(column, &mask).map_err(|e| Error::internal("the profile", e))?;
                }
                let mut kept = good.iter();
                paths.retain(|_| *kept.next().unwrap_or(&false));
                keys.clone_from(&outcome.batch.keys);
            }
            if keys.is_empty() {
                return Ok((keys, columns));
            }
            seconds.push(elapsed);
            if let Some(made) = outcome.batch.columns.into_iter().next() {
                sizes.push(bytes_per_row(&made));
                columns[step.output.0] = Some(made);
            }
        }
        seen.rows += keys.len() as u64;
        for ((cut, ..), seen) in self.cuts.iter().zip(&mut seen.cuts) {
            let bytes = cut.frontier.iter().filter_map(|id| columns[id.0].as_ref()).map(bytes_per_row).sum();
            seen.raw_bytes.push(bytes);
        }
        // Only the source's columns are kept: decoded pictures of every group would take more memory than a build.
        for (slot, column) in columns.iter_mut().zip(&self.graph.columns) {
            if column.producer != crate::pipeline::Producer::Source {
                *slot = None;
            }
        }
        Ok((keys, columns))
    }

    #[expect(clippy::too_many_arguments, reason = "the pieces of one measurement")]
    fn run_candidate(
        &self,
        at: usize,
        (offline, online): &mut (Machine, Machine),
        keys: &[RowKey],
        columns: &Columns,
        path: &Path,
        pool: &BufferPool,
        seen: &mut CutSeen,
    ) -> Result<()> {
        let (cut, offline_program, online_program) = &self.cuts[at];
        let source = |program: &Program| -> Vec<ArrayRef> {
            let named = |name: &str| self.graph.columns.iter().position(|column| column.name == name);
            let column = |input: &NamedColumn| named(&input.name).and_then(|at| columns[at].clone());
            program.input_columns().iter().filter_map(column).collect()
        };
        let batch = Batch { keys: keys.to_vec(), columns: source(offline_program) };
        let warm = offline.run(&batch, 0)?;
        drop(warm);
        let begun = now();
        let stored = offline.run(&batch, 0)?.batch;
        seen.offline.push(per_row(begun, keys.len()));
        if cut.by_reference {
            let batch = Batch { keys: keys.to_vec(), columns: source(online_program) };
            time_online(online, &batch, 0, &mut Vec::new())?;
            time_online(online, &batch, 1, &mut seen.online)?;
            return Ok(());
        }
        let columns: Vec<NamedColumn> = offline_program.output_columns().cloned().collect();
        let fail = |message: String| Error::internal("the profile", message);
        let raw = stored.bytes() as f64;
        let order: Vec<usize> = (0..stored.rows()).map(|row| row * 7 % stored.rows()).collect();
        let order = if stored.rows().is_multiple_of(7) { (0..stored.rows()).collect() } else { order };
        for (codec, seen_codec) in Codec::ALL.iter().zip(&mut seen.codecs) {
            let started = now();
            let mut stored_bytes = 0;
            for _ in 0..REPEATS {
                // A shard is digested while it is written.
                let file = Digesting::new(files::create(path)?);
                let begun = now();
                let mut writer = ShardWriter::new(file, &columns, *codec).map_err(fail)?;
                writer.write(&stored).map_err(fail)?;
                let (_, digest, bytes) = writer.finish().map_err(fail)?.finish();
                std::hint::black_box(digest);
                stored_bytes = bytes;
                seen_codec.encode.push(per_row(begun, stored.rows()));
                if started.elapsed().as_secs_f64() > REPEAT_SECONDS / 4.0 {
                    break;
                }
            }
            seen_codec.stored.push(stored_bytes as f64);
            seen_codec.raw.push(raw);
            let reader = ShardReader::open(Arc::new(LocalFile::open(path)?), &columns).map_err(fail)?;
            // The first fetch takes fresh memory, a running stream recycles it.
            drop(reader.fetch(&order, pool).map_err(fail)?);
            let started = now();
            for epoch in 1..=REPEATS {
                let begun = now();
                let fetched = reader.fetch(&order, pool).map_err(fail)?;
                seen_codec.decode.push(per_row(begun, stored.rows()));
                // As in a stream, what was fetched is processed before the next is fetched.
                if *codec == Codec::None {
                    let keys = order.iter().map(|row| stored.keys[*row]).collect();
                    time_online(online, &Batch { keys, columns: fetched }, epoch, &mut seen.online)?;
                }
                if started.elapsed().as_secs_f64() > REPEAT_SECONDS {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Bytes a row of the frontier. What is the source's own is known exactly; what a step made is scaled from the
    /// sample.
    fn raw_bytes(&self, cut: &Cut, seen: &CutSeen, (rows, source_bytes): (u64, u64)) -> Measured {
        let sampled = Measured::of(&seen.raw_bytes);
        let bytes_column = self.graph.columns.iter().position(|column| column.name == "bytes");
        let only_source = cut.frontier.iter().any(|id| Some(id.0) == bytes_column);
        if only_source && rows > 0 {
            // The file's content dominates; the other columns are a few bytes that hardly vary.
            let content = source_bytes as f64 / rows as f64;
            return Measured::exact(content.max(0.0));
        }
        sampled
    }
}

/// Groups as one batch.
fn join(groups: &[(Vec<RowKey>, Columns)]) -> Result<(Vec<RowKey>, Columns)> {
    let keys = groups.iter().flat_map(|(keys, _)| keys.iter().copied()).collect();
    let places = groups.first().map_or(0, |(_, columns)| columns.len());
    let columns = (0..places)
        .map(|at| {
            let parts: Vec<&dyn Array> = groups.iter().filter_map(|(_, columns)| columns[at].as_deref()).collect();
            if parts.is_empty() {
                return Ok(None);
            }
            arrow::compute::concat(&parts).map(Some).map_err(|error| Error::internal("the profile", error))
        })
        .collect::<Result<_>>()?;
    Ok((keys, columns))
}

/// Times a remainder.
fn time_online(online: &mut Machine, batch: &Batch, epoch: u64, seen: &mut Vec<f64>) -> Result<()> {
    let begun = now();
    drop(online.run(batch, epoch)?);
    seen.push(per_row(begun, batch.rows()));
    Ok(())
}

/// A program of one step.
fn single(graph: &Graph, step: usize) -> Program {
    let step = &graph.steps[step];
    let named = |id: crate::pipeline::ColumnId| NamedColumn {
        name: graph.column(id).name.clone(),
        column_type: graph.column(id).column_type.clone(),
    };
    let inputs = step.inputs.len();
    Program {
        seed: graph.seed,
        columns: step.inputs.iter().map(|id| named(*id)).chain([named(step.output)]).collect(),
        inputs,
        calls: vec![crate::pipeline::Call {
            step: step.name.clone(),
            op: step.op.info().name.to_owned(),
            version: step.op.info().version,
            args: step.args.clone(),
            inputs: (0..inputs).collect(),
            output: inputs,
        }],
        outputs: vec![inputs],
    }
}

fn note(failures: &mut Vec<DataError>, failed: &[StepFailure], paths: &[&str]) {
    failures.extend(failed.iter().map(|failure| DataError {
        file: paths.get(failure.row).map_or(String::new(), |path| (*path).to_owned()),
        row: 0,
        step: failure.step.clone(),
        reason: failure.reason.clone(),
    }));
}
fn per_row(begun: Instant, rows: usize) -> f64 {
    begun.elapsed().as_secs_f64() / rows.max(1) as f64
}
fn bytes_per_row(column: &ArrayRef) -> f64 {
    array_bytes(column) as f64 / column.len().max(1) as f64
}
