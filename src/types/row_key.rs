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

    /// The key of row `position` of what this row expands into.
    #[must_use]
    pub fn child(self, position: u64) -> Self {
        Self::derived("parbake expanded row key v1", &[&self.0, &position.to_le_bytes()])
    }

    /// The key of the row that a join makes of this row and its partner; of this row alone where it has none.
    #[must_use]
    pub fn joined(self, partner: Option<Self>) -> Self {
        match partner {
            Some(partner) => Self::derived("parbake joined row key v1", &[&self.0, &partner.0]),
            None => Self::derived("parbake joined row key v1", &[&self.0]),
        }
    }

    /// The key of this row as a part of a union, in which its rows are the branch of that number.
    #[must_use]
    pub fn in_branch(self, branch: u64) -> Self {
        Self::derived("parbake union row key v1", &[&self.0, &branch.to_le_bytes()])
    }

    /// The key of a row that is made of several rows, whose keys these are in order, as number `part` of what was made
    /// of them.
    #[must_use]
    pub fn packed(of: &[Self], part: u64) -> Self {
        let parts: Vec<&[u8]> = of.iter().map(|key| key.0.as_slice()).collect();
        let number = part.to_le_bytes();
        Self::derived("parbake packed row key v1", &[&[number.as_slice()], parts.as_slice()].concat())
    }

    /// The key of a row that is known by its values alone: their digest, and how many equal rows come before it.
    #[must_use]
    pub fn of_values(digest: &[u8; 32], occurrence: u64) -> Self {
        Self::derived("parbake row key of values v1", &[digest, &occurrence.to_le_bytes()])
    }

    fn derived(context: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        for part in parts {
            hasher.update(part);
        }
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
