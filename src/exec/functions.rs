//! Every op that makes one column of a row's own columns as a scalar function, for SQL.
//!
//! `image_resize(image, 'size = [256, 256]')`: the op's columns, then its parameters as TOML. A random op takes the
//! row's source file, the epoch and the pipeline's seed besides: `image_random_crop(image, 'size = 224', path, 3, 17)`
//! gives what the step `random_crop` gives for that row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::ops::{Args, ErasedOp, OPS, Reads, RowsClass};
use crate::pipeline::{Call, Files, Machine, Program, arguments};
use crate::types::{Batch, BufferPool, ColumnType, NamedColumn, RowKey};

/// All ops as functions, to be registered in a session.
#[must_use]
pub fn functions() -> Vec<ScalarUDF> {
    OPS.iter().filter(|op| is_function(**op)).map(|op| ScalarUDF::new_from_impl(OpFunction::new(*op))).collect()
}

/// Whether an op is a function of a row's columns with one value. SQL has its own words for the others.
fn is_function(op: &dyn ErasedOp) -> bool {
    let info = op.info();
    info.rows == RowsClass::Map && info.products.len() <= 1 && info.reads == Reads::Ports
}

/// The name of an op's function: `image_resize` for `image.resize`.
#[must_use]
pub fn function_name(op: &dyn ErasedOp) -> String {
    op.info().name.replace('.', "_")
}

struct OpFunction {
    op: &'static dyn ErasedOp,
    name: String,
    signature: Signature,
}

impl OpFunction {
    fn new(op: &'static dyn ErasedOp) -> Self {
        // The address of its random numbers is among the arguments: even a random op gives the same for the same.
        Self { op, name: function_name(op), signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// Types of the columns, and the arguments.
    fn read(&self, fields: &[FieldRef], params: Option<&ScalarValue>) -> Result<(Vec<ColumnType>, Args)> {
        let wanted = self.op.info().inputs.len();
        let columns = fields.get(..wanted).ok_or_else(|| self.fail(format!("it reads {wanted} columns")))?;
        let types = columns
            .iter()
            .map(|field| {
                let known = ColumnType::from_field(field);
                known.ok_or_else(|| {
                    self.fail(format!("`{}` has type {}, which no op reads", field.name(), field.data_type()))
                })
            })
            .collect::<Result<_>>()?;
        let text = match params {
            None if fields.len() <= wanted => "",
            Some(
                ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
            ) => text,
            _ => {
                return Err(
                    self.fail("its parameters have to be a constant text in TOML, such as 'size = 256'".to_owned())
                );
            }
        };
        Ok((types, arguments(self.op, text).map_err(|error| self.fail(error))?))
    }

    fn fail(&self, message: impl std::fmt::Display) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {message}", self.name))
    }

    /// Row keys, epoch and seed of a random op.
    fn address(&self, args: &[ColumnarValue], rows: usize) -> Result<(Vec<RowKey>, u64, u64)> {
        if !self.op.info().random {
            return Ok((vec![RowKey([0; 16]); rows], 0, 0));
        }
        let help = "a random op takes the columns, its parameters, the row's source file, the epoch and the seed";
        let missing = || self.fail(help.to_owned());
        let from = self.op.info().inputs.len() + 1;
        let [path, epoch, seed] = args.get(from..).ok_or_else(missing)? else { return Err(missing()) };
        let number = |value: &ColumnarValue| -> Result<u64> {
            let array = arrow::compute::cast(&value.clone().into_array(1)?, &DataType::Int64)?;
            let first = array.as_primitive::<Int64Type>().iter().next().flatten();
            first.and_then(|number| u64::try_from(number).ok()).ok_or_else(missing)
        };
        let paths = arrow::compute::cast(&path.clone().into_array(rows)?, &DataType::Utf8)?;
        let keys =
            paths.as_string::<i32>().iter().map(|path| RowKey::of_fragment(path.unwrap_or_default(), 0)).collect();
        Ok((keys, number(epoch)?, number(seed)?))
    }
}

impl std::fmt::Debug for OpFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for OpFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OpFunction {}

impl Hash for OpFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OpFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{}: the type follows from the arguments' fields", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let params = args.scalar_arguments.get(self.op.info().inputs.len()).copied().flatten();
        let (types, values) = self.read(args.arg_fields, params)?;
        let bound = self.op.bind(&values, &types).map_err(|error| self.fail(error.message))?;
        let output = bound.outputs.first().ok_or_else(|| self.fail("it makes no column"))?;
        let field: Field = output.field(&self.name);
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let inputs = self.op.info().inputs.len();
        let params = match args.args.get(inputs) {
            Some(ColumnarValue::Scalar(value)) => Some(value),
            _ => None,
        };
        let (types, values) = self.read(&args.arg_fields, params)?;
        let outputs = self.op.bind(&values, &types).map_err(|error| self.fail(error.message))?.outputs;
        let (keys, epoch, seed) = self.address(&args.args, args.number_rows)?;
        let columns = args.args[..inputs]
            .iter()
            .zip(&types)
            .map(|(value, column_type)| -> Result<ArrayRef> {
                let array = value.clone().into_array(args.number_rows)?;
                if array.null_count() > 0 {
                    return Err(self.fail("a value is missing (NULL)".to_owned()));
                }
                Ok(arrow::compute::cast(&array, &column_type.arrow())?)
            })
            .collect::<Result<Vec<_>>>()?;
        let named = |column_type: ColumnType| NamedColumn { name: self.name.clone(), column_type };
        let info = self.op.info();
        let program = Program {
            seed,
            columns: types.into_iter().chain(outputs).map(named).collect(),
            inputs,
            calls: vec![Call {
                step: info.name.rsplit('.').next().unwrap_or(info.name).to_owned(),
                op: info.name.to_owned(),
                version: info.version,
                args: values,
                inputs: (0..inputs).collect(),
                outputs: vec![inputs],
                variants: None,
                key: None,
                draw: None,
            }],
            outputs: vec![inputs],
            names: vec![self.name.clone()],
            settled: 0,
            fused: true,
        };
        let run = |error: crate::diag::Error| DataFusionError::Execution(format!("{}: {error}", self.name));
        let outcome = Machine::new(&program, BufferPool::new(0), &Files::new())
            .and_then(|mut machine| machine.run(&Batch { keys, columns }, epoch));
        let outcome = outcome.map_err(run)?;
        if let Some(failure) = outcome.failures.first() {
            let (row, reason) = (failure.row, &failure.reason);
            return Err(DataFusionError::Execution(format!("{}: row {row} of the batch: {reason}", self.name)));
        }
        let made = outcome.batch.columns.into_iter().next();
        made.map(ColumnarValue::Array).ok_or_else(|| DataFusionError::Internal(format!("{} made nothing", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{RecordBatch, StringArray};
    use arrow::datatypes::Schema;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::types::TensorColumn;
    use crate::types::batch::binary_view_of_rows;

    fn session() -> SessionContext {
        let context = SessionContext::new();
        for function in functions() {
            context.register_udf(function);
        }
        let names = ["plant/p06_palette.png", "thing/t06.png"];
        let bytes = names.iter().map(|name| {
            std::fs::read(format!("{}/fixtures/photos/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap().into()
        });
        let schema = Schema::new(vec![ColumnType::Text.field("path"), ColumnType::Bytes.field("bytes")]);
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(names.to_vec())), Arc::new(binary_view_of_rows(bytes.collect()).unwrap())];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        context.register_batch("photos", batch).unwrap();
        context
    }

    fn query(sql: &str) -> Result<Vec<RecordBatch>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { session().sql(sql).await?.collect().await })
    }

    /// The shape is what the parameters say; the values of a crop of a crop are those of the smaller crop: 10 + 5 = 15
    /// rows of margin are left of 64 when 44 and then 34 are cut from the middle, as when 34 are at once.
    #[test]
    fn ops_nest_in_sql() {
        let sql = |crop: &str| format!("select {crop} as image from photos");
        let resized = "image_resize(image_decode(bytes), 'size = [64, 64]')";
        let twice =
            query(&sql(&format!("image_center_crop(image_center_crop({resized}, 'size = 44'), 'size = 34')"))).unwrap();
        let once = query(&sql(&format!("image_center_crop({resized}, 'size = 34')"))).unwrap();
        assert_eq!(twice[0].column(0), once[0].column(0));
        let column_type = ColumnType::from_field(once[0].schema().field(0)).unwrap();
        assert_eq!(column_type.to_string(), "u8[34, 34, 3]");
        assert_eq!(TensorColumn::new(once[0].column(0), &column_type).unwrap().len(), 2);
    }

    #[test]
    fn every_op_is_a_function_and_errors_say_what_is_wrong() {
        let row_wise = OPS.iter().filter(|op| op.info().rows == RowsClass::Map && op.info().reads == Reads::Ports);
        assert_eq!(functions().len(), row_wise.filter(|op| op.info().products.len() <= 1).count());
        let label =
            query("select path_label(path, 'classes = [\"plant\", \"thing\"]') as label from photos order by label")
                .unwrap();
        assert_eq!(label[0].column(0).as_primitive::<Int64Type>().values(), &[0, 1]);
        let cropped = "image_random_crop(image_decode(bytes), 'size = 20', path, 3, 17)";
        assert_eq!(
            query(&format!("select {cropped} from photos")).unwrap(),
            query(&format!("select {cropped} from photos")).unwrap()
        );
        let error = |sql: &str| query(sql).unwrap_err().to_string();
        assert!(error("select image_resize(image_decode(bytes), 'sice = 3') from photos").contains("sice"));
        assert!(error("select image_resize(bytes, 'size = 3') from photos").contains("reads an image"));
        assert!(error("select image_random_crop(image_decode(bytes), 'size = 3') from photos").contains("the seed"));
        assert!(
            error("select image_center_crop(image_decode(bytes), 'size = 9999') from photos")
                .contains("smaller than the crop")
        );
    }
}
