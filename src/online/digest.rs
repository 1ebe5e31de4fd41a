//! Digests of streams: names, types, shapes, values and order of the rows, not how they are batched.

use arrow::array::{Array, ArrayRef, AsArray};

use crate::types::{Batch, ColumnType, NamedColumn, TensorColumn};

/// The digest of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDigest([u8; 32]);

/// The digests of all rows of a batch: BLAKE3 over each column's shape and values, length-prefixed.
///
/// # Errors
/// When a column doesn't have the layout of its type.
pub fn row_digests(batch: &Batch, columns: &[NamedColumn]) -> Result<Vec<RowDigest>, String> {
    let mut hashers = vec![blake3::Hasher::new(); batch.rows()];
    let mut shape = Vec::new();
    for (array, column) in batch.columns.iter().zip(columns) {
        match &column.column_type {
            ColumnType::Tensor(_) | ColumnType::Bytes => {
                let tensors = TensorColumn::new(array, &column.column_type)?;
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

/// The digest of a stream, built row by row in order.
#[derive(Debug, Clone)]
pub struct StreamDigest {
    hasher: blake3::Hasher,
    rows: u64,
}

impl StreamDigest {
    /// A stream of rows with those columns.
    #[must_use]
    pub fn new(columns: &[NamedColumn]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("parbake stream digest v1");
        for column in columns {
            for text in [column.name.as_str(), &column.column_type.to_string()] {
                hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
            }
        }
        Self { hasher, rows: 0 }
    }

    /// Adds the next rows.
    pub fn add(&mut self, rows: &[RowDigest]) {
        for row in rows {
            self.hasher.update(&row.0);
        }
        self.rows += rows.len() as u64;
    }

    /// Rows added.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The digest, as 64 hexadecimal digits.
    #[must_use]
    pub fn finish(&self) -> String {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.rows.to_le_bytes());
        hasher.finalize().to_hex().to_string()
    }
}
