//! Readers and writers: source files, and the Parquet shards of a data set.

mod files;
mod listing;
mod pattern;
pub mod shard;

pub use files::FileSource;
pub use listing::{Fragment, Listing, ListingError, batches};
