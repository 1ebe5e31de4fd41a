//! What a profile is of.

use crate::pipeline::{CompileOptions, Cut, Graph, gathered_fingerprint};
use crate::types::{Fingerprint, FingerprintBuilder};

/// What identifies the definition that a profile was made for.
#[must_use]
pub fn definition_fingerprint(graph: &Graph, cuts: &[Cut]) -> Fingerprint {
    let mut builder = FingerprintBuilder::new("profile definition");
    for cut in cuts {
        let options = CompileOptions { fused: true };
        let offline = cut.offline_program(graph, options);
        builder.text(&cut.word).fingerprint(offline.program.fingerprint());
        if let Some(gathered) = gathered_fingerprint(graph, graph.base(cut.stored), &offline.inputs) {
            builder.fingerprint(gathered);
        }
        builder.fingerprint(cut.remainder(graph, options).fingerprint());
    }
    builder.finish()
}

/// What identifies the data that a profile was made from: number and sizes of the files, not their times.
#[must_use]
pub fn data_fingerprint(graph: &Graph) -> Fingerprint {
    let mut builder = FingerprintBuilder::new("profile data");
    for fragment in graph.sources.iter().flat_map(|source| &source.listing.fragments) {
        builder.text(&fragment.path).number(fragment.size);
    }
    builder.finish()
}
