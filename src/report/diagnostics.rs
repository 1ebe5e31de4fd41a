//! Diagnostics as people read them: file, line, caret.

use std::fmt;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource};

use crate::diag::{Diagnostic, Diagnostics, Severity};
use crate::world::fence::fenced;

/// One diagnostic with its text, for the renderer.
struct Shown<'d> {
    diagnostic: &'d Diagnostic,
    source: NamedSource<String>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.diagnostic)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let kind = match self.diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        Some(Box::new(format!("{kind}[{}]", self.diagnostic.code)))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.diagnostic.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(
            self.diagnostic
                .labels
                .iter()
                .map(|(span, label)| LabeledSpan::new(Some(label.clone()), span.start, span.len())),
        ))
    }
}

/// All diagnostics, one after another, then how many there are.
#[must_use]
pub fn render_diagnostics(diagnostics: &Diagnostics, color: bool, width: usize) -> String {
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false);
    let mut text = String::new();
    for diagnostic in &diagnostics.list {
        let source = NamedSource::new(&diagnostics.source.name, diagnostics.source.text.to_string());
        let shown = Shown { diagnostic, source };
        // The renderer panics on lines of more than 65,535 characters.
        let rendered = fenced(|| {
            let mut rendered = String::new();
            handler.render_report(&mut rendered, &shown).map(|()| rendered).map_err(|error| error.to_string())
        });
        text.push_str(&rendered.unwrap_or_else(|_| format!("[{}] {}\n", diagnostic.code, diagnostic.message)));
        text.push('\n');
    }
    let errors = diagnostics.list.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let warnings = diagnostics.list.len() - errors;
    let count = |number: usize, word: &str| match number {
        0 => None,
        1 => Some(format!("1 {word}")),
        number => Some(format!("{number} {word}s")),
    };
    let counts: Vec<String> = [count(errors, "error"), count(warnings, "warning")].into_iter().flatten().collect();
    if !counts.is_empty() {
        text.push_str(&format!("{}: {}\n", diagnostics.source.name, counts.join(", ")));
    }
    text
}
