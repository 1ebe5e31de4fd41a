//! Reading a shard.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, Int32Array, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Int32Type};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::layout::{KEY, LAYOUT, LAYOUT_KEY, check_sizes};
use super::narrow::{File, NarrowColumns};
use super::page::PageDecoder;
use crate::types::batch::{binary_view_of_rows, tensor_array};
use crate::types::{BufferPool, ColumnType, NamedColumn, RowKey};
use crate::world::ReadAt;
use crate::world::fence::fenced;

/// Random access to the rows of one shard, from any number of threads.
pub struct ShardReader {
    file: Arc<dyn ReadAt>,
    rows: usize,
    columns: Vec<(NamedColumn, Layout)>,
    narrow: NarrowColumns,
    /// The key column alone.
    keys: NarrowColumns,
}

/// How a column lies in the file.
enum Layout {
    Narrow,
    Wide { pages: Vec<PagePlace>, compression: Compression },
}

/// Where the page of a row is.
#[derive(Debug, Clone, Copy)]
struct PagePlace {
    offset: u64,
    length: usize,
}

impl ShardReader {
    /// Opens a shard and reads its footer; only the given columns are ever read.
    ///
    /// # Errors
    /// When it isn't a shard, is damaged, or doesn't have those columns with those types.
    pub fn open(file: Arc<dyn ReadAt>, columns: &[NamedColumn]) -> Result<Self, String> {
        let source = File(Arc::clone(&file));
        let metadata = fenced(|| {
            ParquetMetaDataReader::new()
                .with_column_index_policy(PageIndexPolicy::Skip)
                .with_offset_index_policy(PageIndexPolicy::Optional)
                .parse_and_finish(&source)
                .map_err(|error| format!("not a readable shard: {error}"))
        })?;
        let metadata = Arc::new(metadata);
        let layout = metadata.file_metadata().key_value_metadata().and_then(|entries| {
            entries.iter().find(|entry| entry.key == LAYOUT_KEY).and_then(|entry| entry.value.clone())
        });
        match layout.as_deref() {
            Some(LAYOUT) => {}
            Some(other) => {
                return Err(format!("its layout is version {other}, and this parbake reads version {LAYOUT}"));
            }
            None => return Err("a Parquet file that parbake didn't write".to_owned()),
        }
        let mut starts = vec![0];
        for group in metadata.row_groups() {
            let rows = usize::try_from(group.num_rows()).map_err(|_| "a row group with a negative number of rows")?;
            starts.push(starts.last().copied().unwrap_or(0) + rows);
        }
        let rows = starts.last().copied().unwrap_or(0);
        // The library's reader of Arrow schemas panics on some damaged ones.
        let stored = fenced(|| {
            parquet::arrow::parquet_to_arrow_schema(
                metadata.file_metadata().schema_descr(),
                metadata.file_metadata().key_value_metadata(),
            )
            .map_err(|error| error.to_string())
        })?;
        let mut laid_out = Vec::new();
        let mut narrow_leaves = Vec::new();
        for column in columns {
            let field =
                stored.field_with_name(&column.name).map_err(|_| format!("it has no column `{}`", column.name))?;
            if ColumnType::from_field(field).as_ref() != Some(&column.column_type) {
                return Err(format!("its column `{}` is not of type {}", column.name, column.column_type));
            }
            let ragged = matches!(field.data_type(), DataType::Struct(_));
            let data = if ragged { vec![column.name.as_str(), "data"] } else { vec![column.name.as_str()] };
            let leaf = leaf(&metadata, &data)?;
            let binary = matches!(column.column_type, ColumnType::Bytes | ColumnType::Tensor(_));
            let wide = if binary && rows > 0 { wide_pages(&metadata, leaf, file.len())? } else { None };
            if ragged {
                let shape = metadata.file_metadata().schema_descr().columns().iter().position(|other| {
                    other.path().parts().first() == Some(&column.name)
                        && other.path().parts().get(1).is_some_and(|part| part == "shape")
                });
                narrow_leaves.push(shape.ok_or_else(|| format!("its column `{}` has no shapes", column.name))?);
            }
            match wide {
                Some(pages) => {
                    let compression = metadata.row_group(0).column(leaf).compression();
                    laid_out.push((column.clone(), Layout::Wide { pages, compression }));
                }
                None => {
                    narrow_leaves.push(leaf);
                    laid_out.push((column.clone(), Layout::Narrow));
                }
            }
        }
        let key = leaf(&metadata, &[KEY])?;
        Ok(Self {
            rows,
            columns: laid_out,
            narrow: NarrowColumns::new(source.clone(), &metadata, &narrow_leaves, starts.clone())?,
            keys: NarrowColumns::new(source, &metadata, &[key], starts)?,
            file,
        })
    }

    /// Number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The key of every row, in order.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn keys(&self) -> Result<Vec<RowKey>, String> {
        let batch = self.keys.take(&(0..self.rows).collect::<Vec<_>>())?;
        let column = batch.columns().first().and_then(|column| column.as_fixed_size_binary_opt());
        if self.rows == 0 {
            return Ok(Vec::new());
        }
        let column = column.ok_or("its key column is of another type")?;
        column
            .iter()
            .map(|key| key.and_then(|key| key.try_into().ok()).map(RowKey).ok_or("a row without a key".to_owned()))
            .collect()
    }

    /// The columns of those rows, in that order; rows may repeat. Memory comes from the pool where it can.
    ///
    /// # Errors
    /// When a row isn't there or the file is damaged.
    pub fn fetch(&self, rows: &[usize], pool: &BufferPool) -> Result<Vec<ArrayRef>, String> {
        if let Some(row) = rows.iter().find(|row| **row >= self.rows) {
            return Err(format!("there is no row {row} among {}", self.rows));
        }
        let has_narrow = self.columns.iter().any(|(column, layout)| {
            matches!(layout, Layout::Narrow) || column.column_type.tensor().is_some_and(|t| t.fixed_shape().is_none())
        });
        let narrow = if has_narrow && !rows.is_empty() { Some(self.narrow.take(rows)?) } else { None };
        self.columns
            .iter()
            .map(|(column, layout)| {
                if rows.is_empty() {
                    return Ok(arrow::array::new_empty_array(&column.column_type.arrow()));
                }
                let array = match layout {
                    Layout::Narrow => narrow_column(column, narrow.as_ref()),
                    Layout::Wide { pages, compression } => {
                        let values = self.wide_values(rows, pages, *compression, pool)?;
                        let data = binary_view_of_rows(values)?;
                        match &column.column_type {
                            ColumnType::Tensor(tensor) => {
                                let shapes = match tensor.fixed_shape() {
                                    Some(_) => Vec::new(),
                                    None => shapes(column, narrow.as_ref())?,
                                };
                                tensor_array(tensor, data, shapes)
                            }
                            _ => Ok(Arc::new(data) as ArrayRef),
                        }
                    }
                }?;
                // A damaged shape must not make a kernel take memory for it.
                check_sizes(&array, &column.column_type)
                    .map_err(|error| format!("column `{}`: {error}", column.name))?;
                Ok(array)
            })
            .collect()
    }

    fn wide_values(
        &self,
        rows: &[usize],
        pages: &[PagePlace],
        compression: Compression,
        pool: &BufferPool,
    ) -> Result<Vec<Bytes>, String> {
        let mut decoder = PageDecoder::new(compression, pool);
        rows.iter()
            .map(|row| {
                let page = pages[*row];
                let mut buffer = pool.take(page.length);
                self.file.read_at(page.offset, buffer.as_mut_slice()).map_err(|error| error.to_string())?;
                decoder.single_value(&buffer.into_bytes())
            })
            .collect()
    }
}

/// The place of a leaf column among all leaves.
fn leaf(metadata: &ParquetMetaData, path: &[&str]) -> Result<usize, String> {
    let columns = metadata.file_metadata().schema_descr().columns();
    columns
        .iter()
        .position(|column| column.path().parts().iter().map(String::as_str).eq(path.iter().copied()))
        .ok_or_else(|| format!("it has no column `{}`", path.join(".")))
}

/// The page of every row, if the column was written with one value a page.
fn wide_pages(metadata: &ParquetMetaData, leaf: usize, file_len: u64) -> Result<Option<Vec<PagePlace>>, String> {
    let Some(index) = metadata.offset_index() else { return Ok(None) };
    let mut pages = Vec::new();
    for (group, offsets) in metadata.row_groups().iter().zip(index) {
        let Some(offsets) = offsets.get(leaf) else { return Ok(None) };
        let locations = offsets.page_locations();
        if i64::try_from(locations.len()) != Ok(group.num_rows()) {
            return Ok(None);
        }
        for location in locations {
            let offset = u64::try_from(location.offset).map_err(|_| "a page at a negative place")?;
            let length = usize::try_from(location.compressed_page_size).map_err(|_| "a page of a negative size")?;
            if offset.saturating_add(length as u64) > file_len {
                return Err("a page lies behind the end of the file: it is truncated".to_owned());
            }
            pages.push(PagePlace { offset, length });
        }
    }
    Ok(Some(pages))
}

fn narrow_column(column: &NamedColumn, narrow: Option<&RecordBatch>) -> Result<ArrayRef, String> {
    let missing = || format!("column `{}` is missing", column.name);
    let array = narrow.and_then(|batch| batch.column_by_name(&column.name)).ok_or_else(missing)?;
    match &column.column_type {
        ColumnType::Tensor(tensor) if tensor.fixed_shape().is_none() => {
            let children = array.as_struct_opt().ok_or_else(missing)?;
            let data = children.column_by_name("data").ok_or_else(missing)?;
            let data = arrow::compute::cast(data, &DataType::BinaryView).map_err(|error| error.to_string())?;
            let data = data.as_binary_view_opt().ok_or_else(missing)?.clone();
            tensor_array(tensor, data, shapes(column, narrow)?)
        }
        other => arrow::compute::cast(array, &other.arrow()).map_err(|error| error.to_string()),
    }
}

/// The extents of a ragged tensor column, row after row.
fn shapes(column: &NamedColumn, narrow: Option<&RecordBatch>) -> Result<Vec<i32>, String> {
    let missing = || format!("column `{}` has no shapes", column.name);
    let array = narrow.and_then(|batch| batch.column_by_name(&column.name)).ok_or_else(missing)?;
    let children: &StructArray = array.as_struct_opt().ok_or_else(missing)?;
    let list: &FixedSizeListArray =
        children.column_by_name("shape").and_then(|shape| shape.as_fixed_size_list_opt()).ok_or_else(missing)?;
    let rank = usize::try_from(list.value_length()).map_err(|error| error.to_string())?;
    let values: &Int32Array = list.values().as_primitive_opt::<Int32Type>().ok_or_else(missing)?;
    let from = list.offset() * rank;
    values.values().get(from..from + list.len() * rank).map(<[i32]>::to_vec).ok_or_else(missing)
}
