//! The graph of a pipeline, for `check`.

use serde_json::{Value, json};

use super::plan::table;
use crate::format::{Source, SourceKind};
use crate::pipeline::rewrite::FUSE;
use crate::pipeline::{ColumnId, Cut, Graph, Rewritten, Step};
use crate::types::units::{show_bytes, show_count};

fn kind(source: &Source) -> &'static str {
    match source.kind {
        SourceKind::Files => "files",
        SourceKind::Table(_) => "table files",
    }
}

/// Where a step runs, in words.
fn runs(step: &Step) -> &'static str {
    match (step.random(), step.online_only, step.rows().is_row_local()) {
        (true, true, _) => "online: random",
        (true, false, _) => "offline or online: draws frozen",
        (false, true, _) => "online: after a random step",
        (false, false, true) => "offline or online",
        (false, false, false) => "offline: needs other rows",
    }
}

/// The graph as text: sources, steps, output, and the cuts that there are after the rewrites.
#[must_use]
pub fn graph_text(graph: &Graph, cuts: &[Cut]) -> String {
    let mut text = format!("pipeline {}, seed {}\n\n", graph.name, graph.seed);
    let named = |id: &ColumnId| format!("{}: {}", graph.column(*id).name, graph.column(*id).column_type);
    for source in &graph.sources {
        text.push_str(&format!(
            "{:<8} {} {}, {}, below {}\n",
            source.name,
            show_count(source.listing.fragments.len() as u64),
            kind(source),
            show_bytes(source.bytes() as f64),
            source.root().display()
        ));
        let columns: Vec<String> =
            source.columns.iter().map(|column| format!("{}: {}", column.name, column.column_type)).collect();
        text.push_str(&format!("         {}\n\n", columns.join(", ")));
    }
    let mut rows = vec![["step", "op", "reads", "makes", "type", "rows", "runs"].map(ToOwned::to_owned).to_vec()];
    for step in &graph.steps {
        let reads: Vec<&str> = step.inputs.iter().map(|id| graph.column(*id).name.as_str()).collect();
        let makes: Vec<&str> = step.outputs.iter().map(|id| graph.column(*id).name.as_str()).collect();
        let types: Vec<String> = step.outputs.iter().map(|id| graph.column(*id).column_type.to_string()).collect();
        let or_rows = |list: Vec<&str>| if list.is_empty() { "-".to_owned() } else { list.join(", ") };
        rows.push(vec![
            step.name.clone(),
            step.op_name().to_owned(),
            or_rows(reads),
            or_rows(makes),
            if types.is_empty() { "-".to_owned() } else { types.join(", ") },
            step.rows().name().to_owned(),
            runs(step).to_owned(),
        ]);
    }
    if graph.steps.is_empty() {
        text.push_str("no steps\n");
    } else {
        text.push_str(&table(&rows, &[]));
    }
    let outputs: Vec<String> = graph.outputs.iter().map(named).collect();
    let words: Vec<&str> = cuts.iter().map(|cut| cut.word.as_str()).collect();
    text.push_str(&format!("\noutput   {}\ncuts     {}\n", outputs.join(", "), words.join(", ")));
    text
}

/// The graph as JSON.
#[must_use]
pub fn graph_json(graph: &Graph, cuts: &[Cut]) -> Value {
    let column =
        |id: &ColumnId| json!({ "name": graph.column(*id).name, "type": graph.column(*id).column_type.to_string() });
    let steps: Vec<Value> = graph
        .step_ids()
        .map(|(id, step)| {
            let needs: Vec<&str> = graph.needs(id).into_iter().map(|need| graph.step(need).name.as_str()).collect();
            json!({
                "name": step.name,
                "op": step.op_name(),
                "version": step.op_version(),
                "args": step.args,
                "inputs": step.inputs.iter().map(column).collect::<Vec<_>>(),
                "outputs": step.outputs.iter().map(column).collect::<Vec<_>>(),
                "needs": needs,
                "rows": step.rows().name(),
                "random": step.random(),
                "variants": step.variants,
                "online_only": step.online_only,
            })
        })
        .collect();
    let sources: Vec<Value> = graph
        .sources
        .iter()
        .map(|source| {
            let columns = source.columns.iter();
            let columns: Vec<Value> =
                columns.map(|column| json!({ "name": column.name, "type": column.column_type.to_string() })).collect();
            json!({
                "name": source.name,
                "kind": kind(source),
                "root": source.root(),
                "files": source.listing.fragments.len(),
                "bytes": source.bytes(),
                "columns": columns,
            })
        })
        .collect();
    json!({
        "name": graph.name,
        "seed": graph.seed,
        "sources": sources,
        "steps": steps,
        "output": graph.outputs.iter().map(column).collect::<Vec<_>>(),
        "cuts": cuts.iter().map(|cut| cut.word.as_str()).collect::<Vec<_>>(),
    })
}

/// What the rewrites did, pass by pass, with the steps before and after.
#[must_use]
pub fn rewrites_text(rewritten: &Rewritten) -> String {
    let mut text = "the steps as they are written\n".to_owned();
    let list =
        |text: &mut String, lines: &[String]| lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    list(&mut text, &rewritten.before);
    let mut before = &rewritten.before;
    for pass in &rewritten.passes {
        text.push_str(&format!("\n{}: {}\n", pass.name, pass.obligation));
        match (pass.off, pass.changes.is_empty(), pass.name == FUSE) {
            (true, ..) => text.push_str("  turned off\n"),
            (false, _, true) => text.push_str("  chains of tensor steps are one pass each, offline and online\n"),
            (false, true, _) => text.push_str("  nothing to do\n"),
            (false, false, _) => list(&mut text, &pass.changes),
        }
        if pass.after != *before {
            text.push_str("  now\n");
            pass.after.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
        before = &pass.after;
    }
    text
}

/// The same as JSON.
#[must_use]
pub fn rewrites_json(rewritten: &Rewritten) -> Value {
    let passes: Vec<Value> = rewritten
        .passes
        .iter()
        .map(|pass| {
            json!({
                "name": pass.name,
                "obligation": pass.obligation,
                "off": pass.off,
                "changes": pass.changes,
                "after": pass.after,
            })
        })
        .collect();
    json!({ "before": rewritten.before, "passes": passes })
}
