//! What ops that need all rows at once say of themselves; the engine carries it out.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, StringArray};

use crate::types::batch::tensor_array;
use crate::types::{ColumnType, DType};

/// Which rows a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Rows that have a partner.
    Inner,
    /// All rows of the left side; where there is no partner, its columns have their types' empty values.
    Left,
}

/// Something that is done to whole relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relational {
    /// Rows of two relations whose values are equal in pairs of columns: the first inputs are the left side's, then as
    /// many of the right side's.
    Join(JoinKind),
    /// The rows of one relation after those of another.
    Union,
    /// A query over the table `input`.
    Sql(String),
    /// The first of all rows whose inputs are equal.
    Distinct,
}

/// One value of that type that stands for nothing: no text, no bytes, 0, a tensor of zeros or without elements.
///
/// # Errors
/// When such a tensor can't be made.
pub fn empty_value(column_type: &ColumnType) -> Result<ArrayRef, String> {
    Ok(match column_type {
        ColumnType::Text => Arc::new(StringArray::from(vec![""])),
        ColumnType::Bytes => Arc::new(BinaryViewArray::from(vec![b"".as_slice()])),
        ColumnType::Scalar(dtype) => zero(*dtype)?,
        ColumnType::Tensor(tensor) => {
            let zeros = vec![0_u8; tensor.row_bytes().unwrap_or(0)];
            let shape = tensor.shape.iter().map(|dim| dim.fixed().map_or(0, |n| i32::try_from(n).unwrap_or(0)));
            tensor_array(tensor, BinaryViewArray::from(vec![zeros.as_slice()]), shape.collect())?
        }
    })
}

fn zero(dtype: DType) -> Result<ArrayRef, String> {
    let one = arrow::array::Int64Array::from(vec![0_i64]);
    let zero = arrow::compute::cast(&one, &dtype.arrow()).map_err(|error| error.to_string())?;
    Ok(zero)
}
