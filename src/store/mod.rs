//! The data set on disk: manifest, shards, what a change makes stale, atomic publication.
//!
//! ```text
//! OUT/manifest.json          the published generation; its presence is the data set
//! OUT/shards/ID.parquet      a finished shard's file, named by what it is made from
//! OUT/shards/ID.json         its record: a shard is finished when, and only when, this exists
//! OUT/quarantine.json        the rows that were left out, for people
//! OUT/.lock                  held by the build that is running
//! ```

mod dataset;
mod layout;
mod lock;
mod manifest;
mod stale;

pub use dataset::{Dataset, PendingShard};
pub use layout::{assign, files_per_shard};
pub use lock::BuildLock;
pub use manifest::{
    BuildFigures, FragmentRecord, InputRecord, MANIFEST_VERSION, Manifest, Quarantined, ShardRecord, SourceRecord,
    definition, part_fingerprint, shard_fingerprint,
};
pub use stale::{Freshness, Reason, ShardState, State, Wanted, compare, compare_inputs};
