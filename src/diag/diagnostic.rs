//! Diagnostics about the text of a pipeline.

use std::ops::Range;
use std::sync::Arc;

/// A range of bytes in the text of a pipeline.
pub type Span = Range<usize>;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing can be built.
    Error,
    /// Worth a look; the pipeline works.
    Warning,
}

/// One thing to say about a pipeline's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable code, such as `unknown-op`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One short sentence.
    pub message: String,
    /// The places it is about, the first one being the main one, each with a word on what is there.
    pub labels: Vec<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at that place.
    #[must_use]
    pub fn error(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: vec![(span, label.into())],
            help: None,
        }
    }

    /// A warning at that place.
    #[must_use]
    pub fn warning(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, span, label) }
    }

    /// Adds a second place.
    #[must_use]
    pub fn label(mut self, span: Span, label: impl Into<String>) -> Self {
        self.labels.push((span, label.into()));
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The text of a pipeline and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The path as the user gave it.
    pub name: String,
    /// The whole text.
    pub text: Arc<str>,
}

impl SourceText {
    /// The line and column (both from 1, columns in characters) of a byte offset.
    #[must_use]
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset.min(self.text.len())).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// All that is to be said about one pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The text that the spans point into.
    pub source: SourceText,
    /// In the order of the text.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Whether one of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// The member of `names` that `typed` was probably meant to be.
#[must_use]
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    names
        .into_iter()
        .map(|name| {
            let tail = name.rsplit('.').next().unwrap_or(name);
            let distance = strsim::damerau_levenshtein(&lower, &name.to_lowercase());
            (if tail == lower { 0 } else { distance }, name)
        })
        .filter(|(distance, name)| *distance <= 1.max(typed.chars().count().max(name.chars().count()) / 3))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = ["image.decode", "image.resize", "path.label"];
        assert_eq!(nearest("image.resise", names), Some("image.resize"));
        assert_eq!(nearest("decode", names), Some("image.decode"));
        assert_eq!(nearest("audio.mel", names), None);
    }
}
