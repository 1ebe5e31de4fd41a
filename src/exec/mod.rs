//! Runs an offline program into shards, on DataFusion.
//!
//! The plan is three operators: `FilesExec` reads the source files of a shard in batches sized in bytes, `ProgramExec`
//! runs the program over them, `ShardSinkExec` writes the shard and gives one row that says what came of it. One
//! partition of the plan is one shard, so parallelism never reorders rows.

mod batches;
mod files_exec;
pub mod functions;
mod job;
mod program_exec;
mod progress;
mod sink_exec;

pub use job::{BadRow, Job, ShardFile, ShardOutcome, ShardStore, ShardTask, run};
pub use progress::Progress;
