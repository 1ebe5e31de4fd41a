//! Local files: positioned reads, atomic writes, syncing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

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
