//! Row keys: the name of a sample for ever.

use serde::{Deserialize, Serialize};

/// 128 bits that name a sample: its source fragment and its place inside it, and nothing else.
///
/// A key never depends on the cut, the sharding, the thread count or the machine.
/// The *order* of rows is that of their fragments (by name, bytewise) and of their places inside;
/// the key itself is what random streams and shuffles are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowKey(pub [u8; 16]);

impl RowKey {
    /// The key of row `position` of the source fragment called `fragment`.
    ///
    /// BLAKE3 in key-derivation mode over the name and the position (little endian), cut to 128 bits.
    #[must_use]
    pub fn of_fragment(fragment: &str, position: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("parbake row key v1");
        hasher.update(&position.to_le_bytes());
        hasher.update(fragment.as_bytes());
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }

    /// The two 64-bit halves, little endian.
    #[must_use]
    pub fn halves(self) -> (u64, u64) {
        let value = u128::from_le_bytes(self.0);
        #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
        (value as u64, (value >> 64) as u64)
    }
}
