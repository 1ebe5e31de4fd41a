//! Digests of streams: names, types, shapes, values and order of the rows, not how they are batched.

use crate::types::{NamedColumn, RowDigest};

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
