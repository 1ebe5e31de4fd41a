//! Errors that end a command.

use std::path::PathBuf;

use super::Diagnostics;

/// The result of anything that can end a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A sample that a step can't work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataError {
    /// The source file, relative to the source's root.
    pub file: String,
    /// The row inside the file, from 0; 0 for a source of one row a file.
    pub row: u64,
    /// The step, by name.
    pub step: String,
    /// Why, in words.
    pub reason: String,
}

impl std::fmt::Display for DataError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, row {}, step `{}`: {}", self.file, self.row, self.step, self.reason)
    }
}

/// Why a command ends without its result, by whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for something that can't be.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        help: Option<String>,
    },
    /// The pipeline's text has errors.
    #[error("{} has errors", .0.source.name)]
    Pipeline(Box<Diagnostics>),
    /// One or more samples can't be processed.
    #[error("{}", data_message(.0))]
    Data(Vec<DataError>),
    /// The machine refused: a file can't be opened, a disk is full.
    #[error("{action} {}: {source}", .path.display())]
    Io {
        /// What was being done, e.g. `reading`.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A data set is missing, damaged, locked or of another version.
    #[error("{message}")]
    Dataset {
        /// What is wrong with it.
        message: String,
        /// What to do.
        help: Option<String>,
    },
    /// The reader of our output went away (a closed pipe): not a failure.
    #[error("the reader closed the pipe")]
    Closed,
    /// A fault of parbake itself.
    #[error("internal error in {part}: {message}")]
    Internal {
        /// The part that failed.
        part: &'static str,
        /// What it says.
        message: String,
    },
}

fn data_message(errors: &[DataError]) -> String {
    let mut lines: Vec<String> = errors.iter().take(5).map(ToString::to_string).collect();
    if errors.len() > lines.len() {
        lines.push(format!("... and {} more", errors.len() - lines.len()));
    }
    lines.join("\n")
}

impl Error {
    /// A usage error without further help.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: None }
    }

    /// A failure while doing `action` to `path`.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// A fault of parbake itself.
    pub fn internal(part: &'static str, message: impl std::fmt::Display) -> Self {
        Self::Internal { part, message: message.to_string() }
    }

    /// The exit code: 1 the data or the build failed, 2 the command line or the pipeline is wrong.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } | Self::Pipeline(_) => 2,
            Self::Closed => 0,
            Self::Data(_) | Self::Io { .. } | Self::Dataset { .. } | Self::Internal { .. } => 1,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Usage { help, .. } | Self::Dataset { help, .. } => help.clone(),
            Self::Data(_) => Some(
                "mend or remove the file, or set `on_error = \"skip\"` to put bad samples into the quarantine table"
                    .to_owned(),
            ),
            Self::Internal { .. } => Some("this is a bug in parbake: please report it with the pipeline".to_owned()),
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Some("make room, or build into another folder with `--out`; finished shards are kept".to_owned())
                }
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    Some("change the permissions, or use another folder".to_owned())
                }
                _ => None,
            },
            Self::Pipeline(_) | Self::Closed => None,
        }
    }
}
