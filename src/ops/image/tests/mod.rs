//! Decoding and resizing against Pillow's values; here is where fixtures and values are.

#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

mod decode_errors;
mod decode_reference;
mod draws;
mod jitter_reference;
mod resize_reference;

use std::path::Path;

/// The fixture pictures.
pub const PHOTOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/photos");
/// What `make_image_reference.py` wrote.
pub const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/image");

/// A fixture's bytes, by its path below [`PHOTOS`].
pub fn photo(name: &str) -> Vec<u8> {
    read(&Path::new(PHOTOS).join(name))
}

/// A reference file's bytes.
pub fn reference(name: &str) -> Vec<u8> {
    read(&Path::new(REFERENCE).join(name))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
