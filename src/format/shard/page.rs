//! One data page: its header, and the value in it.

use bytes::Bytes;
use parquet::basic::Compression;

use crate::types::BufferPool;

#[expect(clippy::struct_field_names, reason = "three lengths")]
/// What a page header says (Parquet format, `PageHeader` in Thrift's compact protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// Bytes of the header itself.
    pub header_len: usize,
    /// Bytes of the values, decompressed.
    pub uncompressed_len: usize,
    /// Bytes of the values as stored.
    pub compressed_len: usize,
}

/// Decompresses pages on one thread.
pub struct PageDecoder<'p> {
    compression: Compression,
    pool: &'p BufferPool,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl<'p> PageDecoder<'p> {
    /// A decoder for a column chunk of that compression.
    pub const fn new(compression: Compression, pool: &'p BufferPool) -> Self {
        Self { compression, pool, zstd: None }
    }

    /// The only value of a page of a required byte-array column, plain-encoded: a length, then the bytes.
    pub fn single_value(&mut self, page: &Bytes) -> Result<Bytes, String> {
        let header = PageHeader::read(page)?;
        let end = header.header_len + header.compressed_len;
        if end > page.len() {
            return Err("a page is shorter than its header says".to_owned());
        }
        let stored = page.slice(header.header_len..end);
        let plain = match self.compression {
            Compression::UNCOMPRESSED => stored,
            _ => self.decompress(&stored, header.uncompressed_len)?,
        };
        let Some((length, _)) = plain.split_first_chunk::<4>() else {
            return Err("a page without a value".to_owned());
        };
        let length = u32::from_le_bytes(*length) as usize;
        if plain.len() != 4 + length {
            return Err(format!("a page of {} bytes for a value of {length}", plain.len()));
        }
        Ok(plain.slice(4..))
    }

    fn decompress(&mut self, stored: &[u8], length: usize) -> Result<Bytes, String> {
        // A damaged header must not make us take any amount of memory: no codec here exceeds this ratio on real data.
        if length > stored.len().saturating_mul(40_000).saturating_add(1 << 20) {
            return Err("a page claims an impossible size".to_owned());
        }
        let mut buffer = self.pool.take(length);
        let into = buffer.as_mut_slice();
        let written = match self.compression {
            Compression::LZ4_RAW => {
                lz4_flex::block::decompress_into(stored, into).map_err(|error| error.to_string())?
            }
            Compression::ZSTD(_) => {
                let decompressor = match &mut self.zstd {
                    Some(decompressor) => decompressor,
                    none => none.insert(zstd::bulk::Decompressor::new().map_err(|error| error.to_string())?),
                };
                decompressor.decompress_to_buffer(stored, into).map_err(|error| error.to_string())?
            }
            other => return Err(format!("compression {other} isn't used in shards")),
        };
        if written != length {
            return Err("a page decompresses to another size than its header says".to_owned());
        }
        Ok(buffer.into_bytes())
    }
}

impl PageHeader {
    /// Reads the header at the start of a page.
    pub fn read(page: &[u8]) -> Result<Self, String> {
        let mut reader = Compact { bytes: page, at: 0 };
        let (mut uncompressed, mut compressed) = (None, None);
        let mut field = 0;
        while let Some((id, kind)) = reader.field(field)? {
            field = id;
            match (id, kind) {
                (2, Compact::I32) => uncompressed = Some(reader.length()?),
                (3, Compact::I32) => compressed = Some(reader.length()?),
                _ => reader.skip(kind, 0)?,
            }
        }
        match (uncompressed, compressed) {
            (Some(uncompressed_len), Some(compressed_len)) => {
                Ok(Self { header_len: reader.at, uncompressed_len, compressed_len })
            }
            _ => Err("a page header without sizes".to_owned()),
        }
    }
}

/// As much of Thrift's compact protocol as page headers use.
struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Compact<'_> {
    const I32: u8 = 5;

    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at).copied().ok_or("a page header is cut off")?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number in a page header is too long".to_owned())
    }

    /// A number of bytes: a zigzag varint that isn't negative.
    fn length(&mut self) -> Result<usize, String> {
        let raw = self.varint()?;
        if raw & 1 == 1 {
            return Err("a negative size in a page header".to_owned());
        }
        usize::try_from(raw >> 1).map_err(|error| error.to_string())
    }

    /// The id and kind of the next field, or none at the end of the struct.
    fn field(&mut self, last: i64) -> Result<Option<(i64, u8)>, String> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let (delta, kind) = (head >> 4, head & 0x0F);
        let id = if delta == 0 {
            let raw = self.varint()?;
            i64::try_from(raw >> 1).map_err(|error| error.to_string())?
        } else {
            last + i64::from(delta)
        };
        Ok(Some((id, kind)))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        if depth > 8 {
            return Err("a page header is nested too deeply".to_owned());
        }
        match kind {
            // Booleans lie in the kind itself.
            1 | 2 => {}
            3 => self.at += 1,
            4..=6 => {
                self.varint()?;
            }
            7 => self.at += 8,
            8 => {
                let length = usize::try_from(self.varint()?).map_err(|error| error.to_string())?;
                self.at = self.at.saturating_add(length);
            }
            12 => {
                let mut field = 0;
                while let Some((id, kind)) = self.field(field)? {
                    field = id;
                    self.skip(kind, depth + 1)?;
                }
            }
            other => return Err(format!("a page header has a field of unknown kind {other}")),
        }
        Ok(())
    }
}
