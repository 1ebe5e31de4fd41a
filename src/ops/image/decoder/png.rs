//! PNG, by the png crate.

use std::io::Cursor;

use image::metadata::Orientation;
use png::{ColorType, DecodingError, Transformations};

use super::{Canvas, to_rgb};

/// Decodes a PNG: palettes and small depths are expanded, 16-bit values keep their high byte, alpha is dropped.
pub fn decode(encoded: &[u8], canvas: Canvas<'_, '_>) -> Result<(), String> {
    let mut decoder = png::Decoder::new(Cursor::new(encoded));
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    // The size is checked against the user's own limit below; this one is for metadata.
    decoder.set_limits(png::Limits { bytes: usize::MAX });
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(reason)?;
    let (width, height) = reader.info().size();
    let (height, width) = (height as usize, width as usize);
    canvas.check_size(height, width)?;
    let orientation = reader.info().exif_metadata.as_deref().and_then(Orientation::from_exif_chunk);
    let orientation = orientation.unwrap_or(Orientation::NoTransforms);
    let (color, _) = reader.output_color_type();
    let channels = color.samples();
    let size = reader.output_buffer_size().ok_or("the PNG is too large for this machine")?;
    if color == ColorType::Rgb {
        return canvas.fill(height, width, orientation, |rgb| reader.next_frame(rgb).map(|_| ()).map_err(reason));
    }
    let Canvas { options, out, pixels, upright } = canvas;
    reader.next_frame(pixels.resize(size)).map_err(reason)?;
    let decoded = pixels.as_slice();
    let canvas = Canvas { options, out, pixels: &mut Default::default(), upright };
    canvas.fill(height, width, orientation, |rgb| to_rgb(decoded, channels, rgb))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn reason(error: DecodingError) -> String {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the PNG is truncated: its data ends before the picture does".to_owned()
        }
        DecodingError::LimitsExceeded => "the PNG exceeds the limit for its metadata".to_owned(),
        other => format!("the PNG is damaged: {other}"),
    }
}
