//! JSON lines, read strictly: the library's decoder makes whole numbers of fractions and numbers of text without a word.

use std::io::{BufRead, Cursor};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};

/// Rows of a batch.
const BATCH_ROWS: usize = 1024;

/// The objects of a file, in batches, with those that don't fit the schema and why.
pub struct JsonLines<R> {
    reader: R,
    schema: SchemaRef,
}

/// A batch; rows that couldn't be read are null in it.
pub type Lines = (RecordBatch, Vec<(usize, String)>);

impl<R: BufRead> JsonLines<R> {
    /// Reads objects with those fields; others in them are passed over.
    pub const fn new(reader: R, schema: SchemaRef) -> Self {
        Self { reader, schema }
    }

    fn batch(&mut self) -> Result<Option<Lines>, String> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        while lines.len() < BATCH_ROWS {
            let mut line = Vec::new();
            let count = self.reader.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
            if count == 0 {
                break;
            }
            if !line.trim_ascii().is_empty() {
                lines.push(line);
            }
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let whole = lines.concat();
        if let Ok(batch) = self.decode(&whole)
            && batch.num_rows() == lines.len()
        {
            return Ok(Some((batch, Vec::new())));
        }
        // Which lines it is, each says for itself.
        let mut bad = Vec::new();
        let mut parts = Vec::with_capacity(lines.len());
        for (row, line) in lines.iter().enumerate() {
            match self.decode(line) {
                Ok(batch) if batch.num_rows() == 1 => parts.push(batch),
                outcome => {
                    let reason = outcome.err().unwrap_or_else(|| "it isn't one JSON object".to_owned());
                    bad.push((row, reason));
                    parts.push(self.nulls()?);
                }
            }
        }
        let batch = arrow::compute::concat_batches(&self.schema, &parts).map_err(|error| error.to_string())?;
        Ok(Some((batch, bad)))
    }

    fn nulls(&self) -> Result<RecordBatch, String> {
        let columns: Vec<ArrayRef> =
            self.schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(|e| e.to_string())
    }

    fn decode(&self, bytes: &[u8]) -> Result<RecordBatch, String> {
        let (found, _) =
            arrow::json::reader::infer_json_schema(Cursor::new(bytes), None).map_err(|error| error.to_string())?;
        for field in self.schema.fields() {
            let Ok(other) = found.field_with_name(field.name()) else { continue };
            if !fits(other.data_type(), field.data_type()) {
                let (name, found, wanted) = (field.name(), other.data_type(), field.data_type());
                return Err(format!("its `{name}` is {found}, where the first records have {wanted}"));
            }
        }
        let reader = arrow::json::ReaderBuilder::new(Arc::clone(&self.schema))
            .with_batch_size(BATCH_ROWS)
            .build(Cursor::new(bytes))
            .map_err(|error| error.to_string())?;
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        arrow::compute::concat_batches(&self.schema, &batches).map_err(|error| error.to_string())
    }
}

/// Whether values of one type are values of the other, none of them changed.
fn fits(found: &DataType, wanted: &DataType) -> bool {
    match (found, wanted) {
        (DataType::Null, _) | (DataType::Int64, DataType::Float64) => true,
        (DataType::List(found), DataType::List(wanted)) => fits(found.data_type(), wanted.data_type()),
        (found, wanted) => found == wanted,
    }
}

impl<R: BufRead> Iterator for JsonLines<R> {
    type Item = Result<Lines, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}
