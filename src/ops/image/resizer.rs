//! Resampling.

/// A resampling filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// A triangle.
    Bilinear,
    /// Keys' cubic with a = -0.5.
    Bicubic,
    /// Lanczos with three lobes.
    Lanczos,
}

/// A resizer with its scratch memory.
pub struct ImageResizer {}

impl ImageResizer {
    pub fn new() -> Self {
        Self {}
    }

    pub fn resize(
        &mut self,
        _from: &[u8],
        _from_size: (usize, usize),
        _channels: usize,
        _to: &mut [u8],
        _to_size: (usize, usize),
        filter: Filter,
    ) -> Result<(), String> {
        Err(format!("{filter:?}"))
    }
}

pub fn short_side_size(height: usize, width: usize, short: usize) -> (usize, usize) {
    if height <= width { (short, short * width / height.max(1)) } else { (short * height / width.max(1), short) }
}
