//! Building and streaming within the process, without profiles.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parbake::materialize::{Pending, Request};
use parbake::online::{self, Rows, Stream, StreamDigest, StreamOptions};
use parbake::pipeline::Cut;
use parbake::pipeline::rewrite::Rewritten;
use parbake::store::{Dataset, Manifest};
use parbake::types::row_digest::value_digests;
use parbake::types::{BufferPool, Codec, RowKey};

/// Builds of a rewritten pipeline below a folder.
pub struct Run<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The pipeline.
    pub rewritten: &'a Rewritten,
}

impl Run<'_> {
    /// Builds a cut from nothing.
    pub fn build(&self, cut: &Cut, jobs: usize, shard_rows: u32) -> Result<(Dataset, Manifest), String> {
        let folder = self.folder.join("D");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let dataset = Dataset::at(&folder);
        let lock = dataset.lock().unwrap();
        let request = Request {
            graph: &self.rewritten.graph,
            cut,
            codec: Codec::None,
            options: self.rewritten.options,
            shard_rows: Some(shard_rows),
            plan: serde_json::Value::Null,
        };
        let pending = Pending::find(&request, &dataset, None).map_err(|error| error.to_string())?;
        let built = pending.build(&dataset, &lock, jobs, Arc::default()).map_err(|error| error.to_string())?;
        Ok((dataset, built.manifest))
    }
}

/// The digest of an epoch, and each column's values by row key.
pub type Epoch = (String, Vec<BTreeMap<RowKey, [u8; 32]>>);

/// Streams an epoch.
pub fn stream(
    dataset: &Dataset,
    manifest: &Manifest,
    epoch: u64,
    shuffle: Option<u64>,
    jobs: usize,
) -> Result<Epoch, String> {
    let remainder = manifest.remainder.at_epoch(epoch);
    let rows = Arc::new(Rows::open(dataset, manifest, &remainder).map_err(|error| error.to_string())?);
    let files = online::files(manifest).map_err(|error| error.to_string())?;
    let options = StreamOptions { epoch, shuffle, batch_rows: 3 + jobs * 4, jobs, digest: true };
    let pool = BufferPool::new(8);
    let stream = Stream::start(&rows, &remainder, &files, manifest.on_error, &pool, &options);
    let stream = stream.map_err(|error| error.to_string())?;
    let columns = stream.columns().to_vec();
    let mut digest = StreamDigest::new(&columns);
    let mut values = vec![BTreeMap::new(); columns.len()];
    for batch in stream {
        let batch = batch.map_err(|error| error.to_string())?;
        digest.add(&batch.digests);
        for (at, column) in columns.iter().enumerate() {
            let array = std::slice::from_ref(&batch.batch.columns[at]);
            let digests = value_digests(array, &[&column.column_type], batch.batch.rows())?;
            values[at].extend(batch.batch.keys.iter().zip(digests).map(|(key, digest)| (*key, digest.0)));
        }
    }
    Ok((digest.finish(), values))
}
