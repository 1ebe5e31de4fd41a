//! A run of an offline program: what to read, what to do, where to put it; and what came of each shard.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{AsArray, RecordBatch};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use super::batches::unwrap;
use super::files_exec::FilesExec;
use super::program_exec::ProgramExec;
use super::progress::Progress;
use super::sink_exec::ShardSinkExec;
use crate::diag::{Error, Result};
use crate::format::{FileSource, Fragment};
use crate::pipeline::{OnError, Program};
use crate::types::{Codec, Fingerprint};

/// One shard to be made.
#[derive(Debug, Clone)]
pub struct ShardTask {
    /// Its source files, in row-key order.
    pub fragments: Vec<Fragment>,
}

/// A row that a step couldn't process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRow {
    /// The source file, by its place in the task.
    pub fragment: usize,
    /// The step.
    pub step: String,
    /// Why, in words.
    pub reason: String,
}

/// What came of a shard.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ShardOutcome {
    /// The task, by its place in the job.
    pub task: usize,
    /// The digest of each source file's content, in order.
    pub digests: Vec<Fingerprint>,
    /// The rows that couldn't be processed, in order.
    pub bad: Vec<BadRow>,
    /// The rows that were written.
    pub rows: u64,
    /// Seconds from the first read to the end.
    pub seconds: f64,
    /// CPU seconds of running the program and writing.
    pub cpu_seconds: f64,
}

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
    /// Where the source files are.
    pub source: FileSource,
    /// The shards to be made.
    pub tasks: Vec<ShardTask>,
    /// What to do.
    pub program: Program,
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

/// What operators tell each other about the shards besides rows.
pub struct Notes {
    tasks: Arc<Vec<ShardTask>>,
    outcomes: Mutex<Vec<ShardOutcome>>,
    /// Of each task, the source file of every row that was read, by its place in the task.
    read: Mutex<Vec<Vec<usize>>>,
}

impl Notes {
    fn new(tasks: Arc<Vec<ShardTask>>) -> Self {
        let outcomes = (0..tasks.len()).map(|task| ShardOutcome { task, ..ShardOutcome::default() }).collect();
        let read = Mutex::new(vec![Vec::new(); tasks.len()]);
        Self { tasks, outcomes: Mutex::new(outcomes), read }
    }

    pub(super) fn add_read(&self, task: usize, fragment: usize) {
        if let Some(rows) = self.read.lock().unwrap_or_else(PoisonError::into_inner).get_mut(task) {
            rows.push(fragment);
        }
    }

    /// The source file of the row that was read as number `row`.
    pub(super) fn fragment(&self, task: usize, row: usize) -> usize {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(task).and_then(|rows| rows.get(row)).copied().unwrap_or(row)
    }

    pub(super) fn path(&self, task: usize, fragment: usize) -> String {
        let fragment = self.tasks.get(task).and_then(|task| task.fragments.get(fragment));
        fragment.map(|fragment| fragment.path.clone()).unwrap_or_default()
    }

    pub(super) fn update(&self, task: usize, change: impl FnOnce(&mut ShardOutcome)) {
        if let Some(outcome) = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(task) {
            change(outcome);
        }
    }

    pub(super) fn take(&self, task: usize) -> ShardOutcome {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.get_mut(task).map(std::mem::take).unwrap_or_default()
    }
}

/// Shards that may wait for the disk while every thread works on another.
const WAITING: usize = 1;

/// The most memory that operators which can spill may hold.
const MEMORY_LIMIT: usize = 512 << 20;

/// Runs a job; gives what came of each shard, in the order of the tasks.
///
/// # Errors
/// The first error of any shard; the others are stopped, finished shards stay.
pub fn run(job: Job) -> Result<Vec<ShardOutcome>> {
    let threads = job.jobs.max(1);
    let tasks = job.tasks.len();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Error::internal("the runtime", error))?;
    let progress = Arc::clone(&job.progress);
    let plan = plan(job)?;
    let environment = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(MEMORY_LIMIT)))
        .build_arc()
        .map_err(unwrap)?;
    let context = Arc::new(
        TaskContext::default()
            .with_session_config(SessionConfig::new().with_target_partitions(threads))
            .with_runtime(environment),
    );
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

fn plan(job: Job) -> Result<Arc<dyn ExecutionPlan>> {
    let tasks = Arc::new(job.tasks);
    let notes = Arc::new(Notes::new(Arc::clone(&tasks)));
    let read = Arc::new(FilesExec::new(
        job.source,
        tasks,
        &job.program,
        job.batch_bytes,
        job.on_error,
        Arc::clone(&notes),
        Arc::clone(&job.progress),
    )?);
    let programmed = Arc::new(ProgramExec::new(
        read,
        job.program.clone(),
        job.on_error,
        Arc::clone(&notes),
        Arc::clone(&job.progress),
    ));
    let columns = job.program.output_columns().cloned().collect();
    Ok(Arc::new(ShardSinkExec::new(programmed, columns, job.codec, job.store, notes)))
}

fn read_outcomes(batch: &RecordBatch) -> Result<Vec<ShardOutcome>> {
    let column = batch.column_by_name("outcome").and_then(|column| column.as_string_opt::<i32>());
    let column = column.ok_or_else(|| Error::internal("the engine", "a result without outcomes"))?;
    column
        .iter()
        .flatten()
        .map(|text| serde_json::from_str(text).map_err(|error| Error::internal("the engine", error)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ops::{ArgValue, Args};
    use crate::pipeline::Call;
    use crate::types::{ColumnType, DType, NamedColumn};

    /// Three files: a good one, one that is gone, and one of a class that isn't among the classes.
    fn job(folder: &std::path::Path, on_error: OnError) -> Job {
        let fragments: Vec<Fragment> = ["a/1.png", "a/gone.png", "b/2.png"]
            .map(|path| Fragment { path: path.to_owned(), size: 1, modified_ns: 0 })
            .to_vec();
        for fragment in [&fragments[0], &fragments[2]] {
            let path = folder.join(&fragment.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let named = |name: &str, column_type| NamedColumn { name: name.to_owned(), column_type };
        let classes = ArgValue::List(vec![ArgValue::Text("a".to_owned())]);
        let program = Program {
            seed: 0,
            columns: vec![named("path", ColumnType::Text), named("label", ColumnType::Scalar(DType::I64))],
            inputs: 1,
            calls: vec![Call {
                step: "label".to_owned(),
                op: "path.label".to_owned(),
                version: 1,
                args: Args(BTreeMap::from([("classes".to_owned(), classes)])),
                inputs: vec![0],
                output: 1,
            }],
            outputs: vec![1],
        };
        Job {
            source: FileSource::new(folder).unwrap(),
            tasks: vec![ShardTask { fragments }],
            program,
            codec: Codec::None,
            on_error,
            jobs: 1,
            batch_bytes: 1 << 20,
            store: None,
            progress: Arc::default(),
        }
    }

    #[test]
    fn unreadable_and_bad_files_are_noted_under_their_own_places() {
        let folder = tempfile::tempdir().unwrap();
        let outcomes = run(job(folder.path(), OnError::Skip)).unwrap();
        let places: Vec<(usize, &str)> = outcomes[0].bad.iter().map(|bad| (bad.fragment, bad.step.as_str())).collect();
        assert_eq!(places, [(1, "source"), (2, "label")]);
        assert_eq!((outcomes[0].rows, outcomes[0].digests.len()), (1, 3));
    }

    #[test]
    fn an_unreadable_file_ends_a_strict_run_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(job(folder.path(), OnError::Fail)).unwrap_err().to_string();
        assert!(error.contains("gone.png"), "{error}");
    }
}
