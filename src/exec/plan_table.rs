//! A plan as a table, for the query engine to go on with.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::nodes::LeafExec;

/// A table whose rows a plan makes.
#[derive(Debug)]
pub struct PlanTable {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
}

impl PlanTable {
    /// A table of what comes out of that plan.
    pub fn new(plan: Arc<dyn ExecutionPlan>) -> Self {
        let schema = plan.schema();
        Self { plan, schema }
    }
}

#[async_trait]
impl TableProvider for PlanTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The engine's optimiser doesn't see into the plan: it would move sorts and partitions through operators whose
        // meaning it doesn't know.
        let plan = Arc::clone(&self.plan);
        let partitions = plan.properties().output_partitioning().partition_count();
        let begin = move |partition: usize, context: Arc<TaskContext>| plan.execute(partition, context);
        let sealed = Arc::new(LeafExec::new("RowsExec", self.schema(), partitions, Arc::new(begin)));
        let Some(places) = projection else { return Ok(sealed) };
        let columns = places.iter().map(|place| {
            let name = self.schema.field(*place).name();
            let column: Arc<dyn datafusion::physical_expr::PhysicalExpr> = Arc::new(Column::new(name, *place));
            (column, name.clone())
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), sealed)?))
    }
}
