//! Walks the markers of a JPEG and checks that its scans are all there.
//!
//! The pixel decoder tolerates much: where data is missing it fills in grey.
//! What it would need to notice is found here, from the markers alone, before
//! any pixel is decoded or any memory taken.

use std::ops::Range;

use super::jpeg_entropy::scan_data;

/// What the markers say about a JPEG.
pub(super) struct Layout {
    pub(super) frame: Frame,
    /// The bytes of the EXIF block, with its `Exif\0\0`.
    pub(super) exif: Option<Range<usize>>,
    /// Where the word `Adobe` of the Adobe segment starts, and its transform.
    pub(super) adobe: Option<(usize, u8)>,
    /// The segments with quantisation tables, Huffman tables and restart
    /// intervals, each from its marker on, in the order of the file.
    pub(super) tables: Vec<Range<usize>>,
    /// The scans in the order of the file, at least one.
    pub(super) scans: Vec<Scan>,
    /// Where the entropy-coded data of the last scan starts and ends.
    pub(super) last_scan: Range<usize>,
}

/// The frame header and what the scans so far have filled of it.
pub(super) struct Frame {
    pub(super) height: u16,
    pub(super) width: u16,
    /// Whether scans hold parts of the precision (SOF2).
    pub(super) progressive: bool,
    /// 1 is grey, 3 are YCbCr or RGB, 4 are CMYK or YCCK.
    pub(super) components: Vec<Component>,
}

impl Frame {
    /// The largest sampling factors, `(horizontal, vertical)`: those of the
    /// components that have a sample for every pixel.
    pub(super) fn full_sampling(&self) -> (usize, usize) {
        let most = |size: fn(&Component) -> usize| self.components.iter().map(size).max();
        let horizontal = most(|c| c.horizontal).unwrap_or(1);
        let vertical = most(|c| c.vertical).unwrap_or(1);
        (horizontal, vertical)
    }

    /// Whether the components are called R, G and B, which means that they are.
    pub(super) fn named_rgb(&self) -> bool {
        self.components.iter().map(|c| c.id).eq(*b"RGB")
    }
}

/// One component as the frame header declares it.
pub(super) struct Component {
    pub(super) id: u8,
    pub(super) horizontal: usize,
    pub(super) vertical: usize,
    /// The number of its quantisation table.
    pub(super) quantisation: u8,
    /// Whether a scan with its DC, and one with its AC values, has been seen.
    has_dc: bool,
    has_ac: bool,
}

/// One scan.
pub(super) struct Scan {
    /// The first of its components, as an index, and that one's Huffman tables
    /// as the scan header writes them.
    pub(super) component: usize,
    pub(super) huffman: u8,
    /// How many components it interleaves.
    pub(super) components: usize,
    /// How many of [`Layout::tables`] come before it.
    pub(super) tables: usize,
    /// Its entropy-coded data.
    pub(super) data: Range<usize>,
}

/// Walks from SOI to EOI. What follows the first EOI is ignored.
///
/// # Errors
/// If the file ends before its EOI, if scans are missing or cut, or if the kind
/// of JPEG isn't supported.
pub(super) fn walk(bytes: &[u8]) -> Result<Layout, String> {
    let mut frame: Option<Frame> = None;
    let mut exif = None;
    let mut adobe = None;
    let mut interval = 0_usize;
    let mut tables = Vec::new();
    let mut scans: Vec<Scan> = Vec::new();
    let mut at = 2;
    loop {
        let (marker, start) = next_marker(bytes, at)?;
        at = start;
        match marker {
            // Markers without a length; a stray one between segments is harmless.
            0x01 | 0xD0..=0xD8 => continue,
            0xD9 => break,
            _ => {}
        }
        let segment = segment(bytes, start)?;
        at = segment.end;
        let body = &bytes[segment.clone()];
        if matches!(marker, 0xC4 | 0xDB | 0xDD) {
            // The marker and the length take four bytes.
            tables.push(segment.start - 4..segment.end);
        }
        match marker {
            0xC0..=0xC2 => {
                if frame.is_some() {
                    return Err("the JPEG is corrupt: it has two frame headers".into());
                }
                frame = Some(parse_frame(body, marker == 0xC2)?);
            }
            0xC3 | 0xC5..=0xC7 | 0xDE | 0xDF => {
                return Err("a lossless or hierarchical JPEG, which is not supported".into());
            }
            0xC9..=0xCF => {
                return Err("an arithmetic-coded JPEG, which is not supported".into());
            }
            0xDC => return Err("a JPEG that gives its height late, which is not supported".into()),
            0xDD => match body {
                [high, low] => interval = usize::from(u16::from_be_bytes([*high, *low])),
                _ => return Err("the JPEG is corrupt: bad restart interval segment".into()),
            },
            0xE1 if exif.is_none() && body.starts_with(b"Exif\0\0") => exif = Some(segment),
            0xEE if body.starts_with(b"Adobe") => {
                adobe = body.get(11).map(|transform| (segment.start, *transform));
            }
            0xDA => {
                let frame = frame.as_mut().ok_or("the JPEG is corrupt: a scan comes before the frame header")?;
                let mut begun = begin_scan(frame, body, scans.is_empty(), tables.len())?;
                let data = scan_data(bytes, at, begun.mcus, interval)?;
                if scans.is_empty() && data.len() * 8 < begun.least_bits {
                    return Err(format!(
                        "the JPEG is truncated: {} bytes of picture data are too few for {}x{} pixels",
                        data.len(),
                        frame.width,
                        frame.height
                    ));
                }
                at = data.end;
                begun.scan.data = data;
                scans.push(begun.scan);
            }
            _ => {}
        }
    }
    let (Some(frame), Some(last)) = (frame, scans.last()) else {
        return Err("the JPEG is truncated: it ends before any picture data".into());
    };
    if !frame.components.iter().all(|c| c.has_dc) || !frame.components.iter().any(|c| c.has_ac) {
        return Err("the JPEG is truncated: it ends before all its scans".into());
    }
    let last_scan = last.data.clone();
    Ok(Layout { frame, exif, adobe, tables, scans, last_scan })
}

/// Finds the next marker from `at`: its code and the position after it.
fn next_marker(bytes: &[u8], at: usize) -> Result<(u8, usize), String> {
    let mut at = at;
    // Other bytes before a marker are junk that decoders skip; more than one FF
    // is padding.
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != 0xFF {
            continue;
        }
        while bytes.get(at) == Some(&0xFF) {
            at += 1;
        }
        match bytes.get(at) {
            None => break,
            Some(0) => at += 1,
            Some(&marker) => return Ok((marker, at + 1)),
        }
    }
    Err("the JPEG is truncated: it has no end marker".into())
}

/// The body of the segment whose length field is at `start`.
fn segment(bytes: &[u8], start: usize) -> Result<Range<usize>, String> {
    let end_of_file = || "the JPEG is truncated: it ends inside its header".to_string();
    let length = bytes.get(start..start + 2).ok_or_else(end_of_file)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length < 2 {
        return Err("the JPEG is corrupt: a segment shorter than its own length".into());
    }
    if start + length > bytes.len() {
        return Err(end_of_file());
    }
    Ok(start + 2..start + length)
}

/// Reads a frame header (SOF0, SOF1 or SOF2).
fn parse_frame(body: &[u8], progressive: bool) -> Result<Frame, String> {
    let bad = || "the JPEG is corrupt: bad frame header".to_string();
    let [precision, h1, h0, w1, w0, count, rest @ ..] = body else {
        return Err(bad());
    };
    if *precision != 8 {
        return Err(format!("a JPEG of {precision} bits, which is not supported"));
    }
    let count = usize::from(*count);
    if !matches!(count, 1 | 3 | 4) {
        return Err(format!("a JPEG of {count} components, which is not supported"));
    }
    let mut components = Vec::with_capacity(count);
    for spec in rest.chunks_exact(3).take(count) {
        let (horizontal, vertical) = (usize::from(spec[1] >> 4), usize::from(spec[1] & 15));
        if !(1..=4).contains(&horizontal) || !(1..=4).contains(&vertical) {
            return Err(bad());
        }
        components.push(Component {
            id: spec[0],
            horizontal,
            vertical,
            quantisation: spec[2],
            has_dc: false,
            has_ac: false,
        });
    }
    if components.len() != count || rest.len() != count * 3 {
        return Err(bad());
    }
    Ok(Frame { height: u16::from_be_bytes([*h1, *h0]), width: u16::from_be_bytes([*w1, *w0]), progressive, components })
}

/// A scan whose header has been read, and how much it must hold.
struct BegunScan {
    scan: Scan,
    /// Units between which restart markers are counted.
    mcus: usize,
    /// The fewest bits that can code them.
    least_bits: usize,
}

/// Reads a scan header and notes what the scan fills; its data isn't known yet.
fn begin_scan(frame: &mut Frame, body: &[u8], first: bool, tables: usize) -> Result<BegunScan, String> {
    let bad = || "the JPEG is corrupt: bad scan header".to_string();
    let count = usize::from(*body.first().ok_or_else(bad)?);
    if body.len() != 4 + 2 * count || !(1..=4).contains(&count) {
        return Err(bad());
    }
    if !first && !frame.progressive && frame.components.iter().all(|c| c.has_dc) {
        return Err("the JPEG is corrupt: a scan follows after the picture is complete".into());
    }
    let (from, to) = (body[1 + 2 * count], body[2 + 2 * count]);
    let (h_max, v_max) = frame.full_sampling();
    let (height, width) = (usize::from(frame.height), usize::from(frame.width));
    let mut blocks_per_mcu = 0;
    let mut mcus = height.div_ceil(8 * v_max) * width.div_ceil(8 * h_max);
    let mut index = 0;
    for selector in body[1..=2 * count].chunks_exact(2).rev() {
        index = frame.components.iter().position(|c| c.id == selector[0]).ok_or_else(bad)?;
        let component = &mut frame.components[index];
        component.has_dc |= from == 0;
        component.has_ac |= to > 0;
        if count == 1 {
            // A scan of one component covers its own grid, block by block.
            blocks_per_mcu = 1;
            mcus =
                (height * component.vertical).div_ceil(8 * v_max) * (width * component.horizontal).div_ceil(8 * h_max);
        } else {
            blocks_per_mcu += component.horizontal * component.vertical;
        }
    }
    // At least one bit for a block's DC and, when they come together, one that
    // ends its AC values.
    let bits_per_block = if frame.progressive { 1 } else { 2 };
    Ok(BegunScan {
        scan: Scan { component: index, huffman: body[2], components: count, tables, data: 0..0 },
        mcus,
        least_bits: mcus * blocks_per_mcu * bits_per_block,
    })
}
