//! The graph of a pipeline, for `check`.

use serde_json::{Value, json};

use super::plan::table;
use crate::pipeline::{ColumnId, Graph, cuts};
use crate::types::units::{show_bytes, show_count};

/// The graph as text: source, steps, output, cuts.
#[must_use]
pub fn graph_text(graph: &Graph) -> String {
    let listing = &graph.source.listing;
    let bytes: u64 = listing.fragments.iter().map(|fragment| fragment.size).sum();
    let mut text = format!("pipeline {}, seed {}\n\n", graph.name, graph.seed);
    text.push_str(&format!(
        "source   {} files, {}, below {}\n",
        show_count(listing.fragments.len() as u64),
        show_bytes(bytes as f64),
        listing.root.display()
    ));
    let named = |id: &ColumnId| format!("{}: {}", graph.column(*id).name, graph.column(*id).column_type);
    let columns: Vec<String> = graph.source_columns().map(|id| named(&id)).collect();
    text.push_str(&format!("         {}\n\n", columns.join(", ")));
    let mut rows = vec![["step", "op", "reads", "makes", "type", "rows", "runs"].map(ToOwned::to_owned).to_vec()];
    for step in &graph.steps {
        let reads: Vec<&str> = step.inputs.iter().map(|id| graph.column(*id).name.as_str()).collect();
        let output = graph.column(step.output);
        let runs = match (step.random(), step.online_only) {
            (true, _) => "online: random",
            (false, true) => "online: after a random step",
            (false, false) => "offline or online",
        };
        rows.push(vec![
            step.name.clone(),
            step.op.info().name.to_owned(),
            reads.join(", "),
            output.name.clone(),
            output.column_type.to_string(),
            step.rows().name().to_owned(),
            runs.to_owned(),
        ]);
    }
    if graph.steps.is_empty() {
        text.push_str("no steps\n");
    } else {
        text.push_str(&table(&rows, &[]));
    }
    let outputs: Vec<String> = graph.outputs.iter().map(named).collect();
    let words: Vec<String> = cuts(graph).into_iter().map(|cut| cut.word).collect();
    text.push_str(&format!("\noutput   {}\ncuts     {}\n", outputs.join(", "), words.join(", ")));
    text
}

/// The graph as JSON.
#[must_use]
pub fn graph_json(graph: &Graph) -> Value {
    let column =
        |id: &ColumnId| json!({ "name": graph.column(*id).name, "type": graph.column(*id).column_type.to_string() });
    let steps: Vec<Value> = graph
        .steps
        .iter()
        .map(|step| {
            json!({
                "name": step.name,
                "op": step.op.info().name,
                "version": step.op.info().version,
                "args": step.args,
                "inputs": step.inputs.iter().map(column).collect::<Vec<_>>(),
                "output": column(&step.output),
                "rows": step.rows().name(),
                "random": step.random(),
                "online_only": step.online_only,
            })
        })
        .collect();
    json!({
        "name": graph.name,
        "seed": graph.seed,
        "source": {
            "root": graph.source.listing.root,
            "files": graph.source.listing.fragments.len(),
            "bytes": graph.source.listing.fragments.iter().map(|fragment| fragment.size).sum::<u64>(),
            "columns": graph.source_columns().map(|id| column(&id)).collect::<Vec<_>>(),
        },
        "steps": steps,
        "output": graph.outputs.iter().map(column).collect::<Vec<_>>(),
        "cuts": cuts(graph).into_iter().map(|cut| cut.word).collect::<Vec<_>>(),
    })
}
