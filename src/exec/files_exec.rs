//! The leaf operator: reads the source files of a shard in batches sized in bytes.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::batches::{properties, schema, to_record_batch, wrap};
use super::job::{BadRow, Notes, ShardTask};
use super::progress::Progress;
use crate::diag::Error;
use crate::format::{FileSource, Fragment, batches};
use crate::pipeline::{OnError, Program};
use crate::types::batch::binary_view_of_rows;
use crate::types::{Batch, Fingerprint, NamedColumn, RowKey};

/// The most rows a batch has, however small the files are.
const MAX_ROWS: usize = 256;

/// Reads source files; a partition a shard.
pub struct FilesExec {
    source: FileSource,
    tasks: Arc<Vec<ShardTask>>,
    columns: Arc<Vec<SourceColumn>>,
    batch_bytes: u64,
    on_error: OnError,
    notes: Arc<Notes>,
    progress: Arc<Progress>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

/// A column that a file source has.
#[derive(Debug, Clone, Copy)]
enum SourceColumn {
    Path,
    Bytes,
    Size,
}

impl FilesExec {
    /// Reads what the program's inputs need.
    pub fn new(
        source: FileSource,
        tasks: Arc<Vec<ShardTask>>,
        program: &Program,
        batch_bytes: u64,
        on_error: OnError,
        notes: Arc<Notes>,
        progress: Arc<Progress>,
    ) -> crate::diag::Result<Self> {
        let named: &[NamedColumn] = program.input_columns();
        let columns = named
            .iter()
            .map(|column| match column.name.as_str() {
                "path" => Ok(SourceColumn::Path),
                "bytes" => Ok(SourceColumn::Bytes),
                "size" => Ok(SourceColumn::Size),
                other => Err(Error::internal("the engine", format!("files have no column `{other}`"))),
            })
            .collect::<crate::diag::Result<Vec<_>>>()?;
        let schema = schema(named);
        let properties = properties(Arc::clone(&schema), tasks.len());
        let columns = Arc::new(columns);
        Ok(Self { source, tasks, columns, batch_bytes, on_error, notes, progress, schema, properties })
    }
}

/// A file that was read, with the digest of its content.
type ReadFile = (Fragment, Bytes, Fingerprint);

/// Reads one batch; a file that can't be read has its error in its place.
async fn read(source: FileSource, fragments: Vec<Fragment>) -> Vec<(Fragment, crate::diag::Result<Bytes>)> {
    let mut files = Vec::with_capacity(fragments.len());
    for fragment in fragments {
        let bytes = source.read(&fragment).await;
        files.push((fragment, bytes));
    }
    files
}

/// Keeps the files that could be read; the others end the run or are noted, by policy. `next` counts the task's files.
fn readable(
    files: Vec<(Fragment, crate::diag::Result<Bytes>)>,
    on_error: OnError,
    notes: &Notes,
    task: usize,
    next: &mut usize,
) -> crate::diag::Result<Vec<ReadFile>> {
    let mut kept = Vec::with_capacity(files.len());
    for (fragment, bytes) in files {
        let at = *next;
        *next += 1;
        match bytes {
            Ok(bytes) => {
                let digest = Fingerprint::of_bytes(&bytes);
                notes.add_read(task, at);
                notes.update(task, |outcome| outcome.digests.push(digest));
                kept.push((fragment, bytes, digest));
            }
            // A file that changes while it is read is nobody's bad sample.
            Err(Error::Io { source, .. }) if on_error == OnError::Skip => notes.update(task, |outcome| {
                outcome.digests.push(Fingerprint([0; 16]));
                outcome.bad.push(BadRow { fragment: at, step: "source".to_owned(), reason: source.to_string() });
            }),
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

fn assemble(files: &[ReadFile], columns: &[SourceColumn], schema: &SchemaRef) -> Result<RecordBatch> {
    let keys = files.iter().map(|(fragment, ..)| RowKey::of_fragment(&fragment.path, 0)).collect();
    let columns = columns
        .iter()
        .map(|column| -> Result<ArrayRef> {
            Ok(match column {
                SourceColumn::Path => {
                    Arc::new(files.iter().map(|(file, ..)| Some(&file.path)).collect::<StringArray>())
                }
                SourceColumn::Size => {
                    let sizes = files.iter().map(|(file, ..)| i64::try_from(file.size).unwrap_or(i64::MAX));
                    Arc::new(sizes.collect::<Vec<_>>().into_iter().collect::<Int64Array>())
                }
                SourceColumn::Bytes => {
                    let rows = files.iter().map(|(_, bytes, _)| bytes.clone()).collect();
                    Arc::new(binary_view_of_rows(rows).map_err(DataFusionError::Internal)?)
                }
            })
        })
        .collect::<Result<_>>()?;
    to_record_batch(Batch { keys, columns }, schema)
}

impl fmt::Debug for FilesExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilesExec({} shards)", self.tasks.len())
    }
}

impl DisplayAs for FilesExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilesExec: shards={}, batch_bytes={}", self.tasks.len(), self.batch_bytes)
    }
}

impl ExecutionPlan for FilesExec {
    fn name(&self) -> &'static str {
        "FilesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let task = self
            .tasks
            .get(partition)
            .ok_or_else(|| DataFusionError::Internal(format!("there is no shard {partition}")))?;
        let fragments = task.fragments.clone();
        let ranges = batches(&fragments, self.batch_bytes, MAX_ROWS);
        let (source, columns, schema) = (self.source.clone(), Arc::clone(&self.columns), Arc::clone(&self.schema));
        let (notes, progress, on_error) = (Arc::clone(&self.notes), Arc::clone(&self.progress), self.on_error);
        let mut next = 0;
        let stream = futures::stream::iter(ranges)
            .map(move |range| tokio::spawn(read(source.clone(), fragments[range].to_vec())))
            // One batch is read while the one before is processed.
            .buffered(2)
            .map_err(|error| wrap(Error::internal("reading", error)))
            .and_then(move |files| {
                let made = (|| {
                    if progress.is_cancelled() {
                        return Err(wrap(Error::internal("the engine", "the run was stopped")));
                    }
                    let files = readable(files, on_error, &notes, partition, &mut next).map_err(wrap)?;
                    assemble(&files, &columns, &schema)
                })();
                futures::future::ready(made)
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}
