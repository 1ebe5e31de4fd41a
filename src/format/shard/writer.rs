//! Writing a shard.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::layout::{KEY, LAYOUT, LAYOUT_KEY, WIDE, check_sizes, declared_schema, memory_schema};
use crate::types::batch::array_bytes;
use crate::types::{Batch, Codec, ColumnType, NamedColumn};

/// The most raw bytes of a row group: the writer holds one in memory.
const ROW_GROUP_BYTES: usize = 16 << 20;

/// Writes one shard: a first column `__key` with the row keys, then the given columns.
///
/// The same rows and codec give the same bytes, however they are batched: rows are gathered until a row group is full,
/// which the first time decides which columns are wide.
pub struct ShardWriter<W: Write + Send> {
    columns: Vec<NamedColumn>,
    codec: Codec,
    schema: SchemaRef,
    state: State<W>,
    rows: u64,
    /// The rows of the row group at hand.
    group: Vec<RecordBatch>,
    group_bytes: usize,
}

enum State<W: Write + Send> {
    /// Nothing was written yet: which columns are wide isn't known.
    Waiting(W),
    Writing(Box<ArrowWriter<W>>),
    /// A write failed.
    Failed,
}

impl<W: Write + Send> ShardWriter<W> {
    /// Begins a shard with those columns.
    ///
    /// # Errors
    /// When a name occurs twice or is that of the row keys.
    pub fn new(out: W, columns: &[NamedColumn], codec: Codec) -> Result<Self, String> {
        for (at, column) in columns.iter().enumerate() {
            let before = columns.iter().take(at).map(|column| column.name.as_str());
            if std::iter::once(KEY).chain(before).any(|name| name == column.name) {
                return Err(format!("two columns called `{}`", column.name));
            }
        }
        Ok(Self {
            columns: columns.to_vec(),
            codec,
            schema: Arc::new(memory_schema(columns)),
            state: State::Waiting(out),
            rows: 0,
            group: Vec::new(),
            group_bytes: 0,
        })
    }

    /// Rows written so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When the columns aren't those of the shard, or the output can't be written to.
    pub fn write(&mut self, batch: &Batch) -> Result<(), String> {
        if batch.rows() == 0 {
            return Ok(());
        }
        let record = self.record(batch)?;
        for (column, array) in self.columns.iter().zip(&batch.columns) {
            check_sizes(array, &column.column_type).map_err(|error| format!("column `{}`: {error}", column.name))?;
        }
        let mut from = 0;
        for (row, bytes) in row_bytes(&record).into_iter().enumerate() {
            self.group_bytes += bytes;
            if self.group_bytes >= ROW_GROUP_BYTES {
                self.group.push(record.slice(from, row + 1 - from));
                from = row + 1;
                self.flush()?;
            }
        }
        if from < record.num_rows() {
            self.group.push(record.slice(from, record.num_rows() - from));
        }
        self.rows += batch.rows() as u64;
        Ok(())
    }

    /// Writes the row group at hand, in one go: where pages end would else depend on the batches.
    fn flush(&mut self) -> Result<(), String> {
        let group = arrow::compute::concat_batches(&self.schema, &std::mem::take(&mut self.group));
        let group = group.map_err(|error| error.to_string())?;
        let mut writer = match std::mem::replace(&mut self.state, State::Failed) {
            State::Waiting(out) => Box::new(self.begin(out, Some(&group)).map_err(reason)?),
            State::Writing(writer) => writer,
            State::Failed => return Err("a write failed before".to_owned()),
        };
        writer.write(&group).and_then(|()| writer.flush()).map_err(reason)?;
        self.group_bytes = 0;
        self.state = State::Writing(writer);
        Ok(())
    }

    /// Writes the footer and gives the output back.
    ///
    /// # Errors
    /// When the output can't be written to.
    pub fn finish(mut self) -> Result<W, String> {
        if !self.group.is_empty() {
            self.flush()?;
        }
        let writer = match std::mem::replace(&mut self.state, State::Failed) {
            State::Waiting(out) => Box::new(self.begin(out, None).map_err(reason)?),
            State::Writing(writer) => writer,
            State::Failed => return Err("a write failed before".to_owned()),
        };
        writer.into_inner().map_err(reason)
    }

    fn record(&self, batch: &Batch) -> Result<RecordBatch, String> {
        let keys: Vec<u8> = batch.keys.iter().flat_map(|key| key.0).collect();
        let keys = FixedSizeBinaryArray::try_new(16, keys.into(), None).map_err(|error| error.to_string())?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(keys)];
        columns.extend(batch.columns.iter().cloned());
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|error| error.to_string())
    }

    fn begin(&self, out: W, first: Option<&RecordBatch>) -> Result<ArrowWriter<W>, ParquetError> {
        let compression = match self.codec {
            Codec::None => Compression::UNCOMPRESSED,
            Codec::Lz4 => Compression::LZ4_RAW,
            Codec::Zstd1 => Compression::ZSTD(ZstdLevel::try_new(1)?),
            Codec::Zstd3 => Compression::ZSTD(ZstdLevel::try_new(3)?),
        };
        let metadata = [
            (LAYOUT_KEY, LAYOUT.to_owned()),
            (ARROW_SCHEMA_META_KEY, encode_arrow_schema(&declared_schema(&self.columns))),
        ];
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by("parbake".to_owned())
            .set_key_value_metadata(Some(metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec()))
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_max_row_group_row_count(None)
            // Sixteen random bytes don't compress.
            .set_column_compression(ColumnPath::from(KEY), Compression::UNCOMPRESSED);
        for (at, column) in self.columns.iter().enumerate() {
            if first.is_some_and(|batch| is_wide(batch.column(at + 1), &column.column_type)) {
                properties = one_value_a_page(properties, column);
            }
        }
        let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        ArrowWriter::try_new_with_options(out, Arc::clone(&self.schema), options)
    }
}

/// The raw bytes of each row.
fn row_bytes(record: &RecordBatch) -> Vec<usize> {
    let mut sizes = vec![0; record.num_rows()];
    for array in record.columns() {
        let views = array.as_struct_opt().and_then(|ragged| ragged.columns().first()).unwrap_or(array);
        if let Some(views) = views.as_binary_view_opt() {
            for (size, bytes) in sizes.iter_mut().zip(views.lengths()) {
                *size += bytes as usize;
            }
        } else if let Some(text) = array.as_string_opt::<i32>() {
            for (size, ends) in sizes.iter_mut().zip(text.value_offsets().windows(2)) {
                *size += usize::try_from(ends[1] - ends[0]).unwrap_or(0);
            }
        } else {
            let bytes = array.data_type().primitive_width().unwrap_or(size_of_val(&[0_u8; 16]));
            for size in &mut sizes {
                *size += bytes;
            }
        }
    }
    sizes
}

/// Whether a column is to be written with one value a page.
fn is_wide(array: &ArrayRef, column_type: &ColumnType) -> bool {
    let bytes = match column_type {
        ColumnType::Text | ColumnType::Scalar(_) => return false,
        ColumnType::Bytes | ColumnType::Tensor(_) => array_bytes(array),
    };
    bytes / array.len().max(1) >= WIDE
}

fn one_value_a_page(properties: WriterPropertiesBuilder, column: &NamedColumn) -> WriterPropertiesBuilder {
    let ragged = column.column_type.tensor().is_some_and(|tensor| tensor.fixed_shape().is_none());
    let mut path = vec![column.name.clone()];
    if ragged {
        path.push("data".to_owned());
    }
    // The size limit is looked at after each mini-batch: of one value, so that each page holds one.
    properties.set_write_batch_size(1).set_column_data_page_size_limit(ColumnPath::new(path), 1)
}

fn reason(error: ParquetError) -> String {
    match error {
        ParquetError::External(inner) => inner.to_string(),
        other => other.to_string(),
    }
}

/// Whether every view of the array is of a required value; the writer relies on it.
#[cfg(test)]
pub fn has_no_nulls(array: &ArrayRef) -> bool {
    array.null_count() == 0 && array.as_struct_opt().is_none_or(|s| s.columns().iter().all(has_no_nulls))
}
