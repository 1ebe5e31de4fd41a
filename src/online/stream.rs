//! Streams: worker threads fetch rows and run the remainder; batches come out in the order of the epoch.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use arrow::array::Array;

use super::order::epoch_order;
use super::rows::Rows;
use crate::diag::{DataError, Error, Result};
use crate::pipeline::{Files, Machine, OnError, Program, StepFailure};
use crate::types::{Batch, BufferPool, NamedColumn, RowDigest, row_digests};

/// How a stream is read.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// The epoch: random ops and the shuffle depend on it.
    pub epoch: u64,
    /// The seed of the shuffle; none: row-key order.
    pub shuffle: Option<u64>,
    /// Rows a batch.
    pub batch_rows: usize,
    /// Worker threads.
    pub jobs: usize,
    /// Whether each row is digested.
    pub digest: bool,
}

/// One batch of a stream.
#[derive(Debug)]
pub struct StreamBatch {
    /// The rows, with the stream's columns.
    pub batch: Batch,
    /// The digests of the rows, if they were asked for.
    pub digests: Vec<RowDigest>,
    /// Rows that were left out, by policy, because a step couldn't process them.
    pub skipped: Vec<DataError>,
}

/// The most bytes of stored rows that a worker takes in at once.
const CHUNK_BYTES: usize = 32 << 20;

/// One epoch of a data set.
pub struct Stream {
    columns: Vec<NamedColumn>,
    results: Receiver<(usize, Result<StreamBatch>)>,
    waiting: BTreeMap<usize, Result<StreamBatch>>,
    next: usize,
    batches: usize,
    gate: Arc<Gate>,
    workers: Vec<JoinHandle<()>>,
}

/// Hands out batches to workers, no further ahead of the consumer than a window.
struct Gate {
    state: Mutex<GateState>,
    moved: Condvar,
}

struct GateState {
    taken: usize,
    delivered: usize,
    stopped: bool,
}

impl Gate {
    /// The next batch to make, or none when there is none or the consumer has gone.
    fn take(&self, batches: usize, window: usize) -> Option<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.stopped || state.taken >= batches {
                return None;
            }
            if state.taken < state.delivered + window {
                state.taken += 1;
                return Some(state.taken - 1);
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }
}

impl Stream {
    /// Starts an epoch over those rows.
    ///
    /// # Errors
    /// When the remainder can't run here, or a thread can't be started.
    pub fn start(
        rows: &Arc<Rows>,
        remainder: &Program,
        files: &Files,
        on_error: OnError,
        pool: &BufferPool,
        options: &StreamOptions,
    ) -> Result<Self> {
        let order = Arc::new(epoch_order(rows.keys(), options.shuffle, options.epoch));
        let jobs = options.jobs.max(1);
        let batch_rows = options.batch_rows.max(1);
        let batches = order.len().div_ceil(batch_rows);
        let window = 2 * jobs;
        let gate = Arc::new(Gate {
            state: Mutex::new(GateState { taken: 0, delivered: 0, stopped: false }),
            moved: Condvar::new(),
        });
        let (sender, results) = sync_channel(window);
        let columns: Vec<NamedColumn> = remainder.output_columns().collect();
        let mut workers = Vec::new();
        for _ in 0..jobs.min(batches) {
            let mut worker = Worker {
                rows: Arc::clone(rows),
                machine: Machine::new(remainder, pool.clone(), files)?,
                pool: pool.clone(),
                columns: columns.clone(),
                on_error,
                options: options.clone(),
                chunk_rows: 1,
            };
            let (order, gate, sender) = (Arc::clone(&order), Arc::clone(&gate), sender.clone());
            let work = move || worker.work(&order, &gate, batches, window, &sender);
            let thread = std::thread::Builder::new().name("parbake-stream".to_owned()).spawn(work);
            workers.push(thread.map_err(|error| Error::internal("starting a thread", error))?);
        }
        Ok(Self { columns, results, waiting: BTreeMap::new(), next: 0, batches, gate, workers })
    }

    /// The stream's columns.
    #[must_use]
    pub fn columns(&self) -> &[NamedColumn] {
        &self.columns
    }
}

impl Iterator for Stream {
    type Item = Result<StreamBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.batches {
            return None;
        }
        loop {
            if let Some(batch) = self.waiting.remove(&self.next) {
                self.next += 1;
                if batch.is_err() {
                    self.next = self.batches;
                }
                let next = self.next;
                self.gate.change(|state| state.delivered = next);
                return Some(batch);
            }
            if let Ok((at, batch)) = self.results.recv() {
                self.waiting.insert(at, batch);
            } else {
                self.next = self.batches;
                return Some(Err(Error::internal("a stream's worker", "it ended without its batch")));
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.gate.change(|state| state.stopped = true);
        // Workers that wait for room in the channel find it closed.
        let (_, closed) = sync_channel(0);
        self.results = closed;
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

struct Worker {
    rows: Arc<Rows>,
    machine: Machine,
    pool: BufferPool,
    columns: Vec<NamedColumn>,
    on_error: OnError,
    options: StreamOptions,
    /// Rows taken in at once: one until it is known how large they are, then a batch, or fewer when rows are large.
    chunk_rows: usize,
}

impl Worker {
    fn work(
        &mut self,
        order: &[usize],
        gate: &Gate,
        batches: usize,
        window: usize,
        sender: &SyncSender<(usize, Result<StreamBatch>)>,
    ) {
        let rows = self.options.batch_rows.max(1);
        while let Some(at) = gate.take(batches, window) {
            let wanted = &order[at * rows..order.len().min((at + 1) * rows)];
            if sender.send((at, self.make(wanted))).is_err() {
                return;
            }
        }
    }

    fn make(&mut self, wanted: &[usize]) -> Result<StreamBatch> {
        let mut made: Vec<StreamBatch> = Vec::new();
        let mut from = 0;
        while from < wanted.len() {
            let to = wanted.len().min(from + self.chunk_rows);
            made.push(self.make_chunk(&wanted[from..to])?);
            from = to;
        }
        match made.len() {
            1 => made.pop().ok_or_else(|| Error::internal("a stream", "an empty batch")),
            _ => join(made, self.columns.len()),
        }
    }

    fn make_chunk(&mut self, wanted: &[usize]) -> Result<StreamBatch> {
        let fetched = self.rows.fetch(wanted, &self.pool)?;
        // A batch is bounded in bytes: rows that turn out large are taken in smaller groups from now on.
        let row_bytes = fetched.batch.bytes() / wanted.len().max(1);
        self.chunk_rows = (CHUNK_BYTES / row_bytes.max(1)).clamp(1, self.options.batch_rows.max(1));
        let outcome = self.machine.run_selected(&fetched.batch, self.options.epoch, fetched.wanted.as_deref())?;
        let named = |failure: StepFailure| {
            let (file, row) = fetched.rows.get(failure.row).map_or_else(Default::default, |row| self.rows.place(*row));
            DataError { file, row, step: failure.step, reason: failure.reason }
        };
        let skipped: Vec<DataError> = outcome.failures.into_iter().map(named).collect();
        if self.on_error == OnError::Fail && !skipped.is_empty() {
            return Err(Error::Data(skipped));
        }
        let digests = if self.options.digest {
            row_digests(&outcome.batch, &self.columns).map_err(|error| Error::internal("the digest", error))?
        } else {
            Vec::new()
        };
        Ok(StreamBatch { batch: outcome.batch, digests, skipped })
    }
}

/// Puts the chunks of a batch together.
fn join(chunks: Vec<StreamBatch>, columns: usize) -> Result<StreamBatch> {
    let joined = (0..columns)
        .map(|column| {
            let parts: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk.batch.columns[column].as_ref()).collect();
            arrow::compute::concat(&parts).map_err(|error| Error::internal("a stream", error))
        })
        .collect::<Result<_>>()?;
    let mut all =
        StreamBatch { batch: Batch { keys: Vec::new(), columns: joined }, digests: Vec::new(), skipped: Vec::new() };
    for chunk in chunks {
        all.batch.keys.extend(chunk.batch.keys);
        all.digests.extend(chunk.digests);
        all.skipped.extend(chunk.skipped);
    }
    Ok(all)
}
