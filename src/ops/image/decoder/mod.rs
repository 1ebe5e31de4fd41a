//! Decoding of pictures, told apart by their content, to RGB u8.

mod jpeg;
mod orientation;
mod other;
mod png;

use image::metadata::Orientation;

use crate::ops::kernel::RowOut;
use crate::types::{AlignedBuf, DType};

/// What a decoder may do.
#[derive(Debug, Clone, Copy)]
pub struct DecodeOptions {
    /// Whether the picture is turned upright as its EXIF orientation says.
    pub apply_orientation: bool,
    /// The most pixels that a picture may claim.
    pub max_pixels: u64,
}

/// A decoder with the scratch memory of one thread.
pub struct ImageDecoder {
    options: DecodeOptions,
    /// Pixels before they are turned or brought to three channels.
    pixels: AlignedBuf,
    /// RGB before it is turned.
    upright: AlignedBuf,
}

/// The formats that are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jpeg,
    Png,
    WebP,
    Gif,
    Bmp,
    Tiff,
}

impl Format {
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xD8, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            [b'B', b'M', ..] => Some(Self::Bmp),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Self::Tiff),
            _ => None,
        }
    }
}

/// Where a decoder puts its pixels, once it knows how many there are.
struct Canvas<'a, 'b> {
    options: DecodeOptions,
    out: &'a mut RowOut<'b>,
    pixels: &'a mut AlignedBuf,
    upright: &'a mut AlignedBuf,
}

impl ImageDecoder {
    /// A decoder with those options.
    pub const fn new(options: DecodeOptions) -> Self {
        Self { options, pixels: AlignedBuf::new(), upright: AlignedBuf::new() }
    }

    /// Decodes a picture to u8 `[height, width, 3]`.
    ///
    /// # Errors
    /// Why it isn't a picture, is damaged, or is too large.
    pub fn decode_rgb(&mut self, encoded: &[u8], out: &mut RowOut<'_>) -> Result<(), String> {
        if encoded.is_empty() {
            return Err("the file is empty (0 bytes)".to_owned());
        }
        let Some(format) = Format::of(encoded) else {
            let start: Vec<String> = encoded.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            let start = start.join(" ");
            return Err(format!("not a JPEG, PNG, WebP, GIF, BMP or TIFF picture: it starts with the bytes {start}"));
        };
        let canvas = Canvas { options: self.options, out, pixels: &mut self.pixels, upright: &mut self.upright };
        match format {
            Format::Jpeg => jpeg::decode(encoded, canvas),
            Format::Png => png::decode(encoded, canvas),
            Format::WebP => other::decode_webp(encoded, canvas),
            Format::Gif => other::decode_gif(encoded, canvas),
            Format::Bmp => other::decode_bmp(encoded, canvas),
            Format::Tiff => other::decode_tiff(encoded, canvas),
        }
    }
}

impl Canvas<'_, '_> {
    /// Refuses a picture that claims too much, before memory is taken for it.
    fn check_size(&self, height: usize, width: usize) -> Result<(), String> {
        let pixels = (height as u64).saturating_mul(width as u64);
        if pixels > self.options.max_pixels {
            return Err(format!(
                "it claims {width}x{height} pixels (width x height), {pixels} in all, more than the limit `max_pixels` of {}",
                self.options.max_pixels
            ));
        }
        if pixels == 0 {
            return Err(format!("it has no pixels: {width}x{height} (width x height)"));
        }
        Ok(())
    }

    /// Takes RGB pixels from a decoder, turning them upright if need be.
    fn fill(
        self,
        height: usize,
        width: usize,
        orientation: Orientation,
        decode: impl FnOnce(&mut [u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.options.apply_orientation || orientation == Orientation::NoTransforms {
            return decode(self.out.allocate(DType::U8, &[height, width, 3])?);
        }
        decode(self.upright.resize(height * width * 3))?;
        orientation::turn(self.upright.as_slice(), height, width, orientation, self.out)
    }
}

/// Brings 8-bit pixels of 1 to 4 channels to RGB: grey is repeated, alpha is dropped.
fn to_rgb(pixels: &[u8], channels: usize, rgb: &mut [u8]) -> Result<(), String> {
    match channels {
        1 => rgb.chunks_exact_mut(3).zip(pixels).for_each(|(rgb, grey)| rgb.fill(*grey)),
        2 => rgb.chunks_exact_mut(3).zip(pixels.chunks_exact(2)).for_each(|(rgb, pixel)| rgb.fill(pixel[0])),
        3 => match pixels.get(..rgb.len()) {
            Some(pixels) => rgb.copy_from_slice(pixels),
            None => return Err("it has fewer pixels than it claims".to_owned()),
        },
        4 => {
            rgb.chunks_exact_mut(3)
                .zip(pixels.chunks_exact(4))
                .for_each(|(rgb, pixel)| rgb.copy_from_slice(&pixel[..3]));
        }
        other => return Err(format!("pixels of {other} channels are not supported")),
    }
    Ok(())
}
