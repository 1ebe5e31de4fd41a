//! Tests of whole runs, in one binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod check;
mod commands;
mod dags;
mod fingerprints;
mod joins;
mod kill;
mod laws;
mod pipelines;
mod project;
mod pyarrow;
mod random_pipeline;
mod rebuild;
mod rewrites;
mod runs;
mod spill;
mod streams;
mod tables;
mod tidy;
mod verify;
