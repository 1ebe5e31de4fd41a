//! A short run over a sample of the real data: seconds, bytes and rows of steps, cuts and representations.

mod candidate;
mod facts;
mod identity;
mod measure;
mod meeting;
mod reading;
mod sample;
mod seen;
mod storage;

pub use facts::{CutFacts, Machine, Measured, PROFILE_VERSION, Profile, Representation, StepFacts, StorageFacts};
pub use identity::{data_fingerprint, definition_fingerprint};
pub use measure::{BaseRows, ProfileLimit, Subject, profile};
