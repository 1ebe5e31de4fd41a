//! Table files: CSV with a header, JSON lines, Parquet, Arrow. Rows come out in batches, in the order of the file.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::json_lines::{JsonLines, Lines};
use super::shard::File as ShardFile;
use crate::diag::{Error, Result};
use crate::types::canonical::from_other;
use crate::types::{ColumnType, DType, Dim, Fingerprint, NamedColumn, TensorType};
use crate::world::fence::fenced;
use crate::world::{LocalFile, files};

/// How a table file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values; the first line names the columns.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

impl TableFormat {
    /// The keys of a source that name one.
    pub const WORDS: &'static [&'static str] = &["csv", "jsonl", "parquet", "arrow"];

    /// The format of that key.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "csv" => Self::Csv,
            "jsonl" => Self::Jsonl,
            "parquet" => Self::Parquet,
            "arrow" => Self::Arrow,
            _ => return None,
        })
    }
}

/// Records of text files that are looked at to find the types of their columns.
const INFERRED_RECORDS: usize = 1000;
/// Rows of a batch.
const BATCH_ROWS: usize = 1024;

/// The columns of a table file whose types a pipeline can hold: text, bytes, numbers, and lists of numbers, which are
/// tensors. Truth values are u8, 0 or 1.
///
/// # Errors
/// When the file can't be read.
pub fn table_columns(format: TableFormat, path: &Path) -> Result<TableColumns> {
    let schema = schema(format, path)?;
    let (mut columns, mut left_out): TableColumns = (Vec::new(), Vec::new());
    for field in schema.fields() {
        let name = field.name().clone();
        if columns.iter().any(|column| column.name == name) {
            return Err(unreadable(path, format!("it has two columns called `{name}`")));
        }
        match field_type(field) {
            Some(column_type) => columns.push(NamedColumn { name, column_type }),
            None => left_out.push((name, field.data_type().to_string())),
        }
    }
    Ok((columns, left_out))
}

/// The columns of a table, and those of types that a pipeline can't hold, with their types.
pub type TableColumns = (Vec<NamedColumn>, Vec<(String, String)>);

fn unreadable(path: &Path, message: impl std::fmt::Display) -> Error {
    Error::Dataset {
        message: format!("{}: {message}", path.display()),
        help: Some("every file of the source has to be such a table".to_owned()),
    }
}

fn schema(format: TableFormat, path: &Path) -> Result<SchemaRef> {
    let failed = |message: String| unreadable(path, message);
    match format {
        TableFormat::Csv => {
            let reader = BufReader::new(files::open(path)?);
            let format = arrow::csv::reader::Format::default().with_header(true);
            let (schema, _) = format.infer_schema(reader, Some(INFERRED_RECORDS)).map_err(|e| failed(e.to_string()))?;
            Ok(Arc::new(schema))
        }
        TableFormat::Jsonl => {
            let reader = BufReader::new(files::open(path)?);
            let (schema, _) = arrow::json::reader::infer_json_schema(reader, Some(INFERRED_RECORDS))
                .map_err(|error| failed(error.to_string()))?;
            Ok(Arc::new(schema))
        }
        TableFormat::Parquet => {
            let file = ShardFile(Arc::new(LocalFile::open(path)?));
            fenced(|| ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string()))
                .map(|builder| Arc::clone(builder.schema()))
                .map_err(failed)
        }
        TableFormat::Arrow => {
            let file = files::open(path)?;
            fenced(|| arrow::ipc::reader::FileReader::try_new(file, None).map_err(|error| error.to_string()))
                .map(|reader| reader.schema())
                .map_err(failed)
        }
    }
}

/// The type that a field has as a column.
fn field_type(field: &Field) -> Option<ColumnType> {
    let list = |item: &Field, dim: Dim| {
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.arrow() == *item.data_type())?;
        Some(ColumnType::Tensor(TensorType { dtype, shape: vec![dim] }))
    };
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => list(item, Dim::ANY),
        DataType::FixedSizeList(item, size) => list(item, Dim::Fixed(usize::try_from(*size).ok()?)),
        // A column without any value, as a table without rows has, may hold anything.
        DataType::Null => Some(ColumnType::Text),
        other => ColumnType::from_field(field).or_else(|| wider(other)),
    }
}

/// Numbers of widths that no column has, in the next wider one.
fn wider(data_type: &DataType) -> Option<ColumnType> {
    Some(ColumnType::Scalar(match data_type {
        DataType::Boolean => DType::U8,
        DataType::Int8 | DataType::Int16 => DType::I32,
        DataType::UInt32 | DataType::UInt64 => DType::I64,
        DataType::Float16 => DType::F32,
        _ => return None,
    }))
}

/// A table file that is being read.
pub struct TableReader {
    batches: Box<dyn Iterator<Item = std::result::Result<Lines, String>> + Send>,
    columns: Vec<NamedColumn>,
    digest: Arc<Mutex<blake3::Hasher>>,
    name: String,
}

/// Rows of a table file.
pub struct TableRows {
    /// The wanted columns.
    pub columns: Vec<ArrayRef>,
    /// Number of rows.
    pub rows: usize,
    /// Rows that can't be had, and why, in words.
    pub missing: Vec<(usize, String)>,
}

impl TableReader {
    /// Opens a table file; only those columns are decoded.
    ///
    /// # Errors
    /// When it can't be read, or doesn't have the columns with their types.
    pub fn open(format: TableFormat, path: &Path, columns: &[NamedColumn]) -> Result<Self> {
        let whole = schema(format, path)?;
        let mut fields: Vec<Arc<Field>> = whole.fields().iter().cloned().collect();
        for column in columns {
            let place = fields.iter().position(|field| *field.name() == column.name);
            let Some(place) = place else {
                return Err(unreadable(
                    path,
                    format!("it has no column `{}`, and the first file has one", column.name),
                ));
            };
            let found = field_type(&fields[place]);
            let is_text = matches!(format, TableFormat::Csv | TableFormat::Jsonl);
            if is_text && reads_as(fields[place].data_type(), &column.column_type) {
                fields[place] = Arc::new(Field::new(&column.name, text_type(&column.column_type), true));
            } else if found.as_ref() != Some(&column.column_type) {
                let found = found.map_or_else(|| fields[place].data_type().to_string(), |found| found.to_string());
                let wanted = &column.column_type;
                let message = format!("its column `{}` is {found}, where the first file has {wanted}", column.name);
                return Err(unreadable(path, message));
            }
        }
        let whole = Arc::new(Schema::new(fields));
        let wanted = |name: &str| columns.iter().any(|column| column.name == name);
        let places: Vec<usize> = (0..whole.fields().len()).filter(|at| wanted(whole.field(*at).name())).collect();
        let projected = Arc::new(whole.project(&places).unwrap_or_else(|_| Schema::empty()));
        let digest = Arc::new(Mutex::new(blake3::Hasher::new()));
        let failed = |message: String| unreadable(path, message);
        let digesting = |file: std::fs::File| {
            BufReader::with_capacity(1 << 20, DigestingReader { inner: file, hasher: Arc::clone(&digest) })
        };
        let batches: Box<dyn Iterator<Item = std::result::Result<Lines, String>> + Send> = match format {
            TableFormat::Csv => {
                let reader = arrow::csv::ReaderBuilder::new(whole)
                    .with_format(arrow::csv::reader::Format::default().with_header(true))
                    .with_projection(places)
                    .with_batch_size(BATCH_ROWS)
                    .build_buffered(digesting(files::open(path)?))
                    .map_err(|error| failed(error.to_string()))?;
                Box::new(reader.map(|batch| whole_batch(batch.map_err(|error| error.to_string()))))
            }
            TableFormat::Jsonl => Box::new(JsonLines::new(digesting(files::open(path)?), projected)),
            TableFormat::Parquet => {
                std::io::copy(&mut digesting(files::open(path)?), &mut std::io::sink())
                    .map_err(|error| Error::io("reading", path, error))?;
                let file = ShardFile(Arc::new(LocalFile::open(path)?));
                let reader = fenced(|| {
                    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
                    let mask = ProjectionMask::roots(builder.parquet_schema(), places);
                    builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|e| e.to_string())
                })
                .map_err(failed)?;
                Box::new(Fenced(reader.map(|batch| batch.map_err(|error| error.to_string()))).map(whole_batch))
            }
            TableFormat::Arrow => {
                std::io::copy(&mut digesting(files::open(path)?), &mut std::io::sink())
                    .map_err(|error| Error::io("reading", path, error))?;
                let file = files::open(path)?;
                let reader = fenced(|| {
                    arrow::ipc::reader::FileReader::try_new(file, Some(places)).map_err(|error| error.to_string())
                })
                .map_err(failed)?;
                Box::new(Fenced(reader.map(|batch| batch.map_err(|error| error.to_string()))).map(whole_batch))
            }
        };
        Ok(Self { batches, columns: columns.to_vec(), digest, name: path.display().to_string() })
    }

    /// The next rows; none after the last.
    ///
    /// # Errors
    /// When the file is damaged from here on.
    pub fn next_rows(&mut self) -> Result<Option<TableRows>> {
        let failed = |message: String| Error::Dataset {
            message: format!("{}: {message}", self.name),
            help: Some("the file is damaged, or a value isn't of the type that the first records have".to_owned()),
        };
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let (batch, mut missing) = batch.map_err(failed)?;
        let columns = self
            .columns
            .iter()
            .map(|column| {
                let array = batch.column_by_name(&column.name).ok_or("a column is missing")?;
                missing
                    .extend((0..array.len()).filter(|row| array.is_null(*row)).map(|row| (row, column.name.clone())));
                let named = |error: String| format!("its column `{}`: {error}", column.name);
                let (made, unfit) = to_column(array, &column.column_type).map_err(named)?;
                for row in unfit {
                    if missing.iter().all(|(other, _)| *other != row) {
                        missing.push((row, format!("its `{}` doesn't fit {}", column.name, column.column_type)));
                    }
                }
                Ok(made)
            })
            .collect::<std::result::Result<_, String>>()
            .map_err(failed)?;
        missing.sort_by_key(|(row, _)| *row);
        Ok(Some(TableRows { columns, rows: batch.num_rows(), missing }))
    }

    /// The digest of the file's content, after its last row was read.
    #[must_use]
    pub fn digest(&self) -> Fingerprint {
        Fingerprint::of_hash(&self.digest.lock().unwrap_or_else(PoisonError::into_inner).finalize())
    }
}

/// A batch without bad rows.
fn whole_batch(batch: std::result::Result<RecordBatch, String>) -> std::result::Result<Lines, String> {
    batch.map(|batch| (batch, Vec::new()))
}

/// Whether text in which values of one type were found can be read as another: a column without values as any, whole
/// numbers as numbers.
fn reads_as(found: &DataType, wanted: &ColumnType) -> bool {
    match (found, wanted) {
        (DataType::Null, _) => true,
        (DataType::Int64, ColumnType::Scalar(dtype)) => !dtype.is_whole(),
        _ => false,
    }
}

/// The Arrow type as which a column is read from text.
fn text_type(column_type: &ColumnType) -> DataType {
    match column_type {
        ColumnType::Tensor(tensor) => DataType::List(Arc::new(Field::new("item", tensor.dtype.arrow(), true))),
        other => other.arrow(),
    }
}

/// An iterator of a library that panics on damaged files.
struct Fenced<I>(I);

impl<I: Iterator<Item = std::result::Result<RecordBatch, String>>> Iterator for Fenced<I> {
    type Item = std::result::Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        fenced(|| Ok(self.0.next())).unwrap_or_else(|message| Some(Err(message)))
    }
}

struct DigestingReader<R> {
    inner: R,
    hasher: Arc<Mutex<blake3::Hasher>>,
}

impl<R: Read> Read for DigestingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(into)?;
        self.hasher.lock().unwrap_or_else(PoisonError::into_inner).update(&into[..count]);
        Ok(count)
    }
}

/// An array of a table as a column, and the rows whose values don't fit its type; a missing value becomes any value.
fn to_column(array: &ArrayRef, column_type: &ColumnType) -> std::result::Result<(ArrayRef, Vec<usize>), String> {
    let ColumnType::Tensor(tensor) = column_type else {
        let cast = arrow::compute::cast(array, &column_type.arrow()).map_err(|error| error.to_string())?;
        let unfit = (0..array.len()).filter(|row| cast.is_null(*row) && !array.is_null(*row)).collect();
        let whole = if cast.null_count() == 0 { cast } else { filled(&cast, column_type)? };
        return Ok((whole, unfit));
    };
    // A missing list is any list: its row is left out.
    let whole = if array.null_count() == 0 { Arc::clone(array) } else { without_null_lists(array, tensor)? };
    from_other(&whole, column_type).map(|column| (column, Vec::new()))
}

fn without_null_lists(array: &ArrayRef, tensor: &TensorType) -> std::result::Result<ArrayRef, String> {
    let valid = arrow::compute::is_not_null(array).map_err(|error| error.to_string())?;
    let zeros = vec![0_i64; tensor.fixed_shape().map_or(0, |shape| shape.iter().product())];
    let zeros = arrow::compute::cast(&arrow::array::Int64Array::from(zeros), &tensor.dtype.arrow());
    let zeros = zeros.map_err(|error| error.to_string())?;
    let list = arrow::array::ListArray::try_new(
        Arc::new(Field::new("item", tensor.dtype.arrow(), true)),
        arrow::buffer::OffsetBuffer::from_lengths([zeros.len()]),
        zeros,
        None,
    );
    let list: ArrayRef = Arc::new(list.map_err(|error| error.to_string())?);
    let any = arrow::compute::cast(&list, array.data_type()).map_err(|error| error.to_string())?;
    arrow::compute::kernels::zip::zip(&valid, &array.as_ref(), &arrow::array::Scalar::new(any))
        .map_err(|error| error.to_string())
}

fn filled(array: &ArrayRef, column_type: &ColumnType) -> std::result::Result<ArrayRef, String> {
    let valid = arrow::compute::is_not_null(array).map_err(|error| error.to_string())?;
    let any: ArrayRef = match column_type {
        ColumnType::Text => Arc::new(arrow::array::StringArray::from(vec![""])),
        ColumnType::Bytes => Arc::new(arrow::array::BinaryViewArray::from(vec![b"".as_slice()])),
        _ => {
            let zero: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![0]));
            arrow::compute::cast(&zero, array.data_type()).map_err(|error| error.to_string())?
        }
    };
    arrow::compute::kernels::zip::zip(&valid, &array.as_ref(), &arrow::array::Scalar::new(any))
        .map_err(|error| error.to_string())
}
