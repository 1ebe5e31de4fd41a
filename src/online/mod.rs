//! The training side: opens a data set and streams it, running the remainder on all cores.
//!
//! `rows.rs` finds and fetches stored rows, `order.rs` says in
//! which order an epoch goes through them, `stream.rs` runs the remainder in worker threads and gives batches in
//! order, `digest.rs` reduces a stream to one line.

mod digest;
mod order;
mod rows;
mod stream;

pub use crate::types::RowDigest;
pub use crate::types::canonical::{output_schema, to_output};
pub use digest::StreamDigest;
pub use order::epoch_order;
pub use rows::Rows;
pub use stream::{Stream, StreamBatch, StreamOptions};

use crate::diag::Result;
use crate::format::FileSource;
use crate::pipeline::Files;
use crate::store::Manifest;

/// The source files that a data set refers to.
///
/// # Errors
/// When the folder of a source isn't there.
pub fn files(manifest: &Manifest) -> Result<Files> {
    let referred = manifest.remainder.calls.iter().any(|call| call.op == crate::pipeline::program::READ);
    let sources = manifest.sources.iter().filter(|source| source.files && referred);
    sources.map(|source| Ok((source.name.clone(), FileSource::new(&source.root)?))).collect()
}
