//! The door to the machine: clocks, cores, memory, files. Nothing above asks the system for them by itself.

pub mod fence;
pub mod files;
pub mod machine;
pub mod process;

pub use files::{LocalFile, ReadAt};
