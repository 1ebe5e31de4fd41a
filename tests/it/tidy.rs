//! The rules of the tree, read off its text.

use std::fs;
use std::path::{Path, PathBuf};

use crate::project::root;

/// The layers, lowest first. Modules of one layer don't know each other.
const LAYERS: &[&[&str]] = &[
    &["types", "diag", "world"],
    &["ops", "format"],
    &["pipeline"],
    &["profile"],
    &["cost"],
    &["plan"],
    &["exec", "store"],
    &["materialize", "online"],
    &["report"],
    &["cli"],
];

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("src"), &mut found);
    found.sort();
    found
}

/// The module right below the crate that a file belongs to.
fn module(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The text without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

#[test]
fn files_begin_with_their_purpose_and_stay_small() {
    for (path, text) in sources() {
        assert!(text.starts_with("//! "), "{} has no `//!` line", path.display());
        let lines = code(&text).lines().count();
        assert!(lines <= 500, "{} has {lines} lines", path.display());
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(!["utils", "util", "common", "helpers", "misc"].contains(&name), "{}", path.display());
    }
}

#[test]
fn imports_point_down_the_layers() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    for (path, text) in sources() {
        let Some(mine) = layer(&module(&path)) else { continue };
        for used in text.split("crate::").skip(1) {
            let used: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let Some(theirs) = layer(&used) else { continue };
            let own = used == module(&path);
            // The ground layer is one room: diagnostics, nouns and the door know each other.
            assert!(own || theirs < mine || (mine == 0 && theirs == 0), "{} uses {used}", path.display());
        }
    }
}

#[test]
fn engines_and_doors_are_kept_apart() {
    for (path, text) in sources() {
        if is_test(&path) {
            continue;
        }
        let (module, code) = (module(&path), code(&text));
        let only = |words: &[&str], rooms: &[&str]| {
            for word in words {
                assert!(!code.contains(word) || rooms.contains(&module.as_str()), "{} has {word}", path.display());
            }
        };
        // SQL expressions and queries are checked, and expressions evaluated, in two files of the vocabulary.
        let is_sql = ["ops/expression.rs", "ops/query.rs"].iter().any(|name| path.ends_with(name));
        only(&["datafusion::"], if is_sql { &["ops"] } else { &["exec"] });
        only(&["clap::", "println!", "io::stdout", "io::stderr", "indicatif::"], &["cli", "main"]);
        only(
            &["Instant::now", "SystemTime::now", "std::env::", "fs::read(", "fs::write(", "fs::metadata("],
            &["world"],
        );
    }
}
