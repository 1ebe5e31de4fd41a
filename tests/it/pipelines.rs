//! The pipelines that come with the project, on real fixtures: one stream for every cut, rewritten or not.

use std::collections::BTreeSet;

use parbake::pipeline::rewrite::{self, rewrite};
use parbake::pipeline::{self, all_cuts};

use crate::project::root;
use crate::runs::{Run, stream};

fn one_stream(name: &str) {
    let graph = match pipeline::load(&root().join("pipelines").join(name)) {
        Ok(checked) => {
            assert!(checked.warnings.list.is_empty(), "{name}: {:?}", checked.warnings.list);
            checked.graph
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut digests = BTreeSet::new();
    let mut rows = BTreeSet::new();
    let all: Vec<String> = rewrite::names().into_iter().map(ToOwned::to_owned).collect();
    for off in [Vec::new(), all] {
        let rewritten = rewrite(&graph, &off);
        let run = Run { folder: folder.path(), rewritten: &rewritten };
        for (at, cut) in all_cuts(&rewritten.graph, 24).iter().enumerate() {
            let (jobs, shard_rows) = [(1, 4), (2, 1000)][at % 2];
            let (dataset, manifest) =
                run.build(cut, jobs, shard_rows).unwrap_or_else(|e| panic!("{name}, {}: {e}", cut.word));
            let (digest, values) = stream(&dataset, &manifest, 3, Some(5), jobs).unwrap();
            assert!(manifest.quarantined().next().is_none(), "{name}, {}", cut.word);
            digests.insert(digest);
            rows.insert(values.first().map_or(0, std::collections::BTreeMap::len));
        }
    }
    assert_eq!(digests.len(), 1, "{name}");
    assert!(rows.iter().all(|rows| *rows > 0), "{name}");
}

#[test]
fn captions() {
    one_stream("captions.toml");
}

#[test]
fn windows() {
    one_stream("windows.toml");
}

#[test]
fn packing() {
    one_stream("packing.toml");
}

#[test]
fn classes() {
    one_stream("classes.toml");
}

#[test]
fn photos() {
    one_stream("photos.toml");
}

/// Runs where `python3` has pyarrow and NumPy; their own environment is told by `PARBAKE_PYTHON`.
#[test]
fn brightness() {
    let Some(python) = std::env::var_os("PARBAKE_PYTHON") else { return };
    let text = std::fs::read_to_string(root().join("pipelines/brightness.toml")).unwrap();
    let python = root().join(python);
    let text = text.replace("\"python3\"", &format!("\"{}\"", python.display()));
    let source = parbake::diag::SourceText { name: "brightness.toml".to_owned(), text: text.into() };
    let graph = pipeline::check(&source, &root().join("pipelines")).unwrap_or_else(|_| panic!("checks")).graph;
    let folder = tempfile::tempdir().unwrap();
    let rewritten = rewrite(&graph, &[]);
    let run = Run { folder: folder.path(), rewritten: &rewritten };
    let mut digests = BTreeSet::new();
    for cut in all_cuts(&rewritten.graph, 24) {
        let (dataset, manifest) = run.build(&cut, 2, 2).unwrap();
        digests.insert(stream(&dataset, &manifest, 3, Some(5), 2).unwrap().0);
    }
    assert_eq!(digests.len(), 1);
}
