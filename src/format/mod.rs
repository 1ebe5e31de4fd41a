//! Readers and writers: source files and tables, and the Parquet shards of a data set.

mod files;
mod json_lines;
mod listing;
mod pattern;
pub mod shard;
mod source;
mod table;

pub use files::FileSource;
pub use listing::{Fragment, Listing, ListingError, batches};
pub use source::{BYTES, DIGEST, PATH, SIZE, Source, SourceKind};
pub use table::{TableFormat, TableReader, TableRows};
