//! Sources: files that are a row each, or tables with many rows a file.

use std::path::Path;

use super::listing::Listing;
use super::table::{TableFormat, table_columns};
use crate::diag::Result;
use crate::types::{ColumnType, DType, NamedColumn};

/// What a source's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// Each file is a row.
    Files,
    /// Each file is a table.
    Table(TableFormat),
}

/// A source of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// What its files are.
    pub kind: SourceKind,
    /// The files that match, in row-key order.
    pub listing: Listing,
    /// Its columns.
    pub columns: Vec<NamedColumn>,
    /// Columns of types that a pipeline can't hold, with their types.
    pub left_out: Vec<(String, String)>,
}

/// The column of a file source that holds the path.
pub const PATH: &str = "path";
/// The column of a file source that holds the content; it is read when a step needs it.
pub const BYTES: &str = "bytes";
/// The column of a file source that holds the size in bytes.
pub const SIZE: &str = "size";
/// The column, for the compiler alone, that holds the digest of the content.
pub const DIGEST: &str = "__digest";

impl Source {
    /// A source of those files. A table's columns are those of its first file.
    ///
    /// # Errors
    /// When a table's first file can't be read.
    pub fn new(name: &str, kind: SourceKind, listing: Listing) -> Result<Self> {
        let column = |name: &str, column_type| NamedColumn { name: name.to_owned(), column_type };
        let (columns, left_out) = match (&kind, listing.fragments.first()) {
            (SourceKind::Files, _) => {
                let size = column(SIZE, ColumnType::Scalar(DType::I64));
                (vec![column(PATH, ColumnType::Text), column(BYTES, ColumnType::Bytes), size], Vec::new())
            }
            (SourceKind::Table(format), Some(first)) => table_columns(*format, &listing.root.join(&first.path))?,
            (SourceKind::Table(_), None) => (Vec::new(), Vec::new()),
        };
        Ok(Self { name: name.to_owned(), kind, listing, columns, left_out })
    }

    /// The folder that its files' paths are relative to.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.listing.root
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.listing.fragments.iter().map(|fragment| fragment.size).sum()
    }
}
