//! The leaves of a plan: they read source files, tables, or rows that were put together before, in batches.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::{StreamExt, TryStreamExt};

use super::batches::{internal, key_column, order_column, ordered_schema, record_batch, schema, wrap};
use super::nodes::LeafExec;
use super::notes::{BadRow, Notes};
use super::spool::Spool;
use crate::diag::Error;
use crate::format::{
    BYTES, DIGEST, FileSource, Fragment, PATH, SIZE, Source, SourceKind, TableFormat, TableReader, batches,
};
use crate::pipeline::{Files, OnError};
use crate::types::batch::binary_view_of_rows;
use crate::types::{Fingerprint, NamedColumn, RowKey};

/// The most rows a batch has, however small the files are.
const MAX_ROWS: usize = 256;

/// Where the rows of tasks come from.
#[derive(Clone)]
pub enum Scan {
    /// Files, each a row.
    Files(FileSource),
    /// Table files below a folder.
    Table(TableFormat, PathBuf),
    /// Rows that were put together from several relations.
    Spool(Arc<Spool>),
}

/// How a scan is run.
#[derive(Clone)]
pub struct ScanOptions {
    /// Source bytes of a batch, about.
    pub batch_bytes: u64,
    /// Whether the second column says where in the row order a row stands.
    pub ordered: bool,
}

impl Scan {
    /// That of a source's rows.
    ///
    /// # Errors
    /// When its files aren't among those that may be read.
    pub fn of(source: &Source, files: &Files) -> crate::diag::Result<Self> {
        Ok(match source.kind {
            SourceKind::Files => {
                let files = files.get(&source.name).cloned();
                Self::Files(files.ok_or_else(|| Error::internal("a scan", format!("no source `{}`", source.name)))?)
            }
            SourceKind::Table(format) => Self::Table(format, source.root().to_owned()),
        })
    }

    /// An operator that reads those columns, a partition a task.
    pub fn plan(&self, columns: &[NamedColumn], options: &ScanOptions, notes: &Arc<Notes>) -> Arc<dyn ExecutionPlan> {
        let schema = if options.ordered { ordered_schema(columns) } else { schema(columns) };
        let partitions = notes.tasks().len();
        let reading = Reading {
            columns: columns.to_vec().into(),
            options: options.clone(),
            notes: Arc::clone(notes),
            schema: Arc::clone(&schema),
        };
        let scan = self.clone();
        let begin = move |task: usize, _context: Arc<TaskContext>| match &scan {
            Self::Files(source) => reading.files(source.clone(), task),
            Self::Table(format, root) => reading.table(*format, root.clone(), task),
            Self::Spool(spool) => reading.spool(Arc::clone(spool), task),
        };
        Arc::new(LeafExec::new("ScanExec", schema, partitions, Arc::new(begin)))
    }
}

/// What a partition needs to read.
#[derive(Clone)]
struct Reading {
    columns: Arc<[NamedColumn]>,
    options: ScanOptions,
    notes: Arc<Notes>,
    schema: SchemaRef,
}

/// A file that was read, with its place in the task and the digest of its content.
type ReadFile = (usize, Fragment, Bytes, Fingerprint);

impl Reading {
    fn check_running(&self) -> Result<()> {
        if self.notes.progress().is_cancelled() {
            return Err(wrap(Error::internal("the engine", "the run was stopped")));
        }
        Ok(())
    }

    fn stream(
        &self,
        stream: impl futures::Stream<Item = Result<RecordBatch>> + Send + 'static,
    ) -> SendableRecordBatchStream {
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }

    fn place(&self, task: usize, fragment: usize, row: usize) -> [u8; 8] {
        let first = self.notes.tasks().get(task).map_or(0, |task| task.first);
        place(first + fragment, row)
    }

    fn files(&self, source: FileSource, task: usize) -> Result<SendableRecordBatchStream> {
        let tasks = self.notes.tasks();
        let fragments = tasks.get(task).ok_or_else(|| internal(format!("there is no task {task}")))?.fragments.clone();
        let ranges = batches(&fragments, self.options.batch_bytes, MAX_ROWS);
        // Which rows there are doesn't need what is in the files; what is stored has their digests.
        let needs_content =
            !self.options.ordered || self.columns.iter().any(|column| column.name == BYTES || column.name == DIGEST);
        let reading = self.clone();
        let (mut next, mut row) = (0, 0);
        let stream = futures::stream::iter(ranges)
            .map(move |range| tokio::spawn(read(source.clone(), fragments[range].to_vec(), needs_content)))
            // One batch is read while the one before is processed.
            .buffered(2)
            .map_err(|error| wrap(Error::internal("reading", error)))
            .and_then(move |files| {
                let made = (|| {
                    reading.check_running()?;
                    let files = reading.readable(files, task, &mut next, &mut row, needs_content).map_err(wrap)?;
                    reading.assemble_files(&files, task)
                })();
                futures::future::ready(made)
            });
        Ok(self.stream(stream))
    }

    /// Keeps the files that could be read; the others end the run or are noted, by policy. `next` counts the task's
    /// files, `row` its rows.
    fn readable(
        &self,
        files: Vec<(Fragment, crate::diag::Result<Bytes>)>,
        task: usize,
        next: &mut usize,
        row: &mut usize,
        needs_content: bool,
    ) -> crate::diag::Result<Vec<ReadFile>> {
        let mut kept = Vec::with_capacity(files.len());
        for (fragment, bytes) in files {
            let at = *next;
            *next += 1;
            match bytes {
                Ok(bytes) => {
                    let digest = if needs_content { Fingerprint::of_bytes(&bytes) } else { Fingerprint([0; 16]) };
                    self.notes.add_run(task, *row, at, 0);
                    *row += 1;
                    if needs_content {
                        self.notes.update(task, |outcome| outcome.digests.push(digest));
                    }
                    kept.push((at, fragment, bytes, digest));
                }
                // A file that changes while it is read is nobody's bad sample.
                Err(Error::Io { source, .. }) if self.notes.on_error() == OnError::Skip => {
                    self.notes.update(task, |outcome| outcome.digests.push(Fingerprint([0; 16])));
                    let (file, reason) = (fragment.path, source.to_string());
                    self.notes.bad_rows(task, vec![BadRow { file, row: 0, step: "source".to_owned(), reason }])?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(kept)
    }

    fn assemble_files(&self, files: &[ReadFile], task: usize) -> Result<RecordBatch> {
        let keys: Vec<RowKey> = files.iter().map(|(_, file, ..)| RowKey::of_fragment(&file.path, 0)).collect();
        let mut columns = vec![key_column(&keys)?];
        if self.options.ordered {
            columns.push(order_column(files.iter().map(|(at, ..)| self.place(task, *at, 0))));
        }
        for column in self.columns.iter() {
            columns.push(match column.name.as_str() {
                PATH => Arc::new(files.iter().map(|(_, file, ..)| Some(&file.path)).collect::<StringArray>()),
                SIZE => {
                    let sizes = files.iter().map(|(_, file, ..)| i64::try_from(file.size).unwrap_or(i64::MAX));
                    Arc::new(Int64Array::from_iter_values(sizes))
                }
                DIGEST => Arc::new(BinaryViewArray::from_iter_values(files.iter().map(|(.., digest)| digest.0))),
                BYTES => {
                    let rows = files.iter().map(|(_, _, bytes, _)| bytes.clone()).collect();
                    Arc::new(binary_view_of_rows(rows).map_err(DataFusionError::Internal)?) as ArrayRef
                }
                other => return Err(internal(format!("files have no column `{other}`"))),
            });
        }
        record_batch(&self.schema, columns, files.len())
    }

    fn table(&self, format: TableFormat, root: PathBuf, task: usize) -> Result<SendableRecordBatchStream> {
        let tasks = self.notes.tasks();
        let fragments = tasks.get(task).ok_or_else(|| internal(format!("there is no task {task}")))?.fragments.clone();
        let mut state = TableState { reading: self.clone(), format, root, task, fragments, at: 0, open: None, rows: 0 };
        let stream = futures::stream::iter(std::iter::from_fn(move || state.next().transpose()));
        Ok(self.stream(stream))
    }

    fn spool(&self, spool: Arc<Spool>, task: usize) -> Result<SendableRecordBatchStream> {
        let part = self.notes.tasks().get(task).map_or(task, |task| task.part);
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let reading = self.clone();
        let batches = spool.read(part).map_err(wrap)?;
        let mut first = 0;
        let stream = futures::stream::iter(batches.map(move |batch| {
            reading.check_running()?;
            let batch = batch.map_err(wrap)?;
            for (row, place) in super::batches::orders_of(batch.column(1))?.iter().enumerate() {
                let (file, at) = spool.describe(place.unwrap_or_default());
                reading.notes.add_place(task, first + row, file, at);
            }
            first += batch.num_rows();
            let mut columns = vec![Arc::clone(batch.column(0))];
            for name in &names {
                let column =
                    batch.column_by_name(name).ok_or_else(|| internal(format!("there is no column {name}")))?;
                columns.push(Arc::clone(column));
            }
            record_batch(&reading.schema, columns, batch.num_rows())
        }));
        Ok(self.stream(stream))
    }
}

/// The place of a row of a source in the row order: its file's, then its own.
fn place(fragment: usize, row: usize) -> [u8; 8] {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
    let mut place = [0; 8];
    place[..4].copy_from_slice(&number(fragment));
    place[4..].copy_from_slice(&number(row));
    place
}

/// Reads one batch; a file that can't be read has its error in its place.
async fn read(
    source: FileSource,
    fragments: Vec<Fragment>,
    needs_content: bool,
) -> Vec<(Fragment, crate::diag::Result<Bytes>)> {
    let mut files = Vec::with_capacity(fragments.len());
    for fragment in fragments {
        let bytes = if needs_content { source.read(&fragment).await } else { Ok(Bytes::new()) };
        files.push((fragment, bytes));
    }
    files
}

/// The table files of a task, one after another.
struct TableState {
    reading: Reading,
    format: TableFormat,
    root: PathBuf,
    task: usize,
    fragments: Vec<Fragment>,
    at: usize,
    open: Option<(TableReader, usize)>,
    rows: usize,
}

impl TableState {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.reading.check_running()?;
            let Some(fragment) = self.fragments.get(self.at) else { return Ok(None) };
            if self.open.is_none() {
                let path = self.root.join(&fragment.path);
                let reader = TableReader::open(self.format, &path, &self.reading.columns).map_err(wrap)?;
                self.open = Some((reader, 0));
            }
            let Some((reader, row)) = self.open.as_mut() else { continue };
            let Some(rows) = reader.next_rows().map_err(wrap)? else {
                let digest = reader.digest();
                self.reading.notes.update(self.task, |outcome| outcome.digests.push(digest));
                self.open = None;
                self.at += 1;
                continue;
            };
            let first = *row;
            *row += rows.rows;
            let missing = |at: usize| rows.missing.iter().find(|(row, _)| *row == at);
            let bad: Vec<BadRow> = (0..rows.rows)
                .filter_map(|at| {
                    let (_, reason) = missing(at)?;
                    let reason = reason.clone();
                    let (file, row) = (fragment.path.clone(), (first + at) as u64);
                    Some(BadRow { file, row, step: "source".to_owned(), reason })
                })
                .collect();
            let notes = &self.reading.notes;
            let mut columns = rows.columns;
            let mut places: Vec<usize> = (0..rows.rows).collect();
            if bad.is_empty() {
                notes.add_run(self.task, self.rows, self.at, first as u64);
            } else {
                notes.bad_rows(self.task, bad).map_err(wrap)?;
                places.retain(|at| missing(*at).is_none());
                let mask: arrow::array::BooleanArray = (0..rows.rows).map(|at| Some(missing(at).is_none())).collect();
                for column in &mut columns {
                    *column = arrow::compute::filter(column, &mask)?;
                }
                for (number, at) in places.iter().enumerate() {
                    notes.add_run(self.task, self.rows + number, self.at, (first + at) as u64);
                }
            }
            self.rows += places.len();
            let key = |at: &usize| RowKey::of_fragment(&fragment.path, (first + at) as u64);
            let mut all = vec![key_column(&places.iter().map(key).collect::<Vec<_>>())?];
            if self.reading.options.ordered {
                let order = |at: &usize| self.reading.place(self.task, self.at, first + at);
                all.push(order_column(places.iter().map(order)));
            }
            all.extend(columns);
            return record_batch(&self.reading.schema, all, places.len()).map(Some);
        }
    }
}
