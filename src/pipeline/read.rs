//! Reading source files in the middle of a program.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray};
use bytes::Bytes;

use crate::format::FileSource;
use crate::ops::{ColumnKernel, KernelError, Made, RowFailure};
use crate::types::Fingerprint;
use crate::types::batch::binary_view_of_rows;

/// What the failures of reading are filed under.
const CHANGED: &str = "its content has changed since the data set was built: run `parbake build` again";

/// The content of files: reads paths, and maybe the digests that the content has to have.
pub struct FileReads(pub FileSource);

/// The digests of files: reads paths.
pub struct FileDigests(pub FileSource);

/// A left join has an empty path where there is no partner; what no file holds is empty too, as every value there.
fn content(files: &FileSource, path: &str) -> crate::diag::Result<Bytes> {
    if path.is_empty() { Ok(Bytes::new()) } else { files.read_path(path) }
}

fn paths(inputs: &[ArrayRef]) -> Result<&arrow::array::StringArray, String> {
    inputs.first().and_then(|input| input.as_string_opt::<i32>()).ok_or_else(|| "a path isn't text".to_owned())
}

impl ColumnKernel for FileReads {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let digests = inputs.get(1).map(|digests| digests.as_binary_view_opt().ok_or("a digest isn't bytes"));
        let digests: Option<&BinaryViewArray> = digests.transpose()?;
        let mut failures = Vec::new();
        let mut last: Option<(&str, Bytes)> = None;
        let mut contents = Vec::with_capacity(inputs.first().map_or(0, Array::len));
        for (row, path) in paths(inputs)?.iter().enumerate() {
            let path = path.unwrap_or_default();
            // Rows that an expansion or a join made of one file stand side by side.
            if let Some((_, content)) = last.as_ref().filter(|(before, _)| *before == path) {
                contents.push(content.clone());
                continue;
            }
            let content = match content(&self.0, path) {
                Ok(content) => {
                    let wanted = digests.map(|digests| digests.value(row));
                    if wanted.is_some_and(|wanted| Fingerprint::of_bytes(&content).0.as_slice() != wanted) {
                        failures.push(RowFailure { row, reason: CHANGED.to_owned() });
                    }
                    content
                }
                Err(error) => {
                    failures.push(RowFailure { row, reason: error.to_string() });
                    contents.push(Bytes::new());
                    continue;
                }
            };
            last = Some((path, content.clone()));
            contents.push(content);
        }
        let contents: ArrayRef = Arc::new(binary_view_of_rows(contents)?);
        Ok(Made { columns: vec![contents], failures })
    }
}

impl ColumnKernel for FileDigests {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let mut failures = Vec::new();
        let mut digests = Vec::new();
        for (row, path) in paths(inputs)?.iter().enumerate() {
            match content(&self.0, path.unwrap_or_default()) {
                Ok(content) => digests.push(Fingerprint::of_bytes(&content).0),
                Err(error) => {
                    failures.push(RowFailure { row, reason: error.to_string() });
                    digests.push([0; 16]);
                }
            }
        }
        let digests: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(digests));
        Ok(Made { columns: vec![digests], failures })
    }
}
