//! What joins, unions, queries and packing do to row keys and places in the row order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Sort, SortExpr};
use datafusion::physical_plan::ExecutionPlan;

use super::batches::{internal, key_column, keys_of, order_column, ordered_schema, orders_of, record_batch, wrap};
use super::nodes::{BatchMap, MapExec};
use crate::diag::{DataError, Error};
use crate::ops::expression::{plain, to_column, without_nulls};
use crate::ops::{PackKernel, Packed, Packer};
use crate::types::row_digest::value_digests;
use crate::types::{ColumnType, NamedColumn, RowKey};

/// A map without memory.
struct Stateless<F>(F);

impl<F: FnMut(RecordBatch) -> Result<RecordBatch> + Send> BatchMap for Stateless<F> {
    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        (self.0)(batch)
    }
}

fn map(
    name: &'static str,
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    change: impl Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync + Clone + 'static,
) -> Arc<dyn ExecutionPlan> {
    let begin = move |_| Ok(Box::new(Stateless(change.clone())) as Box<dyn BatchMap>);
    Arc::new(MapExec::new(name, input, schema, Arc::new(begin)))
}

/// The same columns under the names and with the metadata of that schema.
pub fn renamed(input: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Arc<dyn ExecutionPlan> {
    let to = Arc::clone(&schema);
    map("RenameExec", input, schema, move |batch| record_batch(&to, batch.columns().to_vec(), batch.num_rows()))
}

/// Rows of a join: left key and place, right key and place, columns.
pub fn joined(input: Arc<dyn ExecutionPlan>, named: &[NamedColumn]) -> Arc<dyn ExecutionPlan> {
    let schema = ordered_schema(named);
    let (to, named) = (Arc::clone(&schema), named.to_vec());
    map("JoinKeysExec", input, schema, move |batch| {
        let (left, right) = (keys_of(batch.column(0))?, batch.column(2));
        let partners = right.as_fixed_size_binary_opt().ok_or_else(|| internal("a join without keys"))?;
        let partner = |row: usize| partners.value(row).try_into().map(RowKey).ok().filter(|_| partners.is_valid(row));
        let keys: Vec<RowKey> = left.iter().enumerate().map(|(row, key)| key.joined(partner(row))).collect();
        let (left_places, right_places) = (orders_of(batch.column(1))?, orders_of(batch.column(3))?);
        let places = (0..batch.num_rows()).map(|row| {
            let right = if right_places.is_valid(row) { right_places.value(row) } else { &[] };
            [left_places.value(row), right].concat()
        });
        let mut columns = vec![key_column(&keys)?, order_column(places)];
        for (column, of) in batch.columns()[4..].iter().zip(&named) {
            let whole = if column.null_count() > 0 {
                without_nulls(column, &of.column_type).map_err(internal)?
            } else {
                Arc::clone(column)
            };
            columns.push(whole);
        }
        record_batch(&to, columns, batch.num_rows())
    })
}

/// Rows of a union's branch of that number.
pub fn branch(input: Arc<dyn ExecutionPlan>, branch: usize, named: &[NamedColumn]) -> Arc<dyn ExecutionPlan> {
    let schema = ordered_schema(named);
    let to = Arc::clone(&schema);
    map("BranchExec", input, schema, move |batch| {
        let keys: Vec<RowKey> = keys_of(batch.column(0))?.into_iter().map(|key| key.in_branch(branch as u64)).collect();
        let number = u8::try_from(branch).map_err(internal)?;
        let places = orders_of(batch.column(1))?;
        let places = (0..batch.num_rows()).map(|row| [&[number], places.value(row)].concat());
        let mut columns = vec![key_column(&keys)?, order_column(places)];
        columns.extend(batch.columns()[2..].iter().cloned());
        record_batch(&to, columns, batch.num_rows())
    })
}

/// The column of [`digested`].
pub const DIGEST: &str = "__values";

/// Rows with the digest of the values of their first columns, which have those types, as a last column.
pub fn digested(input: Arc<dyn ExecutionPlan>, types: Vec<ColumnType>) -> Arc<dyn ExecutionPlan> {
    let mut fields: Vec<Arc<Field>> = input.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(DIGEST, DataType::Binary, false)));
    let schema = Arc::new(Schema::new(fields));
    let to = Arc::clone(&schema);
    map("DigestExec", input, schema, move |batch| {
        let types: Vec<&ColumnType> = types.iter().collect();
        let columns = &batch.columns()[2..2 + types.len()];
        let digests = value_digests(columns, &types, batch.num_rows()).map_err(internal)?;
        let digests: ArrayRef = Arc::new(BinaryArray::from_iter_values(digests.iter().map(|digest| digest.0)));
        let columns = batch.columns().iter().cloned().chain([digests]).collect();
        record_batch(&to, columns, batch.num_rows())
    })
}

/// A query with an order for all of its rows: what its own order leaves equal, or all without one, by their values.
pub fn with_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    let by_values = |plan: &LogicalPlan| -> Vec<SortExpr> {
        plan.schema().columns().into_iter().map(|column| Expr::Column(column).sort(true, true)).collect()
    };
    Ok(match plan {
        LogicalPlan::Sort(sort) => {
            let mut expr = sort.expr.clone();
            expr.extend(by_values(&sort.input));
            LogicalPlan::Sort(Sort { expr, ..sort })
        }
        LogicalPlan::Limit(limit) => {
            let input = with_order(limit.input.as_ref().clone())?;
            LogicalPlan::Limit(datafusion::logical_expr::Limit { input: Arc::new(input), ..limit })
        }
        LogicalPlan::Projection(projection) if matches!(*projection.input, LogicalPlan::Sort(_)) => {
            let input = with_order(projection.input.as_ref().clone())?;
            LogicalPlan::Projection(datafusion::logical_expr::Projection::try_new(projection.expr, Arc::new(input))?)
        }
        other => {
            let order = by_values(&other);
            LogicalPlanBuilder::from(other).sort(order)?.build()?
        }
    })
}

/// Rows of a query: their keys are made from their values, their places from their order.
pub fn queried(
    input: Arc<dyn ExecutionPlan>,
    types: Vec<ColumnType>,
    places: Vec<usize>,
    named: &[NamedColumn],
    step: String,
) -> Arc<dyn ExecutionPlan> {
    let schema = ordered_schema(named);
    let to = Arc::clone(&schema);
    let begin = move |_| {
        let (types, places, schema, step) = (types.clone(), places.clone(), Arc::clone(&to), step.clone());
        Ok(Box::new(Queried { types, places, schema, step, row: 0, last: None }) as Box<dyn BatchMap>)
    };
    Arc::new(MapExec::new("QueryKeysExec", input, schema, Arc::new(begin)))
}

struct Queried {
    types: Vec<ColumnType>,
    places: Vec<usize>,
    schema: SchemaRef,
    step: String,
    row: u64,
    /// The values of the row before, and how many rows before have them too.
    last: Option<([u8; 32], u64)>,
}

impl BatchMap for Queried {
    fn told(&self, error: DataFusionError) -> DataFusionError {
        // What the engine finds wrong with values is the query's or the data's fault, not parbake's.
        match error.find_root() {
            DataFusionError::External(_) | DataFusionError::Internal(_) => error,
            root => wrap(Error::Dataset {
                message: format!("step `{}`: the query fails: {}", self.step, plain(root)),
                help: Some("mend the data or the query: `try_cast`, `nullif` and `coalesce` help".to_owned()),
            }),
        }
    }

    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::new();
        for (at, (column, column_type)) in batch.columns().iter().zip(&self.types).enumerate() {
            if let Some(row) = (0..column.len()).find(|row| column.is_null(*row)) {
                let name = batch.schema().field(at).name().clone();
                return Err(wrap(Error::Data(vec![DataError {
                    file: "the query's result".to_owned(),
                    row: self.row + row as u64,
                    step: self.step.clone(),
                    reason: format!("`{name}` is NULL: say what it is then, with `coalesce({name}, value)`"),
                }])));
            }
            columns.push(to_column(column, column_type).map_err(internal)?);
        }
        let types: Vec<&ColumnType> = self.types.iter().collect();
        let digests = value_digests(&columns, &types, batch.num_rows()).map_err(internal)?;
        let mut keys = Vec::with_capacity(batch.num_rows());
        for digest in digests {
            let before = match self.last {
                Some((values, before)) if values == digest.0 => before + 1,
                _ => 0,
            };
            self.last = Some((digest.0, before));
            keys.push(RowKey::of_values(&digest.0, before));
        }
        let first = self.row;
        self.row += batch.num_rows() as u64;
        let mut all = vec![key_column(&keys)?, order_column((first..self.row).map(u64::to_be_bytes))];
        all.extend(self.places.iter().map(|place| Arc::clone(&columns[*place])));
        record_batch(&self.schema, all, batch.num_rows())
    }
}

/// Rows packed by that kernel.
pub fn pack(
    input: Arc<dyn ExecutionPlan>,
    kernel: Arc<dyn PackKernel>,
    places: Vec<usize>,
    named: &[NamedColumn],
) -> Arc<dyn ExecutionPlan> {
    let schema = ordered_schema(named);
    let to = Arc::clone(&schema);
    let begin = move |_| {
        let (places, schema) = (places.clone(), Arc::clone(&to));
        Ok(Box::new(Packing { packer: kernel.packer(), places, schema, row: 0 }) as Box<dyn BatchMap>)
    };
    Arc::new(MapExec::new("PackExec", input, schema, Arc::new(begin)))
}

struct Packing {
    packer: Box<dyn Packer>,
    places: Vec<usize>,
    schema: SchemaRef,
    row: u64,
}

impl Packing {
    fn batch(&mut self, packed: &Packed) -> Result<RecordBatch> {
        let rows = packed.of.len();
        let keys: Vec<RowKey> = packed.of.iter().map(|(of, part)| RowKey::packed(of, *part)).collect();
        let first = self.row;
        self.row += rows as u64;
        let mut columns = vec![key_column(&keys)?, order_column((first..self.row).map(u64::to_be_bytes))];
        columns.extend(self.places.iter().map(|place| Arc::clone(&packed.columns[*place])));
        record_batch(&self.schema, columns, rows)
    }
}

impl BatchMap for Packing {
    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let keys = keys_of(batch.column(0))?;
        let packed = self.packer.push(&keys, &batch.columns()[2..]).map_err(internal)?;
        self.batch(&packed)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let packed = self.packer.finish().map_err(internal)?;
        self.batch(&packed).map(Some)
    }
}
