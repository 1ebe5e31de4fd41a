//! The source: which files there are.

use std::path::Path;

use super::keys;
use crate::diag::{Diagnostic, SourceText};
use crate::format::Listing;
use crate::pipeline::ast::{Entry, Table, ValueKind};

/// Source kinds that the design names and this version doesn't read.
const LATER: &[&str] = &["parquet", "arrow", "jsonl", "csv", "tar", "tfrecord", "list"];

/// Lists the source's files; none when it can't be, which was reported.
pub fn listing(tree: &Table, base: &Path, text: &SourceText, list: &mut Vec<Diagnostic>) -> Option<Listing> {
    let end = text.text.len();
    let Some(_) = tree.get("source") else {
        let help = "add a table `[source]` with `files = \"photos/**/*.jpg\"`";
        list.push(
            Diagnostic::error("missing-source", "the pipeline has no source", end..end, "no `[source]`").help(help),
        );
        return None;
    };
    let (entry, table) = keys::table(tree, "source", list)?;
    let (entry, table) = named(entry, table, list)?;
    for later in table.entries.iter().filter(|entry| LATER.contains(&entry.key.as_str())) {
        let message = format!("a source of kind `{}` is not supported yet", later.key);
        let error = Diagnostic::error("unsupported-source", message, later.key_span.clone(), "only `files` is");
        list.push(error);
    }
    let known: Vec<&str> = LATER.iter().copied().chain(["files"]).collect();
    let unknown = table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())).count();
    keys::unknown(table, &known, "a source", list);
    let Some(files) = table.get("files") else {
        if unknown == 0 && table.entries.is_empty() {
            let help = "write `files = \"photos/**/*.jpg\"`";
            let error = Diagnostic::error(
                "missing-key",
                "the source names no files",
                entry.key_span.clone(),
                "`files` is missing",
            );
            list.push(error.help(help));
        }
        return None;
    };
    let patterns = keys::texts(files, list)?;
    if patterns.is_empty() {
        let error =
            Diagnostic::error("no-files", "the list of patterns is empty", files.value.span.clone(), "no pattern");
        list.push(error);
        return None;
    }
    let texts: Vec<String> = patterns.iter().map(|(text, _)| text.clone()).collect();
    match Listing::new(base, &texts) {
        Ok(listing) => {
            for (path, reason) in &listing.skipped {
                let message = format!("{path} matches and is left out: {reason}");
                let span = files.value.span.clone();
                list.push(Diagnostic::warning("skipped-file", message, span, "matched here"));
            }
            if listing.fragments.is_empty() {
                let help = "relative patterns start at the folder of the pipeline; hidden files don't match";
                let message = format!("no file matches below {}", listing.root.display());
                let error = Diagnostic::error("no-files", message, files.value.span.clone(), "matches nothing");
                list.push(error.help(help));
            }
            Some(listing)
        }
        Err(errors) => {
            for error in errors {
                let span = patterns.get(error.pattern).map_or(files.value.span.clone(), |(_, span)| span.clone());
                let diagnostic = Diagnostic::error("bad-pattern", error.message, span, "in this pattern");
                list.push(match error.help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
            }
            None
        }
    }
}

/// `[source.NAME]` stands for `[source]` when there is one.
fn named<'t>(entry: &'t Entry, table: &'t Table, list: &mut Vec<Diagnostic>) -> Option<(&'t Entry, &'t Table)> {
    let tables: Vec<(&Entry, &Table)> = table
        .entries
        .iter()
        .filter_map(|entry| match &entry.value.kind {
            ValueKind::Table(table) => Some((entry, table)),
            _ => None,
        })
        .collect();
    match tables.as_slice() {
        [] => Some((entry, table)),
        [only] if table.entries.len() == 1 => Some(*only),
        [_, second, ..] => {
            let message = "several sources are not supported yet";
            list.push(Diagnostic::error("unsupported-source", message, second.0.key_span.clone(), "a second source"));
            None
        }
        [only] => {
            let message = "`[source]` and `[source.NAME]` can't be mixed";
            list.push(Diagnostic::error("bad-source", message, only.0.key_span.clone(), "a named source"));
            None
        }
    }
}
