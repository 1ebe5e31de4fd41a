//! Writing a shard.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::layout::{KEY, LAYOUT, LAYOUT_KEY, WIDE, declared_schema, memory_schema};
use crate::types::batch::array_bytes;
use crate::types::{Batch, Codec, ColumnType, NamedColumn};

/// The most raw bytes of a row group: the writer holds one in memory.
const ROW_GROUP_BYTES: usize = 16 << 20;

/// Writes one shard: a first column `__key` with the row keys, then the given columns.
///
/// The same rows and codec give the same bytes, however they are batched, as long as the first batch is the same: it
/// decides which columns are wide.
pub struct ShardWriter<W: Write + Send> {
    columns: Vec<NamedColumn>,
    codec: Codec,
    schema: SchemaRef,
    state: State<W>,
    rows: u64,
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
    /// Never now; the result leaves room for formats that write a header.
    pub fn new(out: W, columns: &[NamedColumn], codec: Codec) -> Result<Self, String> {
        Ok(Self {
            columns: columns.to_vec(),
            codec,
            schema: Arc::new(memory_schema(columns)),
            state: State::Waiting(out),
            rows: 0,
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
        // Rows go in one by one where they are large, so that a row group ends at the same row however they come.
        let step = (ROW_GROUP_BYTES / 16 / (batch.bytes() / batch.rows()).max(1)).max(1);
        let mut writer = match std::mem::replace(&mut self.state, State::Failed) {
            State::Waiting(out) => Box::new(self.begin(out, Some(batch)).map_err(reason)?),
            State::Writing(writer) => writer,
            State::Failed => return Err("a write failed before".to_owned()),
        };
        let mut from = 0;
        while from < batch.rows() {
            let rows = if self.group_bytes == 0 && step > 1 { batch.rows() - from } else { 1 };
            let rows = rows.min(step).min(batch.rows() - from);
            let slice = record.slice(from, rows);
            self.group_bytes += slice.columns().iter().map(array_bytes).sum::<usize>();
            writer.write(&slice).map_err(reason)?;
            if self.group_bytes >= ROW_GROUP_BYTES {
                writer.flush().map_err(reason)?;
                self.group_bytes = 0;
            }
            from += rows;
        }
        self.rows += batch.rows() as u64;
        self.state = State::Writing(writer);
        Ok(())
    }

    /// Writes the footer and gives the output back.
    ///
    /// # Errors
    /// When the output can't be written to.
    pub fn finish(mut self) -> Result<W, String> {
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

    fn begin(&self, out: W, first: Option<&Batch>) -> Result<ArrowWriter<W>, ParquetError> {
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
            if first.is_some_and(|batch| is_wide(&batch.columns[at], &column.column_type)) {
                properties = one_value_a_page(properties, column);
            }
        }
        let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        ArrowWriter::try_new_with_options(out, Arc::clone(&self.schema), options)
    }
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
    use arrow::array::AsArray;
    array.null_count() == 0 && array.as_struct_opt().is_none_or(|s| s.columns().iter().all(has_no_nulls))
}
