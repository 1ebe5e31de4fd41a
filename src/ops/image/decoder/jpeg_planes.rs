//! Decodes sequential JPEGs that store one component after the other.
//!
//! They are rare, and the JPEG decoder loses rows of them when rows are only a
//! few bytes long. So each component is decoded as a grey JPEG of its own, which
//! also lets the guard stand behind each scan, and they are put together here.

use zune_core::colorspace::ColorSpace;

use super::jpeg::{decode_stream, guard};
use super::jpeg_layout::{Component, Layout, Scan};
use super::size_buffer;

/// One decoded component at its own resolution.
struct Plane {
    width: usize,
    height: usize,
    samples: Vec<u8>,
    /// How many of its samples, in each direction, span `of` pixels.
    sampling: (usize, usize),
    of: (usize, usize),
}

/// Decodes to RGB in `out`, which has its exact size; `stream` is scratch space.
///
/// # Errors
/// If a scan is damaged or cut, or if the scans don't hold one of three
/// components each.
pub(super) fn decode(encoded: &[u8], layout: &Layout, stream: &mut Vec<u8>, out: &mut [u8]) -> Result<(), String> {
    let frame = &layout.frame;
    if frame.components.len() != 3 || layout.scans.iter().any(|scan| scan.components != 1) {
        return Err("a JPEG with some of its colours in scans of their own, which is not supported".into());
    }
    let mut planes = Vec::with_capacity(3);
    for (index, component) in frame.components.iter().enumerate() {
        let scan = layout
            .scans
            .iter()
            .find(|scan| scan.component == index)
            .ok_or("the JPEG is truncated: it ends before all its scans")?;
        planes.push(decode_plane(encoded, layout, component, scan, stream)?);
    }
    let is_rgb = match layout.adobe {
        Some((_, transform)) => transform == 0,
        None => frame.named_rgb(),
    };
    let width = usize::from(frame.width);
    for (y, row) in out.chunks_exact_mut(width * 3).enumerate() {
        for (x, pixel) in row.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            for (value, plane) in pixel.iter_mut().zip(&planes) {
                *value = plane.at(x, y);
            }
            if !is_rgb {
                *pixel = rgb_of_ycbcr(*pixel);
            }
        }
    }
    Ok(())
}

/// Decodes one component as a grey JPEG.
fn decode_plane(
    encoded: &[u8],
    layout: &Layout,
    component: &Component,
    scan: &Scan,
    stream: &mut Vec<u8>,
) -> Result<Plane, String> {
    let frame = &layout.frame;
    let of = frame.full_sampling();
    let sampling = (component.horizontal, component.vertical);
    let width = (usize::from(frame.width) * sampling.0).div_ceil(of.0);
    let height = (usize::from(frame.height) * sampling.1).div_ceil(of.1);

    stream.clear();
    stream.extend_from_slice(&[0xFF, 0xD8]);
    for table in &layout.tables[..scan.tables] {
        stream.extend_from_slice(&encoded[table.clone()]);
    }
    // SOF1 of one component: length 11, 8 bits, size, and the component with no
    // subsampling against itself.
    stream.extend_from_slice(&[0xFF, 0xC1, 0, 11, 8]);
    for side in [height, width] {
        // A component is never larger than its frame, whose sides are u16.
        let side = u16::try_from(side).unwrap_or(u16::MAX);
        stream.extend_from_slice(&side.to_be_bytes());
    }
    stream.extend_from_slice(&[1, 1, 0x11, component.quantisation]);
    // SOS of that component: length 8, all 64 coefficients at full precision.
    stream.extend_from_slice(&[0xFF, 0xDA, 0, 8, 1, 1, scan.huffman, 0, 63, 0]);
    let start = stream.len();
    stream.extend_from_slice(&encoded[scan.data.clone()]);
    let data = start..stream.len();
    guard(stream);

    let mut samples = Vec::new();
    size_buffer(&mut samples, width * height)?;
    decode_stream(stream, ColorSpace::Luma, &data, &mut samples)?;
    Ok(Plane { width, height, samples, sampling, of })
}

impl Plane {
    /// The value at pixel `(x, y)`: the sample there, or the mean of the four
    /// around it, weighted by their distance.
    fn at(&self, x: usize, y: usize) -> u8 {
        let (left, right, x_weight) = neighbours(x, self.sampling.0, self.of.0, self.width);
        let (above, below, y_weight) = neighbours(y, self.sampling.1, self.of.1, self.height);
        let sample = |x: usize, y: usize| usize::from(self.samples[y * self.width + x]);
        let (x_full, y_full) = (2 * self.of.0, 2 * self.of.1);
        let across = |y: usize| sample(left, y) * (x_full - x_weight) + sample(right, y) * x_weight;
        let sum = across(above) * (y_full - y_weight) + across(below) * y_weight;
        let full = x_full * y_full;
        // A weighted mean of bytes is a byte.
        u8::try_from((sum + full / 2) / full).unwrap_or(u8::MAX)
    }
}

/// The samples before and after the centre of a pixel, and the weight of the
/// latter in parts of `2 * of`.
fn neighbours(pixel: usize, sampling: usize, of: usize, len: usize) -> (usize, usize, usize) {
    // (pixel + 0.5) * sampling / of - 0.5, times 2 * of; below zero the first
    // sample stands alone.
    let position = ((2 * pixel + 1) * sampling).saturating_sub(of);
    let before = (position / (2 * of)).min(len - 1);
    let after = (before + 1).min(len - 1);
    (before, after, position % (2 * of))
}

/// The colours of JFIF, ITU-R BT.601 at full range.
fn rgb_of_ycbcr([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let (y, cb, cr) = (f32::from(y), f32::from(cb) - 128.0, f32::from(cr) - 128.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast clamps to 0..=255, which is what is wanted"
    )]
    let byte = |value: f32| (value + 0.5) as u8;
    [byte(y + 1.402 * cr), byte(y - 0.344_136 * cb - 0.714_136 * cr), byte(y + 1.772 * cb)]
}
