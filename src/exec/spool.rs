//! Rows that were put together from several relations, on disk, dealt to shards.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;

use super::batches::keys_of;
use super::places::Places;
use crate::diag::{Error, Result};
use crate::pipeline::{Action, ColumnId, Graph};
use crate::types::row_digest::value_digests;
use crate::types::{Fingerprint, FingerprintBuilder, NamedColumn, RowKey};
use crate::world::files;

/// A part of the rows: a shard's.
#[derive(Debug, Clone)]
pub struct Part {
    /// What its rows are made of, and the state of the files that they name.
    pub digest: Fingerprint,
    /// How many they are.
    pub rows: u64,
    batches: Range<usize>,
}

/// The files that steps behind spooled rows read, by the paths that the rows hold.
#[derive(Debug, Default)]
pub struct FilesReadLater {
    /// The columns that hold paths, by their places, each with the source whose files are read.
    columns: Vec<(usize, usize)>,
    /// Size and time of each file, by source and path: files of two sources may have the same path.
    states: BTreeMap<(usize, String), (u64, i64)>,
}

impl FilesReadLater {
    /// Those of spooled rows with those columns.
    pub fn of(graph: &Graph, columns: &[ColumnId]) -> Self {
        let read = graph.steps.iter().filter_map(|step| match step.action {
            Action::Read(source) => Some((columns.iter().position(|id| step.inputs.contains(id))?, source)),
            Action::Op(_) => None,
        });
        let columns: BTreeSet<(usize, usize)> = read.collect();
        let sources: BTreeSet<usize> = columns.iter().map(|(_, source)| *source).collect();
        let files = sources.into_iter().flat_map(|source| {
            let fragments = &graph.sources[source].listing.fragments;
            fragments.iter().map(move |of| ((source, of.path.clone()), (of.size, of.modified_ns)))
        });
        Self { columns: columns.into_iter().collect(), states: files.collect() }
    }
}

/// Rows on disk, in order, in parts. The file goes with this.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    parts: Vec<Part>,
    places: Places,
}

impl Spool {
    /// Its parts, in row order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Where the rows of a batch come from.
    ///
    /// # Errors
    /// When they don't say.
    pub fn places(&self, batch: &RecordBatch) -> Result<Vec<(String, u64)>> {
        let places = super::batches::orders_of(batch.column(1)).map_err(super::batches::unwrap)?;
        Ok(places.iter().map(|place| self.describe(place.unwrap_or_default())).collect())
    }

    /// Where a row comes from: its file, or what stands for one, and its row there.
    pub(super) fn describe(&self, place: &[u8]) -> (String, u64) {
        self.places.describe(place)
    }

    /// The rows of a part: key, place in the row order, columns.
    ///
    /// # Errors
    /// When there is no such part, or the spool is damaged.
    pub fn read(&self, part: usize) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let batches = self.parts.get(part).map(|part| part.batches.clone());
        let batches = batches.ok_or_else(|| Error::internal("the spool", format!("there is no part {part}")))?;
        let path = self.path.clone();
        let failed = move |error: arrow::error::ArrowError| Error::internal("the spool", error);
        let mut reader = FileReader::try_new(files::open(&path)?, None).map_err(failed)?;
        Ok(batches.map(move |at| {
            let internal = |error: arrow::error::ArrowError| Error::internal("the spool", error);
            reader.set_index(at).map_err(internal)?;
            let batch = reader.next().ok_or_else(|| Error::internal("the spool", "it is too short"))?;
            batch.map_err(internal)
        }))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = files::remove_if_there(&self.path);
    }
}

/// Rows of a batch, at most: the memory of one.
const BATCH_ROWS: usize = 1024;
/// Bytes of a part at which it ends whatever its rows are called.
const PART_BYTES: usize = 256 << 20;

/// Writes a spool.
pub struct SpoolWriter {
    writer: FileWriter<BufWriter<std::fs::File>>,
    spool: Spool,
    columns: Vec<NamedColumn>,
    rows_per_part: u32,
    batches: usize,
    part_start: usize,
    part_rows: u64,
    part_bytes: usize,
    digest: FingerprintBuilder,
    later: FilesReadLater,
    /// The files that the rows of the part name, by source and path.
    named_files: BTreeSet<(usize, String)>,
}

impl SpoolWriter {
    /// Begins a spool with rows of that schema, whose third and later columns these are, in a file of its own.
    pub fn new(
        path: &Path,
        schema: &SchemaRef,
        columns: &[NamedColumn],
        rows_per_part: u32,
        places: Places,
        later: FilesReadLater,
    ) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 20, files::create(path)?);
        let spool = Spool { path: path.to_owned(), parts: Vec::new(), places };
        let writer = FileWriter::try_new(file, schema).map_err(|error| Error::internal("the spool", error))?;
        Ok(Self {
            writer,
            spool,
            columns: columns.to_vec(),
            rows_per_part: rows_per_part.max(1),
            batches: 0,
            part_start: 0,
            part_rows: 0,
            part_bytes: 0,
            digest: FingerprintBuilder::new("part"),
            later,
            named_files: BTreeSet::new(),
        })
    }

    /// Adds the next rows. A part begins at every row whose key's hash is 0 modulo the rows of a part, so that other
    /// rows before it don't move it.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = |error: String| Error::internal("the spool", error);
        let keys = keys_of(batch.column(0)).map_err(|error| failed(error.to_string()))?;
        let types: Vec<_> = self.columns.iter().map(|column| &column.column_type).collect();
        let digests = value_digests(&batch.columns()[2..], &types, batch.num_rows()).map_err(failed)?;
        let row_bytes = batch.get_array_memory_size() / batch.num_rows().max(1);
        let mut start = 0;
        for (row, (key, digest)) in keys.iter().zip(&digests).enumerate() {
            let full = self.part_bytes >= PART_BYTES || self.part_rows >= u64::from(self.rows_per_part) * 8;
            if self.part_rows > 0 && (self.begins_part(*key) || full) {
                self.write(&batch.slice(start, row - start))?;
                start = row;
                self.close_part();
            }
            self.digest.bytes(&key.0).bytes(&digest.0);
            for (column, source) in &self.later.columns {
                if let Some(texts) = batch.column(column + 2).as_string_opt::<i32>() {
                    self.named_files.insert((*source, texts.value(row).to_owned()));
                }
            }
            self.part_rows += 1;
            self.part_bytes += row_bytes;
        }
        self.write(&batch.slice(start, batch.num_rows() - start))
    }

    fn begins_part(&self, key: RowKey) -> bool {
        key.halves().0.is_multiple_of(u64::from(self.rows_per_part))
    }

    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut at = 0;
        while at < rows.num_rows() {
            let count = BATCH_ROWS.min(rows.num_rows() - at);
            // A slice would write the buffers of the whole.
            let places: arrow::array::UInt32Array =
                (at..at + count).filter_map(|row| u32::try_from(row).ok()).collect();
            let part = arrow::compute::take_record_batch(rows, &places);
            let written = part.and_then(|part| self.writer.write(&part));
            written.map_err(|error| match error {
                arrow::error::ArrowError::IoError(_, error) => Error::io("writing", &self.spool.path, error),
                other => Error::internal("the spool", other),
            })?;
            self.batches += 1;
            at += count;
        }
        Ok(())
    }

    fn close_part(&mut self) {
        let mut digest = std::mem::replace(&mut self.digest, FingerprintBuilder::new("part"));
        for file in std::mem::take(&mut self.named_files) {
            if let Some((size, modified_ns)) = self.later.states.get(&file) {
                let (source, path) = &file;
                digest.number(*source as u64).text(path).number(*size).bytes(&modified_ns.to_le_bytes());
            }
        }
        let digest = digest.finish();
        let batches = self.part_start..self.batches;
        self.spool.parts.push(Part { digest, rows: self.part_rows, batches });
        self.part_start = self.batches;
        (self.part_rows, self.part_bytes) = (0, 0);
    }

    /// After the last row.
    pub fn finish(mut self) -> Result<Spool> {
        if self.part_rows > 0 {
            self.close_part();
        }
        self.writer.finish().map_err(|error| Error::internal("the spool", error))?;
        Ok(self.spool)
    }
}
