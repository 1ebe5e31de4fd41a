//! The interpreter: runs a program over batches, offline and online alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray};

use super::frame::Frame;
use super::program::{DIGEST, KEYS, PICK, Program, READ, SOURCE};
use super::read::{FileDigests, FileReads};
use super::segment::{BoundCall, Segment};
use crate::diag::{Error, Result};
use crate::format::FileSource;
use crate::ops::{self, ColumnKernel, ExpandKernel, FilterKernel, Kernel, KernelError, RowContext};
use crate::types::batch::array_bytes;
use crate::types::random::StreamKey;
use crate::types::{Batch, BufferPool, ColumnType, DType, RowKey};
use crate::world::machine::now;

pub use super::segment::StepFailure;

/// The source files that a program may read, by the names of their sources.
pub type Files = BTreeMap<String, FileSource>;

/// A program made ready to run on one thread: ops bound, chains of tensor ops fused, scratch memory kept.
pub struct Machine {
    program: Program,
    units: Vec<Unit>,
    /// How many units belong to the calls that settle which rows there are.
    settled: usize,
    /// For each column, the last unit that reads it; none where it comes out.
    last_use: Vec<Option<usize>>,
    pool: BufferPool,
}

struct Unit {
    step: String,
    inputs: Vec<usize>,
    /// The column of the keys by which its steps draw, if that isn't the rows' own.
    key: Option<usize>,
    outputs: Vec<usize>,
    work: Work,
}

enum Work {
    Chain(Segment),
    Columns(Arc<dyn ColumnKernel>),
    Filter(Arc<dyn FilterKernel>, Option<StreamKey>),
    Expand(Arc<dyn ExpandKernel>),
    /// The epoch's draw among the inputs.
    Pick,
    /// The keys of the rows.
    Keys,
}

/// What came of a batch.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The rows that came out, with the program's output columns.
    pub batch: Batch,
    /// For each of them, the row of the batch that went in that it comes from.
    pub origins: Vec<u32>,
    /// The rows that failed, in the order in which they were found.
    pub failures: Vec<StepFailure>,
}

/// What a call took.
#[derive(Debug, Clone)]
pub struct CallTime {
    /// Its step.
    pub step: String,
    /// Seconds.
    pub seconds: f64,
    /// Rows that went in.
    pub rows_in: usize,
    /// Rows that came out.
    pub rows_out: usize,
    /// Bytes of the columns that it made.
    pub bytes: usize,
}

impl Machine {
    /// Makes a program ready to run; `pool` provides the memory of what it makes, `files` the source files.
    ///
    /// # Errors
    /// When the program calls an op that this version doesn't have, or has in another version, or with arguments
    /// that it doesn't take: it was compiled by another version.
    pub fn new(program: &Program, pool: BufferPool, files: &Files) -> Result<Self> {
        let mut building = Building::new(program)?;
        let mut settled = 0;
        for (at, call) in program.calls.iter().enumerate() {
            if at == program.settled {
                // What comes after works on other rows, or in another order.
                building.close_chains()?;
                settled = building.units.len();
            }
            building.call(call, files)?;
        }
        building.close_chains()?;
        if program.settled == program.calls.len() {
            settled = building.units.len();
        }
        let units = building.units;
        let mut last_use = vec![Some(0); program.columns.len()];
        for (at, unit) in units.iter().enumerate() {
            unit.inputs.iter().chain(&unit.outputs).chain(&unit.key).for_each(|column| last_use[*column] = Some(at));
        }
        program.outputs.iter().for_each(|output| last_use[*output] = None);
        Ok(Self { program: program.clone(), units, settled, last_use, pool })
    }

    /// The program.
    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the program over a batch whose columns are its inputs.
    ///
    /// # Errors
    /// When the batch doesn't have the program's input columns; rows that can't be processed are in the outcome.
    pub fn run(&mut self, batch: &Batch, epoch: u64) -> Result<Outcome> {
        self.run_selected(batch, epoch, None)
    }

    /// The same, going on only with the rows of those keys, in that order, once it is settled which rows there are.
    ///
    /// # Errors
    /// As above.
    pub fn run_selected(&mut self, batch: &Batch, epoch: u64, wanted: Option<&[RowKey]>) -> Result<Outcome> {
        self.run_seen(batch, epoch, wanted, None)
    }

    /// The same, telling what each call took; a program that isn't fused tells it of each step.
    ///
    /// # Errors
    /// As above.
    pub fn run_timed(&mut self, batch: &Batch, times: &mut Vec<CallTime>) -> Result<Outcome> {
        self.run_seen(batch, 0, None, Some(times))
    }

    fn run_seen(
        &mut self,
        batch: &Batch,
        epoch: u64,
        wanted: Option<&[RowKey]>,
        mut times: Option<&mut Vec<CallTime>>,
    ) -> Result<Outcome> {
        let internal = |message: String| Error::internal("the interpreter", message);
        if batch.columns.len() != self.program.inputs {
            return Err(internal(format!("{} columns for {} inputs", batch.columns.len(), self.program.inputs)));
        }
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.program.columns.len()];
        for (slot, column) in columns.iter_mut().zip(&batch.columns) {
            *slot = Some(column.clone());
        }
        let mut frame = Frame::new(batch.keys.clone(), columns);
        let mut failures = Vec::new();
        for at in 0..=self.units.len() {
            if at == self.settled
                && let Some(wanted) = wanted
            {
                frame.select(wanted).map_err(internal)?;
            }
            let Some(unit) = self.units.get_mut(at) else { break };
            let (begun, rows_in) = (times.as_ref().map(|_| now()), frame.rows());
            unit.run(&self.program, &mut frame, epoch, &self.pool, &mut failures)?;
            if let (Some(times), Some(begun)) = (times.as_mut(), begun) {
                let seconds = begun.elapsed().as_secs_f64();
                frame.compact().map_err(internal)?;
                let made = unit.outputs.iter().filter_map(|output| frame.columns[*output].as_ref());
                let bytes = made.map(array_bytes).sum();
                times.push(CallTime { step: unit.step.clone(), seconds, rows_in, rows_out: frame.rows(), bytes });
            }
            for column in unit.inputs.iter().chain(&unit.outputs).chain(&unit.key) {
                if self.last_use[*column] == Some(at) {
                    frame.columns[*column] = None;
                }
            }
        }
        for (column, slot) in frame.columns.iter_mut().enumerate() {
            if self.last_use[column].is_some() {
                *slot = None;
            }
        }
        frame.compact().map_err(internal)?;
        let mut made = Vec::with_capacity(self.program.outputs.len());
        for output in &self.program.outputs {
            made.push(frame.columns[*output].clone().ok_or_else(|| internal("an output is missing".into()))?);
        }
        Ok(Outcome { batch: Batch { keys: frame.keys, columns: made }, origins: frame.origins, failures })
    }
}

impl Unit {
    fn run(
        &mut self,
        program: &Program,
        frame: &mut Frame,
        epoch: u64,
        pool: &BufferPool,
        failures: &mut Vec<StepFailure>,
    ) -> Result<()> {
        let internal = |message: String| Error::internal("the interpreter", message);
        if !matches!(self.work, Work::Chain(_)) {
            // Rows that are gone have any value in their columns: only chains, which go row by row, skip them.
            frame.compact().map_err(internal)?;
        }
        let inputs: Option<Vec<ArrayRef>> = self.inputs.iter().map(|input| frame.columns[*input].clone()).collect();
        let inputs = inputs.ok_or_else(|| internal("a column is missing".into()))?;
        let drawn_by = match self.key {
            None => None,
            Some(key) => Some(drawing_keys(frame, key).map_err(internal)?),
        };
        let mut failed = Vec::new();
        match &mut self.work {
            Work::Chain(segment) => {
                let input_type = &program.columns[self.inputs[0]].column_type;
                let before = failures.len();
                let (keys, alive) = (drawn_by.as_ref().unwrap_or(&frame.keys), &mut frame.alive);
                let made = segment.run(&inputs[0], input_type, keys, epoch, pool, alive, failures).map_err(internal)?;
                for failure in &mut failures[before..] {
                    failure.row = frame.origins.get(failure.row).map_or(failure.row, |row| *row as usize);
                }
                frame.recount();
                frame.columns[self.outputs[0]] = Some(made);
            }
            Work::Columns(kernel) => {
                let made = kernel.run(&inputs).map_err(|error| kernel_error(&self.step, error))?;
                if made.columns.len() != self.outputs.len() || made.columns.iter().any(|c| c.len() != frame.rows()) {
                    return Err(internal(format!("`{}` made other columns than it should", self.step)));
                }
                for (output, column) in self.outputs.iter().zip(made.columns) {
                    frame.columns[*output] = Some(column);
                }
                failed = made.failures;
            }
            Work::Filter(kernel, stream) => {
                let mut contexts: Vec<RowContext> = drawn_by
                    .as_ref()
                    .unwrap_or(&frame.keys)
                    .iter()
                    .map(|key| RowContext { key: *key, random: stream.map(|stream| stream.stream(epoch, *key)) })
                    .collect();
                let kept = kernel.run(&mut contexts, &inputs).map_err(internal)?;
                failed = kept.failures;
                for row in failed.iter().map(|failure| failure.row) {
                    note(failures, frame, &self.step, row, &failed);
                }
                for row in 0..frame.rows() {
                    if !(kept.mask.is_valid(row) && kept.mask.value(row)) {
                        frame.kill(row);
                    }
                }
                failed.clear();
            }
            Work::Expand(kernel) => {
                let made = kernel.run(&inputs).map_err(|error| kernel_error(&self.step, error))?;
                for row in made.failures.iter().map(|failure| failure.row) {
                    note(failures, frame, &self.step, row, &made.failures);
                }
                frame.expand(&made.counts).map_err(internal)?;
                for (output, column) in self.outputs.iter().zip(made.columns) {
                    if column.len() != frame.rows() {
                        return Err(internal(format!("`{}` made other rows than it counted", self.step)));
                    }
                    frame.columns[*output] = Some(column);
                }
            }
            Work::Keys => {
                let keys = BinaryViewArray::from_iter_values(frame.keys.iter().map(|key| key.0));
                frame.columns[self.outputs[0]] = Some(Arc::new(keys));
            }
            Work::Pick => {
                let draws = inputs.len() as u64;
                let at = usize::try_from(epoch % draws.max(1)).unwrap_or(0);
                frame.columns[self.outputs[0]] = inputs.get(at).cloned();
            }
        }
        for row in failed.iter().map(|failure| failure.row) {
            note(failures, frame, &self.step, row, &failed);
        }
        Ok(())
    }
}

/// The keys in a column, by which steps draw.
fn drawing_keys(frame: &Frame, column: usize) -> Result<Vec<RowKey>, String> {
    let keys = frame.columns[column].as_ref().and_then(|keys| keys.as_binary_view_opt()).ok_or("no keys to draw by")?;
    let key = |key: Option<&[u8]>| key.and_then(|key| key.try_into().ok()).map(RowKey);
    keys.iter().map(|bytes| key(bytes).ok_or_else(|| "a key of another length".to_owned())).collect()
}

/// A kernel's failure as the user sees it.
fn kernel_error(step: &str, error: KernelError) -> Error {
    match error {
        KernelError::Internal(message) => Error::internal("the interpreter", message),
        KernelError::Command(message) => Error::Dataset { message: format!("step `{step}`: {message}"), help: None },
    }
}

/// Notes that a row has failed, under the row that went in; one that failed before has its reason already.
fn note(failures: &mut Vec<StepFailure>, frame: &mut Frame, step: &str, row: usize, failed: &[ops::RowFailure]) {
    let reason = failed.iter().find(|failure| failure.row == row).map(|failure| failure.reason.clone());
    if row < frame.rows() && frame.kill(row) {
        failures.push(StepFailure {
            row: frame.origins[row] as usize,
            step: step.to_owned(),
            reason: reason.unwrap_or_default(),
        });
    }
}

/// A machine while it is put together.
struct Building<'p> {
    program: &'p Program,
    units: Vec<Unit>,
    /// How many calls and outputs read each column.
    readers: Vec<usize>,
    /// Chains that may still grow, by the unit that stands for each.
    chains: Vec<(usize, Vec<BoundCall>)>,
}

impl<'p> Building<'p> {
    fn new(program: &'p Program) -> Result<Self> {
        let mut readers = vec![0_usize; program.columns.len()];
        for column in program.calls.iter().flat_map(super::program::Call::reads).chain(program.outputs.iter().copied())
        {
            *readers.get_mut(column).ok_or_else(|| Error::internal("the program", "a column is out of range"))? += 1;
        }
        let outputs = program.calls.iter().flat_map(|call| &call.outputs);
        if outputs.into_iter().any(|output| *output >= program.columns.len())
            || program.names.len() != program.outputs.len()
            || program.settled > program.calls.len()
        {
            return Err(Error::internal("the program", "it doesn't fit together"));
        }
        Ok(Self { program, units: Vec::new(), readers, chains: Vec::new() })
    }

    fn call(&mut self, call: &super::program::Call, files: &Files) -> Result<()> {
        let mismatch = |what: String| Error::Dataset {
            message: format!("step `{}`: {what}", call.step),
            help: Some("it was built by another version of parbake: build it again with this one".to_owned()),
        };
        let mut unit = Unit {
            step: call.step.clone(),
            inputs: call.inputs.clone(),
            outputs: call.outputs.clone(),
            key: call.key,
            work: Work::Pick,
        };
        match call.op.as_str() {
            PICK | KEYS => {
                if call.op == KEYS {
                    unit.work = Work::Keys;
                }
                self.units.push(unit);
                return Ok(());
            }
            READ | DIGEST => {
                let name = call.args.text(SOURCE).unwrap_or_default();
                let source = files.get(name).ok_or_else(|| mismatch(format!("there is no source `{name}`")))?;
                unit.work = Work::Columns(match call.op.as_str() {
                    READ => Arc::new(FileReads(source.clone())),
                    _ => Arc::new(FileDigests(source.clone())),
                });
                self.units.push(unit);
                return Ok(());
            }
            _ => {}
        }
        let op = ops::find(&call.op).ok_or_else(|| mismatch(format!("there is no op `{}`", call.op)))?;
        if op.info().version != call.version {
            let (have, want) = (op.info().version, call.version);
            return Err(mismatch(format!("it needs version {want} of `{}`, and this is version {have}", call.op)));
        }
        let types: Vec<ColumnType> =
            call.inputs.iter().map(|input| self.program.columns[*input].column_type.clone()).collect();
        let bound = op.bind(&call.args, &types).map_err(|error| mismatch(error.message))?;
        let declared = call.outputs.iter().map(|output| &self.program.columns[*output].column_type);
        if !bound.outputs.iter().eq(declared) {
            let makes: Vec<String> = bound.outputs.iter().map(ToString::to_string).collect();
            return Err(mismatch(format!("it makes {} and something else was stored", makes.join(", "))));
        }
        let stream = op.info().random.then(|| StreamKey::new(self.program.seed, &call.step));
        unit.work = match bound.kernel {
            Kernel::Columns(kernel) => Work::Columns(kernel),
            Kernel::Filter(kernel) => {
                self.close_chains()?;
                Work::Filter(kernel, stream)
            }
            Kernel::Expand(kernel) => {
                self.close_chains()?;
                Work::Expand(kernel)
            }
            Kernel::Pack(_) | Kernel::Relational(_) => {
                return Err(Error::internal("the program", format!("`{}` can't run row by row", call.op)));
            }
            kernel => {
                let [input] = call.inputs[..] else {
                    return Err(Error::internal("the program", format!("`{}` reads several columns", call.op)));
                };
                let bound = BoundCall {
                    step: call.step.clone(),
                    key: call.key,
                    stream,
                    variants: call.variants,
                    draw: call.draw,
                    kernel,
                    reads: types[0].tensor().map_or(DType::U8, |tensor| tensor.dtype),
                };
                return self.link(input, call.outputs[0], unit, bound);
            }
        };
        self.units.push(unit);
        Ok(())
    }

    /// Adds a call to the chain that ends in its input, if nobody else reads that; or begins a chain.
    fn link(&mut self, input: usize, output: usize, unit: Unit, bound: BoundCall) -> Result<()> {
        if !self.program.fused {
            self.chains.push((self.units.len(), vec![bound]));
            self.units.push(unit);
            return self.close_chains();
        }
        let readers = self.readers[input];
        // A chain draws by one column of keys; steps that draw nothing go with any.
        let key = bound.key;
        let draws = bound.stream.is_some();
        let chain = self.chains.iter_mut().find(|(unit, calls)| {
            let same_keys = !draws || calls.iter().all(|call| call.stream.is_none() || call.key == key);
            self.units[*unit].outputs == [input] && readers == 1 && same_keys
        });
        match chain {
            Some((unit, calls)) => {
                self.units[*unit].outputs = vec![output];
                self.units[*unit].key = self.units[*unit].key.or(key);
                calls.push(bound);
            }
            None => {
                self.chains.push((self.units.len(), vec![bound]));
                self.units.push(unit);
            }
        }
        Ok(())
    }

    fn close_chains(&mut self) -> Result<()> {
        for (unit, calls) in std::mem::take(&mut self.chains) {
            let output = self.units[unit].outputs[0];
            let ColumnType::Tensor(tensor) = self.program.columns[output].column_type.clone() else {
                return Err(Error::internal("the program", "a chain of tensor ops doesn't make a tensor"));
            };
            self.units[unit].work = Work::Chain(Segment::new(calls, tensor));
        }
        Ok(())
    }
}
