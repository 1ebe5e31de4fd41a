//! Batches for other programs: canonical Arrow tensor types instead of opaque bytes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayData;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, FixedSizeListArray, ListArray, RecordBatch, StructArray, make_array,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use crate::types::batch::arrow_buffer;
use crate::types::column::{shape_item, shape_list};
use crate::types::{AlignedBuf, Batch, ColumnType, DType, NamedColumn, TensorType};

/// The schema of a stream as other programs see it.
///
/// A tensor of fixed shape is `arrow.fixed_shape_tensor` over `FixedSizeList<T>`, one whose shape varies is
/// `arrow.variable_shape_tensor` over `Struct{data: List<T>, shape: FixedSizeList<Int32>}`; bytes are `BinaryView`.
#[must_use]
pub fn output_schema(columns: &[NamedColumn]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(output_field).collect::<Vec<_>>()))
}

fn output_field(column: &NamedColumn) -> Field {
    let ColumnType::Tensor(tensor) = &column.column_type else { return column.column_type.field(&column.name) };
    let extension = |name: &str, metadata: String| {
        HashMap::from([
            ("ARROW:extension:name".to_owned(), name.to_owned()),
            ("ARROW:extension:metadata".to_owned(), metadata),
        ])
    };
    match tensor.fixed_shape() {
        Some(shape) => {
            let elements = i32::try_from(shape.iter().product::<usize>()).unwrap_or(i32::MAX);
            Field::new(&column.name, DataType::FixedSizeList(item(tensor.dtype), elements), false)
                .with_metadata(extension("arrow.fixed_shape_tensor", format!("{{\"shape\":{shape:?}}}")))
        }
        None => {
            let fixed: Vec<String> = tensor
                .shape
                .iter()
                .map(|dim| dim.fixed().map_or("null".to_owned(), |extent| extent.to_string()))
                .collect();
            Field::new(&column.name, DataType::Struct(variable_fields(tensor)), false).with_metadata(extension(
                "arrow.variable_shape_tensor",
                format!("{{\"uniform_shape\":[{}]}}", fixed.join(",")),
            ))
        }
    }
}

fn item(dtype: DType) -> Arc<Field> {
    Arc::new(Field::new("item", dtype.arrow(), false))
}

fn variable_fields(tensor: &TensorType) -> Fields {
    Fields::from(vec![
        Field::new("data", DataType::List(item(tensor.dtype)), false),
        Field::new("shape", shape_list(tensor.shape.len()), false),
    ])
}

/// A batch in that schema. Tensors that lie one after another in one buffer, as the remainder makes them, aren't
/// copied.
///
/// # Errors
/// When a column doesn't have the layout of its type, or is too large for Arrow's 32-bit offsets.
pub fn to_output(batch: &Batch, columns: &[NamedColumn], schema: &SchemaRef) -> Result<RecordBatch, String> {
    let arrays = batch
        .columns
        .iter()
        .zip(columns)
        .map(|(array, column)| match &column.column_type {
            ColumnType::Tensor(tensor) => tensor_output(array, tensor),
            _ => Ok(Arc::clone(array)),
        })
        .collect::<Result<Vec<_>, String>>()?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(|error| error.to_string())
}

fn tensor_output(array: &ArrayRef, tensor: &TensorType) -> Result<ArrayRef, String> {
    if let Some(shape) = tensor.fixed_shape() {
        let bytes = array.as_binary_view_opt().ok_or("a tensor column isn't binary")?;
        let elements =
            i32::try_from(shape.iter().product::<usize>()).map_err(|_| "a tensor of more than 2^31 elements")?;
        let values = elements_of(bytes, tensor.dtype)?;
        let list = FixedSizeListArray::try_new_with_length(item(tensor.dtype), elements, values, None, array.len());
        return Ok(Arc::new(list.map_err(|error| error.to_string())?));
    }
    let children = array.as_struct_opt().filter(|s| s.num_columns() == 2).ok_or("a tensor column isn't a struct")?;
    let bytes = children.column(0).as_binary_view_opt().ok_or("a tensor column isn't binary")?;
    let lengths = bytes.lengths().map(|length| length as usize / tensor.dtype.size());
    let total: usize = lengths.clone().sum();
    i32::try_from(total).map_err(|_| "a batch of more than 2^31 elements: use a smaller batch")?;
    let list = ListArray::try_new(
        item(tensor.dtype),
        OffsetBuffer::from_lengths(lengths),
        elements_of(bytes, tensor.dtype)?,
        None,
    )
    .map_err(|error| error.to_string())?;
    let shapes = children.column(1).as_fixed_size_list_opt().ok_or("a tensor column has no shapes")?;
    let size = i32::try_from(tensor.shape.len()).map_err(|error| error.to_string())?;
    let shapes = FixedSizeListArray::try_new(shape_item(), size, Arc::clone(shapes.values()), None);
    let shapes = shapes.map_err(|error| error.to_string())?;
    StructArray::try_new(variable_fields(tensor), vec![Arc::new(list), Arc::new(shapes)], None)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| error.to_string())
}

/// All elements of a column, row after row, as a primitive array.
fn elements_of(bytes: &BinaryViewArray, dtype: DType) -> Result<ArrayRef, String> {
    let buffer = contiguous(bytes).unwrap_or_else(|| copied(bytes));
    let data = ArrayData::builder(dtype.arrow()).len(buffer.len() / dtype.size()).add_buffer(buffer).build();
    Ok(make_array(data.map_err(|error| error.to_string())?))
}

/// The part of the only buffer that the rows fill one after another, if they do and it is aligned.
fn contiguous(bytes: &BinaryViewArray) -> Option<Buffer> {
    let [buffer] = bytes.data_buffers() else { return None };
    let first = bytes.views().first()?;
    let start = (first >> 96) as usize;
    let mut at = start;
    for view in bytes.views() {
        #[expect(clippy::cast_possible_truncation, reason = "the length is the low 32 bits of a view")]
        let length = *view as u32 as usize;
        if length <= 12 || (view >> 96) as usize != at {
            return None;
        }
        at += length;
    }
    (start.is_multiple_of(8) && buffer.as_ptr().addr().is_multiple_of(8))
        .then(|| buffer.slice_with_length(start, at - start))
}

fn copied(bytes: &BinaryViewArray) -> Buffer {
    let mut all = AlignedBuf::new();
    let total: usize = bytes.lengths().map(|length| length as usize).sum();
    let mut rest = all.resize(total);
    for value in bytes.iter().flatten() {
        let (to, after) = rest.split_at_mut(value.len());
        to.copy_from_slice(value);
        rest = after;
    }
    arrow_buffer(all)
}
