//! Whole builds: a graph and a choice become a published data set; what is still good is kept.

mod pending;
mod rows;
mod shards;
pub mod verify;

use std::path::Path;

pub use pending::{Built, Pending, Request, definition, relations};
pub use rows::base_rows;

use crate::diag::Result;
use crate::format::{FileSource, SourceKind};
use crate::pipeline::{Files, Graph, Producer};
use crate::store;

/// The folder of a pipeline's data set when none is named: `out/NAME`.
#[must_use]
pub fn default_folder(graph: &Graph) -> std::path::PathBuf {
    Path::new("out").join(&graph.name)
}

/// The source files that a graph's programs may read.
///
/// # Errors
/// When a source's folder isn't there.
pub fn files(graph: &Graph) -> Result<Files> {
    let sources = graph.sources.iter().filter(|source| source.kind == SourceKind::Files);
    sources.map(|source| Ok((source.name.clone(), FileSource::new(source.root())?))).collect()
}

/// Shards that a data set of a graph will have, about, if that many rows are its base's.
#[must_use]
pub fn expected_shards(graph: &Graph, base_rows: u64, shard_rows: Option<u32>) -> u64 {
    match graph.relation(graph.base(graph.output_relation)).producer {
        Producer::Source(source) => {
            let listing = &graph.sources[source].listing;
            store::assign(listing, store::files_per_shard(listing, None, shard_rows)).len() as u64
        }
        Producer::Step(_) => base_rows.div_ceil(u64::from(shard_rows.unwrap_or(pending::GATHERED_ROWS))),
    }
}
