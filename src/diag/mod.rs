//! What can go wrong, as values: compiler diagnostics with spans, bad data with its place, failures of the machine.

mod diagnostic;
mod error;

pub use diagnostic::{Diagnostic, Diagnostics, Severity, SourceText, Span, nearest};
pub use error::{DataError, Error, Result};
