//! Resampling, by `fast_image_resize`, in the order in which Pillow does it.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::types::AlignedBuf;

/// A resampling filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// A triangle, of support 1.
    Bilinear,
    /// Keys' cubic with a = -0.5, of support 2.
    Bicubic,
    /// A sinc windowed by a sinc, of support 3.
    Lanczos,
}

/// A resizer with the scratch memory of one thread.
pub struct ImageResizer {
    resizer: Resizer,
    /// The picture after its rows were resampled.
    between: AlignedBuf,
}

impl ImageResizer {
    /// A resizer.
    pub fn new() -> Self {
        Self { resizer: Resizer::new(), between: AlignedBuf::new() }
    }

    /// Resamples `from`, interleaved u8 of that height and width, into `to`.
    ///
    /// Rows first, then columns, with rounding to u8 in between: one call of the library would do it the other way
    /// round, which changes values by up to 26. Its arithmetic on u8 is in whole numbers on every CPU.
    ///
    /// # Errors
    /// When the channels aren't 1 to 4 or a side is 0 or too long.
    pub fn resize(
        &mut self,
        from: &[u8],
        (from_height, from_width): (usize, usize),
        channels: usize,
        to: &mut [u8],
        (to_height, to_width): (usize, usize),
        filter: Filter,
    ) -> Result<(), String> {
        if (from_height, from_width) == (to_height, to_width) {
            to.copy_from_slice(from);
            return Ok(());
        }
        if filter == Filter::Nearest {
            nearest(from, (from_height, from_width), channels, to, (to_height, to_width));
            return Ok(());
        }
        let filter = match filter {
            Filter::Bicubic => FilterType::CatmullRom,
            Filter::Lanczos => FilterType::Lanczos3,
            Filter::Bilinear | Filter::Nearest => FilterType::Bilinear,
        };
        if from_width == to_width || from_height == to_height {
            return self.pass(from, (from_height, from_width), channels, to, (to_height, to_width), filter);
        }
        let mut between = std::mem::take(&mut self.between);
        let lines = between.resize(from_height * to_width * channels);
        let first = self.pass(from, (from_height, from_width), channels, lines, (from_height, to_width), filter);
        let second = first.and_then(|()| {
            self.pass(between.as_slice(), (from_height, to_width), channels, to, (to_height, to_width), filter)
        });
        self.between = between;
        second
    }

    fn pass(
        &mut self,
        from: &[u8],
        (from_height, from_width): (usize, usize),
        channels: usize,
        to: &mut [u8],
        (to_height, to_width): (usize, usize),
        filter: FilterType,
    ) -> Result<(), String> {
        let pixel = match channels {
            1 => PixelType::U8,
            2 => PixelType::U8x2,
            3 => PixelType::U8x3,
            4 => PixelType::U8x4,
            other => return Err(format!("a picture of {other} channels can't be resized")),
        };
        let side = |side: usize| u32::try_from(side).map_err(|_| format!("a side of {side} pixels is too long"));
        let source = ImageRef::new(side(from_width)?, side(from_height)?, from, pixel);
        let source = source.map_err(|error| error.to_string())?;
        let target = Image::from_slice_u8(side(to_width)?, side(to_height)?, to, pixel);
        let mut target = target.map_err(|error| error.to_string())?;
        // Channels are treated alike: an alpha channel isn't multiplied in.
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter)).use_alpha(false);
        self.resizer.resize(&source, &mut target, &options).map_err(|error| error.to_string())
    }
}

/// The pixel whose area holds the centre of the target pixel.
fn nearest(
    from: &[u8],
    (from_height, from_width): (usize, usize),
    channels: usize,
    to: &mut [u8],
    (to_height, to_width): (usize, usize),
) {
    let columns: Vec<usize> = (0..to_width).map(|x| (2 * x + 1) * from_width / (2 * to_width)).collect();
    for (y, line) in to.chunks_exact_mut((to_width * channels).max(1)).enumerate() {
        let source = &from[(2 * y + 1) * from_height / (2 * to_height) * from_width * channels..];
        for (pixel, x) in line.chunks_exact_mut(channels).zip(&columns) {
            pixel.copy_from_slice(&source[x * channels..(x + 1) * channels]);
        }
    }
}

/// The size at which the shorter side has that length and the proportions are kept, the longer side rounded down.
pub fn short_side_size(height: usize, width: usize, short: usize) -> (usize, usize) {
    if height <= width {
        (short, (short * width / height.max(1)).max(1))
    } else {
        ((short * height / width.max(1)).max(1), short)
    }
}
