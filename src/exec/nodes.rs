//! Two operators to hang functions into a plan: one that makes batches, one that turns batches into others.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
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

use super::batches::properties;

/// What makes the batches of a partition.
pub type Begin = dyn Fn(usize, Arc<TaskContext>) -> Result<SendableRecordBatchStream> + Send + Sync;

/// Makes batches.
pub struct LeafExec {
    name: &'static str,
    begin: Arc<Begin>,
    properties: Arc<PlanProperties>,
}

impl LeafExec {
    /// An operator of that name with that many partitions.
    pub fn new(name: &'static str, schema: SchemaRef, partitions: usize, begin: Arc<Begin>) -> Self {
        Self { name, begin, properties: properties(schema, partitions) }
    }
}

impl fmt::Debug for LeafExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        (self.begin)(partition, context)
    }
}

/// Turns the batches of one partition into others, in order.
pub trait BatchMap: Send {
    /// Takes in a batch.
    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch>;

    /// An error of what comes before, as it is to be told.
    fn told(&self, error: DataFusionError) -> DataFusionError {
        error
    }

    /// After the last batch: what is left, if anything.
    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }
}

/// Begins the work on a partition.
pub type BeginMap = dyn Fn(usize) -> Result<Box<dyn BatchMap>> + Send + Sync;

/// Turns batches into others.
pub struct MapExec {
    name: &'static str,
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    begin: Arc<BeginMap>,
    properties: Arc<PlanProperties>,
}

impl MapExec {
    /// An operator of that name over what comes out of `input`.
    pub fn new(name: &'static str, input: Arc<dyn ExecutionPlan>, schema: SchemaRef, begin: Arc<BeginMap>) -> Self {
        let partitions = input.properties().output_partitioning().partition_count();
        let properties = properties(Arc::clone(&schema), partitions);
        Self { name, input, schema, begin, properties }
    }
}

impl fmt::Debug for MapExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl DisplayAs for MapExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for MapExec {
    fn name(&self) -> &'static str {
        self.name
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
            .map_err(|_| DataFusionError::Internal("such an operator has one input".to_owned()))?;
        Ok(Arc::new(Self::new(self.name, input, Arc::clone(&self.schema), Arc::clone(&self.begin))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let map = (self.begin)(partition)?;
        let stream = futures::stream::unfold(Some((input, map)), |state| async move {
            let (mut input, mut map) = state?;
            match input.next().await {
                Some(Ok(batch)) => {
                    let made = map.next(batch);
                    let next = made.is_ok().then_some((input, map));
                    Some((made, next))
                }
                Some(Err(error)) => Some((Err(map.told(error)), None)),
                None => map.finish().transpose().map(|last| (last, None)),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}
