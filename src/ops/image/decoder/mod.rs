//! Decodes encoded pictures of any supported format to interleaved 8-bit RGB.

mod jpeg;
mod jpeg_entropy;
mod jpeg_layout;
mod jpeg_planes;
mod jpeg_reader;
mod orientation;
mod other;
mod png;

use orientation::turn_upright;

use crate::world::fence::fenced;

/// How pictures are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Turn the picture upright as its EXIF orientation says. Read from JPEG,
    /// PNG, WebP and TIFF; the other formats have none.
    pub apply_orientation: bool,
    /// The largest height x width, in pixels, that is decoded. It is compared
    /// with the size that the header claims before memory is taken for it.
    pub max_pixels: u64,
}

impl Default for DecodeOptions {
    /// Upright pictures of at most 178 956 970 pixels (0.5 GiB of RGB).
    fn default() -> Self {
        Self { apply_orientation: true, max_pixels: 178_956_970 }
    }
}

/// The formats that are told apart by their first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jpeg,
    Png,
    WebP,
    Gif,
    Bmp,
    Tiff,
}

/// A decoder for one thread, which keeps its buffers between pictures.
///
/// Fresh memory costs more than many of the conversions (every page is zeroed
/// and mapped by the system), so both the scratch buffers here and the caller's
/// output buffer are reused.
#[derive(Debug)]
pub struct ImageDecoder {
    options: DecodeOptions,
    /// Pixels in the layout of the file (with alpha, grey, 16 bits), or the
    /// picture before it is turned.
    pixels: Vec<u8>,
    /// The JPEG bytes as they are handed to the JPEG decoder.
    stream: Vec<u8>,
}

impl ImageDecoder {
    /// A decoder that follows `options`.
    #[must_use]
    pub fn new(options: DecodeOptions) -> Self {
        Self { options, pixels: Vec::new(), stream: Vec::new() }
    }

    /// Decodes a picture and returns its `(height, width)` in pixels.
    ///
    /// `out` becomes `height * width * 3` bytes: rows from the top, pixels from
    /// the left, R, G, B. Its capacity is reused; after an error its contents
    /// mean nothing.
    ///
    /// What the values are:
    /// - grey repeats to three channels, 1, 2 and 4 bits are scaled to 0..=255;
    /// - 16-bit samples give their high byte, `v >> 8`;
    /// - alpha and transparent palette entries are dropped, the colours below
    ///   them stay; the part of a GIF's or animated WebP's canvas that the
    ///   first frame doesn't cover is black;
    /// - CMYK and YCCK give `(255 - C) * (255 - K) / 255` and so on, without a
    ///   colour profile; profiles of RGB pictures are ignored too;
    /// - of several frames or pages the first one is decoded.
    ///
    /// # Errors
    /// A reason in plain words, without the file's name: the bytes are empty,
    /// of no known format, cut short, corrupt, of a kind that isn't supported,
    /// or larger than [`DecodeOptions::max_pixels`].
    pub fn decode_rgb(&mut self, encoded: &[u8], out: &mut Vec<u8>) -> Result<(usize, usize), String> {
        let format = recognise(encoded)?;
        // The decoders are other people's work on bytes that anyone may have
        // written; a slip there must not take the whole run down. Their state
        // is gone with the unwinding, and the buffers are overwritten anyway.
        let decoded = fenced(|| self.decode(format, encoded, out))?;
        let size = (decoded.height, decoded.width);
        if self.options.apply_orientation {
            Ok(turn_upright(out, &mut self.pixels, size, decoded.orientation))
        } else {
            Ok(size)
        }
    }

    /// Decodes to `out` without turning.
    fn decode(&mut self, format: Format, encoded: &[u8], out: &mut Vec<u8>) -> Result<Decoded, String> {
        let max_pixels = self.options.max_pixels;
        match format {
            Format::Jpeg => jpeg::decode(encoded, max_pixels, &mut self.stream, out),
            Format::Png => png::decode(encoded, max_pixels, &mut self.pixels, out),
            Format::WebP => other::decode_webp(encoded, max_pixels, &mut self.pixels, out),
            Format::Gif => other::decode_gif(encoded, max_pixels, &mut self.pixels, out),
            Format::Bmp => other::decode_bmp(encoded, max_pixels, &mut self.pixels, out),
            Format::Tiff => other::decode_tiff(encoded, max_pixels, &mut self.pixels, out),
        }
    }
}

/// What a format's decoder found besides the pixels that it wrote.
struct Decoded {
    /// Rows as stored, before turning.
    height: usize,
    /// Columns as stored, before turning.
    width: usize,
    /// The EXIF orientation, 1..=8; 1 is upright and stands for "none" too.
    orientation: u8,
}

/// Tells the format by the first bytes; names and extensions play no part.
fn recognise(encoded: &[u8]) -> Result<Format, String> {
    match encoded {
        [] => Err("the file is empty (0 bytes)".into()),
        [0xFF, 0xD8, 0xFF, ..] => Ok(Format::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Ok(Format::Png),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Ok(Format::WebP),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Ok(Format::Gif),
        [b'B', b'M', ..] => Ok(Format::Bmp),
        // 42 is TIFF, 43 is BigTIFF.
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Ok(Format::Tiff),
        _ => {
            let start: Vec<String> = encoded.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            Err(format!("not a JPEG, PNG, WebP, GIF, BMP or TIFF image (starts with {})", start.join(" ")))
        }
    }
}

/// Refuses sizes above the limit, and empty ones; returns `(height, width)`.
fn check_size(height: u32, width: u32, max_pixels: u64) -> Result<(usize, usize), String> {
    if height == 0 || width == 0 {
        return Err(format!("the picture is empty ({width}x{height} pixels)"));
    }
    if u64::from(height) * u64::from(width) > max_pixels {
        return Err(format!("needs {width}x{height} pixels, more than the limit of {max_pixels} pixels"));
    }
    let too_large = |_| format!("needs {width}x{height} pixels, more than this machine can address");
    Ok((usize::try_from(height).map_err(too_large)?, usize::try_from(width).map_err(too_large)?))
}

/// Makes `buffer` exactly `len` zero bytes, or says that the memory isn't there.
fn size_buffer(buffer: &mut Vec<u8>, len: usize) -> Result<(), String> {
    buffer.clear();
    buffer.try_reserve(len).map_err(|_| format!("needs {len} bytes of memory, more than there is"))?;
    buffer.resize(len, 0);
    Ok(())
}
