//! Decodes WebP, GIF, BMP and TIFF, and brings their layouts to RGB.

use std::io::{Cursor, ErrorKind};

use image::codecs::bmp::BmpDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::tiff::TiffDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageError, Limits};

use super::{Decoded, check_size, size_buffer};

/// Memory for a decoder besides the picture, in bytes.
const WORKING_MEMORY: u64 = 64 << 20;

/// Decodes a WebP to RGB in `out`; `pixels` is scratch space.
///
/// # Errors
/// If it is too large, cut short or corrupt.
pub(super) fn decode_webp(
    encoded: &[u8],
    max_pixels: u64,
    pixels: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    // The container says how long it is; a lossy picture cut in its last rows
    // would otherwise decode.
    if let Some(&[a, b, c, d]) = encoded.get(4..8) {
        let claimed = u64::from(u32::from_le_bytes([a, b, c, d])) + 8;
        if claimed > encoded.len() as u64 {
            return Err(format!("the WebP is truncated: it has {} of {claimed} bytes", encoded.len()));
        }
    }
    let decoder = WebPDecoder::new(Cursor::new(encoded)).map_err(|e| reason("WebP", e))?;
    decode("WebP", decoder, max_pixels, pixels, out)
}

/// Decodes the first frame of a GIF, on its canvas, to RGB in `out`.
///
/// # Errors
/// As [`decode_webp`].
pub(super) fn decode_gif(
    encoded: &[u8],
    max_pixels: u64,
    pixels: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    let decoder = GifDecoder::new(Cursor::new(encoded)).map_err(|e| reason("GIF", e))?;
    decode("GIF", decoder, max_pixels, pixels, out)
}

/// Decodes a BMP to RGB in `out`.
///
/// # Errors
/// As [`decode_webp`].
pub(super) fn decode_bmp(
    encoded: &[u8],
    max_pixels: u64,
    pixels: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    let decoder = BmpDecoder::new(Cursor::new(encoded)).map_err(|e| reason("BMP", e))?;
    decode("BMP", decoder, max_pixels, pixels, out)
}

/// Decodes the first page of a TIFF to RGB in `out`.
///
/// # Errors
/// As [`decode_webp`]; palettes and floating-point samples aren't supported.
pub(super) fn decode_tiff(
    encoded: &[u8],
    max_pixels: u64,
    pixels: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    let decoder = TiffDecoder::new(Cursor::new(encoded)).map_err(|e| reason("TIFF", e))?;
    decode("TIFF", decoder, max_pixels, pixels, out)
}

/// Decodes with any of the decoders, straight into `out` if it gives RGB.
fn decode(
    format: &str,
    mut decoder: impl ImageDecoder,
    max_pixels: u64,
    pixels: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    let (width, height) = decoder.dimensions();
    let (height, width) = check_size(height, width, max_pixels)?;
    let mut limits = Limits::no_limits();
    // Twice: a decoder may hold the picture in the file's layout beside ours.
    limits.max_alloc = Some(decoder.total_bytes().saturating_mul(2) + WORKING_MEMORY);
    decoder.set_limits(limits).map_err(|e| reason(format, e))?;
    // Broken metadata is no reason to refuse a sound picture.
    let orientation = decoder.orientation().map_or(1, Orientation::to_exif);
    let samples = match decoder.color_type() {
        ColorType::Rgb8 => None,
        ColorType::L8 => Some(Samples::Grey),
        ColorType::La8 => Some(Samples::GreyAlpha),
        ColorType::Rgba8 => Some(Samples::Rgba),
        ColorType::L16 => Some(Samples::Grey16),
        ColorType::La16 => Some(Samples::GreyAlpha16),
        ColorType::Rgb16 => Some(Samples::Rgb16),
        ColorType::Rgba16 => Some(Samples::Rgba16),
        other => {
            return Err(format!("a {format} of {other:?} samples, which is not supported"));
        }
    };
    let len =
        usize::try_from(decoder.total_bytes()).map_err(|_| format!("the {format} needs more memory than there is"))?;
    if let Some(samples) = samples {
        size_buffer(pixels, len)?;
        decoder.read_image(pixels).map_err(|e| reason(format, e))?;
        size_buffer(out, height * width * 3)?;
        write_rgb(samples, pixels, out);
    } else {
        size_buffer(out, len)?;
        decoder.read_image(out).map_err(|e| reason(format, e))?;
    }
    Ok(Decoded { height, width, orientation })
}

/// How decoded pixels lie in memory; 16-bit samples are in native byte order.
#[derive(Clone, Copy)]
pub(super) enum Samples {
    Grey,
    GreyAlpha,
    Rgba,
    Grey16,
    GreyAlpha16,
    Rgb16,
    Rgba16,
}

/// Writes `pixels` as RGB: grey repeats, alpha is dropped, 16 bits give `v >> 8`.
pub(super) fn write_rgb(samples: Samples, pixels: &[u8], out: &mut [u8]) {
    /// Where the high byte of a native 16-bit sample is.
    const HIGH: usize = if cfg!(target_endian = "little") { 1 } else { 0 };
    match samples {
        Samples::Grey => convert::<1>(pixels, out, |p| [p[0]; 3]),
        Samples::GreyAlpha => convert::<2>(pixels, out, |p| [p[0]; 3]),
        Samples::Rgba => convert::<4>(pixels, out, |p| [p[0], p[1], p[2]]),
        Samples::Grey16 => convert::<2>(pixels, out, |p| [p[HIGH]; 3]),
        Samples::GreyAlpha16 => convert::<4>(pixels, out, |p| [p[HIGH]; 3]),
        Samples::Rgb16 => convert::<6>(pixels, out, |p| [p[HIGH], p[2 + HIGH], p[4 + HIGH]]),
        Samples::Rgba16 => convert::<8>(pixels, out, |p| [p[HIGH], p[2 + HIGH], p[4 + HIGH]]),
    }
}

/// Converts pixels of `N` bytes one by one.
fn convert<const N: usize>(pixels: &[u8], out: &mut [u8], rgb: impl Fn(&[u8; N]) -> [u8; 3]) {
    let (pixels, _) = pixels.as_chunks::<N>();
    let (out, _) = out.as_chunks_mut::<3>();
    for (pixel, out) in pixels.iter().zip(out) {
        *out = rgb(pixel);
    }
}

/// The decoder's error in plain words.
fn reason(format: &str, error: ImageError) -> String {
    match error {
        ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            format!("the {format} is truncated: it ends before its picture does")
        }
        ImageError::Limits(_) => format!("the {format} needs more memory than the limit"),
        ImageError::Unsupported(error) => {
            format!("a kind of {format} that is not supported: {error}")
        }
        error => format!("the {format} is truncated or corrupt: {error}"),
    }
}
