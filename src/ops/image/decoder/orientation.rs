//! Turns RGB pictures upright according to their EXIF orientation.

use image::metadata::Orientation;

/// Reads the orientation, 1..=8, from an EXIF block that starts with its TIFF
/// header, with or without `Exif\0\0` before it. Anything unreadable is 1:
/// broken metadata is no reason to refuse a sound picture.
pub(super) fn orientation_of_exif(block: &[u8]) -> u8 {
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    Orientation::from_exif_chunk(block).map_or(1, Orientation::to_exif)
}

/// Turns `picture` (`height * width * 3` bytes) as `orientation` says and
/// returns the `(height, width)` that it has then.
///
/// The quarter turns write to `spare` and exchange the two buffers, the other
/// ones work in place.
pub(super) fn turn_upright(
    picture: &mut Vec<u8>,
    spare: &mut Vec<u8>,
    (height, width): (usize, usize),
    orientation: u8,
) -> (usize, usize) {
    let row = width * 3;
    match orientation {
        2 => picture.chunks_exact_mut(row).for_each(reverse_pixels),
        3 => reverse_pixels(picture),
        4 => {
            let (top, bottom) = picture.split_at_mut(height / 2 * row);
            for (a, b) in top.chunks_exact_mut(row).zip(bottom.rchunks_exact_mut(row)) {
                a.swap_with_slice(b);
            }
        }
        5..=8 => {
            // Turned row y is stored column y, or the mirrored one.
            let from_right = matches!(orientation, 7 | 8);
            let from_bottom = matches!(orientation, 6 | 7);
            spare.clear();
            spare.resize(picture.len(), 0);
            transpose(picture, spare, (height, width), from_right, from_bottom);
            std::mem::swap(picture, spare);
            return (width, height);
        }
        _ => {}
    }
    (height, width)
}

/// Reverses the order of whole RGB pixels.
fn reverse_pixels(pixels: &mut [u8]) {
    bytemuck::cast_slice_mut::<u8, [u8; 3]>(pixels).reverse();
}

/// Writes the transposed picture to `turned` (`width` rows of `height` pixels):
/// row `y` is stored column `y`, counted from the right if `from_right`, read
/// from the bottom up if `from_bottom`.
fn transpose(stored: &[u8], turned: &mut [u8], (height, width): (usize, usize), from_right: bool, from_bottom: bool) {
    /// Stored rows that are read together: few enough that their cache lines
    /// stay in the first cache while neighbouring columns are taken from them.
    const BLOCK: usize = 32;
    let stored: &[[u8; 3]] = bytemuck::cast_slice(stored);
    let turned: &mut [[u8; 3]] = bytemuck::cast_slice_mut(turned);
    for start in (0..height).step_by(BLOCK) {
        let end = (start + BLOCK).min(height);
        for (y, turned_row) in turned.chunks_exact_mut(height).enumerate() {
            let column = if from_right { width - 1 - y } else { y };
            for (x, pixel) in turned_row[start..end].iter_mut().enumerate() {
                let x = start + x;
                let line = if from_bottom { height - 1 - x } else { x };
                *pixel = stored[line * width + column];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns a picture of 2 rows and 3 columns whose pixels are numbered.
    fn turned(orientation: u8) -> (Vec<u8>, (usize, usize)) {
        let mut picture: Vec<u8> = (0..6).flat_map(|n| [n, n, n]).collect();
        let size = turn_upright(&mut picture, &mut Vec::new(), (2, 3), orientation);
        (picture.into_iter().step_by(3).collect(), size)
    }

    #[test]
    fn every_orientation_of_a_numbered_picture() {
        // Stored: 0 1 2 / 3 4 5.
        assert_eq!(turned(1), (vec![0, 1, 2, 3, 4, 5], (2, 3)));
        assert_eq!(turned(2), (vec![2, 1, 0, 5, 4, 3], (2, 3)));
        assert_eq!(turned(3), (vec![5, 4, 3, 2, 1, 0], (2, 3)));
        assert_eq!(turned(4), (vec![3, 4, 5, 0, 1, 2], (2, 3)));
        assert_eq!(turned(5), (vec![0, 3, 1, 4, 2, 5], (3, 2)));
        assert_eq!(turned(6), (vec![3, 0, 4, 1, 5, 2], (3, 2)));
        assert_eq!(turned(7), (vec![5, 2, 4, 1, 3, 0], (3, 2)));
        assert_eq!(turned(8), (vec![2, 5, 1, 4, 0, 3], (3, 2)));
    }

    #[test]
    fn unreadable_exif_is_upright() {
        assert_eq!(orientation_of_exif(b""), 1);
        assert_eq!(orientation_of_exif(b"Exif\0\0II*\0\xff\xff\xff\xff"), 1);
    }
}
