//! Syntax tree to graph. All that is wrong with a text is said at once, in its order; what follows only from another
//! error isn't said.

mod arguments;
mod inputs;
mod keys;
mod later;
mod lower;
mod output;
mod rows;
mod scope;
mod settings;
mod source;
mod steps;

use std::path::Path;

use super::ast::{Table, ValueKind};
use super::graph::Graph;
use super::parse::parse;
use crate::diag::{Diagnostic, Diagnostics, Error, Result, Severity, SourceText};
use crate::format::Source;
use crate::world::files;

pub use arguments::arguments;

/// A pipeline without errors.
pub struct Checked {
    /// The graph.
    pub graph: Graph,
    /// What is worth a look all the same.
    pub warnings: Diagnostics,
}

/// Reads and checks a pipeline file.
///
/// # Errors
/// When the file can't be read, or has errors.
pub fn load(path: &Path) -> Result<Checked> {
    let bytes = files::read(path)
        .map_err(|error| Error::Usage { message: format!("the pipeline can't be read: {error}"), help: None })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::usage(format!("{} is not UTF-8 text: byte {}", path.display(), error.utf8_error().valid_up_to()))
    })?;
    let source = SourceText { name: path.display().to_string(), text: text.into() };
    let base = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check(&source, base).map_err(Error::Pipeline)
}

/// Checks a pipeline's text; patterns of files are relative to `base`.
///
/// # Errors
/// All its errors and warnings, when there is at least one error.
pub fn check(source: &SourceText, base: &Path) -> Result<Checked, Box<Diagnostics>> {
    let (tree, mut list) = parse(&source.text);
    let graph = graph(&tree, source, base, &mut list);
    list.sort_by_key(|diagnostic| diagnostic.labels.first().map_or(0, |(span, _)| span.start));
    let diagnostics = Diagnostics { source: source.clone(), list };
    match graph {
        Some(graph) if !diagnostics.has_errors() => Ok(Checked { graph, warnings: diagnostics }),
        _ => Err(Box::new(diagnostics)),
    }
}

const TOP: &[&str] = &["name", "seed", "on_error", "source", "step", "output", "plan"];

fn graph(tree: &Table, text: &SourceText, base: &Path, list: &mut Vec<Diagnostic>) -> Option<Graph> {
    let syntax_errors = list.len();
    keys::unknown(tree, TOP, "a pipeline", list);
    let stem = Path::new(&text.name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = keys::text(tree, "name", list).unwrap_or_else(|| stem.unwrap_or_else(|| "pipeline".to_owned()));
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        let span = tree.get("name").map_or(0..0, |entry| entry.value.span.clone());
        list.push(Diagnostic::error("bad-name", "a name becomes a folder's name", span, "not a folder's name"));
    }
    let seed = match keys::int(tree, "seed", list).map(u64::try_from) {
        None => 0,
        Some(Ok(seed)) => seed,
        Some(Err(_)) => {
            let span = tree.get("seed").map_or(0..0, |entry| entry.value.span.clone());
            list.push(Diagnostic::error("bad-value", "a seed is not negative", span, "expected 0 or more"));
            0
        }
    };
    let on_error = settings::on_error(tree, list);
    let plan = settings::plan(tree, list);
    let named = source::sources(tree, base, text, list);
    let mut scope = scope::Scope::new(&named);
    let steps = match tree.get("step") {
        None => Vec::new(),
        Some(entry) => match &entry.value.kind {
            ValueKind::List(values) => steps::check(values, &named, base, &mut scope, list),
            _ => {
                let help = "write each step as `[[step]]`, with two brackets";
                let error =
                    Diagnostic::error("bad-type", "`step` is a list of tables", entry.key_span.clone(), "not a list");
                list.push(error.help(help));
                Vec::new()
            }
        },
    };
    let output = output::output(tree, &mut scope, steps.len(), list);
    if list[syntax_errors.min(list.len())..].iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return None;
    }
    let spans: Vec<_> = named.iter().map(|named| named.span.clone()).collect();
    let sources: Vec<Source> = named.into_iter().map(|named| named.source).collect::<Option<_>>()?;
    let lowered = lower::lower(&scope, steps, &output?, &sources, &spans, list)?;
    Some(Graph {
        name,
        seed,
        sources,
        relations: lowered.relations,
        columns: lowered.columns,
        steps: lowered.steps,
        outputs: lowered.outputs,
        output_relation: lowered.output_relation,
        on_error,
        plan,
    })
}
