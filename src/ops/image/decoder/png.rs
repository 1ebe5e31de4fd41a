//! Decodes PNG of every colour type and depth.

use std::io::Cursor;

use png::{ColorType, Decoder, DecodingError, Limits, Transformations};

use super::orientation::orientation_of_exif;
use super::other::{Samples, write_rgb};
use super::{Decoded, check_size, size_buffer};

/// Memory for the decoder itself, in bytes: rows and metadata, not the picture.
const WORKING_MEMORY: usize = 64 << 20;

/// Decodes a PNG to RGB in `out`; `pixels` is scratch space.
///
/// Palettes are looked up, 1, 2 and 4 bits widened and 16 bits cut to their high
/// byte. An animated PNG gives its default image.
///
/// # Errors
/// If it is too large, cut short or corrupt.
pub(super) fn decode(
    encoded: &[u8],
    max_pixels: u64,
    pixels: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    let limits = Limits { bytes: WORKING_MEMORY };
    let mut decoder = Decoder::new_with_limits(Cursor::new(encoded), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let header = decoder.read_header_info().map_err(reason)?;
    let (height, width) = check_size(header.height, header.width, max_pixels)?;

    let mut reader = decoder.read_info().map_err(reason)?;
    let len = reader.output_buffer_size().ok_or("the PNG needs more memory than there is")?;
    let samples = match reader.output_color_type().0 {
        ColorType::Rgb => {
            size_buffer(out, len)?;
            reader.next_frame(out).map_err(reason)?;
            None
        }
        ColorType::Grayscale => Some(Samples::Grey),
        ColorType::GrayscaleAlpha => Some(Samples::GreyAlpha),
        ColorType::Rgba => Some(Samples::Rgba),
        ColorType::Indexed => return Err("the PNG is corrupt: it has no palette".into()),
    };
    if let Some(samples) = samples {
        size_buffer(pixels, len)?;
        reader.next_frame(pixels).map_err(reason)?;
        size_buffer(out, height * width * 3)?;
        write_rgb(samples, pixels, out);
    }
    // The EXIF block may follow the picture. The picture is whole by now, so
    // whatever is wrong with the rest of the file doesn't matter.
    let _ = reader.finish();
    let exif = reader.info().exif_metadata.as_deref();
    Ok(Decoded { height, width, orientation: exif.map_or(1, orientation_of_exif) })
}

/// The decoder's error in plain words.
fn reason(error: DecodingError) -> String {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the PNG is truncated: it ends before its picture does".into()
        }
        DecodingError::LimitsExceeded => "the PNG needs more memory than the limit".into(),
        error => format!("the PNG is truncated or corrupt: {error}"),
    }
}
