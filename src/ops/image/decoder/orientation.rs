//! Turning a picture upright.

use image::metadata::Orientation;

use crate::ops::kernel::RowOut;
use crate::types::DType;

/// Writes the RGB picture into `out`, turned or mirrored so that it stands upright.
pub fn turn(
    rgb: &[u8],
    height: usize,
    width: usize,
    orientation: Orientation,
    out: &mut RowOut<'_>,
) -> Result<(), String> {
    let sideways = matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    );
    let (out_height, out_width) = if sideways { (width, height) } else { (height, width) };
    let target = out.allocate(DType::U8, &[out_height, out_width, 3])?;
    for (row, line) in target.chunks_exact_mut(out_width * 3).enumerate() {
        for (column, pixel) in line.chunks_exact_mut(3).enumerate() {
            let (y, x) = match orientation {
                Orientation::NoTransforms => (row, column),
                Orientation::FlipHorizontal => (row, width - 1 - column),
                Orientation::Rotate180 => (height - 1 - row, width - 1 - column),
                Orientation::FlipVertical => (height - 1 - row, column),
                // EXIF 5: mirrored along the main diagonal.
                Orientation::Rotate90FlipH => (column, row),
                // EXIF 6: to be turned clockwise.
                Orientation::Rotate90 => (height - 1 - column, row),
                // EXIF 7: mirrored along the other diagonal.
                Orientation::Rotate270FlipH => (height - 1 - column, width - 1 - row),
                // EXIF 8: to be turned counter-clockwise.
                Orientation::Rotate270 => (column, width - 1 - row),
            };
            let from = (y * width + x) * 3;
            pixel.copy_from_slice(rgb.get(from..from + 3).ok_or("it has fewer pixels than it claims")?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::AlignedBuf;

    /// A picture of 2 rows and 3 columns, numbered 0 to 5; what Pillow 13 gives for `ImageOps.exif_transpose` of it.
    #[test]
    fn every_exif_orientation_is_turned_as_pillow_does() {
        let picture: Vec<u8> = (0..6).flat_map(|value| [value; 3]).collect();
        let expected: [(u8, [usize; 2], [u8; 6]); 8] = [
            (1, [2, 3], [0, 1, 2, 3, 4, 5]),
            (2, [2, 3], [2, 1, 0, 5, 4, 3]),
            (3, [2, 3], [5, 4, 3, 2, 1, 0]),
            (4, [2, 3], [3, 4, 5, 0, 1, 2]),
            (5, [3, 2], [0, 3, 1, 4, 2, 5]),
            (6, [3, 2], [3, 0, 4, 1, 5, 2]),
            (7, [3, 2], [5, 2, 4, 1, 3, 0]),
            (8, [3, 2], [2, 5, 1, 4, 0, 3]),
        ];
        for (exif, shape, values) in expected {
            let mut buffer = AlignedBuf::new();
            let mut out = RowOut::scratch(&mut buffer, Vec::new());
            turn(&picture, 2, 3, Orientation::from_exif(exif).expect("1 to 8"), &mut out).expect("it fits");
            assert_eq!(out.shape, [shape[0], shape[1], 3], "orientation {exif}");
            let got: Vec<u8> = buffer.as_slice().iter().step_by(3).copied().collect();
            assert_eq!(got, values, "orientation {exif}");
        }
    }
}
