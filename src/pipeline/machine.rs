//! The interpreter: runs a program over batches, offline and online alike.

use arrow::array::{ArrayRef, BooleanArray};

use super::program::Program;
use super::segment::{BoundCall, Segment, is_row_wise};
use crate::diag::{Error, Result};
use crate::ops::{self, ColumnKernel, Kernel};
use crate::types::random::StreamKey;
use crate::types::{Batch, BufferPool, ColumnType, DType, RowKey};

pub use super::segment::StepFailure;

/// A program made ready to run on one thread: ops bound, chains of tensor ops fused, scratch memory kept.
pub struct Machine {
    program: Program,
    units: Vec<Unit>,
    pool: BufferPool,
}

enum Unit {
    Chain(Segment),
    Columns { kernel: std::sync::Arc<dyn ColumnKernel>, step: String, inputs: Vec<usize>, output: usize },
}

/// What came of a batch.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The rows that went through, with the program's output columns.
    pub batch: Batch,
    /// The rows that didn't, in the order in which they were found.
    pub failures: Vec<StepFailure>,
}

impl Machine {
    /// Makes a program ready to run; `pool` provides the memory of what it makes.
    ///
    /// # Errors
    /// When the program calls an op that this version doesn't have, or has in another version, or with arguments
    /// that it doesn't take: it was compiled by another version.
    pub fn new(program: &Program, pool: BufferPool) -> Result<Self> {
        let mut readers = vec![0_usize; program.columns.len()];
        for column in program.calls.iter().flat_map(|call| &call.inputs).chain(&program.outputs) {
            *readers.get_mut(*column).ok_or_else(|| Error::internal("the program", "a column is out of range"))? += 1;
        }
        let mut chains: Vec<(usize, usize, Vec<BoundCall>)> = Vec::new();
        let mut order: Vec<Place> = Vec::new();
        for call in &program.calls {
            let mismatch = |what: String| Error::Dataset {
                message: format!("step `{}`: {what}", call.step),
                help: Some("it was built by another version of parbake: build it again with this one".to_owned()),
            };
            let op = ops::find(&call.op).ok_or_else(|| mismatch(format!("there is no op `{}`", call.op)))?;
            if op.info().version != call.version {
                let (have, want) = (op.info().version, call.version);
                return Err(mismatch(format!("it needs version {want} of `{}`, and this is version {have}", call.op)));
            }
            let types: Vec<ColumnType> =
                call.inputs.iter().map(|input| program.columns[*input].column_type.clone()).collect();
            let bound = op.bind(&call.args, &types).map_err(|error| mismatch(error.message))?;
            if program.columns.get(call.output).is_none_or(|column| column.column_type != bound.output) {
                return Err(mismatch(format!("it makes {} and something else was stored", bound.output)));
            }
            if !is_row_wise(call, &bound.kernel) {
                let Kernel::Columns(kernel) = bound.kernel else {
                    return Err(Error::internal(
                        "the program",
                        format!("`{}` reads several columns row by row", call.op),
                    ));
                };
                let inputs = call.inputs.clone();
                order.push(Place::Columns(Unit::Columns {
                    kernel,
                    step: call.step.clone(),
                    inputs,
                    output: call.output,
                }));
                continue;
            }
            let input = call.inputs[0];
            let bound_call = BoundCall {
                step: call.step.clone(),
                stream: op.info().random.then(|| StreamKey::new(program.seed, &call.step)),
                kernel: bound.kernel,
                reads: types[0].tensor().map_or(DType::U8, |tensor| tensor.dtype),
            };
            let chain = chains.iter_mut().find(|(_, output, _)| *output == input && readers[input] == 1);
            if let Some((_, output, calls)) = chain {
                *output = call.output;
                calls.push(bound_call);
            } else {
                order.push(Place::Chain(chains.len()));
                chains.push((input, call.output, vec![bound_call]));
            }
        }
        let mut chains: Vec<Option<(usize, usize, Vec<BoundCall>)>> = chains.into_iter().map(Some).collect();
        let mut units = Vec::new();
        for place in order {
            match place {
                Place::Columns(unit) => units.push(unit),
                Place::Chain(at) => {
                    let Some((input, output, calls)) = chains[at].take() else { continue };
                    let ColumnType::Tensor(tensor) = program.columns[output].column_type.clone() else {
                        return Err(Error::internal("the program", "a chain of tensor ops doesn't make a tensor"));
                    };
                    units.push(Unit::Chain(Segment::new(calls, input, output, tensor)));
                }
            }
        }
        Ok(Self { program: program.clone(), units, pool })
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
        let internal = |message: String| Error::internal("the interpreter", message);
        if batch.columns.len() != self.program.inputs {
            return Err(internal(format!("{} columns for {} inputs", batch.columns.len(), self.program.inputs)));
        }
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.program.columns.len()];
        for (slot, column) in columns.iter_mut().zip(&batch.columns) {
            *slot = Some(column.clone());
        }
        let mut alive = vec![true; batch.rows()];
        let mut failures = Vec::new();
        for unit in &mut self.units {
            match unit {
                Unit::Chain(segment) => {
                    let input = columns[segment.input].clone().ok_or_else(|| internal("a column is missing".into()))?;
                    let input_type = &self.program.columns[segment.input].column_type;
                    let (keys, pool) = (&batch.keys, &self.pool);
                    let made = segment
                        .run(&input, input_type, keys, epoch, pool, &mut alive, &mut failures)
                        .map_err(internal)?;
                    columns[segment.output] = Some(made);
                }
                Unit::Columns { kernel, step, inputs, output } => {
                    let inputs: Option<Vec<ArrayRef>> = inputs.iter().map(|input| columns[*input].clone()).collect();
                    let inputs = inputs.ok_or_else(|| internal("a column is missing".into()))?;
                    let (made, failed) = kernel.run(&inputs).map_err(internal)?;
                    for failure in failed {
                        // A row that failed before has its reason already.
                        if std::mem::replace(&mut alive[failure.row], false) {
                            let (row, reason) = (failure.row, failure.reason);
                            failures.push(StepFailure { row, step: step.clone(), reason });
                        }
                    }
                    columns[*output] = Some(made);
                }
            }
        }
        let mut made = Vec::with_capacity(self.program.outputs.len());
        for output in &self.program.outputs {
            made.push(columns[*output].clone().ok_or_else(|| internal("an output is missing".into()))?);
        }
        let batch = Batch { keys: batch.keys.clone(), columns: made };
        let batch = if failures.is_empty() { batch } else { keep(&batch, &alive).map_err(internal)? };
        Ok(Outcome { batch, failures })
    }
}

enum Place {
    Chain(usize),
    Columns(Unit),
}

/// The rows of a batch that are still good.
fn keep(batch: &Batch, alive: &[bool]) -> Result<Batch, String> {
    let mask = BooleanArray::from(alive.to_vec());
    let keys: Vec<RowKey> = batch.keys.iter().zip(alive).filter(|(_, alive)| **alive).map(|(key, _)| *key).collect();
    let columns = batch
        .columns
        .iter()
        .map(|column| arrow::compute::filter(column, &mask).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    Ok(Batch { keys, columns })
}
