//! Runs offline programs into shards, on DataFusion.
//!
//! The plan of a build has three operators: a scan reads source files, tables or spooled rows in batches sized in
//! bytes, a program runs over them, `ShardSinkExec` writes the shard and gives one row that says what came of it. One
//! partition of the plan is one shard, so parallelism never reorders rows.
//!
//! Where rows are put together from several relations (joins, unions, queries, packing), that is done first, by the
//! engine's own operators with parbake's in between (`relations.rs`, `combine.rs`); what comes out is spooled in row
//! order and dealt to shards, which go through the plan above.

mod batches;
mod combine;
pub mod functions;
mod job;
mod nodes;
mod notes;
mod places;
mod plan_table;
mod program_map;
mod progress;
mod relations;
mod scan;
mod sink_exec;
mod spool;

pub use job::{Gathered, Job, MEMORY_LIMIT, ShardFile, ShardStore, gather, keys, run};
pub use notes::{BadRow, ShardOutcome, ShardTask};
pub use progress::Progress;
pub use relations::{Relations, SpoolPlace};
pub use scan::Scan;
pub use spool::{Part, Spool};
