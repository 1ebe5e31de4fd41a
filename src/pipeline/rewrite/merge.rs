//! `merge-common`: steps that make the same column are one step.

use super::order::{remove, replace, settle};
use crate::ops::RowsClass;
use crate::pipeline::graph::{Action, Graph, Step, StepId};

/// Merges, from the first step on, so that what is made of merged columns can be merged too.
pub fn apply(graph: &mut Graph) -> Vec<String> {
    let mut changes = Vec::new();
    let mut at = 0;
    while at < graph.steps.len() {
        let Some(same) = (0..at).find(|before| is_same(graph, StepId(*before), StepId(at))) else {
            at += 1;
            continue;
        };
        let (kept, gone) = (graph.steps[same].clone(), graph.steps[at].clone());
        for (old, new) in gone.outputs.iter().zip(&kept.outputs) {
            replace(graph, *old, *new);
        }
        changes.push(format!("`{}` makes what `{}` makes", gone.name, kept.name));
        remove(graph, StepId(at));
    }
    settle(graph);
    changes
}

/// Whether the later step can be left out for the earlier one.
fn is_same(graph: &Graph, before: StepId, after: StepId) -> bool {
    let (one, other) = (graph.step(before), graph.step(after));
    let is_plain = |step: &Step| step.rows() == RowsClass::Map && !step.random();
    let same_action = match (one.action, other.action) {
        (Action::Op(one), Action::Op(other)) => one.info().name == other.info().name,
        (Action::Read(one), Action::Read(other)) => one == other,
        _ => false,
    };
    // A column comes out under its own name.
    let comes_out = other.outputs.iter().zip(&one.outputs).any(|(old, new)| {
        graph.outputs.contains(old)
            && (graph.outputs.contains(new) || graph.column(*old).name != graph.column(*new).name)
    });
    same_action
        && is_plain(one)
        && is_plain(other)
        && one.args == other.args
        && one.inputs == other.inputs
        && !comes_out
        // The values of a relation's column are there for all rows that come from it.
        && graph.lineage(other.relation).contains(&one.relation)
}
