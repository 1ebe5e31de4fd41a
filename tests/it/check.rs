//! What `check` says of pipelines with errors: golden files under `tests/check/`, their expectations in comments.
//!
//! A line `#~ error[CODE] LINE:COLUMN MESSAGE` is expected for each diagnostic, in order. `UPDATE=1` writes them.

use std::fs;

use parbake::diag::{Diagnostics, Severity, SourceText};
use parbake::pipeline;
use proptest::prelude::*;

use crate::project::root;

fn said(text: &str) -> Vec<String> {
    let source = SourceText { name: "case.toml".to_owned(), text: text.into() };
    let diagnostics: Diagnostics = match pipeline::check(&source, &root().join("tests/check")) {
        Ok(checked) => checked.warnings,
        Err(diagnostics) => *diagnostics,
    };
    diagnostics
        .list
        .iter()
        .map(|diagnostic| {
            let (line, column) = source.line_column(diagnostic.labels[0].0.start);
            let kind = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
            let help = diagnostic.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
            let root = root().display().to_string();
            format!("#~ {kind}[{}] {line}:{column} {}{help}", diagnostic.code, diagnostic.message)
                .replace(&root, "ROOT")
        })
        .collect()
}

#[test]
fn golden_cases() {
    let mut cases = 0;
    for entry in fs::read_dir(root().join("tests/check")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        cases += 1;
        let text = fs::read_to_string(&path).unwrap();
        let (body, expected): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !line.starts_with("#~"));
        let body = format!("{}\n", body.join("\n").trim_end());
        let got = said(&body);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, format!("{body}\n{}\n", got.join("\n"))).unwrap();
            continue;
        }
        assert_eq!(got, expected, "{}", path.display());
    }
    assert!(cases >= 10, "{cases}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever is done to a text, it is answered with a graph or diagnostics.
    #[test]
    fn mutated_pipelines_never_panic(cut in 0_usize..800, length in 0_usize..60, insert in "[a-z0-9\\[\\]{}=\".,\n #]{0,12}") {
        let text = fs::read_to_string(root().join("pipelines/photos.toml")).unwrap();
        let start = text.floor_char_boundary(cut.min(text.len()));
        let end = text.floor_char_boundary((start + length).min(text.len()));
        let mutated = format!("{}{insert}{}", &text[..start], &text[end..]);
        let source = SourceText { name: "mutated.toml".to_owned(), text: mutated.into() };
        if let Err(diagnostics) = pipeline::check(&source, &root().join("pipelines")) {
            let rendered = parbake::report::render_diagnostics(&diagnostics, false, 100);
            prop_assert!(!rendered.is_empty());
        }
    }
}
