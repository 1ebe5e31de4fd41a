//! Programs in a plan: every batch goes through a machine; bad rows end the run or are noted, by policy.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

use super::batches::{keys_of, order_column, ordered_schema, orders_of, record_batch, schema, to_record_batch, wrap};
use super::nodes::{BatchMap, MapExec};
use super::notes::{BadRow, Notes};
use super::places::Places;
use crate::ops::RowsClass;
use crate::pipeline::{Files, Machine, Program, ROWS, StepFailure};
use crate::types::{Batch, BufferPool, ColumnType, NamedColumn};
use crate::world::machine::thread_cpu_seconds;

/// Buffers that are kept between batches and shards: some batches' worth of decoded pictures.
const KEPT_BUFFERS: usize = 256;

/// The stored columns of a program, with that of the rows that each row becomes where that is decided online.
pub fn stored_columns(program: &Program, structure: Option<&Program>) -> Vec<NamedColumn> {
    let rows = structure.map(|_| NamedColumn { name: ROWS.to_owned(), column_type: ColumnType::Bytes });
    program.output_columns().chain(rows).collect()
}

/// Runs a program over what comes out of `input`; with a structure, notes which rows each stored row becomes online.
pub fn program_exec(
    input: Arc<dyn ExecutionPlan>,
    program: &Program,
    structure: Option<&Program>,
    files: &Arc<Files>,
    notes: &Arc<Notes>,
) -> Arc<dyn ExecutionPlan> {
    let schema = schema(&stored_columns(program, structure));
    let pool = BufferPool::new(KEPT_BUFFERS);
    let (program, structure) = (program.clone(), structure.cloned());
    let (files, notes, made) = (Arc::clone(files), Arc::clone(notes), Arc::clone(&schema));
    let begin = move |task: usize| {
        let machine = Machine::new(&program, pool.clone(), &files).map_err(wrap)?;
        let structure = structure.as_ref().map(|program| Machine::new(program, pool.clone(), &files));
        let structure = structure.transpose().map_err(wrap)?;
        let (notes, schema) = (Arc::clone(&notes), Arc::clone(&made));
        Ok(Box::new(Programmed { machine, structure, notes, task, first: 0, schema }) as Box<dyn BatchMap>)
    };
    Arc::new(MapExec::new("ProgramExec", input, schema, Arc::new(begin)))
}

struct Programmed {
    machine: Machine,
    structure: Option<Machine>,
    notes: Arc<Notes>,
    task: usize,
    /// The number of the batch's first row among those of the task.
    first: usize,
    schema: SchemaRef,
}

fn bad_rows(notes: &Notes, task: usize, failures: Vec<StepFailure>, number: impl Fn(usize) -> usize) -> Vec<BadRow> {
    let bad = |failure: StepFailure| {
        let (_, file, row) = notes.place(task, number(failure.row));
        BadRow { file, row, step: failure.step, reason: failure.reason }
    };
    failures.into_iter().map(bad).collect()
}

impl BatchMap for Programmed {
    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = super::batches::from_record_batch(&batch)?;
        let (rows, first) = (batch.rows(), self.first);
        let started = thread_cpu_seconds();
        let outcome = self.machine.run(&batch, 0).map_err(wrap)?;
        drop(batch);
        self.first += rows;
        let bad = bad_rows(&self.notes, self.task, outcome.failures, |row| first + row);
        self.notes.bad_rows(self.task, bad).map_err(wrap)?;
        let numbers = outcome.origins.iter().map(|row| first + *row as usize);
        self.notes.count_stored(self.task, numbers);
        let mut made = outcome.batch;
        if let Some(structure) = &mut self.structure {
            let inner = structure.run(&made, 0).map_err(wrap)?;
            let number = |row: usize| first + outcome.origins.get(row).map_or(0, |row| *row as usize);
            let bad = bad_rows(&self.notes, self.task, inner.failures, number);
            self.notes.bad_rows(self.task, bad).map_err(wrap)?;
            let mut keys: Vec<Vec<u8>> = vec![Vec::new(); made.rows()];
            for (key, origin) in inner.batch.keys.iter().zip(&inner.origins) {
                if let Some(keys) = keys.get_mut(*origin as usize) {
                    keys.extend(key.0);
                }
            }
            made.columns.push(Arc::new(BinaryViewArray::from_iter_values(keys)));
        }
        self.notes.progress().add_rows(rows as u64, 0);
        let used = thread_cpu_seconds() - started;
        self.notes.update(self.task, |outcome| outcome.cpu_seconds += used);
        to_record_batch(made, &self.schema)
    }
}

/// Where bad rows of rows that are put together are noted.
#[derive(Clone)]
pub struct BadPlaces {
    /// The notes.
    pub notes: Arc<Notes>,
    /// Whether a partition is a task of them; else all rows belong to the first task.
    pub by_task: bool,
    /// What a place in the row order says.
    pub places: Arc<Places>,
}

/// Runs a program over rows whose second column is their place in the row order, which goes along.
pub fn ordered_program_exec(
    input: Arc<dyn ExecutionPlan>,
    program: &Program,
    files: &Arc<Files>,
    bad: BadPlaces,
) -> Arc<dyn ExecutionPlan> {
    let columns: Vec<NamedColumn> = program.output_columns().collect();
    let schema = ordered_schema(&columns);
    let pool = BufferPool::new(KEPT_BUFFERS);
    let (program, files, made) = (program.clone(), Arc::clone(files), Arc::clone(&schema));
    let begin = move |task: usize| {
        let machine = Machine::new(&program, pool.clone(), &files).map_err(wrap)?;
        let expands = program.calls.iter().any(|call| call.rows() == Some(RowsClass::Expand));
        let (bad, schema) = (bad.clone(), Arc::clone(&made));
        let task = if bad.by_task { task } else { 0 };
        Ok(Box::new(OrderedProgram { machine, expands, bad, task, schema }) as Box<dyn BatchMap>)
    };
    Arc::new(MapExec::new("OrderedProgramExec", input, schema, Arc::new(begin)))
}

struct OrderedProgram {
    machine: Machine,
    /// Whether a row may become several: then each has its number behind its row's place.
    expands: bool,
    bad: BadPlaces,
    task: usize,
    schema: SchemaRef,
}

impl BatchMap for OrderedProgram {
    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let keys = keys_of(batch.column(0))?;
        let places = orders_of(batch.column(1))?;
        let rows = Batch { keys, columns: batch.columns()[2..].to_vec() };
        let outcome = self.machine.run(&rows, 0).map_err(wrap)?;
        if !outcome.failures.is_empty() {
            let bad = outcome.failures.iter().map(|failure| {
                let (file, row) = self.bad.places.describe(places.value(failure.row));
                BadRow { file, row, step: failure.step.clone(), reason: failure.reason.clone() }
            });
            self.bad.notes.bad_rows(self.task, bad.collect()).map_err(wrap)?;
        }
        let order: ArrayRef = if self.expands {
            let mut position = 0_u32;
            let mut before = None;
            order_column(outcome.origins.iter().map(|origin| {
                position = if before == Some(*origin) { position + 1 } else { 0 };
                before = Some(*origin);
                [places.value(*origin as usize), &position.to_be_bytes()].concat()
            }))
        } else {
            order_column(outcome.origins.iter().map(|origin| places.value(*origin as usize)))
        };
        let count = outcome.batch.rows();
        let mut columns = vec![super::batches::key_column(&outcome.batch.keys)?, order];
        columns.extend(outcome.batch.columns);
        record_batch(&self.schema, columns, count)
    }
}
