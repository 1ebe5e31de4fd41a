//! Codecs of stored columns.

use serde::{Deserialize, Serialize};

/// How stored columns are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Not at all.
    None,
    /// LZ4 block format.
    Lz4,
    /// Zstandard, level 1.
    Zstd1,
    /// Zstandard, level 3.
    Zstd3,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Self; 4] = [Self::None, Self::Lz4, Self::Zstd1, Self::Zstd3];
    /// The words that `codec` takes.
    pub const WORDS: &'static [&'static str] = &["none", "lz4", "zstd1", "zstd3"];

    /// The codec of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.word() == word)
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd1 => "zstd1",
            Self::Zstd3 => "zstd3",
        }
    }
}
