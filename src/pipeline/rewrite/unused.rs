//! `drop-unused`: steps that make only columns that nobody reads vanish.

use super::order::{readers, remove, settle};
use crate::ops::RowsClass;
use crate::pipeline::graph::{Graph, StepId};

/// Drops, from the last step on, so that what only dropped steps read goes too.
pub fn apply(graph: &mut Graph) -> Vec<String> {
    let mut changes = Vec::new();
    for at in (0..graph.steps.len()).rev() {
        let step = graph.step(StepId(at));
        let is_read = |output: &crate::pipeline::ColumnId| {
            let (steps, comes_out) = readers(graph, *output);
            !steps.is_empty() || comes_out
        };
        if step.rows() == RowsClass::Map && !step.outputs.iter().any(is_read) {
            changes.push(format!("nobody reads what `{}` makes", step.name));
            remove(graph, StepId(at));
        }
    }
    settle(graph);
    changes
}
