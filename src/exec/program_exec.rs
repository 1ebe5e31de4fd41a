//! The operator that runs a program over every batch.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::batches::{from_record_batch, properties, schema, to_record_batch, wrap};
use super::job::{BadRow, Notes};
use super::progress::Progress;
use crate::diag::{DataError, Error};
use crate::pipeline::{Machine, OnError, Program};
use crate::types::{BufferPool, NamedColumn};
use crate::world::machine::thread_cpu_seconds;

/// Buffers that are kept between batches and shards: some batches' worth of decoded pictures.
const KEPT_BUFFERS: usize = 256;

/// Runs a program; bad rows end the run or are noted, by policy.
pub struct ProgramExec {
    input: Arc<dyn ExecutionPlan>,
    program: Program,
    on_error: OnError,
    notes: Arc<Notes>,
    progress: Arc<Progress>,
    /// Shared by all shards: what one has written out, the next one fills.
    pool: BufferPool,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl ProgramExec {
    /// Runs the program over what comes out of `input`.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        program: Program,
        on_error: OnError,
        notes: Arc<Notes>,
        progress: Arc<Progress>,
    ) -> Self {
        let columns: Vec<NamedColumn> = program.output_columns().cloned().collect();
        let schema = schema(&columns);
        let properties = properties(Arc::clone(&schema), input.properties().output_partitioning().partition_count());
        let pool = BufferPool::new(KEPT_BUFFERS);
        Self { input, program, on_error, notes, progress, pool, schema, properties }
    }
}

impl fmt::Debug for ProgramExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramExec({} calls)", self.program.calls.len())
    }
}

impl DisplayAs for ProgramExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<&str> = self.program.calls.iter().map(|call| call.step.as_str()).collect();
        write!(f, "ProgramExec: steps=[{}]", steps.join(", "))
    }
}

impl ExecutionPlan for ProgramExec {
    fn name(&self) -> &'static str {
        "ProgramExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|_| DataFusionError::Internal("a program has one input".to_owned()))?;
        let (program, notes, progress) = (self.program.clone(), Arc::clone(&self.notes), Arc::clone(&self.progress));
        Ok(Arc::new(Self::new(input, program, self.on_error, notes, progress)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let mut machine = Machine::new(&self.program, self.pool.clone()).map_err(wrap)?;
        let (notes, progress, schema) = (Arc::clone(&self.notes), Arc::clone(&self.progress), Arc::clone(&self.schema));
        let on_error = self.on_error;
        let paths = Arc::clone(&self.notes);
        let mut first = 0;
        let stream = input.map(move |batch| {
            let batch = from_record_batch(&batch?)?;
            let rows = batch.rows();
            let started = thread_cpu_seconds();
            let outcome = machine.run(&batch, 0).map_err(wrap)?;
            let used = thread_cpu_seconds() - started;
            let bad: Vec<BadRow> = outcome
                .failures
                .into_iter()
                .map(|failure| BadRow {
                    fragment: paths.fragment(partition, first + failure.row),
                    step: failure.step,
                    reason: failure.reason,
                })
                .collect();
            first += rows;
            progress.add_rows(rows as u64, bad.len() as u64);
            if on_error == OnError::Fail && !bad.is_empty() {
                let errors = bad
                    .into_iter()
                    .map(|bad| DataError {
                        file: paths.path(partition, bad.fragment),
                        row: 0,
                        step: bad.step,
                        reason: bad.reason,
                    })
                    .collect();
                return Err(wrap(Error::Data(errors)));
            }
            notes.update(partition, |outcome| {
                outcome.bad.extend(bad);
                outcome.cpu_seconds += used;
            });
            to_record_batch(outcome.batch, &schema)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}
