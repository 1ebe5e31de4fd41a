//! Ops on tensors of any shape.

mod cast;
mod length;
mod pack;
mod windows;

pub use cast::Cast;
pub use length::Length;
pub use pack::Pack;
pub use windows::Windows;

use super::op::BindError;
use crate::types::{ColumnType, TensorType};

/// The type of an op's only input, which is a tensor.
fn tensor_input<'t>(op: &str, inputs: &'t [ColumnType]) -> Result<&'t TensorType, BindError> {
    match inputs {
        [ColumnType::Tensor(tensor)] => Ok(tensor),
        _ => {
            let found = inputs.first().map_or("nothing".to_owned(), ToString::to_string);
            Err(BindError::input(format!("`{op}` reads a tensor, but got {found}")))
        }
    }
}
