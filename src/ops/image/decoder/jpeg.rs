//! JPEG, by zune-jpeg.

use image::metadata::Orientation;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::Canvas;

/// The decoder is strict first; this one complaint is about harmless padding, which other decoders pass over.
const HARMLESS: &str = "Extra bytes between headers";

/// Decodes a JPEG.
pub fn decode(encoded: &[u8], canvas: Canvas<'_, '_>) -> Result<(), String> {
    if !ends_with_marker(encoded) {
        return Err("the JPEG is truncated: its data ends before the end-of-image marker".to_owned());
    }
    let options = DecoderOptions::new_fast()
        .set_strict_mode(true)
        .set_max_width(65_535)
        .set_max_height(65_535)
        .jpeg_set_max_scans(200)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(encoded), options);
    let mut headers = decoder.decode_headers();
    if headers.as_ref().is_err_and(|error| format!("{error:?}").contains(HARMLESS)) {
        decoder = JpegDecoder::new_with_options(ZCursor::new(encoded), options.set_strict_mode(false));
        headers = decoder.decode_headers();
    }
    headers.map_err(reason)?;
    let (width, height) = decoder.dimensions().ok_or("the JPEG has no frame header")?;
    canvas.check_size(height, width)?;
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif_chunk(exif));
    let input = decoder.input_colorspace().unwrap_or(ColorSpace::YCbCr);
    let orientation = orientation.unwrap_or(Orientation::NoTransforms);
    if matches!(input, ColorSpace::CMYK | ColorSpace::YCCK) {
        return decode_inks(decoder, height, width, orientation, canvas);
    }
    canvas.fill(height, width, orientation, |rgb| decoder.decode_into(rgb).map_err(reason))
}

/// Four inks: Adobe's files, the only ones there are, store them inverted, so that a stored value is 255 - ink and
/// `(255-C)(255-K)/255` is the product of two stored values.
fn decode_inks(
    mut decoder: JpegDecoder<ZCursor<&[u8]>>,
    height: usize,
    width: usize,
    orientation: Orientation,
    canvas: Canvas<'_, '_>,
) -> Result<(), String> {
    let options = decoder.options().jpeg_set_out_colorspace(ColorSpace::CMYK);
    decoder.set_options(options);
    let Canvas { options, out, pixels, upright } = canvas;
    decoder.decode_into(pixels.resize(height * width * 4)).map_err(reason)?;
    let inks = pixels.as_slice();
    let canvas = Canvas { options, out, pixels: &mut Default::default(), upright };
    canvas.fill(height, width, orientation, |rgb| {
        for (rgb, ink) in rgb.chunks_exact_mut(3).zip(inks.chunks_exact(4)) {
            for (value, ink_value) in rgb.iter_mut().zip(ink) {
                let product = u32::from(*ink_value) * u32::from(ink[3]);
                *value = u8::try_from((product + 127) / 255).unwrap_or(u8::MAX);
            }
        }
        Ok(())
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn reason(error: DecodeErrors) -> String {
    match error {
        DecodeErrors::ExhaustedData | DecodeErrors::FormatStatic("Premature end of buffer") => {
            "the JPEG is truncated: its data ends before the picture does".to_owned()
        }
        DecodeErrors::LargeDimensions(size) => format!("the JPEG is too large: a side of {size} pixels"),
        DecodeErrors::Unsupported(scheme) => format!("this kind of JPEG is not supported: {scheme:?}"),
        other => format!("the JPEG is damaged: {other:?}"),
    }
}

/// Whether the entropy-coded data is followed, at some point, by an end-of-image marker.
///
/// A decoder that finds its data exhausted may hand on a picture whose lower part is grey; walking the segments to
/// the marker tells a cut file from a whole one. What comes after the marker doesn't matter.
fn ends_with_marker(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        // To the next marker: in entropy-coded data FF is followed by 0 or by a restart marker.
        let Some(rest) = bytes.get(at..) else { return false };
        let Some(found) = memchr::memchr(0xFF, rest) else { return false };
        at += found + 1;
        match bytes.get(at) {
            None => return false,
            Some(0xD9) => return true,
            // Stuffing, fill bytes, restart markers, TEM, a second start of image.
            Some(0xFF) => {}
            Some(0x00 | 0x01 | 0xD0..=0xD8) => at += 1,
            Some(_) => {
                let Some(&[high, low]) = bytes.get(at + 1..at + 3) else { return false };
                let length = usize::from(u16::from_be_bytes([high, low]));
                at += 1 + length.max(2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_marker_is_found_outside_of_segments_only() {
        // SOI, a comment that contains an end marker, and nothing more.
        assert!(!ends_with_marker(&[0xFF, 0xD8, 0xFF, 0xFE, 0, 4, 0xFF, 0xD9]));
        assert!(ends_with_marker(&[0xFF, 0xD8, 0xFF, 0xFE, 0, 4, 0xFF, 0xD9, 0xFF, 0xD9, 1, 2]));
        assert!(!ends_with_marker(&[0xFF, 0xD8]));
        assert!(!ends_with_marker(&[0xFF, 0xD8, 0xFF, 0xDA, 0, 2, 1, 0xFF, 0, 2, 0xFF]));
    }
}
