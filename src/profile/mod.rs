//! A short run over a sample of the real data: seconds, bytes and rows of steps, cuts and representations.

mod facts;
mod measure;
mod sample;
mod seen;
mod storage;

pub use facts::{CutFacts, Machine, Measured, Profile, Representation, StepFacts, StorageFacts};
pub use measure::{ProfileLimit, data_fingerprint, definition_fingerprint, profile};
