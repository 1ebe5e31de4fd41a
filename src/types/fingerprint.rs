//! Fingerprints: canonical hashes of definitions and inputs.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 128-bit BLAKE3 fingerprint, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// The fingerprint of these bytes alone (a content digest).
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::of_hash(&blake3::hash(bytes))
    }

    /// The first half of a BLAKE3 hash.
    #[must_use]
    pub fn of_hash(hash: &blake3::Hash) -> Self {
        let mut out = [0; 16];
        out.copy_from_slice(&hash.as_bytes()[..16]);
        Self(out)
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a fingerprint of 32 hexadecimal digits");
        if text.len() != 32 || !text.is_ascii() {
            return Err(bad());
        }
        let mut out = [0; 16];
        for (byte, at) in out.iter_mut().zip((0..32).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(out))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Hashes a sequence of tagged, length-prefixed parts, so that no two sequences read alike.
pub struct FingerprintBuilder(blake3::Hasher);

impl FingerprintBuilder {
    /// Starts a fingerprint of that kind of thing (e.g. `"step"`, `"shard"`).
    #[must_use]
    pub fn new(kind: &str) -> Self {
        let mut builder = Self(blake3::Hasher::new_derive_key("parbake fingerprint v1"));
        builder.text(kind);
        builder
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds another fingerprint.
    pub fn fingerprint(&mut self, part: Fingerprint) -> &mut Self {
        self.bytes(&part.0)
    }

    /// The fingerprint of what was added.
    #[must_use]
    pub fn finish(&self) -> Fingerprint {
        let mut out = [0; 16];
        self.0.finalize_xof().fill(&mut out);
        Fingerprint(out)
    }
}
