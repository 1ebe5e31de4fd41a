//! Recycled buffers: the pages of a batch that was consumed serve the next one.
//!
//! The first touch of a fresh 4 KiB page costs more than filling it, so whoever makes batch after batch takes its
//! memory from here; dropping the last Arrow array that refers to it brings it back.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::buffer::Buffer;
use bytes::Bytes;

use super::aligned::AlignedBuf;

/// The most bytes of buffers that nobody uses which a pool keeps, however few they are.
const KEPT_BYTES: usize = 256 << 20;

/// A pool of buffers, shared by threads.
#[derive(Debug, Clone)]
pub struct BufferPool(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    free: Mutex<Vec<AlignedBuf>>,
    keep: usize,
}

impl BufferPool {
    /// A pool that keeps at most `keep` buffers that nobody uses, and no more than 256 MiB of them.
    #[must_use]
    pub fn new(keep: usize) -> Self {
        Self(Arc::new(Pool { free: Mutex::new(Vec::new()), keep }))
    }

    /// A buffer of `len` bytes whose content is unspecified.
    #[must_use]
    pub fn take(&self, len: usize) -> PooledBuf {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        // The smallest that is large enough, else the largest, which then grows.
        let fit = free
            .iter()
            .enumerate()
            .min_by_key(|(_, buf)| if buf.capacity() >= len { buf.capacity() } else { usize::MAX - buf.capacity() })
            .map(|(at, _)| at);
        let mut buf = fit.map(|at| free.swap_remove(at)).unwrap_or_default();
        drop(free);
        buf.resize(len);
        PooledBuf { buf, pool: Arc::clone(&self.0) }
    }
}

/// A buffer that returns to its pool when dropped.
#[derive(Debug)]
pub struct PooledBuf {
    buf: AlignedBuf,
    pool: Arc<Pool>,
}

impl PooledBuf {
    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.buf.as_mut_slice()
    }

    /// The buffer itself, for a producer that finds out the length only while it works.
    pub fn aligned_mut(&mut self) -> &mut AlignedBuf {
        &mut self.buf
    }

    /// Gives the bytes away; the buffer returns to the pool when the last reference goes.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }

    /// Gives the bytes away as an Arrow buffer.
    #[must_use]
    pub fn into_arrow(self) -> Buffer {
        Buffer::from(self.into_bytes())
    }
}

impl AsRef<[u8]> for PooledBuf {
    fn as_ref(&self) -> &[u8] {
        self.buf.as_slice()
    }
}

impl Drop for PooledBuf {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = free.iter().map(AlignedBuf::capacity).sum();
        if free.len() < self.pool.keep && kept + self.buf.capacity() <= KEPT_BYTES {
            free.push(std::mem::take(&mut self.buf));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_comes_back() {
        let pool = BufferPool::new(2);
        let mut first = pool.take(100);
        first.as_mut_slice().fill(7);
        let place = first.as_ref().as_ptr();
        drop(first.into_arrow());
        let again = pool.take(60);
        assert_eq!(again.as_ref().as_ptr(), place);
        assert_eq!(again.as_ref(), [7; 60]);
    }
}
