//! Ops on text.

mod bytes;
mod split;

pub use bytes::Bytes;
pub use split::Split;

use super::op::BindError;
use crate::types::ColumnType;

/// That an op's only input is text.
fn text_input(op: &str, inputs: &[ColumnType]) -> Result<(), BindError> {
    if inputs == [ColumnType::Text] {
        return Ok(());
    }
    let found = inputs.first().map_or("nothing".to_owned(), ToString::to_string);
    Err(BindError::input(format!("`{op}` reads text, but got {found}")))
}
