//! Batches of rows, and tensors as kernels see them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, FixedSizeListArray, GenericByteViewArray, Int32Array, StructArray,
    make_view,
};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{BinaryViewType, Int32Type};
use bytes::Bytes;

use super::aligned::AlignedBuf;
use super::column::{ColumnType, TensorType, ragged_fields, shape_item};
use super::dtype::DType;
use super::row_key::RowKey;

/// Rows in row-key order with their columns; which column is which is known to whoever made the batch.
#[derive(Debug, Clone)]
pub struct Batch {
    /// A key per row.
    pub keys: Vec<RowKey>,
    /// The columns, each as long as `keys`.
    pub columns: Vec<ArrayRef>,
}

impl Batch {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that the columns refer to (shared buffers are counted where they are referred to).
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(array_bytes).sum()
    }
}

/// Bytes of values in an array: what its rows say, not what its buffers could hold.
#[must_use]
pub fn array_bytes(array: &ArrayRef) -> usize {
    if let Some(views) = array.as_binary_view_opt() {
        return views.lengths().map(|len| len as usize).sum();
    }
    if let Some(children) = array.as_struct_opt() {
        return children.columns().iter().map(array_bytes).sum();
    }
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

/// One row of a tensor column, or one row of a bytes column seen as u8 `[length]`.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: &'a [usize],
    /// The elements, native endian, row-major; aligned for the dtype only where the producer says so.
    pub data: &'a [u8],
}

/// Random access to the rows of a column as tensors.
pub struct TensorColumn<'a> {
    data: &'a BinaryViewArray,
    dtype: DType,
    shapes: Shapes<'a>,
}

enum Shapes<'a> {
    Fixed(Vec<usize>),
    Ragged { values: &'a [i32], rank: usize },
    Length,
}

impl<'a> TensorColumn<'a> {
    /// Opens a bytes or tensor column.
    ///
    /// # Errors
    /// When the array doesn't have the layout of the type (a damaged or foreign file).
    pub fn new(array: &'a ArrayRef, column_type: &ColumnType) -> Result<Self, String> {
        let mismatch = || format!("a column of type {column_type} can't be read from Arrow type {}", array.data_type());
        match column_type {
            ColumnType::Bytes => Ok(Self {
                data: array.as_binary_view_opt().ok_or_else(mismatch)?,
                dtype: DType::U8,
                shapes: Shapes::Length,
            }),
            ColumnType::Tensor(tensor) => match tensor.fixed_shape() {
                Some(shape) => Ok(Self {
                    data: array.as_binary_view_opt().ok_or_else(mismatch)?,
                    dtype: tensor.dtype,
                    shapes: Shapes::Fixed(shape),
                }),
                None => {
                    let children = array.as_struct_opt().filter(|s| s.num_columns() == 2).ok_or_else(mismatch)?;
                    let shapes = children.column(1).as_fixed_size_list_opt().ok_or_else(mismatch)?;
                    let rank = tensor.shape.len();
                    let values = shapes.values().as_primitive_opt::<Int32Type>().ok_or_else(mismatch)?;
                    let from = shapes.offset() * rank;
                    let values = values.values().get(from..from + shapes.len() * rank).ok_or_else(mismatch)?;
                    Ok(Self {
                        data: children.column(0).as_binary_view_opt().ok_or_else(mismatch)?,
                        dtype: tensor.dtype,
                        shapes: Shapes::Ragged { values, rank },
                    })
                }
            },
            ColumnType::Text | ColumnType::Scalar(_) => Err(mismatch()),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The bytes of row `row`.
    #[must_use]
    pub fn data(&self, row: usize) -> &'a [u8] {
        let data: &'a BinaryViewArray = self.data;
        data.value(row)
    }

    /// Puts the shape of row `row` into `shape`.
    pub fn shape(&self, row: usize, shape: &mut Vec<usize>) {
        shape.clear();
        match &self.shapes {
            Shapes::Fixed(fixed) => shape.extend_from_slice(fixed),
            Shapes::Length => shape.push(self.data.value(row).len()),
            Shapes::Ragged { values, rank } => {
                shape.extend(values[row * rank..(row + 1) * rank].iter().map(|&n| usize::try_from(n).unwrap_or(0)));
            }
        }
    }
}

/// Makes the bytes of a column from one buffer in which row after row lies, `lengths` bytes each.
///
/// # Errors
/// When the buffer is longer than 4 GiB or shorter than the lengths say.
pub fn binary_view(buffer: Buffer, lengths: impl Iterator<Item = usize>) -> Result<BinaryViewArray, String> {
    let mut views = Vec::with_capacity(lengths.size_hint().0);
    let mut at = 0_usize;
    for length in lengths {
        let value = buffer.get(at..at + length).ok_or("rows overrun their buffer")?;
        let offset = u32::try_from(at).map_err(|_| "a batch of more than 4 GiB: use a smaller batch")?;
        views.push(make_view(value, 0, offset));
        at += length;
    }
    GenericByteViewArray::<BinaryViewType>::try_new(ScalarBuffer::from(views), vec![buffer], None)
        .map_err(|error| error.to_string())
}

/// Makes the bytes of a column from a buffer a row, without copying.
///
/// # Errors
/// When a row is longer than 4 GiB.
pub fn binary_view_of_rows(rows: Vec<Bytes>) -> Result<BinaryViewArray, String> {
    let views: Vec<u128> =
        rows.iter().enumerate().map(|(at, row)| make_view(row, u32::try_from(at).unwrap_or(u32::MAX), 0)).collect();
    if rows.iter().any(|row| u32::try_from(row.len()).is_err()) {
        return Err("a value of more than 4 GiB".to_owned());
    }
    let buffers: Vec<Buffer> = rows.into_iter().map(Buffer::from).collect();
    GenericByteViewArray::<BinaryViewType>::try_new(ScalarBuffer::from(views), buffers, None)
        .map_err(|error| error.to_string())
}

/// Turns an aligned buffer into an Arrow buffer without copying.
#[must_use]
pub fn arrow_buffer(bytes: AlignedBuf) -> Buffer {
    Buffer::from(Bytes::from_owner(bytes))
}

/// Puts bytes and shapes together as a tensor column of that type; `shapes` holds `rank` extents a row and is read
/// only where the shape varies.
///
/// # Errors
/// When the parts don't fit together.
pub fn tensor_array(tensor: &TensorType, data: BinaryViewArray, shapes: Vec<i32>) -> Result<ArrayRef, String> {
    if tensor.fixed_shape().is_some() {
        return Ok(Arc::new(data));
    }
    let rank = tensor.shape.len();
    let size = i32::try_from(rank).map_err(|error| error.to_string())?;
    let list = FixedSizeListArray::try_new(shape_item(), size, Arc::new(Int32Array::from(shapes)), None)
        .map_err(|error| error.to_string())?;
    StructArray::try_new(ragged_fields(rank), vec![Arc::new(data), Arc::new(list)], None)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| error.to_string())
}
