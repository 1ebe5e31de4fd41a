//! Narrow columns: row groups decoded whole, kept while they are in use.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::world::ReadAt;
use crate::world::fence::fenced;

/// A shard's file for the Parquet reader.
#[derive(Clone)]
pub struct File(pub Arc<dyn ReadAt>);

impl Length for File {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for File {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // The reader asks for a stream only to read a page header or two.
        let length = usize::try_from(self.0.len().saturating_sub(start)).unwrap_or(usize::MAX).min(64 << 10);
        Ok(Box::new(self.get_bytes(start, length)?.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.saturating_add(length as u64) > self.0.len() {
            return Err(ParquetError::EOF("the file ends before what its footer names".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.0.read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// Bytes of decoded row groups that a shard keeps.
const KEPT_BYTES: usize = 16 << 20;

/// The narrow columns of a shard.
pub struct NarrowColumns {
    file: File,
    metadata: ArrowReaderMetadata,
    leaves: ProjectionMask,
    /// The first row of each row group, and after the last one the number of rows.
    starts: Vec<usize>,
    kept: Mutex<VecDeque<(usize, RecordBatch)>>,
}

impl NarrowColumns {
    /// Opens those leaves of a file.
    pub fn new(
        file: File,
        metadata: &Arc<ParquetMetaData>,
        leaves: &[usize],
        starts: Vec<usize>,
    ) -> Result<Self, String> {
        let leaves = ProjectionMask::leaves(metadata.file_metadata().schema_descr(), leaves.iter().copied());
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata), ArrowReaderOptions::new());
        let metadata = metadata.map_err(|error| error.to_string())?;
        Ok(Self { file, metadata, leaves, starts, kept: Mutex::new(VecDeque::new()) })
    }

    /// The columns of those rows, in that order.
    pub fn take(&self, rows: &[usize]) -> Result<RecordBatch, String> {
        let mut parts: Vec<(usize, RecordBatch)> = Vec::new();
        let mut order = Vec::with_capacity(rows.len());
        for row in rows {
            let group = self.starts.partition_point(|start| start <= row).saturating_sub(1);
            let part = match parts.iter().position(|(other, _)| *other == group) {
                Some(part) => part,
                None => {
                    parts.push((group, self.group(group)?));
                    parts.len() - 1
                }
            };
            order.push((part, row - self.starts[group]));
        }
        let Some((_, first)) = parts.first() else {
            return Ok(RecordBatch::new_empty(Arc::clone(self.metadata.schema())));
        };
        let schema = first.schema();
        let columns = (0..first.num_columns())
            .map(|column| -> Result<ArrayRef, String> {
                if parts.len() == 1 {
                    let indices = order.iter().map(|(_, row)| u32::try_from(*row).unwrap_or(u32::MAX));
                    let indices = UInt32Array::from_iter_values(indices);
                    return arrow::compute::take(first.column(column), &indices, None)
                        .map_err(|error| error.to_string());
                }
                let arrays: Vec<&dyn Array> = parts.iter().map(|(_, batch)| batch.column(column).as_ref()).collect();
                arrow::compute::interleave(&arrays, &order).map_err(|error| error.to_string())
            })
            .collect::<Result<Vec<_>, _>>()?;
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| error.to_string())
    }

    fn group(&self, group: usize) -> Result<RecordBatch, String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(other, _)| *other == group)
            && let Some(entry) = kept.remove(at)
        {
            let batch = entry.1.clone();
            kept.push_back(entry);
            return Ok(batch);
        }
        drop(kept);
        // The library's reader panics on some damaged pages.
        let batch = fenced(|| self.decode(group))?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((group, batch.clone()));
        while kept.len() > 2 && kept.iter().map(|(_, batch)| batch.get_array_memory_size()).sum::<usize>() > KEPT_BYTES
        {
            kept.pop_front();
        }
        Ok(batch)
    }

    fn decode(&self, group: usize) -> Result<RecordBatch, String> {
        let rows = self.starts[group + 1] - self.starts[group];
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
            .with_projection(self.leaves.clone())
            .with_row_groups(vec![group])
            .with_batch_size(rows.max(1))
            .build()
            .map_err(|error| error.to_string())?;
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let schema = batches.first().ok_or("a row group without rows")?.schema();
        let batch = arrow::compute::concat_batches(&schema, &batches).map_err(|error| error.to_string())?;
        if batch.num_rows() == rows {
            Ok(batch)
        } else {
            Err("a row group has another number of rows than it says".to_owned())
        }
    }
}
