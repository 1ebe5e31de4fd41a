//! A growable byte buffer whose start is aligned for every dtype.

/// Bytes aligned to 8, kept across rows so that a hot loop touches no fresh page.
#[derive(Debug, Default)]
pub struct AlignedBuf {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBuf {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), len: 0 }
    }

    /// Sets the length to `len` bytes and returns them; what was there before stays, what is new is zero.
    pub fn resize(&mut self, len: usize) -> &mut [u8] {
        let words = len.div_ceil(8);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
        self.len = len;
        self.as_mut_slice()
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }

    /// Bytes that can be held without allocating.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.words.len() * 8
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}
