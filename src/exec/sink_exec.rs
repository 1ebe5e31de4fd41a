//! The root operator: writes a shard and gives one row that says what came of it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::batches::{from_record_batch, properties, wrap};
use super::job::{ShardFile, ShardStore};
use super::notes::{Notes, ShardOutcome};
use crate::diag::Error;
use crate::format::shard::ShardWriter;
use crate::types::{Codec, NamedColumn};
use crate::world::machine::{now, thread_cpu_seconds};

/// Writes shards; without a store it only drains its input.
pub struct ShardSinkExec {
    input: Arc<dyn ExecutionPlan>,
    sink: Sink,
    properties: Arc<PlanProperties>,
}

impl ShardSinkExec {
    /// Writes the rows of `input`, whose columns these are, into the store.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        columns: Vec<NamedColumn>,
        codec: Codec,
        store: Option<Arc<dyn ShardStore>>,
        notes: Arc<Notes>,
    ) -> Self {
        let schema = Arc::new(Schema::new(vec![
            Field::new("shard", DataType::UInt64, false),
            Field::new("rows", DataType::UInt64, false),
            Field::new("outcome", DataType::Utf8, false),
        ]));
        Self::of(input, Sink { columns: Arc::new(columns), codec, store, notes, schema })
    }

    fn of(input: Arc<dyn ExecutionPlan>, sink: Sink) -> Self {
        let partitions = input.properties().output_partitioning().partition_count();
        let properties = properties(Arc::clone(&sink.schema), partitions);
        Self { input, sink, properties }
    }
}

/// What a partition needs to write its shard.
#[derive(Clone)]
struct Sink {
    columns: Arc<Vec<NamedColumn>>,
    codec: Codec,
    store: Option<Arc<dyn ShardStore>>,
    notes: Arc<Notes>,
    schema: SchemaRef,
}

impl Sink {
    async fn write(self, partition: usize, mut input: SendableRecordBatchStream) -> Result<RecordBatch> {
        let started = now();
        let failed = |message: String| wrap(Error::internal("the shard writer", message));
        let mut writer: Option<ShardWriter<Box<dyn ShardFile>>> = match &self.store {
            Some(store) => {
                let file = store.create(partition).map_err(wrap)?;
                Some(ShardWriter::new(file, &self.columns, self.codec).map_err(failed)?)
            }
            None => None,
        };
        let (mut rows, mut cpu_seconds) = (0, 0.0);
        while let Some(batch) = input.next().await {
            let batch = from_record_batch(&batch?)?;
            rows += batch.rows() as u64;
            if let Some(writer) = &mut writer {
                let before = thread_cpu_seconds();
                writer.write(&batch).map_err(|message| wrap(write_error(&message)))?;
                cpu_seconds += thread_cpu_seconds() - before;
            }
        }
        let mut outcome: ShardOutcome = self.notes.take(partition);
        outcome.rows = rows;
        outcome.cpu_seconds += cpu_seconds;
        outcome.seconds = started.elapsed().as_secs_f64();
        if let Some(writer) = writer {
            let file = writer.finish().map_err(|message| wrap(write_error(&message)))?;
            // Syncing waits for the disk: a worker thread has better things to do.
            let committed = tokio::task::spawn_blocking(move || file.commit(&outcome).map(|()| outcome));
            outcome = committed.await.map_err(|error| failed(error.to_string()))?.map_err(wrap)?;
        }
        let text = serde_json::to_string(&outcome).map_err(|error| failed(error.to_string()))?;
        Ok(RecordBatch::try_new(
            self.schema,
            vec![
                Arc::new(UInt64Array::from(vec![partition as u64])),
                Arc::new(UInt64Array::from(vec![rows])),
                Arc::new(StringArray::from(vec![text])),
            ],
        )?)
    }
}

/// A shard that can't be written is the disk's fault far more often than ours.
fn write_error(message: &str) -> Error {
    let help = "if the disk is full, make room or build into another folder with `--out`; finished shards are kept";
    Error::Dataset { message: format!("writing a shard failed: {message}"), help: Some(help.to_owned()) }
}

impl fmt::Debug for ShardSinkExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardSinkExec({} columns)", self.sink.columns.len())
    }
}

impl DisplayAs for ShardSinkExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.sink.columns.iter().map(|column| column.name.as_str()).collect();
        write!(f, "ShardSinkExec: columns=[{}], codec={}", columns.join(", "), self.sink.codec.word())
    }
}

impl ExecutionPlan for ShardSinkExec {
    fn name(&self) -> &'static str {
        "ShardSinkExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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
        let [input] =
            <[_; 1]>::try_from(children).map_err(|_| DataFusionError::Internal("a sink has one input".to_owned()))?;
        Ok(Arc::new(Self::of(input, self.sink.clone())))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let stream = futures::stream::once(self.sink.clone().write(partition, input));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.sink.schema), stream)))
    }
}
