//! Decoding of pictures by content.

use crate::ops::kernel::RowOut;

/// What the decoder may do.
#[derive(Debug, Clone, Copy)]
pub struct DecodeOptions {
    /// Turn the picture upright.
    pub apply_orientation: bool,
    /// The most pixels.
    pub max_pixels: u64,
}

/// A decoder with its scratch memory.
pub struct ImageDecoder {
    options: DecodeOptions,
}

impl ImageDecoder {
    pub fn new(options: DecodeOptions) -> Self {
        Self { options }
    }

    pub fn decode_rgb(&mut self, encoded: &[u8], _out: &mut RowOut<'_>) -> Result<(), String> {
        Err(format!("{} {:?}", encoded.len(), self.options))
    }
}
