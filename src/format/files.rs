//! The content of source files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::local::LocalFileSystem;

use super::listing::Fragment;
use crate::diag::{Error, Result};
use crate::world::files;

/// Reads source files below one folder.
#[derive(Debug, Clone)]
pub struct FileSource {
    root: PathBuf,
    store: Arc<LocalFileSystem>,
}

impl FileSource {
    /// A reader of files below that folder.
    ///
    /// # Errors
    /// When the folder isn't there.
    pub fn new(root: &Path) -> Result<Self> {
        if !files::is_folder(root) {
            return Err(Error::io("opening", root, io::ErrorKind::NotFound.into()));
        }
        Ok(Self { root: root.to_owned(), store: Arc::new(LocalFileSystem::new()) })
    }

    /// The whole content of a fragment.
    ///
    /// # Errors
    /// When it can't be read, or isn't as long as it was listed: it has changed meanwhile.
    pub async fn read(&self, fragment: &Fragment) -> Result<Bytes> {
        let path = self.root.join(&fragment.path);
        // A few names that are legal here can't be said in an object store's path.
        let Some(location) = self.location(&path) else { return self.read_blocking(fragment) };
        let failed = |error: object_store::Error| Error::io("reading", &path, plain(error));
        let bytes = self.store.get(&location).await.map_err(failed)?.bytes().await.map_err(failed)?;
        check_length(&path, fragment, &bytes)?;
        Ok(bytes)
    }

    /// The same, blocking the thread.
    ///
    /// # Errors
    /// As above.
    pub fn read_blocking(&self, fragment: &Fragment) -> Result<Bytes> {
        let path = self.root.join(&fragment.path);
        let bytes = files::read(&path)?;
        check_length(&path, fragment, &bytes)?;
        Ok(bytes.into())
    }

    /// The whole content of the file with that path, whatever its size is, blocking the thread.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn read_path(&self, path: &str) -> Result<Bytes> {
        Ok(files::read(&self.root.join(path))?.into())
    }

    /// The path in the object store's words, if it comes back as it was.
    fn location(&self, path: &Path) -> Option<object_store::path::Path> {
        let location = object_store::path::Path::parse(path.to_str()?).ok()?;
        (self.store.path_to_filesystem(&location).ok()? == path).then_some(location)
    }
}

fn check_length(path: &Path, fragment: &Fragment, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 == fragment.size {
        return Ok(());
    }
    Err(Error::Dataset {
        message: format!(
            "{} has changed while it was read: it was listed with {} bytes and has {}",
            path.display(),
            fragment.size,
            bytes.len()
        ),
        help: Some("run the command again when nobody writes to the source".to_owned()),
    })
}

/// What the system said, without the store's wrapping.
fn plain(error: object_store::Error) -> io::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    if kind == io::ErrorKind::Other { io::Error::other(error) } else { kind.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Listing;

    #[test]
    fn odd_names_are_read_through_the_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = [
            " lead.png",
            "a#b.png",
            "back\\slash.png",
            "new\nline.png",
            "pct%20.png",
            "pct%2Fslash.png",
            "two..dots.png",
            "😀.png",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), name).expect("a file");
        }
        let listing = Listing::new(folder.path(), &["*.png".to_owned()]).expect("lists");
        assert_eq!(listing.fragments.len(), names.len());
        let source = FileSource::new(&listing.root).expect("opens");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        for fragment in &listing.fragments {
            let bytes = runtime.block_on(source.read(fragment)).expect("reads");
            assert_eq!(bytes, fragment.path.as_bytes(), "{}", fragment.path);
            assert_eq!(source.read_blocking(fragment).expect("reads"), bytes);
        }
        let longer = Fragment { size: 99, ..listing.fragments[0].clone() };
        let error = runtime.block_on(source.read(&longer)).expect_err("has changed").to_string();
        assert!(error.contains("lead.png") && error.contains("changed"), "{error}");
    }
}
