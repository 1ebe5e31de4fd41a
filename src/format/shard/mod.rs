//! Parquet shards with fast access to any row.
//!
//! A column whose values are large (a picture, a file) is *wide*: it is written with one value a page, so that the
//! offset index of the file says where each row lies, and reading a row is one positioned read, one page header and
//! at most one decompression. All other columns are *narrow*: their row groups are decoded whole and kept for a while.
//!
//! Binary data is plain `BYTE_ARRAY`, never a list of u8, which Parquet would blow up to 32 bits a pixel.

mod layout;
mod narrow;
mod page;
mod reader;
mod writer;

pub use narrow::File;
pub use reader::ShardReader;
pub use writer::ShardWriter;

#[cfg(test)]
mod tests;
