//! What must be refused: cut, damaged, oversized and foreign files.

use super::photo;
use crate::ops::image::decoder::{DecodeOptions, ImageDecoder};

const JPEGS: [&str; 17] = [
    "landscape/l01.jpg",
    "landscape/l02.jpg",
    "landscape/l03_progressive.jpg",
    "landscape/l04_444.jpg",
    "landscape/l05_gray.jpg",
    "landscape/l06_exif6.jpg",
    "landscape/l07_422_restart.jpg",
    "plant/p01.jpg",
    "plant/p02.jpg",
    "plant/p03.jpg",
    "plant/p04_odd.jpg",
    "plant/p05_cmyk.jpg",
    "thing/t01.jpg",
    "thing/t02.jpg",
    "thing/t03.jpg",
    "thing/t04.jpg",
    "thing/t05_progressive.jpg",
];

const OTHERS: [&str; 7] = [
    "landscape/l08.webp",
    "plant/p06_palette.png",
    "plant/p07_alpha.png",
    "plant/p08.gif",
    "thing/t06.png",
    "thing/t07_gray.png",
    "thing/t08_16bit.png",
];

fn decode(bytes: &[u8]) -> Result<(usize, usize), String> {
    ImageDecoder::new(DecodeOptions::default()).decode_rgb(bytes, &mut Vec::new())
}

fn refusal(bytes: &[u8]) -> String {
    decode(bytes).expect_err("must be refused")
}

#[test]
fn a_cut_picture_is_refused_wherever_it_is_cut() {
    for name in JPEGS.iter().chain(&OTHERS) {
        let bytes = photo(name);
        for percent in [5, 30, 60, 90, 99] {
            let cut = &bytes[..bytes.len() * percent / 100];
            let reason = refusal(cut);
            assert!(reason.contains("truncated"), "{name} at {percent} %: {reason}");
        }
    }
}

#[test]
fn a_jpeg_cut_in_its_last_bytes_is_refused() {
    for name in JPEGS {
        let bytes = photo(name);
        for missing in 1..=12 {
            refusal(&bytes[..bytes.len() - missing]);
        }
    }
}

#[test]
fn an_end_marker_after_a_cut_does_not_make_a_jpeg_whole() {
    for name in JPEGS {
        let bytes = photo(name);
        // Cuts in a progressive JPEG's refinement of the DC values, raw bits
        // that cost half a level of precision, are the only ones that pass.
        for percent in [30, 50, 90, 99] {
            let mut cut = bytes[..bytes.len() * percent / 100].to_vec();
            cut.extend_from_slice(&[0xFF, 0xD9]);
            assert!(decode(&cut).is_err(), "{name} at {percent} %");
        }
    }
}

#[test]
fn lost_data_inside_a_jpeg_is_refused() {
    let bytes = photo("landscape/l01.jpg");
    let middle = bytes.len() / 2;
    let lost = [&bytes[..middle], &bytes[middle + 500..]].concat();
    refusal(&lost);
    // Restart markers let a decoder go on after a loss; their numbers don't.
    let bytes = photo("landscape/l07_422_restart.jpg");
    let restart = |from: usize| {
        let found = bytes[from..].windows(2).position(|w| w[0] == 0xFF && w[1] & 0xF8 == 0xD0);
        from + found.unwrap()
    };
    let first = restart(bytes.len() / 2);
    let second = restart(first + 2);
    let lost = [&bytes[..first], &bytes[second..]].concat();
    assert!(refusal(&lost).contains("restart marker"));
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let bytes = photo("landscape/l01.jpg");
    for tail in [&[0_u8; 300][..], b"trailing text", &bytes] {
        let longer = [&bytes, tail].concat();
        assert_eq!(decode(&longer), Ok((375, 500)));
    }
}

#[test]
fn empty_and_foreign_files_are_named() {
    assert_eq!(refusal(b""), "the file is empty (0 bytes)");
    assert_eq!(refusal(b"Hello, world"), "not a JPEG, PNG, WebP, GIF, BMP or TIFF image (starts with 48 65 6c 6c)");
}

#[test]
fn the_pixel_limit_is_checked_against_the_header() {
    let mut decoder = ImageDecoder::new(DecodeOptions { max_pixels: 1000, ..DecodeOptions::default() });
    for name in JPEGS.iter().chain(&OTHERS) {
        let reason = decoder.decode_rgb(&photo(name), &mut Vec::new()).unwrap_err();
        assert!(reason.contains("more than the limit of 1000 pixels"), "{name}: {reason}");
    }
}

#[test]
fn a_jpeg_with_a_blown_up_size_is_refused_before_memory_is_taken() {
    let mut bytes = photo("landscape/l01.jpg");
    let frame = bytes.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x30, 0, 0x30, 0]);
    let mut out = Vec::new();
    let reason = ImageDecoder::new(DecodeOptions::default()).decode_rgb(&bytes, &mut out).unwrap_err();
    assert!(reason.contains("too few for 12288x12288 pixels"), "{reason}");
    assert_eq!(out.capacity(), 0);
}

#[test]
fn a_decoder_is_sound_after_errors() {
    let mut decoder = ImageDecoder::new(DecodeOptions::default());
    let mut out = Vec::new();
    let bytes = photo("landscape/l06_exif6.jpg");
    decoder.decode_rgb(&bytes, &mut out).unwrap();
    let first = out.clone();
    for name in JPEGS {
        let bytes = photo(name);
        decoder.decode_rgb(&bytes[..bytes.len() / 2], &mut out).unwrap_err();
    }
    decoder.decode_rgb(&bytes, &mut out).unwrap();
    assert_eq!(out, first);
}

/// The grey fixture's data as each of three scans, for components R, G and B.
fn three_scans() -> Vec<u8> {
    let bytes = photo("landscape/l05_gray.jpg");
    let find = |marker: u8| bytes.windows(2).position(|w| w == [0xFF, marker]).unwrap();
    let (frame, scan, end) = (find(0xC0), find(0xDA), bytes.len() - 2);
    let frame_end = frame + 2 + usize::from(bytes[frame + 3]);
    let mut built = bytes[..frame].to_vec();
    built.extend_from_slice(&[0xFF, 0xC0, 0, 17, 8]);
    built.extend_from_slice(&bytes[frame + 5..frame + 9]);
    built.extend_from_slice(&[3, b'R', 0x11, 0, b'G', 0x11, 0, b'B', 0x11, 0]);
    built.extend_from_slice(&bytes[frame_end..scan]);
    for id in *b"RGB" {
        built.extend_from_slice(&[0xFF, 0xDA, 0, 8, 1, id, 0, 0, 63, 0]);
        built.extend_from_slice(&bytes[scan + 10..end]);
    }
    built.extend_from_slice(&[0xFF, 0xD9]);
    built
}

#[test]
fn components_in_scans_of_their_own_are_put_together_or_refused_when_cut() {
    let mut decoder = ImageDecoder::new(DecodeOptions::default());
    let (mut grey, mut three) = (Vec::new(), Vec::new());
    decoder.decode_rgb(&photo("landscape/l05_gray.jpg"), &mut grey).unwrap();
    let bytes = three_scans();
    decoder.decode_rgb(&bytes, &mut three).unwrap();
    assert_eq!(grey, three);
    for percent in [20, 40, 60, 80, 95] {
        let at = bytes.len() * percent / 100;
        refusal(&[&bytes[..at], &[0xFF, 0xD9]].concat());
        refusal(&[&bytes[..at], &bytes[at + 300..]].concat());
    }
}
