//! Ops on images: u8 tensors `[height, width, channels]`, interleaved, top row first.

mod crop;
mod decode;
mod decoder;
mod flip;
mod jitter;
mod normalize;
mod resize;
mod resizer;
mod shape;
#[cfg(test)]
mod tests;

pub use crop::{CenterCrop, RandomCrop};
pub use decode::Decode;
pub use flip::RandomFlip;
pub use jitter::ColorJitter;
pub use normalize::Normalize;
pub use resize::Resize;
pub use shape::Shape;

use super::op::BindError;
use crate::types::{ColumnType, Dim, TensorType};

/// The tensor type of the only input, if it can be a picture: rank 3 with 1 to 4 channels.
fn image_input<'a>(op: &str, inputs: &'a [ColumnType]) -> Result<&'a TensorType, BindError> {
    let found = inputs.first().map_or("nothing".to_owned(), ToString::to_string);
    inputs
        .first()
        .and_then(ColumnType::tensor)
        .filter(|tensor| matches!(tensor.shape.as_slice(), [_, _, Dim::Fixed(1..=4)]))
        .ok_or_else(|| {
            BindError::input(format!("`{op}` reads an image, a tensor [height, width, channels], but got {found}"))
                .help("decode first: a step with `op = \"image.decode\"` makes one from `bytes`")
        })
}
