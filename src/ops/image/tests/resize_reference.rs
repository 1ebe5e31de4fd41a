//! Resized pictures against Pillow's.

use super::{photo, reference};
use crate::ops::image::decoder::{DecodeOptions, ImageDecoder};
use crate::ops::image::resizer::{Filter, ImageResizer, short_side_size};
use serde_json::Value;

/// Cuts a case's source out of its picture; see the script for the channels.
fn source(case: &Value) -> (Vec<u8>, (usize, usize), usize) {
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let mut pixels = Vec::new();
    let (_, row) = ImageDecoder::new(DecodeOptions::default())
        .decode_rgb(&photo(case["picture"].as_str().unwrap()), &mut pixels)
        .unwrap();
    let [top, left, height, width] = [0, 1, 2, 3].map(|i| number(&case["crop"][i]));
    let channels = number(&case["channels"]);
    let mut part = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let pixel = &pixels[((top + y) * row + left + x) * 3..][..3];
            part.extend_from_slice(&pixel[..if channels < 3 { 1 } else { 3 }]);
            if channels % 2 == 0 {
                part.push(((7 * x + 13 * y) % 256) as u8);
            }
        }
    }
    (part, (height, width), channels)
}

#[test]
fn every_case_is_resized_as_by_pillow() {
    let expected: Value = serde_json::from_slice(&reference("resize.json")).unwrap();
    let mut resizer = ImageResizer::new();
    let mut values = 0_usize;
    let mut beyond_one = 0_usize;
    for case in expected["cases"].as_array().unwrap() {
        let (src, src_hw, channels) = source(case);
        let to = [0, 1].map(|i| case["to"][i].as_u64().unwrap() as usize);
        let filter = match case["filter"].as_str().unwrap() {
            "nearest" => Filter::Nearest,
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            _ => Filter::Lanczos,
        };
        let data = case["data"].as_str().unwrap();
        let right = reference(&format!("resize/{data}"));
        // Filled, so that bytes that aren't written show.
        let mut dst = vec![0xA5; right.len()];
        resizer.resize(&src, src_hw, channels, &mut dst, (to[0], to[1]), filter).unwrap();
        let largest = dst.iter().zip(&right).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        // Coefficients have 15 bits here and 22 in Pillow; each of two passes
        // may round the other way.
        let allowed = match filter {
            Filter::Nearest => 0,
            Filter::Bilinear => 1,
            Filter::Bicubic | Filter::Lanczos => 2,
        };
        assert!(largest <= allowed, "{data} differs by {largest}");
        values += right.len();
        beyond_one += dst.iter().zip(&right).filter(|(a, b)| a.abs_diff(**b) > 1).count();
    }
    assert!(beyond_one * 1000 <= values, "{beyond_one} of {values} differ by more than 1");
}

#[test]
fn the_short_side_is_exact_and_the_long_one_rounds_down() {
    assert_eq!(short_side_size(375, 500, 256), (256, 341));
    assert_eq!(short_side_size(500, 375, 256), (341, 256));
    assert_eq!(short_side_size(64, 64, 100), (100, 100));
    assert_eq!(short_side_size(1, 3, 7), (7, 21));
    assert_eq!(short_side_size(0, 3, 7), (0, 3));
}

#[test]
fn equal_sizes_copy_and_wrong_ones_are_refused() {
    let src: Vec<u8> = (0..24).collect();
    let mut dst = vec![0; 24];
    let mut resizer = ImageResizer::new();
    for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
        dst.fill(0);
        resizer.resize(&src, (2, 4), 3, &mut dst, (2, 4), filter).unwrap();
        assert_eq!(dst, src);
        for (src_hw, channels, dst_hw) in [
            ((2, 5), 3, (2, 4)),
            ((2, 4), 3, (2, 5)),
            ((2, 4), 0, (2, 4)),
            ((2, 4), 5, (2, 4)),
            ((0, 4), 3, (2, 4)),
            ((2, 4), 3, (0, 4)),
            ((usize::MAX, 4), 3, (2, 4)),
        ] {
            assert!(resizer.resize(&src, src_hw, channels, &mut dst, dst_hw, filter).is_err());
        }
    }
}
