//! SQL expressions over the columns of a row: parsed and evaluated by the query engine, and nothing else of it.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt8Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, SchemaError};
use datafusion::logical_expr::{ColumnarValue, Expr, Operator, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::kernel::RowFailure;
use crate::types::{ColumnType, DType, NamedColumn};

/// Why a text isn't an expression over those columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpressionError {
    /// It names a column that isn't there.
    UnknownColumn(String),
    /// Something else, in words, and what to do about it.
    Other(String, Option<String>),
}

/// The session that all expressions are read in: they refer to no table, so nothing is ever registered in it.
static SESSION: LazyLock<SessionContext> = LazyLock::new(|| SessionContext::new_with_config(session_config()));

/// Whether SQL can look into values of that type.
#[must_use]
pub fn is_sql_type(column_type: &ColumnType) -> bool {
    !matches!(column_type, ColumnType::Tensor(_))
}

/// A session whose identifiers keep their case, as column names do everywhere else.
#[must_use]
pub fn session_config() -> SessionConfig {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.enable_ident_normalization = false;
    config
}

/// The columns that an expression mentions, by their places among `visible`, each once, in the order of `visible`.
///
/// # Errors
/// When it isn't an expression, names an unknown column or one of a tensor, or isn't deterministic.
pub fn mentioned(text: &str, visible: &[NamedColumn]) -> Result<Vec<usize>, ExpressionError> {
    let (expression, _) = parse(text, visible)?;
    let found: Vec<usize> = (0..visible.len())
        .filter(|at| expression.column_refs().contains(&Column::new_unqualified(visible[*at].name.as_str())))
        .collect();
    if let Some(tensor) = found.iter().map(|at| &visible[*at]).find(|column| !is_sql_type(&column.column_type)) {
        let message = format!("`{}` is {}, and SQL can't look into tensors", tensor.name, tensor.column_type);
        let help = "make numbers of it before: `image.shape` gives height and width, `tensor.length` a length";
        return Err(ExpressionError::Other(message, Some(help.to_owned())));
    }
    Ok(found)
}

/// The longest expression: the engine goes into one as deep as it is nested, on the stack of the thread.
const MAX_LENGTH: usize = 2000;

fn parse(text: &str, columns: &[NamedColumn]) -> Result<(Expr, DFSchema), ExpressionError> {
    if text.len() > MAX_LENGTH {
        let message = format!("an expression of {} bytes, and {MAX_LENGTH} are the most", text.len());
        return Err(ExpressionError::Other(message, Some("make columns of its parts with `compute`".to_owned())));
    }
    let other = |error: DataFusionError| ExpressionError::Other(plain(&error), None);
    let fields: Vec<Field> = columns.iter().map(|column| column.column_type.field(&column.name)).collect();
    let schema = DFSchema::try_from(Schema::new(fields)).map_err(other)?;
    let expression = SESSION.parse_sql_expr(text, &schema).map_err(|error| match error.find_root() {
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::FieldNotFound { field, .. } => ExpressionError::UnknownColumn(field.name.clone()),
            _ => other(error),
        },
        _ => other(error),
    })?;
    if let Some(word) = unfit(&expression) {
        let help = "an expression is evaluated row by row and has to give the same value each time";
        return Err(ExpressionError::Other(word, Some(help.to_owned())));
    }
    Ok((expression, schema))
}

/// What an expression has that can't be evaluated row by row, with the same value each time.
fn unfit(expression: &Expr) -> Option<String> {
    let mut found = None;
    let _ = expression.apply(|part| {
        match part {
            Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable => {
                found = Some(format!("`{}()` is nondeterministic: it gives another value each time", call.func.name()));
            }
            Expr::AggregateFunction(call) => {
                found = Some(format!("`{}()` needs all rows: use a step `sql = \"select ...\"`", call.func.name()));
            }
            Expr::WindowFunction(_) => found = Some("a window function needs all rows: use a step `sql`".to_owned()),
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) => {
                found = Some("a subquery needs other rows: use a step `sql`".to_owned());
            }
            _ => {}
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    });
    found
}

/// An expression that is ready to be evaluated over batches of those columns.
#[derive(Debug)]
pub struct Expression {
    physical: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    output: DataType,
}

impl Expression {
    /// Compiles a text over just those columns.
    ///
    /// # Errors
    /// As for [`mentioned`], and when the types don't fit.
    pub fn compile(text: &str, columns: &[NamedColumn]) -> Result<Self, ExpressionError> {
        let other = |error: DataFusionError| ExpressionError::Other(plain(&error), None);
        let (expression, schema) = parse(text, columns)?;
        let physical = SESSION.create_physical_expr(expression, &schema).map_err(other)?;
        let physical = checked(physical).map_err(other)?;
        let output = physical.data_type(schema.as_arrow()).map_err(other)?;
        Ok(Self { physical, schema: Arc::clone(schema.inner()), output })
    }

    /// The type of its value as a column, if it has one. A truth value is a u8, 0 or 1.
    #[must_use]
    pub fn column_type(&self) -> Option<ColumnType> {
        column_type(&self.output)
    }

    /// Whether its value is true or false.
    #[must_use]
    pub fn is_boolean(&self) -> bool {
        self.output == DataType::Boolean
    }

    /// What its value is, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        self.column_type().map_or_else(|| self.output.to_string(), |column_type| column_type.to_string())
    }

    /// Evaluates it over columns in the order in which it was compiled; a row for which it has no value is a failure.
    ///
    /// # Errors
    /// When the columns aren't of the types that it was compiled for.
    pub fn evaluate(&self, inputs: &[ArrayRef]) -> Result<(ArrayRef, Vec<RowFailure>), String> {
        let rows = inputs.first().map_or(0, Array::len);
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), inputs.to_vec(), &options);
        let batch = batch.map_err(|error| error.to_string())?;
        let mut failures = Vec::new();
        let values = match self.once(&batch) {
            Ok(values) => values,
            // A value that can't be had, such as a cast of odd text, ends the whole batch: which row it is, each says.
            Err(_) => self.one_by_one(&batch, &mut failures)?,
        };
        for row in (0..rows).filter(|row| values.is_null(*row)) {
            if failures.iter().all(|failure: &RowFailure| failure.row != row) {
                let reason = "the expression is NULL: say what it is then, with `coalesce(..., value)`".to_owned();
                failures.push(RowFailure { row, reason });
            }
        }
        failures.sort_by_key(|failure| failure.row);
        Ok((values, failures))
    }

    fn once(&self, batch: &RecordBatch) -> Result<ArrayRef, String> {
        let value = self.physical.evaluate(batch).map_err(|error| plain(&error))?;
        match value {
            ColumnarValue::Array(array) => Ok(array),
            ColumnarValue::Scalar(scalar) => scalar.to_array_of_size(batch.num_rows()).map_err(|error| plain(&error)),
        }
    }

    fn one_by_one(&self, batch: &RecordBatch, failures: &mut Vec<RowFailure>) -> Result<ArrayRef, String> {
        let values = (0..batch.num_rows())
            .map(|row| match self.once(&batch.slice(row, 1)) {
                Ok(value) => value,
                Err(reason) => {
                    failures.push(RowFailure { row, reason });
                    arrow::array::new_null_array(&self.output, 1)
                }
            })
            .collect::<Vec<_>>();
        let parts: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        arrow::compute::concat(&parts).map_err(|error| error.to_string())
    }
}

/// The expression with whole numbers that overflow as errors: the engine's own default is that they wrap around.
fn checked(expression: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
    let transformed = expression.transform_up(|part| {
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(part)) };
        if !matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply) {
            return Ok(Transformed::no(part));
        }
        let (left, right) = (Arc::clone(binary.left()), Arc::clone(binary.right()));
        let strict = BinaryExpr::new(left, *binary.op(), right).with_fail_on_overflow(true);
        Ok(Transformed::yes(Arc::new(strict) as Arc<dyn PhysicalExpr>))
    });
    transformed.map(|transformed| transformed.data)
}

/// The column type of a value that SQL gives, if columns can have it.
#[must_use]
pub fn column_type(data_type: &DataType) -> Option<ColumnType> {
    Some(match data_type {
        DataType::Boolean | DataType::UInt8 => ColumnType::Scalar(DType::U8),
        DataType::UInt16 => ColumnType::Scalar(DType::U16),
        DataType::Int32 => ColumnType::Scalar(DType::I32),
        DataType::Int8 | DataType::Int16 | DataType::Int64 | DataType::UInt32 | DataType::UInt64 => {
            ColumnType::Scalar(DType::I64)
        }
        DataType::Float32 => ColumnType::Scalar(DType::F32),
        DataType::Float64 => ColumnType::Scalar(DType::F64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ColumnType::Bytes,
        _ => return None,
    })
}

/// A value that SQL gives as a column of that type; NULL becomes the type's empty value.
///
/// # Errors
/// When a whole number is too large, or the types don't fit.
pub fn to_column(values: &ArrayRef, column_type: &ColumnType) -> Result<ArrayRef, String> {
    let whole: ArrayRef = match values.as_boolean_opt() {
        Some(truth) => Arc::new(truth.iter().map(|value| Some(u8::from(value == Some(true)))).collect::<UInt8Array>()),
        None => {
            let options = arrow::compute::CastOptions { safe: false, ..Default::default() };
            arrow::compute::cast_with_options(values, &column_type.arrow(), &options).map_err(|e| e.to_string())?
        }
    };
    Ok(if whole.null_count() > 0 { without_nulls(&whole, column_type)? } else { whole })
}

/// The column with the type's empty value (no text, no bytes, 0) where it is null.
///
/// # Errors
/// When the type has no empty value.
pub fn without_nulls(values: &ArrayRef, column_type: &ColumnType) -> Result<ArrayRef, String> {
    let empty = super::relational::empty_value(column_type)?;
    let nulls: BooleanArray = arrow::compute::is_null(values).map_err(|error| error.to_string())?;
    let empty = arrow::array::Scalar::new(empty);
    arrow::compute::kernels::zip::zip(&nulls, &empty, &values.as_ref()).map_err(|error| error.to_string())
}

/// What the engine said, without its own wrapping.
#[must_use]
pub fn plain(error: &DataFusionError) -> String {
    let text = error.find_root().strip_backtrace();
    let text = text.split_once("error: ").map_or(text.as_str(), |(_, rest)| rest);
    let inner = text.strip_prefix("ParserError(\"").and_then(|rest| rest.strip_suffix("\")"));
    let text = inner.unwrap_or(text);
    text.lines().next().unwrap_or(text).trim_end_matches('.').to_owned()
}
