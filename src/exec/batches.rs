//! Batches of rows as record batches between operators, and errors as DataFusion's.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{Partitioning, PlanProperties};

use crate::diag::Error;
use crate::types::{Batch, NamedColumn, RowKey};

/// The column of row keys, the first one of every record batch between operators.
pub const KEY: &str = "__key";
/// The column of places in the row order, the second one where rows of several relations are put together: bytes that
/// sort as the rows stand.
pub const ORDER: &str = "__order";

/// The schema of a batch with those columns.
pub fn schema(columns: &[NamedColumn]) -> SchemaRef {
    let mut fields = vec![key_field()];
    fields.extend(columns.iter().map(|column| column.column_type.field(&column.name)));
    Arc::new(Schema::new(fields))
}

/// The schema of a batch with places in the row order and those columns.
pub fn ordered_schema(columns: &[NamedColumn]) -> SchemaRef {
    let mut fields = vec![key_field(), Field::new(ORDER, DataType::Binary, false)];
    fields.extend(columns.iter().map(|column| column.column_type.field(&column.name)));
    Arc::new(Schema::new(fields))
}

fn key_field() -> Field {
    Field::new(KEY, DataType::FixedSizeBinary(16), false)
}

/// Row keys as a column.
pub fn key_column(keys: &[RowKey]) -> Result<ArrayRef, DataFusionError> {
    let bytes: Vec<u8> = keys.iter().flat_map(|key| key.0).collect();
    Ok(Arc::new(FixedSizeBinaryArray::try_new(16, bytes.into(), None)?))
}

/// Places in the row order as a column.
pub fn order_column<I: AsRef<[u8]>>(places: impl IntoIterator<Item = I>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(places))
}

/// A batch as a record batch of that schema.
pub fn to_record_batch(batch: Batch, schema: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let rows = batch.rows();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.columns.len() + 1);
    columns.push(key_column(&batch.keys)?);
    columns.extend(batch.columns);
    record_batch(schema, columns, rows)
}

/// Columns as a record batch of that schema.
pub fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, DataFusionError> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The row keys in a column.
pub fn keys_of(column: &ArrayRef) -> Result<Vec<RowKey>, DataFusionError> {
    let keys = column
        .as_fixed_size_binary_opt()
        .ok_or_else(|| DataFusionError::Internal("a batch without row keys".to_owned()))?;
    Ok(keys.iter().map(|key| RowKey(key.and_then(|key| key.try_into().ok()).unwrap_or_default())).collect())
}

/// The places in a column.
pub fn orders_of(column: &ArrayRef) -> Result<&BinaryArray, DataFusionError> {
    column
        .as_binary_opt::<i32>()
        .ok_or_else(|| DataFusionError::Internal("a batch without places in the row order".to_owned()))
}

/// A record batch whose first column is that of the row keys as a batch.
pub fn from_record_batch(batch: &RecordBatch) -> Result<Batch, DataFusionError> {
    let first =
        batch.columns().first().ok_or_else(|| DataFusionError::Internal("a batch without row keys".to_owned()))?;
    Ok(Batch { keys: keys_of(first)?, columns: batch.columns()[1..].to_vec() })
}

/// The properties of an operator with that many partitions.
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

/// An error of parbake's own making, for DataFusion.
pub fn internal(message: impl std::fmt::Display) -> DataFusionError {
    wrap(Error::internal("the engine", message))
}

/// Takes an error out again; one of DataFusion's own is a failure of the engine.
pub fn unwrap(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::internal("the engine", other),
        },
        DataFusionError::ArrowError(inner, text) => match *inner {
            arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(error) => *error,
                Err(other) => Error::internal("the engine", other),
            },
            other => Error::internal("the engine", DataFusionError::ArrowError(Box::new(other), text)),
        },
        DataFusionError::Context(_, inner) => unwrap(*inner),
        DataFusionError::Shared(inner) => match Arc::try_unwrap(inner) {
            Ok(inner) => unwrap(inner),
            Err(inner) => Error::internal("the engine", inner),
        },
        other => Error::internal("the engine", other),
    }
}
