//! Digests of rows: the values of their columns, whatever batches they lie in.

use arrow::array::{Array, ArrayRef, AsArray};

use super::batch::{Batch, TensorColumn};
use super::column::{ColumnType, NamedColumn};

/// The digest of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowDigest(pub [u8; 32]);

/// The digests of all rows of a batch: BLAKE3 over each column's shape and values, length-prefixed.
///
/// # Errors
/// When a column doesn't have the layout of its type.
pub fn row_digests(batch: &Batch, columns: &[NamedColumn]) -> Result<Vec<RowDigest>, String> {
    let types: Vec<&ColumnType> = columns.iter().map(|column| &column.column_type).collect();
    value_digests(&batch.columns, &types, batch.rows())
}

/// The same over columns of those types.
///
/// # Errors
/// As above.
pub fn value_digests(columns: &[ArrayRef], types: &[&ColumnType], rows: usize) -> Result<Vec<RowDigest>, String> {
    let mut hashers = vec![blake3::Hasher::new(); rows];
    let mut shape = Vec::new();
    for (array, column_type) in columns.iter().zip(types) {
        match column_type {
            ColumnType::Tensor(_) | ColumnType::Bytes => {
                let tensors = TensorColumn::new(array, column_type)?;
                for (row, hasher) in hashers.iter_mut().enumerate() {
                    tensors.shape(row, &mut shape);
                    hasher.update(&(shape.len() as u64).to_le_bytes());
                    for extent in &shape {
                        hasher.update(&(*extent as u64).to_le_bytes());
                    }
                    hasher.update(tensors.data(row));
                }
            }
            ColumnType::Text => {
                let texts = array.as_string_opt::<i32>().ok_or("a text column isn't text")?;
                for (hasher, text) in hashers.iter_mut().zip(texts.iter()) {
                    let text = text.unwrap_or_default();
                    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
                }
            }
            ColumnType::Scalar(dtype) => {
                let values = scalar_bytes(array, dtype.size())?;
                for (hasher, value) in hashers.iter_mut().zip(values.chunks_exact(dtype.size())) {
                    hasher.update(value);
                }
            }
        }
    }
    Ok(hashers.iter().map(|hasher| RowDigest(*hasher.finalize().as_bytes())).collect())
}

/// The values of a primitive array, native endian.
fn scalar_bytes(array: &ArrayRef, size: usize) -> Result<Vec<u8>, String> {
    let data = array.to_data();
    let start = data.offset() * size;
    let bytes = data.buffers().first().and_then(|buffer| buffer.get(start..start + array.len() * size));
    bytes.map(<[u8]>::to_vec).ok_or_else(|| "a scalar column is damaged".to_owned())
}
