//! Tests of whole runs, in one binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod check;
mod dags;
mod kill;
mod laws;
mod project;
mod pyarrow;
mod rebuild;
mod streams;
mod tidy;
