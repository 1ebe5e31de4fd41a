//! The command line: arguments apart from commands, results on standard output, all else on standard error.

mod args;
mod bench;
mod build;
mod console;
mod plan;
mod progress;
mod show;
mod stream;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use console::Console;

use crate::world::fence;

/// Runs the command that the arguments ask for.
#[must_use]
pub fn main() -> ExitCode {
    install_panic_hook();
    let arguments = Arguments::parse();
    let console = Console::new(arguments.color);
    let done = match &arguments.command {
        Command::Check(check) => show::check(&console, check),
        Command::Ops(ops) => show::ops(&console, ops),
        Command::Profile(profile) => plan::profile(&console, profile),
        Command::Plan(plan) => plan::plan(&console, plan),
        Command::Build(build) => build::build(&console, build),
        Command::Status(status) => build::status(&console, status),
        Command::Stream(stream) => stream::stream(&console, stream),
        Command::Verify(verify) => verify::verify(&console, verify),
        Command::Bench(bench) => bench::bench(&console, bench),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// A panic is a bug of ours, said in one line; one inside of a fence becomes an error elsewhere and says nothing.
fn install_panic_hook() {
    let standard = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !fence::is_fenced() {
            standard(info);
        }
    }));
}
