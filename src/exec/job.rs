//! A run of an offline program: what to read, what to do, where to put it; and what came of each shard.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;

use super::batches::unwrap;
use super::notes::{BadRow, Notes, ShardOutcome, ShardTask};
use super::places::Places;
use super::program_map::{program_exec, stored_columns};
use super::progress::Progress;
use super::relations::{Planner, Relations, SpoolPlace, merge_reserve};
use super::scan::{Scan, ScanOptions};
use super::sink_exec::ShardSinkExec;
use super::spool::{FilesReadLater, Spool, SpoolWriter};
use crate::diag::{Error, Result};
use crate::pipeline::{ColumnId, Files, OnError, Program, RelationId, base_columns};
use crate::types::{Codec, Fingerprint, RowKey};

/// Where shards go.
pub trait ShardStore: Send + Sync {
    /// Begins the file of a task.
    ///
    /// # Errors
    /// When there is no place for it.
    fn create(&self, task: usize) -> Result<Box<dyn ShardFile>>;
}

/// The file of a shard while it is written; dropped without [`ShardFile::commit`] it leaves nothing.
pub trait ShardFile: Write + Send {
    /// Makes the file last.
    ///
    /// # Errors
    /// When it can't be synced or renamed.
    fn commit(self: Box<Self>, outcome: &ShardOutcome) -> Result<()>;
}

/// An offline program and everything that it needs.
pub struct Job {
    /// Where the rows come from.
    pub scan: Scan,
    /// The source files that the program may read itself.
    pub files: Arc<Files>,
    /// The shards to be made.
    pub tasks: Vec<ShardTask>,
    /// What to do.
    pub program: Program,
    /// Which rows each stored row becomes online, where that isn't one.
    pub structure: Option<Program>,
    /// How columns are compressed.
    pub codec: Codec,
    /// What to do with bad rows.
    pub on_error: OnError,
    /// Threads.
    pub jobs: usize,
    /// Source bytes a batch, about.
    pub batch_bytes: u64,
    /// Where shards go; none: source files are only read and digested.
    pub store: Option<Arc<dyn ShardStore>>,
    /// How far it is.
    pub progress: Arc<Progress>,
}

/// Shards that may wait for the disk while every thread works on another.
const WAITING: usize = 1;

/// The most memory that operators which can spill may hold.
pub const MEMORY_LIMIT: usize = 512 << 20;

fn runtime(threads: usize) -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Error::internal("the runtime", error))
}

fn environment(memory_limit: usize) -> Result<Arc<RuntimeEnv>> {
    RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory_limit))).build_arc().map_err(unwrap)
}

fn context(threads: usize, memory_limit: usize, environment: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    let mut config = SessionConfig::new().with_target_partitions(threads).with_batch_size(1024);
    config.options_mut().execution.sort_spill_reservation_bytes = merge_reserve(memory_limit);
    Arc::new(TaskContext::default().with_session_config(config).with_runtime(environment))
}

/// Runs a job; gives what came of each shard, in the order of the tasks.
///
/// # Errors
/// The first error of any shard; the others are stopped, finished shards stay.
pub fn run(job: Job) -> Result<Vec<ShardOutcome>> {
    let threads = job.jobs.max(1);
    let tasks = job.tasks.len();
    let runtime = runtime(threads)?;
    let progress = Arc::clone(&job.progress);
    let plan = plan(job);
    let context = context(threads, MEMORY_LIMIT, environment(MEMORY_LIMIT)?);
    let outcomes = runtime.block_on(async {
        let mut shards = futures::stream::iter(0..tasks)
            .map(|partition| {
                let (plan, context) = (Arc::clone(&plan), Arc::clone(&context));
                tokio::spawn(async move {
                    let mut rows = plan.execute(partition, context)?;
                    let mut batches = Vec::new();
                    while let Some(batch) = rows.next().await {
                        batches.push(batch?);
                    }
                    Ok(batches)
                })
            })
            .buffered(threads + WAITING);
        let mut outcomes = Vec::with_capacity(tasks);
        while let Some(joined) = shards.next().await {
            let batches = match joined {
                Ok(Ok(batches)) => batches,
                Ok(Err(error)) => {
                    progress.cancel();
                    return Err(unwrap(error));
                }
                Err(error) => {
                    progress.cancel();
                    return Err(Error::internal("a shard's task", error));
                }
            };
            for batch in batches {
                outcomes.extend(read_outcomes(&batch)?);
            }
        }
        Ok(outcomes)
    });
    // Shards that are still running stop at their next batch; waiting for them leaves no half-written file behind.
    drop(runtime);
    outcomes
}

fn plan(job: Job) -> Arc<dyn ExecutionPlan> {
    let notes = Arc::new(Notes::new(Arc::new(job.tasks), job.on_error, job.progress));
    let options = ScanOptions { batch_bytes: job.batch_bytes, ordered: false };
    let rows = job.scan.plan(job.program.input_columns(), &options, &notes);
    let programmed = program_exec(rows, &job.program, job.structure.as_ref(), &job.files, &notes);
    let columns = stored_columns(&job.program, job.structure.as_ref());
    Arc::new(ShardSinkExec::new(programmed, columns, job.codec, job.store, notes))
}

fn read_outcomes(batch: &RecordBatch) -> Result<Vec<ShardOutcome>> {
    let column = batch.column_by_name("outcome").and_then(|column| column.as_string_opt::<i32>());
    let column = column.ok_or_else(|| Error::internal("the engine", "no outcome of a shard"))?;
    column
        .iter()
        .map(|text| {
            serde_json::from_str(text.unwrap_or_default()).map_err(|error| Error::internal("the engine", error))
        })
        .collect()
}

/// Rows that were put together from several relations.
pub struct Gathered {
    /// The rows.
    pub spool: Spool,
    /// Rows that couldn't be processed before.
    pub bad: Vec<BadRow>,
    /// Of each source, the digests of its files, as far as they were read.
    pub digests: Vec<Vec<Option<Fingerprint>>>,
}

/// Puts the rows of a base relation together, with those of its columns, and spools them.
///
/// # Errors
/// When a source can't be read, a row can't be processed and the pipeline doesn't skip such, or the spool can't be
/// written.
pub fn gather(
    relations: &Relations<'_>,
    base: RelationId,
    columns: &[ColumnId],
    place: &SpoolPlace,
) -> Result<Gathered> {
    let threads = relations.jobs.max(1);
    let runtime = runtime(threads)?;
    let environment = environment(relations.memory_limit)?;
    let planner = Planner::new(relations, Arc::clone(&environment));
    let graph = relations.graph;
    let named = base_columns(graph, columns);
    let spool = runtime.block_on(async {
        let rows = planner.base(base, columns).await.map_err(unwrap)?;
        let plan = planner.sort(rows).await.map_err(unwrap)?;
        let places = Places::of(graph, base);
        let later = FilesReadLater::of(graph, columns);
        let mut writer = SpoolWriter::new(&place.path, &plan.schema(), &named, place.rows_per_part, places, later)?;
        let context = context(threads, relations.memory_limit, environment);
        for partition in 0..plan.properties().output_partitioning().partition_count() {
            let mut rows = plan.execute(partition, Arc::clone(&context)).map_err(unwrap)?;
            while let Some(batch) = rows.next().await {
                let batch = batch.map_err(unwrap)?;
                if batch.num_rows() > 0 {
                    writer.add(&batch)?;
                }
            }
        }
        writer.finish()
    });
    relations.progress.cancel();
    drop(runtime);
    let spool = spool?;
    let sources = planner.source_notes.iter();
    let bad = sources.clone().chain([&planner.joined_notes]).flat_map(|notes| notes.all_bad()).collect();
    Ok(Gathered { spool, bad, digests: sources.map(|notes| notes.all_digests()).collect() })
}

/// The row keys of spooled rows.
///
/// # Errors
/// When they have none.
pub fn keys(rows: &RecordBatch) -> Result<Vec<RowKey>> {
    super::batches::keys_of(rows.column(0)).map_err(unwrap)
}
