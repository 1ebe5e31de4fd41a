//! Readers and writers: source files, and the Parquet shards of a data set.

mod files;
pub mod shard;

pub use files::{FileSource, Fragment, Listing, ListingError};
