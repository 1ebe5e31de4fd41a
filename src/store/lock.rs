//! One build at a time on one data set.

use std::fs::{File, TryLockError};

use crate::diag::{Error, Result};
use crate::world::files;

use super::dataset::Dataset;

/// The right to build; given back when dropped, and by the system when the process dies.
#[derive(Debug)]
pub struct BuildLock {
    _file: File,
}

impl Dataset {
    /// Takes the right to build here.
    ///
    /// # Errors
    /// When another build is running, or the folder can't be written.
    pub fn lock(&self) -> Result<BuildLock> {
        files::make_folder(self.folder())?;
        let path = self.folder().join(".lock");
        let file = files::create(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(BuildLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Dataset {
                message: format!("another build is running on {}", self.folder().display()),
                help: Some("wait for it, or build into another folder with `--out`".to_owned()),
            }),
            Err(TryLockError::Error(error)) => Err(Error::io("locking", path, error)),
        }
    }
}
