//! Batches of rows as record batches between operators, and errors as DataFusion's.

use std::sync::Arc;

use arrow::array::{Array, AsArray, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{Partitioning, PlanProperties};

use crate::diag::Error;
use crate::types::{Batch, NamedColumn, RowKey};

/// The column of row keys, the first one of every record batch between operators.
pub const KEY: &str = "__key";

/// The schema of a batch with those columns.
pub fn schema(columns: &[NamedColumn]) -> SchemaRef {
    let mut fields = vec![Field::new(KEY, DataType::FixedSizeBinary(16), false)];
    fields.extend(columns.iter().map(|column| column.column_type.field(&column.name)));
    Arc::new(Schema::new(fields))
}

/// A batch as a record batch of that schema.
pub fn to_record_batch(batch: Batch, schema: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let rows = batch.rows();
    let bytes: Vec<u8> = batch.keys.iter().flat_map(|key| key.0).collect();
    let keys = FixedSizeBinaryArray::try_new(16, bytes.into(), None)?;
    let mut columns: Vec<Arc<dyn Array>> = Vec::with_capacity(batch.columns.len() + 1);
    columns.push(Arc::new(keys));
    columns.extend(batch.columns);
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// A record batch made by [`to_record_batch`] as a batch.
pub fn from_record_batch(batch: &RecordBatch) -> Result<Batch, DataFusionError> {
    let keys = batch
        .columns()
        .first()
        .and_then(|column| column.as_fixed_size_binary_opt())
        .ok_or_else(|| DataFusionError::Internal("a batch without row keys".to_owned()))?;
    let keys = keys.iter().map(|key| RowKey(key.and_then(|key| key.try_into().ok()).unwrap_or_default())).collect();
    Ok(Batch { keys, columns: batch.columns()[1..].to_vec() })
}

/// The properties of an operator with a partition for each shard.
pub fn properties(schema: SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// Carries an error through DataFusion.
pub fn wrap(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Takes an error out again; one of DataFusion's own is a failure of the engine.
pub fn unwrap(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::internal("the engine", other),
        },
        DataFusionError::Context(_, inner) => unwrap(*inner),
        DataFusionError::Shared(inner) => Error::internal("the engine", inner),
        other => Error::internal("the engine", other),
    }
}
