//! A writer that digests what goes through it.

use std::io::{self, Write};

use super::fingerprint::Fingerprint;

/// Passes bytes on, digesting and counting them.
#[derive(Debug)]
pub struct Digesting<W> {
    inner: W,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<W: Write> Digesting<W> {
    /// Nothing has gone through yet.
    #[must_use]
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: blake3::Hasher::new(), bytes: 0 }
    }

    /// The inner writer, the digest of what went through it, and how many bytes that were.
    #[must_use]
    pub fn finish(self) -> (W, Fingerprint, u64) {
        let digest = Fingerprint::of_hash(&self.hasher.finalize());
        (self.inner, digest, self.bytes)
    }
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_through_has_the_digest_of_the_whole() {
        let mut writer = Digesting::new(Vec::new());
        writer.write_all(b"one ").unwrap();
        writer.write_all(b"file").unwrap();
        let (bytes, digest, count) = writer.finish();
        assert_eq!((bytes.as_slice(), count), (b"one file".as_slice(), 8));
        assert_eq!(digest, Fingerprint::of_bytes(b"one file"));
    }
}
