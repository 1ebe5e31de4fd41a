//! Finds the end of a scan's entropy-coded data and counts its restart markers.

use std::ops::Range;

/// Finds where the entropy-coded data from `start` ends and checks its restart
/// markers, which number the parts of the scan and so show that one is missing.
///
/// `mcus` is the number of units that the scan codes, `interval` the number of
/// them between restart markers, 0 if there are none.
///
/// # Errors
/// If the file ends first, or restart markers are missing or too many.
pub(super) fn scan_data(bytes: &[u8], start: usize, mcus: usize, interval: usize) -> Result<Range<usize>, String> {
    let mut restarts = 0_usize;
    let mut at = start;
    let end = loop {
        at += find_ff(&bytes[at..]);
        let marker_at = at;
        while bytes.get(at) == Some(&0xFF) {
            at += 1;
        }
        match bytes.get(at) {
            None => {
                return Err("the JPEG is truncated: it ends inside its picture data".into());
            }
            Some(0) => at += 1,
            Some(marker @ 0xD0..=0xD7) => {
                if usize::from(marker & 7) != restarts % 8 {
                    return Err("the JPEG is corrupt: a restart marker is missing".into());
                }
                restarts += 1;
                at += 1;
            }
            Some(_) => break marker_at,
        }
    };
    let parts = if interval == 0 { 1 } else { mcus.div_ceil(interval) };
    // Some encoders put one more restart marker before the end.
    if restarts + 1 < parts {
        return Err("the JPEG is truncated: restart markers are missing at its end".into());
    }
    if restarts > parts {
        return Err("the JPEG is corrupt: it has too many restart markers".into());
    }
    Ok(start..end)
}

/// The position of the first FF byte, or the length if there is none.
fn find_ff(bytes: &[u8]) -> usize {
    /// A whole block is tested without branches, which compiles to wide compares.
    const BLOCK: usize = 64;
    let mut at = 0;
    for block in bytes.chunks_exact(BLOCK) {
        let found = block.iter().fold(0, |found, byte| found | u8::from(*byte == 0xFF));
        if found != 0 {
            break;
        }
        at += BLOCK;
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|byte| *byte == 0xFF).unwrap_or(rest.len())
}
