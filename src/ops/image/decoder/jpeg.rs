//! Decodes JPEG straight into the caller's buffer, and nothing but whole ones.

use std::cell::Cell;
use std::ops::Range;

use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::jpeg_layout::{Layout, walk};
use super::jpeg_planes;
use super::jpeg_reader::ScanReader;
use super::orientation::orientation_of_exif;
use super::{Decoded, check_size, size_buffer};

/// Follows the last scan instead of the end marker: stuffed bytes of one-bits.
///
/// No code of a JPEG's Huffman tables is all ones. A decoder that runs dry
/// inside the picture, where it would make up grey, meets an invalid code
/// within two bytes and stops. Whole pictures never decode any of this; the
/// decoder only reads some bytes ahead.
const GUARD: [u8; 64] = {
    let mut guard = [0xFF; 64];
    let mut at = 1;
    while at < guard.len() {
        guard[at] = 0;
        at += 2;
    }
    guard
};

/// Data left over after the last block, in bytes, that isn't held against a
/// JPEG: encoders pad, and the decoder reads up to eight bytes ahead.
const SPARE_BYTES: usize = 64;

/// Decodes a JPEG to RGB in `out`; `stream` is scratch space.
///
/// # Errors
/// If it is too large, cut short, corrupt or of an unsupported kind.
pub(super) fn decode(
    encoded: &[u8],
    max_pixels: u64,
    stream: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Decoded, String> {
    let layout = walk(encoded)?;
    let frame = &layout.frame;
    let (height, width) = check_size(frame.height.into(), frame.width.into(), max_pixels)?;
    size_buffer(out, height * width * 3)?;
    if !frame.progressive && layout.scans.len() > 1 {
        jpeg_planes::decode(encoded, &layout, stream, out)?;
    } else {
        let colours = guarded_stream(encoded, &layout, stream);
        decode_stream(stream, colours, &layout.last_scan, out)?;
    }
    let exif = layout.exif.and_then(|range| encoded.get(range));
    Ok(Decoded { height, width, orientation: exif.map_or(1, orientation_of_exif) })
}

/// Decodes a guarded JPEG to `colours` in `out`, which must have its exact size.
/// `last_scan` is where `stream` has the data of its last scan.
///
/// # Errors
/// If the data is damaged, too short, or too long.
pub(super) fn decode_stream(
    stream: &[u8],
    colours: ColorSpace,
    last_scan: &Range<usize>,
    out: &mut [u8],
) -> Result<(), String> {
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        // The pixel limit decides; these default to 16384.
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(colours);
    let data_end = Cell::new(0);
    JpegDecoder::new_with_options(ScanReader::new(stream, &data_end), options)
        .decode_into(out)
        .map_err(|error| format!("the JPEG is truncated or corrupt: {error}"))?;
    check_used_up(stream, last_scan, data_end.get())
}

/// Ends a stream after the data of its last scan.
pub(super) fn guard(stream: &mut Vec<u8>) {
    stream.extend_from_slice(&GUARD);
    stream.extend_from_slice(&[0xFF, 0xD9]);
}

/// Writes the JPEG up to the end of its last scan, the guard and an end marker
/// to `stream`; returns the colours to ask the decoder for.
fn guarded_stream(encoded: &[u8], layout: &Layout, stream: &mut Vec<u8>) -> ColorSpace {
    stream.clear();
    stream.extend_from_slice(&encoded[..layout.last_scan.end]);
    guard(stream);
    match layout.adobe {
        // The decoder takes transform 0 for CMYK however many components there
        // are. With one or three the segment is hidden from it, by a name that
        // it doesn't know.
        Some((at, transform)) if layout.frame.components.len() < 4 => {
            stream[at] = b'-';
            if layout.frame.components.len() == 3 && transform == 0 {
                // The stored values are RGB: asking for YCbCr leaves them as
                // they are. Components named R, G, B are known to the decoder.
                return if layout.frame.named_rgb() { ColorSpace::RGB } else { ColorSpace::YCbCr };
            }
            ColorSpace::RGB
        }
        _ => ColorSpace::RGB,
    }
}

/// Checks that the decoder used the last scan's data up to its end. If much is
/// left, some of what came before it was lost or overwritten.
fn check_used_up(stream: &[u8], last_scan: &Range<usize>, data_end: usize) -> Result<(), String> {
    let Some(left) = stream.get(data_end.max(last_scan.start)..last_scan.end) else {
        return Ok(());
    };
    let padding = left.windows(2).all(|pair| pair[0] == pair[1]);
    if left.len() > SPARE_BYTES && !padding {
        return Err(format!(
            "the JPEG is corrupt: {} bytes of its data are left over after the last block",
            left.len()
        ));
    }
    Ok(())
}
