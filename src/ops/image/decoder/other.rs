//! WebP, GIF, BMP and TIFF, by the image crate.

use std::io::Cursor;

use image::codecs::bmp::BmpDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::tiff::TiffDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder as Decode, ImageError, Limits};

use super::{Canvas, to_rgb};

/// Decodes a WebP: the first frame of an animation.
pub fn decode_webp(encoded: &[u8], canvas: Canvas<'_, '_>) -> Result<(), String> {
    decode("WebP", WebPDecoder::new(Cursor::new(encoded)).map_err(|error| reason("WebP", error))?, canvas)
}

/// Decodes a GIF: the first frame, on its canvas.
pub fn decode_gif(encoded: &[u8], canvas: Canvas<'_, '_>) -> Result<(), String> {
    decode("GIF", GifDecoder::new(Cursor::new(encoded)).map_err(|error| reason("GIF", error))?, canvas)
}

/// Decodes a BMP.
pub fn decode_bmp(encoded: &[u8], canvas: Canvas<'_, '_>) -> Result<(), String> {
    decode("BMP", BmpDecoder::new(Cursor::new(encoded)).map_err(|error| reason("BMP", error))?, canvas)
}

/// Decodes a TIFF: the first page.
pub fn decode_tiff(encoded: &[u8], canvas: Canvas<'_, '_>) -> Result<(), String> {
    decode("TIFF", TiffDecoder::new(Cursor::new(encoded)).map_err(|error| reason("TIFF", error))?, canvas)
}

fn decode(format: &str, mut decoder: impl Decode, canvas: Canvas<'_, '_>) -> Result<(), String> {
    let (width, height) = decoder.dimensions();
    let (height, width) = (height as usize, width as usize);
    canvas.check_size(height, width)?;
    let mut limits = Limits::no_limits();
    // Decoders may need the picture once more, in its own depth, and some tables.
    limits.max_alloc = Some(decoder.total_bytes().saturating_mul(2).saturating_add(64 << 20));
    decoder.set_limits(limits).map_err(|error| reason(format, error))?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let color = decoder.color_type();
    let size = usize::try_from(decoder.total_bytes()).map_err(|_| format!("the {format} is too large"))?;
    if color == ColorType::Rgb8 {
        return canvas
            .fill(height, width, orientation, |rgb| decoder.read_image(rgb).map_err(|error| reason(format, error)));
    }
    let Canvas { options, out, pixels, upright } = canvas;
    let decoded = pixels.resize(size);
    decoder.read_image(decoded).map_err(|error| reason(format, error))?;
    let channels = usize::from(color.channel_count());
    let eight_bits = match color {
        ColorType::L8 | ColorType::La8 | ColorType::Rgba8 => &*decoded,
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => high_bytes(decoded),
        other => return Err(format!("a {format} with pixels of type {other:?} is not supported")),
    };
    let canvas = Canvas { options, out, pixels: &mut Default::default(), upright };
    canvas.fill(height, width, orientation, |rgb| to_rgb(eight_bits, channels, rgb))
}

/// Keeps the high byte of native-endian 16-bit values, in place.
fn high_bytes(values: &mut [u8]) -> &[u8] {
    let count = values.len() / 2;
    for at in 0..count {
        let value = u16::from_ne_bytes([values[2 * at], values[2 * at + 1]]);
        values[at] = value.to_be_bytes()[0];
    }
    &values[..count]
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn reason(format: &str, error: ImageError) -> String {
    match error {
        ImageError::Limits(error) => format!("the {format} exceeds the memory limit: {error}"),
        ImageError::Unsupported(error) => format!("this kind of {format} is not supported: {error}"),
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            format!("the {format} is truncated: its data ends before the picture does")
        }
        other => format!("the {format} is damaged: {other}"),
    }
}
