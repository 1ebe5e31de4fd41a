//! The folder of a data set: finished shards, publication, cleaning.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

use super::manifest::{MANIFEST_VERSION, Manifest, Quarantined, ShardRecord};
use crate::diag::{Error, Result};
use crate::types::{Digesting, Fingerprint};
use crate::world::files;

/// The prefix of files that aren't finished.
const TEMPORARY: &str = ".tmp-";

/// A data set's folder, whether or not anything is in it.
#[derive(Debug, Clone)]
pub struct Dataset {
    folder: PathBuf,
}

impl Dataset {
    /// The data set in that folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The published manifest; none when nothing is published.
    ///
    /// # Errors
    /// When it can't be read or isn't a manifest of this version.
    pub fn manifest(&self) -> Result<Option<Manifest>> {
        let path = self.folder.join("manifest.json");
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        let version: Version = parse(&path, &text)?;
        if version.version != MANIFEST_VERSION {
            let found = version.version;
            return Err(Error::Dataset {
                message: format!(
                    "{} is of version {found}, and this parbake reads version {MANIFEST_VERSION}",
                    path.display()
                ),
                help: Some("use the parbake that wrote it, or build into another folder with `--out`".to_owned()),
            });
        }
        parse(&path, &text).map(Some)
    }

    /// The published manifest, for a reader.
    ///
    /// # Errors
    /// When nothing is published, or as for [`Dataset::manifest`].
    pub fn open(&self) -> Result<Manifest> {
        self.manifest()?.ok_or_else(|| Error::Dataset {
            message: format!("there is no data set in {}", self.folder.display()),
            help: Some("build one with `parbake build PIPELINE --out FOLDER`".to_owned()),
        })
    }

    /// The file of a shard.
    #[must_use]
    pub fn shard_path(&self, id: Fingerprint) -> PathBuf {
        self.folder.join("shards").join(format!("{id}.parquet"))
    }

    fn record_path(&self, id: Fingerprint) -> PathBuf {
        self.folder.join("shards").join(format!("{id}.json"))
    }

    /// The record of a shard that was finished, whether or not it was ever published: its record is there and its
    /// file has the size that the record says.
    #[must_use]
    pub fn finished(&self, id: Fingerprint) -> Option<ShardRecord> {
        let text = files::read_if_there(&self.record_path(id)).ok()??;
        let record: ShardRecord = serde_json::from_slice(&text).ok()?;
        let whole = files::length_if_there(&self.shard_path(id)).ok()? == Some(record.bytes);
        (record.id == id && whole).then_some(record)
    }

    /// Bytes of shards that no published generation names: a build that didn't end left them, and the next one takes
    /// them over or removes them.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn unpublished_bytes(&self, published: Option<&Manifest>) -> Result<u64> {
        let named: BTreeSet<String> = published.iter().flat_map(|manifest| manifest.kept()).collect();
        let folder = self.folder.join("shards");
        let mut bytes = 0;
        for name in files::names_in(&folder)? {
            if is_ours(&name) && !named.contains(stem(&name)) {
                bytes += files::length_if_there(&folder.join(name))?.unwrap_or(0);
            }
        }
        Ok(bytes)
    }

    /// Removes what is published and its shards; a profile stays.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn remove(&self) -> Result<()> {
        files::remove_if_there(&self.folder.join("manifest.json"))?;
        let folder = self.folder.join("shards");
        for name in files::names_in(&folder)?.into_iter().filter(|name| is_ours(name)) {
            files::remove_if_there(&folder.join(name))?;
        }
        Ok(())
    }

    /// A name for a file that is needed for a while; what a killed build leaves, the next one removes.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn temporary(&self, purpose: &str) -> Result<PathBuf> {
        files::make_folder(&self.folder)?;
        Ok(self.folder.join(format!("{TEMPORARY}{purpose}-{}", std::process::id())))
    }

    /// Begins the file of a shard.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn begin_shard(&self, id: Fingerprint) -> Result<PendingShard> {
        let folder = self.folder.join("shards");
        files::make_folder(&folder)?;
        let file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&folder);
        let file = file.map_err(|error| Error::io("writing a shard in", &folder, error))?;
        let (path, record) = (self.shard_path(id), self.record_path(id));
        Ok(PendingShard { file: Digesting::new(file), path, record })
    }

    /// Publishes a generation: readers see the one before until this returns, and this one from then on. Then removes
    /// what neither of the two needs.
    ///
    /// # Errors
    /// When the folder can't be written; then the generation before is still published.
    pub fn publish(&self, manifest: &Manifest) -> Result<()> {
        files::make_folder(&self.folder)?;
        let quarantined: Vec<&Quarantined> = manifest.quarantined().collect();
        files::write_atomic(&self.folder.join("quarantine.json"), &json(&quarantined)?)?;
        files::write_atomic(&self.folder.join("manifest.json"), &json(manifest)?)?;
        self.clean(&manifest.kept().collect())
    }

    /// Removes unfinished files, and shards that aren't to be kept.
    fn clean(&self, kept: &BTreeSet<String>) -> Result<()> {
        let folder = self.folder.join("shards");
        for name in files::names_in(&folder)? {
            if is_ours(&name) && !kept.contains(stem(&name)) {
                files::remove_if_there(&folder.join(name))?;
            }
        }
        for name in files::names_in(&self.folder)? {
            if name.starts_with(TEMPORARY) || name.starts_with(".profile-") {
                files::remove_if_there(&self.folder.join(name))?;
            }
        }
        Ok(())
    }
}

/// Whether a file's name is one that shards and what comes of killed builds have; others' files are left alone.
fn is_ours(name: &str) -> bool {
    let is_shard = |suffix: &str| {
        name.strip_suffix(suffix).is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    name.starts_with(TEMPORARY) || is_shard(".parquet") || is_shard(".json")
}

/// The part of a file's name that is its shard's; a temporary one has none.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

#[derive(serde::Deserialize)]
struct Version {
    version: u32,
}

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| Error::Dataset {
        message: format!("{} is not a manifest: {error}", path.display()),
        help: Some("if it was damaged, remove it and build again: finished shards are taken over".to_owned()),
    })
}

fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(|error| Error::internal("the manifest", error))
}

/// The file of a shard while it is written: digested on the way, gone if it isn't committed.
#[derive(Debug)]
pub struct PendingShard {
    file: Digesting<NamedTempFile>,
    path: PathBuf,
    record: PathBuf,
}

impl Write for PendingShard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl PendingShard {
    /// Makes the shard last: syncs its file, gives it its name, then writes its record. Gives the record with size and
    /// checksum filled in.
    ///
    /// # Errors
    /// When the file can't be synced or renamed; then there is no shard.
    pub fn commit(self, record: ShardRecord) -> Result<ShardRecord> {
        let (file, digest, bytes) = self.file.finish();
        let record = ShardRecord { bytes, checksum: Some(digest), ..record };
        let failed = |error: io::Error| Error::io("writing the shard", &self.path, error);
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.path).map_err(|error| Error::io("writing the shard", &self.path, error.error))?;
        // The record is written last, and syncs the folder that both are in.
        files::write_atomic(&self.record, &json(&record)?)?;
        Ok(record)
    }
}
