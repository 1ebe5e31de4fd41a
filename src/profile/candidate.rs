//! Candidates: a cut's two programs, and what it stores really encoded and decoded.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::facts::{CutFacts, Measured, Representation};
use super::measure::{Group, Subject};
use super::meeting::Meets;
use super::seen::{CodecSeen, CutSeen, Seen, StepSeen};
use crate::diag::{Error, Result};
use crate::format::shard::{ShardReader, ShardWriter};
use crate::pipeline::{Compiled, Cut, Files, Graph, Machine, Outcome, Program};
use crate::types::{Batch, BufferPool, Codec, Digesting, NamedColumn, RowKey};
use crate::world::machine::now;
use crate::world::{LocalFile, files};

/// How often, at most, and for how many seconds, about, reading and processing a batch is repeated.
const REPEATS: u64 = 12;
const REPEAT_SECONDS: f64 = 0.1;
/// Files that a batch is written to, and bytes, about, that they have together.
const COPIES: usize = 8;
const COPIED_BYTES: u64 = 96 << 20;
/// Batches of a stream that are alive for each thread: one is made, two wait, one is with the consumer. Fewer would
/// stay in a cache that a stream's don't fit.
const ALIVE: usize = 4;

/// The programs of a cut.
struct Programs {
    cut: Cut,
    offline: Compiled,
    remainder: Program,
    structure: Option<Program>,
}

/// A cut's machines on one thread.
pub struct Machines {
    offline: Machine,
    online: Machine,
    structure: Option<Machine>,
}

/// What all threads share.
pub struct Bench<'g> {
    graph: &'g Graph,
    files: &'g Files,
    cuts: Vec<Programs>,
    scratch: PathBuf,
    /// Seconds, about, for which reading and processing a batch is repeated.
    repeat_seconds: f64,
}

impl<'g> Bench<'g> {
    /// The cuts of a subject, to be tried for that many seconds in all, about.
    pub fn new(subject: &Subject<'g>, scratch: &Path, seconds: f64) -> Self {
        let (graph, options) = (subject.graph, subject.options);
        let cuts = subject
            .cuts
            .iter()
            .map(|cut| {
                let remainder = cut.remainder(graph, options).at_epoch(0);
                let structure = remainder.expands().then(|| remainder.structure());
                Programs { cut: cut.clone(), offline: cut.offline_program(graph, options), remainder, structure }
            })
            .collect();
        let share = seconds / (subject.cuts.len() * Codec::ALL.len()).max(1) as f64;
        let repeat_seconds = share.min(REPEAT_SECONDS);
        Self { graph, files: subject.files, cuts, scratch: scratch.to_owned(), repeat_seconds }
    }

    /// How often threads meet in a run of a candidate.
    pub const MEETS: usize = 1 + Codec::ALL.len();

    /// Number of cuts.
    pub fn len(&self) -> usize {
        self.cuts.len()
    }

    /// Nothing seen yet.
    pub fn nothing_seen(&self) -> Seen {
        let cut = |_: &Programs| CutSeen {
            codecs: Codec::ALL.iter().map(|_| CodecSeen::default()).collect(),
            ..CutSeen::default()
        };
        Seen {
            steps: vec![StepSeen::default(); self.graph.steps.len()],
            cuts: self.cuts.iter().map(cut).collect(),
            ..Seen::default()
        }
    }

    /// A cut's machines for one thread.
    ///
    /// # Errors
    /// When a program can't run here.
    pub fn machines(&self, at: usize, pool: &BufferPool) -> Result<Machines> {
        let programs = &self.cuts[at];
        let machine = |program: &Program| Machine::new(program, pool.clone(), self.files);
        Ok(Machines {
            offline: machine(&programs.offline.program)?,
            online: machine(&programs.remainder)?,
            structure: programs.structure.as_ref().map(machine).transpose()?,
        })
    }

    /// Tries a cut on a batch.
    #[expect(clippy::too_many_arguments, reason = "the pieces of one measurement")]
    pub fn run(
        &self,
        at: usize,
        machines: &mut Machines,
        group: &Group,
        worker: usize,
        pool: &BufferPool,
        meets: &mut Meets<'_>,
        seen: &mut CutSeen,
    ) -> Result<()> {
        let programs = &self.cuts[at];
        let fail = |message: String| Error::internal("the profile", message);
        let batch = group.batch(&programs.offline.inputs)?;
        let base_rows = batch.rows();
        drop(machines.offline.run(&batch, 0)?);
        meets.meet();
        let begun = now();
        let stored = machines.offline.run(&batch, 0)?.batch;
        seen.offline.push(per_row(begun, base_rows));
        if stored.rows() == 0 {
            (0..Codec::ALL.len()).for_each(|_| meets.meet());
            return Ok(());
        }
        seen.raw_bytes.push(stored.bytes() as f64 / stored.rows() as f64);
        // Which rows a stream goes through, one of each stored row at a time, as a shuffled one does.
        let becomes = match &mut machines.structure {
            Some(structure) => Some(structure.run(&stored, 0)?),
            None => None,
        };
        let wanted: Option<Vec<RowKey>> = becomes.as_ref().map(one_of_each);
        let stream_rows = becomes.as_ref().map_or(stored.rows(), |outcome| outcome.batch.rows());
        seen.stored_rows.0.push(stored.rows() as f64);
        seen.stored_rows.1.push(base_rows as f64);
        seen.stream_rows.0.push(stream_rows as f64);
        seen.stream_rows.1.push(base_rows as f64);
        let columns: Vec<NamedColumn> = programs.offline.program.output_columns().collect();
        let read = programs.remainder.input_columns();
        let raw = stored.bytes() as f64;
        let order: Vec<usize> = (0..stored.rows()).map(|row| row * 7 % stored.rows()).collect();
        let order = if stored.rows().is_multiple_of(7) { (0..stored.rows()).collect() } else { order };
        let path = |copy: usize| self.scratch.join(format!(".profile-{}-{worker}-{copy}.parquet", std::process::id()));
        for (codec, seen_codec) in Codec::ALL.iter().zip(&mut seen.codecs) {
            let started = now();
            let (mut stored_bytes, mut copies) = (0, 0);
            // One small file read again and again would come out of the processor's cache.
            let least = if *codec == Codec::None && self.repeat_seconds > 0.0 { COPIES } else { 1 };
            while copies < least || started.elapsed().as_secs_f64() < self.repeat_seconds / 4.0 && copies < COPIES {
                // A shard is digested while it is written.
                let file = Digesting::new(files::create(&path(copies))?);
                let begun = now();
                let mut writer = ShardWriter::new(file, &columns, *codec).map_err(fail)?;
                writer.write(&stored).map_err(fail)?;
                let (_, digest, bytes) = writer.finish().map_err(fail)?.finish();
                std::hint::black_box(digest);
                stored_bytes = bytes;
                copies += 1;
                seen_codec.encode.push(per_row(begun, stored.rows()));
                if copies as u64 * bytes > COPIED_BYTES {
                    break;
                }
            }
            // What a file takes besides its rows is told by a file of half of them.
            let half = Batch {
                keys: stored.keys[..stored.rows() / 2].to_vec(),
                columns: stored.columns.iter().map(|column| column.slice(0, stored.rows() / 2)).collect(),
            };
            let mut writer = ShardWriter::new(Digesting::new(std::io::sink()), &columns, *codec).map_err(fail)?;
            writer.write(&half).map_err(fail)?;
            let (_, _, half_bytes) = writer.finish().map_err(fail)?.finish();
            let other_half = (stored.rows() - half.rows()) as f64;
            let a_row = (stored_bytes.saturating_sub(half_bytes)) as f64 / other_half;
            let fixed = (stored_bytes as f64 - a_row * stored.rows() as f64).max(0.0);
            seen_codec.fixed.push(fixed);
            seen_codec.stored.push(stored_bytes as f64 - fixed);
            seen_codec.raw.push(raw);
            let open = |copy| ShardReader::open(Arc::new(LocalFile::open(&path(copy))?), read).map_err(fail);
            let readers = (0..copies).map(open).collect::<Result<Vec<_>>>()?;
            meets.meet();
            let mut alive: VecDeque<Outcome> = VecDeque::new();
            let mut started = now();
            let fresh = if self.repeat_seconds > 0.0 { ALIVE as u64 } else { 0 };
            for epoch in 0..REPEATS + fresh {
                // The first rounds take fresh memory, a running stream recycles it.
                let warm = epoch >= fresh;
                if epoch == fresh {
                    started = now();
                }
                let begun = now();
                let reader = usize::try_from(epoch).unwrap_or(0) % readers.len();
                let fetched = readers[reader].fetch(&order, pool).map_err(fail)?;
                let read_time = per_row(begun, stored.rows());
                if warm {
                    seen_codec.decode.push(read_time);
                }
                // As in a stream, what was fetched is processed before the next is fetched.
                if *codec == Codec::None {
                    let keys = order.iter().map(|row| stored.keys[*row]).collect();
                    let batch = Batch { keys, columns: fetched };
                    // What was made longest ago has been consumed: its memory is free for this batch.
                    if alive.len() == ALIVE {
                        alive.pop_front();
                    }
                    let begun = now();
                    alive.push_back(machines.online.run_selected(&batch, epoch, wanted.as_deref())?);
                    let wanted_rows = wanted.as_ref().map_or(stored.rows(), Vec::len);
                    if warm {
                        seen.online.push(per_row(begun, wanted_rows));
                    }
                }
                if warm && started.elapsed().as_secs_f64() > self.repeat_seconds {
                    break;
                }
            }
        }
        (0..COPIES).try_for_each(|copy| files::remove_if_there(&path(copy)))?;
        debug_assert!(!programs.cut.word.is_empty(), "a cut has a word");
        Ok(())
    }
}

/// One of the rows that each stored row becomes.
fn one_of_each(becomes: &Outcome) -> Vec<RowKey> {
    let mut keys = Vec::new();
    let mut before = None;
    for (key, origin) in becomes.batch.keys.iter().zip(&becomes.origins) {
        if before != Some(*origin) {
            keys.push(*key);
            before = Some(*origin);
        }
    }
    keys
}

/// What is known of a cut.
pub fn candidate_facts(graph: &Graph, cut: &Cut, seen: &CutSeen, (rows, source_bytes): (u64, u64)) -> CutFacts {
    let sampled = Measured::of(&seen.raw_bytes);
    let is_content = |id: &crate::pipeline::ColumnId| match graph.column(*id).producer {
        crate::pipeline::Producer::Step(step) => matches!(graph.step(step).action, crate::pipeline::Action::Read(_)),
        crate::pipeline::Producer::Source(_) => false,
    };
    // What is the source's own is known exactly: the files' content dominates, the other columns hardly vary.
    let single =
        graph.sources.len() == 1 && cut.offline.iter().all(|id| graph.step(*id).rows() == crate::ops::RowsClass::Map);
    let raw_bytes = if single && rows > 0 && cut.frontier.iter().any(is_content) {
        Measured::exact(source_bytes as f64 / rows as f64)
    } else {
        sampled
    };
    // Where no row of the sample was left to be stored, nothing is known, and every codec may be taken all the same.
    let nothing = seen.codecs.iter().all(|codec| codec.stored.is_empty());
    let representations = Codec::ALL
        .iter()
        .zip(&seen.codecs)
        .filter(|(_, codec)| nothing || !codec.stored.is_empty())
        .map(|(codec, seen)| Representation {
            codec: *codec,
            // The ratio varies far less from row to row than the size, whose mean is known from more rows.
            stored_bytes: Measured::ratio(&seen.stored, &seen.raw).times(raw_bytes),
            shard_bytes: Measured::of(&seen.fixed),
            encode: Measured::of(&seen.encode),
            decode: Measured::of(&seen.decode),
        })
        .collect();
    CutFacts {
        cut: cut.word.clone(),
        offline: Measured::of(&seen.offline),
        online: Measured::of(&seen.online),
        raw_bytes,
        refers: !cut.references.is_empty(),
        stored_rows: Measured::ratio(&seen.stored_rows.0, &seen.stored_rows.1),
        stream_rows: Measured::ratio(&seen.stream_rows.0, &seen.stream_rows.1),
        representations,
    }
}

fn per_row(begun: Instant, rows: usize) -> f64 {
    begun.elapsed().as_secs_f64() / rows.max(1) as f64
}
