//! Resizes interleaved 8-bit pictures with antialiasing, as Pillow does.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

/// How the pixels of the result are made from those of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The source pixel under the centre of the result's pixel. No antialiasing.
    Nearest,
    /// A triangle of one pixel to each side, widened by the reduction.
    Bilinear,
    /// Catmull-Rom (a = -0.5), two pixels to each side, widened by the reduction.
    Bicubic,
    /// Lanczos with three pixels to each side, widened by the reduction.
    Lanczos,
}

/// A resizer for one thread, which keeps its buffers between pictures.
///
/// The result is the same on every x86-64 processor: the coefficients are
/// rounded to integers of at most 15 bits, and all sums are exact integer sums,
/// with or without SSE4.1 and AVX2. Against Pillow, whose coefficients have 22
/// bits, a value differs by at most 1 for [`Filter::Bilinear`], and by at most 1
/// in all but a few of 100 000 values (then by 2) for [`Filter::Bicubic`] and
/// [`Filter::Lanczos`]; [`Filter::Nearest`] is equal.
#[derive(Debug, Default)]
pub struct ImageResizer {
    resizer: Resizer,
    /// The picture after its width has been changed: `source height * width`.
    narrowed: Vec<u8>,
    /// The source column of each column of the result, for [`Filter::Nearest`].
    columns: Vec<usize>,
}

impl ImageResizer {
    /// A resizer without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Resizes `src` into `dst`, both interleaved rows of `channels` (1..=4)
    /// bytes a pixel, with sizes given as `(height, width)` in pixels.
    ///
    /// Channels are independent of each other: alpha is a value like any other
    /// and colours aren't weighted with it.
    ///
    /// When a picture shrinks, the filter's reach grows with the reduction. The
    /// two sides are changed one after the other, with rounding to 8 bits in
    /// between; a pass that would change nothing is left out. The order is that
    /// of Pillow 13: the width first, unless the height loses more than twice as
    /// many pixels as the width.
    ///
    /// # Errors
    /// If a size is zero or too large, `channels` isn't 1..=4, or a slice
    /// isn't `height * width * channels` bytes.
    pub fn resize(
        &mut self,
        src: &[u8],
        src_hw: (usize, usize),
        channels: usize,
        dst: &mut [u8],
        dst_hw: (usize, usize),
        filter: Filter,
    ) -> Result<(), String> {
        check("source", src.len(), src_hw, channels)?;
        check("result", dst.len(), dst_hw, channels)?;
        let filter = match filter {
            Filter::Nearest => {
                self.nearest(src, src_hw, channels, dst, dst_hw);
                return Ok(());
            }
            Filter::Bilinear => FilterType::Bilinear,
            Filter::Bicubic => FilterType::CatmullRom,
            Filter::Lanczos => FilterType::Lanczos3,
        };
        let (src_height, src_width) = src_hw;
        let (dst_height, dst_width) = dst_hw;
        // The library changes the height first when both sides change.
        let one_call = src_width == dst_width || src_height == dst_height;
        if one_call || height_first(src_hw, dst_hw) {
            return pass(&mut self.resizer, src, src_hw, channels, dst, dst_hw, filter);
        }
        let between_hw = (src_height, dst_width);
        self.narrowed.resize(src_height * dst_width * channels, 0);
        pass(&mut self.resizer, src, src_hw, channels, &mut self.narrowed, between_hw, filter)?;
        pass(&mut self.resizer, &self.narrowed, between_hw, channels, dst, dst_hw, filter)
    }

    /// Takes for each pixel the source pixel under its centre.
    fn nearest(
        &mut self,
        src: &[u8],
        (src_height, src_width): (usize, usize),
        channels: usize,
        dst: &mut [u8],
        (dst_height, dst_width): (usize, usize),
    ) {
        self.columns.clear();
        self.columns.extend(centres(src_width, dst_width).map(|x| x * channels));
        let lines = centres(src_height, dst_height);
        for (row, line) in dst.chunks_exact_mut(dst_width * channels).zip(lines) {
            let start = line * src_width * channels;
            let line = &src[start..start + src_width * channels];
            for (pixel, column) in row.chunks_exact_mut(channels).zip(&self.columns) {
                pixel.copy_from_slice(&line[*column..*column + channels]);
            }
        }
    }
}

/// Whether Pillow changes the height before the width. The order shows: clipping
/// between the passes differs by tens of levels where Bicubic or Lanczos overshoot.
fn height_first((src_height, src_width): (usize, usize), dst_hw: (usize, usize)) -> bool {
    let (dst_height, dst_width) = dst_hw;
    // Written as a sum, since either side may grow.
    dst_height < src_height && 2 * src_width + dst_height < src_height + 2 * dst_width
}

/// Convolves along each axis whose size changes, the height before the width.
fn pass(
    resizer: &mut Resizer,
    src: &[u8],
    src_hw: (usize, usize),
    channels: usize,
    dst: &mut [u8],
    dst_hw: (usize, usize),
    filter: FilterType,
) -> Result<(), String> {
    let pixels = match channels {
        1 => PixelType::U8,
        2 => PixelType::U8x2,
        3 => PixelType::U8x3,
        _ => PixelType::U8x4,
    };
    let (src_height, src_width) = (side(src_hw.0)?, side(src_hw.1)?);
    let (dst_height, dst_width) = (side(dst_hw.0)?, side(dst_hw.1)?);
    let src = ImageRef::new(src_width, src_height, src, pixels).map_err(|error| format!("cannot resize: {error}"))?;
    let mut dst =
        Image::from_slice_u8(dst_width, dst_height, dst, pixels).map_err(|error| format!("cannot resize: {error}"))?;
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter)).use_alpha(false);
    resizer.resize(&src, &mut dst, &options).map_err(|error| format!("cannot resize: {error}"))
}

/// The size that makes the shorter side `short` pixels and keeps the aspect:
/// `(height, width)`, the longer side rounded down, as torchvision's
/// `Resize(int)` does. A picture without pixels keeps its size.
#[must_use]
pub fn short_side_size(h: usize, w: usize, short: usize) -> (usize, usize) {
    if h == 0 || w == 0 {
        return (h, w);
    }
    let scaled = |long: usize, from: usize| {
        let long = short as u128 * long as u128 / from as u128;
        usize::try_from(long).unwrap_or(usize::MAX)
    };
    if w <= h { (scaled(h, w), short) } else { (short, scaled(w, h)) }
}

/// Source positions under the centres of `to` equal parts of `from` pixels.
fn centres(from: usize, to: usize) -> impl Iterator<Item = usize> {
    let step = from as f64 / to as f64;
    // Summed up rather than multiplied: where a centre falls on the border of
    // two pixels, rounding decides, and Pillow sums.
    let mut centre = step * 0.5;
    (0..to).map(move |_| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positions are positive and rounded down on purpose"
        )]
        let position = (centre as usize).min(from - 1);
        centre += step;
        position
    })
}

/// A side as the convolution takes it.
fn side(pixels: usize) -> Result<u32, String> {
    u32::try_from(pixels).map_err(|_| format!("a side of {pixels} pixels is too large to resize"))
}

/// Checks that `len` bytes are a picture of this size.
fn check(what: &str, len: usize, (height, width): (usize, usize), channels: usize) -> Result<(), String> {
    if !(1..=4).contains(&channels) {
        return Err(format!("cannot resize {channels} channels, only 1 to 4"));
    }
    if height == 0 || width == 0 {
        return Err(format!("cannot resize: the {what} is empty ({width}x{height} pixels)"));
    }
    let expected = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
    if expected != Some(len) {
        return Err(format!("cannot resize: the {what} has {len} bytes, not {height} x {width} x {channels}"));
    }
    Ok(())
}
