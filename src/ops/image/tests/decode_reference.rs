//! Decoded pictures against Pillow's values.

use super::{photo, reference};
use crate::ops::image::decoder::{DecodeOptions, ImageDecoder};
use serde_json::Value;

#[test]
fn every_fixture_decodes_as_in_pillow() {
    let expected: Value = serde_json::from_slice(&reference("decode.json")).unwrap();
    let mut decoder = ImageDecoder::new(DecodeOptions::default());
    let mut pixels = Vec::new();
    let files = expected["files"].as_object().unwrap();
    assert_eq!(files.len(), 24);
    for (name, expected) in files {
        let (height, width) = decoder.decode_rgb(&photo(name), &mut pixels).unwrap();
        assert_eq!(height as u64, expected["height"], "{name}");
        assert_eq!(width as u64, expected["width"], "{name}");
        assert_eq!(pixels.len(), height * width * 3, "{name}");
        // The inverse transform and the widening of the chroma aren't
        // standardised to the bit in JPEG; lossy WebP and the rest are exact.
        let (probe_tolerance, mean_tolerance) = match name.rsplit('.').next() {
            Some("jpg") => (8.0, 0.5),
            _ => (0.0, 0.001),
        };
        for probe in expected["probes"].as_array().unwrap() {
            let at = |i: usize| probe[i].as_u64().unwrap() as usize;
            let pixel = (at(0) * width + at(1)) * 3;
            for channel in 0..3 {
                let difference = f64::from(pixels[pixel + channel]) - at(2 + channel) as f64;
                assert!(
                    difference.abs() <= probe_tolerance,
                    "{name}: y {} x {} channel {channel} differs by {difference}",
                    at(0),
                    at(1)
                );
            }
        }
        for channel in 0..3 {
            let sum: u64 = pixels.iter().skip(channel).step_by(3).map(|v| u64::from(*v)).sum();
            let mean = sum as f64 / (height * width) as f64;
            let difference = mean - expected["mean"][channel].as_f64().unwrap();
            assert!(difference.abs() <= mean_tolerance, "{name}: mean of channel {channel} differs by {difference}");
        }
    }
}

#[test]
fn orientation_is_left_alone_on_request() {
    let mut decoder = ImageDecoder::new(DecodeOptions { apply_orientation: false, ..DecodeOptions::default() });
    let mut pixels = Vec::new();
    let bytes = photo("landscape/l06_exif6.jpg");
    let stored = decoder.decode_rgb(&bytes, &mut pixels).unwrap();
    let upright = ImageDecoder::new(DecodeOptions::default()).decode_rgb(&bytes, &mut pixels).unwrap();
    assert_eq!((stored.1, stored.0), upright);
}
