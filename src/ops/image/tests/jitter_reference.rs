//! Colour changes against Pillow's values; the script beside them says how they were made.

use serde_json::Value;

use super::{photo, reference};
use crate::ops::image::decoder::{DecodeOptions, ImageDecoder};
use crate::ops::image::jitter::Change;

#[test]
fn every_change_is_pillows() {
    let expected: Value = serde_json::from_slice(&reference("jitter.json")).unwrap();
    let [left, top, right, bottom] = [0, 1, 2, 3].map(|at| expected["crop"][at].as_u64().unwrap() as usize);
    let mut cases = 0;
    for case in expected["cases"].as_array().unwrap() {
        let mut whole = Vec::new();
        let (_, width) = ImageDecoder::new(DecodeOptions::default())
            .decode_rgb(&photo(case["picture"].as_str().unwrap()), &mut whole)
            .unwrap();
        let mut pixels: Vec<u8> =
            (top..bottom).flat_map(|y| whole[(y * width + left) * 3..(y * width + right) * 3].to_vec()).collect();
        let factor = case["factor"].as_f64().unwrap();
        let change = match case["change"].as_str().unwrap() {
            "brightness" => Change::Brightness(factor as f32),
            "contrast" => Change::Contrast(factor as f32),
            "saturation" => Change::Saturation(factor as f32),
            _ => Change::Hue(factor),
        };
        change.apply(&mut pixels);
        let wanted: Vec<u8> =
            case["pixels"].as_array().unwrap().iter().map(|value| value.as_u64().unwrap() as u8).collect();
        assert_eq!(pixels, wanted, "{} {} {factor}", case["picture"], case["change"]);
        cases += 1;
    }
    assert_eq!(cases, 46);
}
