//! Where text goes: results to standard output, messages to standard error.

use std::io::{self, IsTerminal, Write};

use super::args::Color;
use crate::diag::{Diagnostics, Error, Result};
use crate::report::render_diagnostics;
use crate::world::machine::variable;

/// The two streams of a command.
pub struct Console {
    color: bool,
    terminal: bool,
}

impl Console {
    /// A console; `auto` colours on a terminal unless `NO_COLOR` is set.
    pub fn new(color: Color) -> Self {
        let terminal = io::stderr().is_terminal();
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && variable("NO_COLOR").is_none(),
        };
        Self { color, terminal }
    }

    /// Whether somebody watches.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Prints a result.
    ///
    /// # Errors
    /// [`Error::Closed`] when the reader has gone, or that standard output can't be written.
    #[expect(clippy::unused_self, reason = "printing goes through the console")]
    pub fn print(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_error)
    }

    /// Prints a result as JSON.
    ///
    /// # Errors
    /// As for [`Console::print`].
    pub fn print_json(&self, value: &serde_json::Value) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Error::internal("the output", error))?;
        self.print(&format!("{text}\n"))
    }

    /// Says something about the work.
    #[expect(clippy::unused_self, reason = "messages go through the console")]
    pub fn say(&self, text: &str) {
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
    }

    /// Says what is worth a look in a pipeline.
    pub fn warnings(&self, warnings: &Diagnostics) {
        if !warnings.list.is_empty() {
            self.say(&render_diagnostics(warnings, self.color, 100));
        }
    }

    /// Says why the command ends without its result.
    pub fn error(&self, error: &Error) {
        match error {
            Error::Closed => {}
            Error::Pipeline(diagnostics) => self.say(&render_diagnostics(diagnostics, self.color, 100)),
            error => {
                let (start, end) = if self.color { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
                self.say(&format!("{start}error:{end} {error}"));
                if let Some(help) = error.help() {
                    self.say(&format!("help: {help}"));
                }
            }
        }
    }
}

/// A pipe that was closed isn't a failure.
pub fn output_error(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Error::Closed
    } else {
        Error::io("writing", "standard output", error)
    }
}
