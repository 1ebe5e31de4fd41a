//! The `parbake` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    parbake::cli::main()
}
