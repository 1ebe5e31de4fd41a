//! The manifest: what a data set consists of, and everything that a reader needs to stream it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::format::Fragment;
use crate::pipeline::{OnError, Program};
use crate::types::{Codec, Fingerprint, FingerprintBuilder, NamedColumn};

/// The version of manifests that this parbake writes and reads.
pub const MANIFEST_VERSION: u32 = 2;

/// A published generation of a data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this layout.
    pub version: u32,
    /// Raised by one with each publication.
    pub generation: u64,
    /// The pipeline's name.
    pub name: String,
    /// When it was published, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
    /// The version of parbake that wrote it.
    pub parbake: String,
    /// The cut's word.
    pub cut: String,
    /// How stored columns are compressed.
    pub codec: Codec,
    /// The sources.
    pub sources: Vec<SourceRecord>,
    /// The source files of all sources as they were, where rows of several relations were put together; else those of
    /// each shard are with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputRecord>,
    /// Rows that were left out before rows were put together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Quarantined>,
    /// How many files a shard holds on average.
    pub files_per_shard: u32,
    /// What the stored bytes depend on besides the source files.
    pub definition: Fingerprint,
    /// The steps that were run.
    pub offline: Program,
    /// The steps that are still to be run.
    pub remainder: Program,
    /// The stored columns.
    pub columns: Vec<NamedColumn>,
    /// What happens to rows that a step can't process.
    pub on_error: OnError,
    /// The shards, in row-key order.
    pub shards: Vec<ShardRecord>,
    /// The shards of the generation before, whose files are kept for those who still read it.
    pub previous: Vec<Fingerprint>,
    /// What was predicted.
    pub plan: serde_json::Value,
    /// What was measured.
    pub built: BuildFigures,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Its name.
    pub name: String,
    /// The folder that its files' paths are relative to.
    pub root: PathBuf,
    /// Whether each of its files is a row.
    pub files: bool,
}

/// A source file of one of several sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRecord {
    /// The source, by its place.
    pub source: usize,
    /// Its path, relative to the source's root.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// BLAKE3 of its content, cut to 128 bits, if it was read.
    pub digest: Option<Fingerprint>,
}

/// A shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Its name: what it is made from, hashed.
    pub id: Fingerprint,
    /// The source files, in row-key order; none where its rows were put together from several relations.
    pub fragments: Vec<FragmentRecord>,
    /// The digest of the rows that it is made of, where those were put together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Fingerprint>,
    /// Rows stored.
    pub rows: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// BLAKE3 of its file, cut to 128 bits.
    pub checksum: Option<Fingerprint>,
    /// Rows that were left out.
    pub quarantined: Vec<Quarantined>,
    /// Seconds that it took.
    pub seconds: f64,
    /// CPU seconds that it took.
    pub cpu_seconds: f64,
}

/// A source file as it was when its shard was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentRecord {
    /// Its path, relative to the root.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// BLAKE3 of its content, cut to 128 bits.
    pub digest: Fingerprint,
    /// Stored rows that came of it.
    pub rows: u64,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The source file, relative to the root.
    pub path: String,
    /// The row inside the file, from 0.
    pub row: u64,
    /// The step that couldn't process it.
    pub step: String,
    /// Why, in words.
    pub reason: String,
}

/// What a build measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BuildFigures {
    /// Seconds from the first read to the last shard.
    pub seconds: f64,
    /// CPU seconds of the process in that time.
    pub cpu_seconds: f64,
    /// Rows of the data set.
    pub rows: u64,
    /// Bytes of all shard files.
    pub stored_bytes: u64,
    /// Shards that were built.
    pub shards_built: u64,
    /// Shards that were still good.
    pub shards_kept: u64,
    /// The largest resident set, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

impl Manifest {
    /// Rows of the data set.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.shards.iter().map(|shard| shard.rows).sum()
    }

    /// Bytes of all shard files.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }

    /// The names of the shards whose files are kept: this generation's and those of the one before.
    pub fn kept(&self) -> impl Iterator<Item = String> + '_ {
        self.shards.iter().map(|shard| shard.id).chain(self.previous.iter().copied()).map(|id| id.to_string())
    }

    /// Rows that were left out, in row-key order.
    pub fn quarantined(&self) -> impl Iterator<Item = &Quarantined> + '_ {
        self.left_out.iter().chain(self.shards.iter().flat_map(|shard| &shard.quarantined))
    }
}

/// The version of the bytes that a shard writer makes of the same rows.
const SHARD_FORMAT: u64 = 3;

/// What stored bytes depend on besides the source files: the offline program, how the rows were put together that it
/// begins with, and how columns are stored.
#[must_use]
pub fn definition(
    offline: &Program,
    gathered: Option<Fingerprint>,
    structure: Option<&Program>,
    codec: Codec,
) -> Fingerprint {
    let mut builder = FingerprintBuilder::new("definition");
    builder.number(SHARD_FORMAT).text(codec.word()).fingerprint(offline.fingerprint());
    for part in [gathered, structure.map(Program::fingerprint)] {
        match part {
            Some(part) => builder.number(1).fingerprint(part),
            None => builder.number(0),
        };
    }
    builder.finish()
}

/// The name of a shard: the definition and its source files as they are listed.
#[must_use]
pub fn shard_fingerprint(definition: Fingerprint, fragments: &[Fragment]) -> Fingerprint {
    let mut builder = FingerprintBuilder::new("shard");
    builder.fingerprint(definition);
    for fragment in fragments {
        builder.text(&fragment.path).number(fragment.size).bytes(&fragment.modified_ns.to_le_bytes());
    }
    builder.finish()
}

/// The name of a shard of rows that were put together: the definition and what the rows are made of.
#[must_use]
pub fn part_fingerprint(definition: Fingerprint, part: Fingerprint) -> Fingerprint {
    FingerprintBuilder::new("gathered shard").fingerprint(definition).fingerprint(part).finish()
}
