//! Columns as other programs have them: canonical Arrow tensor types instead of opaque bytes, and back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayData;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, FixedSizeListArray, ListArray, RecordBatch, StructArray, make_array,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use bytes::Bytes;

use super::aligned::AlignedBuf;
use super::batch::{Batch, arrow_buffer, binary_view_of_rows, tensor_array};
use super::column::{ColumnType, NamedColumn, TensorType, shape_item, shape_list};
use super::dtype::DType;

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

/// A column that another program made, in this program's layout: numbers, text and bytes of any width, tensors of fixed
/// shape as fixed-size lists (nested or not), tensors of rank 1 as lists, others as structs of `data` and `shape`.
///
/// # Errors
/// When the array has a null, or doesn't hold values of that type.
pub fn from_other(array: &ArrayRef, column_type: &ColumnType) -> Result<ArrayRef, String> {
    if array.null_count() > 0 {
        return Err("it has a null, and columns have none".to_owned());
    }
    let ColumnType::Tensor(tensor) = column_type else {
        return match (column_type, array.data_type()) {
            (ColumnType::Scalar(_), found) if !found.is_numeric() && *found != DataType::Boolean => {
                Err(format!("it is {found}, and {column_type} was declared"))
            }
            _ => arrow::compute::cast(array, &column_type.arrow()).map_err(|error| error.to_string()),
        };
    };
    let (mut rows, mut shapes) = (Vec::with_capacity(array.len()), Vec::new());
    for row in 0..array.len() {
        let (values, shape) = row_tensor(array, row, tensor)?;
        let fits = shape.len() == tensor.shape.len()
            && shape.iter().zip(&tensor.shape).all(|(found, wanted)| wanted.fixed().is_none_or(|w| w == *found));
        if !fits {
            return Err(format!("row {row} has the shape {shape:?}, and {column_type} was declared"));
        }
        rows.push(element_bytes(&values, tensor.dtype)?);
        for extent in shape {
            shapes.push(i32::try_from(extent).map_err(|error| error.to_string())?);
        }
    }
    tensor_array(tensor, binary_view_of_rows(rows)?, shapes)
}

/// The elements of a row, and its shape.
fn row_tensor(array: &ArrayRef, row: usize, tensor: &TensorType) -> Result<(ArrayRef, Vec<usize>), String> {
    if let Some(parts) = array.as_struct_opt() {
        let column = |name: &str| parts.column_by_name(name).ok_or("a struct without `data` and `shape`");
        let (data, shape) = (column("data")?, column("shape")?);
        let values = data.as_list_opt::<i32>().ok_or("`data` isn't a list")?.value(row);
        let shape = shape.as_fixed_size_list_opt().ok_or("`shape` isn't a fixed-size list")?.value(row);
        let shape = arrow::compute::cast(&shape, &DataType::Int64).map_err(|error| error.to_string())?;
        let shape = shape.as_primitive::<arrow::datatypes::Int64Type>();
        let extents = shape.values().iter().map(|extent| usize::try_from(*extent).map_err(|error| error.to_string()));
        return Ok((values, extents.collect::<Result<_, _>>()?));
    }
    // A flat fixed-size list is a whole tensor of fixed shape; lists in lists have an extent for each level.
    let mut values = array.slice(row, 1);
    let mut shape = Vec::new();
    loop {
        let inner = match values.data_type() {
            DataType::FixedSizeList(_, size) => {
                shape.push(usize::try_from(*size).map_err(|error| error.to_string())?);
                let list = values.as_fixed_size_list();
                let from = list.value_offset(0);
                let count = i32::try_from(list.len()).map_err(|error| error.to_string())? * size;
                let range = (usize::try_from(from), usize::try_from(count));
                let (Ok(from), Ok(count)) = range else { return Err("a list of a negative size".to_owned()) };
                list.values().slice(from, count)
            }
            DataType::List(_) if values.len() == 1 => {
                let inner = values.as_list::<i32>().value(0);
                shape.push(inner.len());
                inner
            }
            DataType::LargeList(_) if values.len() == 1 => {
                let inner = values.as_list::<i64>().value(0);
                shape.push(inner.len());
                inner
            }
            _ => break,
        };
        values = inner;
    }
    if let (Some(fixed), [flat]) = (tensor.fixed_shape(), shape.as_slice())
        && fixed.iter().product::<usize>() == *flat
    {
        shape = fixed;
    }
    Ok((values, shape))
}

fn element_bytes(values: &ArrayRef, dtype: DType) -> Result<Bytes, String> {
    if values.null_count() > 0 {
        return Err("a tensor with a null in it".to_owned());
    }
    if *values.data_type() != dtype.arrow() {
        return Err(format!("its elements are {}, and {dtype} was declared", values.data_type()));
    }
    let data = values.to_data();
    let (start, size) = (data.offset() * dtype.size(), values.len() * dtype.size());
    let buffer = data.buffers().first().ok_or("a list without values")?;
    Ok(Bytes::copy_from_slice(buffer.get(start..start + size).ok_or("a list that overruns its values")?))
}
