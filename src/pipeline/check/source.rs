//! The sources: which there are, which files they have.

use std::path::Path;

use super::keys;
use crate::diag::{Diagnostic, SourceText, Span};
use crate::format::{Listing, Source, SourceKind, TableFormat};
use crate::pipeline::ast::{Entry, Table, ValueKind};

/// Source kinds that the design names and this version doesn't read.
const LATER: &[&str] = &["tar", "tfrecord", "list"];

/// A source of the text, whether or not it has errors.
pub struct Named {
    /// Its name.
    pub name: String,
    /// Where its name stands.
    pub span: Span,
    /// Whether each of its files is a row, as far as the text says so.
    pub is_files: bool,
    /// The source; none after an error.
    pub source: Option<Source>,
}

/// Lists the sources' files. What can't be listed is reported.
pub fn sources(tree: &Table, base: &Path, text: &SourceText, list: &mut Vec<Diagnostic>) -> Vec<Named> {
    let end = text.text.len();
    if tree.get("source").is_none() {
        let help = "add a table `[source]` with `files = \"photos/**/*.jpg\"`";
        list.push(
            Diagnostic::error("missing-source", "the pipeline has no source", end..end, "no `[source]`").help(help),
        );
        return Vec::new();
    }
    let Some((entry, table)) = keys::table(tree, "source", list) else { return Vec::new() };
    let inner: Vec<(&Entry, &Table)> = table
        .entries
        .iter()
        .filter_map(|entry| match &entry.value.kind {
            ValueKind::Table(table) => Some((entry, table)),
            _ => None,
        })
        .collect();
    let Some((named, _)) = inner.first() else { return vec![source("source", entry, table, base, list)] };
    if inner.len() < table.entries.len() {
        let message = "`[source]` and `[source.NAME]` can't be mixed";
        list.push(
            Diagnostic::error("bad-source", message, named.key_span.clone(), "a named source")
                .help("name the other one too: `[source.NAME]`"),
        );
    }
    inner.into_iter().map(|(entry, table)| source(&entry.key, entry, table, base, list)).collect()
}

fn source(name: &str, entry: &Entry, table: &Table, base: &Path, list: &mut Vec<Diagnostic>) -> Named {
    let mut named = Named { name: name.to_owned(), span: entry.key_span.clone(), is_files: true, source: None };
    if name.is_empty() || name.starts_with("__") {
        let message = format!("a source can't be called `{name}`");
        let label = "names that start with `__` are parbake's own";
        list.push(Diagnostic::error("reserved-name", message, entry.key_span.clone(), label));
    }
    for later in table.entries.iter().filter(|entry| LATER.contains(&entry.key.as_str())) {
        let message = format!("a source of kind `{}` is not supported yet", later.key);
        let label = "`files`, `csv`, `jsonl`, `parquet` and `arrow` are";
        list.push(Diagnostic::error("unsupported-source", message, later.key_span.clone(), label));
        named.is_files = false;
    }
    let kinds: Vec<&str> = std::iter::once("files").chain(TableFormat::WORDS.iter().copied()).collect();
    let known: Vec<&str> = LATER.iter().copied().chain(kinds.iter().copied()).collect();
    let unknown = table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())).count();
    keys::unknown(table, &known, "a source", list);
    let given: Vec<&Entry> = table.entries.iter().filter(|entry| kinds.contains(&entry.key.as_str())).collect();
    let [patterns] = given.as_slice() else {
        if let [_, second, ..] = given.as_slice() {
            let message = "a source has one kind of files";
            let label = "a second kind";
            let error = Diagnostic::error("bad-source", message, second.key_span.clone(), label);
            list.push(error.help("make two sources of it, `[source.NAME]`, and join or unite them"));
        } else if unknown == 0 && table.entries.is_empty() {
            let help = "write `files = \"photos/**/*.jpg\"`";
            let message = "the source names no files";
            let error = Diagnostic::error("missing-key", message, entry.key_span.clone(), "`files` is missing");
            list.push(error.help(help));
        }
        return named;
    };
    let kind = TableFormat::parse(&patterns.key).map_or(SourceKind::Files, SourceKind::Table);
    named.is_files = kind == SourceKind::Files;
    let Some(listing) = listing(patterns, base, list) else { return named };
    if listing.fragments.is_empty() {
        return named;
    }
    match Source::new(name, kind, listing) {
        Ok(source) if source.columns.is_empty() => {
            let message = "the table has no column that a pipeline can hold";
            let label = "text, bytes, numbers and lists of numbers are";
            list.push(Diagnostic::error("bad-source", message, patterns.value.span.clone(), label));
        }
        Ok(source) => {
            for (column, data_type) in &source.left_out {
                let message =
                    format!("the column `{column}` is {data_type}, which a pipeline can't hold: it is left out");
                let span = patterns.value.span.clone();
                let help = "text, bytes, numbers, truth values and lists of numbers can be held";
                list.push(Diagnostic::warning("left-out-column", message, span, "of these files").help(help));
            }
            named.source = Some(source);
        }
        Err(error) => {
            let message = format!("the source can't be read: {error}");
            list.push(Diagnostic::error("bad-source", message, patterns.value.span.clone(), "this one"));
        }
    }
    named
}

fn listing(files: &Entry, base: &Path, list: &mut Vec<Diagnostic>) -> Option<Listing> {
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
