//! What a profile is of.

use crate::pipeline::{Cut, Graph};
use crate::types::{Fingerprint, FingerprintBuilder};

/// What identifies the definition that a profile was made for.
#[must_use]
pub fn definition_fingerprint(graph: &Graph, cuts: &[Cut]) -> Fingerprint {
    let mut builder = FingerprintBuilder::new("profile definition");
    for cut in cuts {
        builder.text(&cut.word).fingerprint(cut.offline_program(graph).fingerprint());
        builder.fingerprint(cut.remainder(graph).fingerprint());
    }
    builder.finish()
}

/// What identifies the data that a profile was made from: number and sizes of the files, not their times.
#[must_use]
pub fn data_fingerprint(graph: &Graph) -> Fingerprint {
    let mut builder = FingerprintBuilder::new("profile data");
    for fragment in &graph.source.listing.fragments {
        builder.text(&fragment.path).number(fragment.size);
    }
    builder.finish()
}
