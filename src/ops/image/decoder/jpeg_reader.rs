//! The byte source of the JPEG decoder, which notes how far its data was read.

use std::cell::Cell;

use zune_core::bytestream::{ZByteIoError, ZByteReaderTrait, ZSeekFrom};

/// A slice as the JPEG decoder reads it.
///
/// The decoder takes entropy-coded data byte by byte without errors, or four
/// bytes at a time; it searches for markers byte by byte with errors. Only the
/// former count as data that was used, so that data left over can be told from
/// data that the search for the end marker stepped over.
pub(super) struct ScanReader<'a> {
    bytes: &'a [u8],
    at: usize,
    data_end: &'a Cell<usize>,
}

impl<'a> ScanReader<'a> {
    /// A reader from the start of `bytes`, which keeps in `data_end` the
    /// position after the last byte of entropy-coded data that was taken.
    pub(super) fn new(bytes: &'a [u8], data_end: &'a Cell<usize>) -> Self {
        Self { bytes, at: 0, data_end }
    }

    /// The bytes from the current position.
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// Copies what fits without moving on.
    fn peek(&self, buf: &mut [u8]) -> usize {
        let rest = self.rest();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        len
    }
}

impl ZByteReaderTrait for ScanReader<'_> {
    #[inline]
    fn read_byte_no_error(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        self.data_end.set(self.at);
        byte
    }

    #[inline]
    fn read_exact_bytes(&mut self, buf: &mut [u8]) -> Result<(), ZByteIoError> {
        let Some(taken) = self.rest().get(..buf.len()) else {
            return Err(ZByteIoError::NotEnoughBytes(self.rest().len(), buf.len()));
        };
        buf.copy_from_slice(taken);
        self.at += buf.len();
        if buf.len() == 4 {
            self.data_end.set(self.at);
        }
        Ok(())
    }

    #[inline]
    fn read_bytes(&mut self, buf: &mut [u8]) -> Result<usize, ZByteIoError> {
        let len = self.peek(buf);
        self.at += len;
        Ok(len)
    }

    fn peek_bytes(&mut self, buf: &mut [u8]) -> Result<usize, ZByteIoError> {
        Ok(self.peek(buf))
    }

    fn peek_exact_bytes(&mut self, buf: &mut [u8]) -> Result<(), ZByteIoError> {
        match self.peek(buf) {
            len if len == buf.len() => Ok(()),
            len => Err(ZByteIoError::NotEnoughBytes(len, buf.len())),
        }
    }

    #[inline]
    fn z_seek(&mut self, from: ZSeekFrom) -> Result<u64, ZByteIoError> {
        let out_of_range = |_| ZByteIoError::SeekError("position out of range");
        let (base, offset) = match from {
            ZSeekFrom::Start(at) => (usize::try_from(at).map_err(out_of_range)?, 0),
            ZSeekFrom::End(offset) => (self.bytes.len(), offset),
            ZSeekFrom::Current(offset) => (self.at, offset),
        };
        let offset = isize::try_from(offset).map_err(out_of_range)?;
        self.at = base.checked_add_signed(offset).ok_or(ZByteIoError::SeekError("position before the start"))?;
        Ok(self.at as u64)
    }

    #[inline]
    fn is_eof(&mut self) -> Result<bool, ZByteIoError> {
        Ok(self.at >= self.bytes.len())
    }

    #[inline]
    fn z_position(&mut self) -> Result<u64, ZByteIoError> {
        Ok(self.at as u64)
    }

    fn read_remaining(&mut self, sink: &mut Vec<u8>) -> Result<usize, ZByteIoError> {
        let rest = self.rest();
        sink.extend_from_slice(rest);
        self.at += rest.len();
        Ok(rest.len())
    }
}
