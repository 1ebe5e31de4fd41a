//! Local files: positioned reads, atomic writes, syncing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::diag::{Error, Result};

/// Bytes that can be read at any place, by several threads at once.
pub trait ReadAt: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;
    /// Whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// When the bytes can't be read, or the file ends before.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// An open local file.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    len: u64,
}

impl LocalFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(path: &Path) -> Result<Self> {
        let open = || {
            let file = File::open(path)?;
            let len = file.metadata()?.len();
            Ok(Self { file, len })
        };
        open().map_err(|error| Error::io("opening", path, error))
    }
}

impl ReadAt for LocalFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

/// Writes a whole file so that a reader sees the old bytes or the new ones: temporary name, sync, rename, sync of the
/// folder.
///
/// # Errors
/// When the system refuses; the temporary file is removed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut temporary = tempfile::Builder::new().prefix(".tmp-").tempfile_in(folder)?;
        temporary.write_all(bytes)?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| Error::io("writing", path, error))
}

/// Makes a folder and those above it.
///
/// # Errors
/// When the system refuses.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::io("making the folder", path, error))
}

/// Creates a file, or empties it if it is there.
///
/// # Errors
/// When the system refuses.
pub fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| Error::io("writing", path, error))
}

/// Removes a file; that it isn't there is no error.
///
/// # Errors
/// When the system refuses.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("removing", path, error)),
        _ => Ok(()),
    }
}

/// The content of a file; none when it isn't there.
///
/// # Errors
/// When the system refuses.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("reading", path, error)),
    }
}

/// The length of a file in bytes; none when it isn't there.
///
/// # Errors
/// When the system refuses.
pub fn length_if_there(path: &Path) -> Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("looking at", path, error)),
    }
}

/// The names of what is in a folder; none when it isn't there. A name that isn't Unicode can't be ours and is left out.
///
/// # Errors
/// When the system refuses.
pub fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("listing", folder, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("listing", folder, error))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

/// Opens a file for reading from its start.
///
/// # Errors
/// When it isn't there or the system refuses.
pub fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::io("opening", path, error))
}

/// The content of a file.
///
/// # Errors
/// When it isn't there or the system refuses.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Error::io("reading", path, error))
}

/// Whether there is anything of that name; a dangling link isn't anything.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Whether there is a folder of that name.
#[must_use]
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// The same path from the root, without `.` and `..`; links stay as they are named.
///
/// # Errors
/// When the current folder is gone.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| Error::io("finding", path, error))?;
    // What a `..` after a link means is for the system to say; without links it is the folder above.
    if path.components().any(|component| component == std::path::Component::ParentDir) {
        return fs::canonicalize(&path).map_err(|error| Error::io("finding", path, error));
    }
    Ok(path)
}

/// When a file was last modified, in nanoseconds since 1970.
#[must_use]
pub fn modified_ns(metadata: &fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// Removes a folder with everything in it; that it isn't there is no error.
///
/// # Errors
/// When the system refuses.
pub fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("removing", path, error)),
        _ => Ok(()),
    }
}

/// Bytes that can still be written to the file system that the folder is on, or will be on.
#[must_use]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|path| path.exists() || path.as_os_str().is_empty())?;
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let stat = rustix::fs::statvfs(there).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}
