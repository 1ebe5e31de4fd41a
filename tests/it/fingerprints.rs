//! Fingerprints of definitions: what changes them, what doesn't, and that they stay from release to release.

use parbake::diag::SourceText;
use parbake::materialize::definition;
use parbake::pipeline::rewrite::rewrite;
use parbake::pipeline::{self, parse_cut};
use parbake::types::{Codec, Fingerprint};

use crate::project::root;

fn of(text: &str, cut: &str) -> Fingerprint {
    let source = SourceText { name: "p.toml".to_owned(), text: text.into() };
    let graph = pipeline::check(&source, &root().join("pipelines")).unwrap_or_else(|_| panic!("checks: {text}")).graph;
    let rewritten = rewrite(&graph, &[]);
    let cut = parse_cut(&rewritten.graph, cut).unwrap();
    definition(&rewritten.graph, &cut, Codec::None, rewritten.options)
}

const PLAIN: &str = r#"
[source]
files = "../fixtures/photos/plant/*.jpg"
[[step]]
op = "image.decode"
in = "bytes"
[[step]]
op = "image.resize"
size = [64, 48]
[[step]]
op = "image.random_flip"
"#;

#[test]
fn what_changes_no_byte_changes_no_fingerprint() {
    let plain = of(PLAIN, "resize");
    let renamed = PLAIN
        .replace(
            "op = \"image.decode\"\nin = \"bytes\"",
            "in = 'bytes'   # which\nname = \"open\"\nop = \"image.decode\"",
        )
        .replace("size = [64, 48]", "size   = [ 64,48 ]\nname = \"small\"\nfilter = \"bilinear\"");
    assert_eq!(of(&format!("seed = 99\nname = \"other\"\n{renamed}"), "small"), plain);
}

#[test]
fn what_changes_bytes_changes_the_fingerprint() {
    let plain = of(PLAIN, "resize");
    for (from, to) in [("[64, 48]", "[48, 64]"), ("size = [64, 48]", "size = [64, 48]\nfilter = \"nearest\"")] {
        assert_ne!(of(&PLAIN.replace(from, to), "resize"), plain, "{to}");
    }
    assert_ne!(of(PLAIN, "decode"), plain);
    // Where random numbers are stored, what they are drawn by counts: the step's name and the seed.
    let frozen = PLAIN.replace("op = \"image.random_flip\"", "op = \"image.random_flip\"\nvariants = 2");
    let stored = of(&frozen, "random_flip");
    assert_ne!(of(&format!("seed = 1\n{frozen}"), "random_flip"), stored);
    assert_ne!(of(&frozen.replace("variants = 2", "variants = 2\nname = \"turn\""), "turn"), stored);
    assert_ne!(of(&frozen.replace("variants = 2", "variants = 3"), "random_flip"), stored);
}

/// A fingerprint that changes makes everybody's data sets stale: this one changes only with the version of an op in it
/// or of the shards' format, and the changelog says so.
#[test]
fn fingerprints_stay() {
    assert_eq!(of(PLAIN, "resize").to_string(), "ac6533bd7ad6e8c597aa8fc203e66646");
}
