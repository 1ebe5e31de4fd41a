//! Source files: which match the patterns, and their bytes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::diag::Result;

/// One source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Its path relative to the listing's root, with `/` between the parts.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since 1970; 0 where the store doesn't say.
    pub modified_ns: i64,
}

/// The source files that match, sorted bytewise by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The folder that paths are relative to: the deepest one that all patterns share before their first wildcard.
    pub root: PathBuf,
    /// The files.
    pub fragments: Vec<Fragment>,
}

/// Why a pattern can't be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingError {
    /// Which pattern.
    pub pattern: usize,
    /// Why.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Listing {
    /// Lists the files that match at least one of the patterns, which are relative to `base`.
    ///
    /// # Errors
    /// When a pattern is malformed or its folder doesn't exist.
    pub fn new(base: &Path, patterns: &[String]) -> Result<Self, Vec<ListingError>> {
        let _ = (base, patterns);
        Ok(Self::default())
    }
}

/// Reads source files.
#[derive(Debug, Clone)]
pub struct FileSource {
    root: PathBuf,
}

impl FileSource {
    /// A reader of files below that folder.
    ///
    /// # Errors
    /// When the folder can't be opened.
    pub fn new(root: &Path) -> Result<Self> {
        Ok(Self { root: root.to_owned() })
    }

    /// The whole content of a fragment.
    ///
    /// # Errors
    /// When it can't be read, or isn't as long as listed (it changed meanwhile).
    #[expect(clippy::unused_async)]
    pub async fn read(&self, fragment: &Fragment) -> Result<bytes::Bytes> {
        let path = self.root.join(&fragment.path);
        std::fs::read(&path).map(Into::into).map_err(|error| crate::diag::Error::io("reading", path, error))
    }

    /// The same, blocking the thread.
    ///
    /// # Errors
    /// As above.
    pub fn read_blocking(&self, fragment: &Fragment) -> Result<bytes::Bytes> {
        let path = self.root.join(&fragment.path);
        std::fs::read(&path).map(Into::into).map_err(|error| crate::diag::Error::io("reading", path, error))
    }
}
