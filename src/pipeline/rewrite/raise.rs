//! `raise-filters`: a filter goes to the first place where the columns that it reads are there.

use super::order::{readers, row_readers, settle};
use crate::ops::RowsClass;
use crate::pipeline::graph::{ColumnId, Graph, Producer, RelationId, StepId};

/// Raises every filter as far as it goes.
pub fn apply(graph: &mut Graph) -> Vec<String> {
    let mut changes = Vec::new();
    let mut filters: Vec<String> =
        graph.steps.iter().filter(|step| step.rows() == RowsClass::Filter).map(|step| step.name.clone()).collect();
    filters.reverse();
    while let Some(name) = filters.pop() {
        if let Some(at) = graph.steps.iter().position(|step| step.name == name) {
            changes.extend(raise(graph, StepId(at)));
            settle(graph);
        }
    }
    changes
}

fn raise(graph: &mut Graph, id: StepId) -> Option<String> {
    let filter = graph.step(id).clone();
    if filter.random() {
        return None;
    }
    // From the relation that is filtered up to the base.
    let lineage = graph.lineage(*filter.reads.first()?);
    let depth_of = |column: &ColumnId| lineage.iter().position(|other| *other == graph.column(*column).relation);
    let deepest = filter.inputs.iter().map(depth_of).collect::<Option<Vec<_>>>()?.into_iter().min()?;
    // Every relation on the way must lead to this filter alone: nobody else may see its rows unfiltered.
    let mut to = 0;
    for depth in 0..deepest {
        let next = lineage[depth];
        let filtered_only = row_readers(graph, next).iter().all(|reader| {
            *reader == id || depth > 0 && graph.relation(lineage[depth - 1]).producer == Producer::Step(*reader)
        });
        if !filtered_only || graph.output_relation == next {
            break;
        }
        to = depth + 1;
    }
    let own = graph.relation(filter.relation).clone();
    let mut moved = Vec::new();
    if to > 0 {
        // The chain was ... -> target -> first -> ... -> from -> filtered; the filter goes behind its target.
        let (target, first, from) = (lineage[to], lineage[to - 1], lineage[0]);
        let Producer::Step(step) = graph.relation(first).producer else { return None };
        moved.push(graph.step(step).name.clone());
        let filtered = filter.relation;
        // Whatever worked on the filtered rows works on the last relation of the chain from now on.
        for (at, other) in graph.steps.iter_mut().enumerate() {
            if StepId(at) != id {
                let swap = |relation: &mut RelationId| {
                    if *relation == filtered {
                        *relation = from;
                    }
                };
                swap(&mut other.relation);
                other.reads.iter_mut().for_each(swap);
            }
        }
        for column in &mut graph.columns {
            if column.relation == filtered {
                column.relation = from;
            }
        }
        if graph.output_relation == filtered {
            graph.output_relation = from;
        }
        graph.steps[id.0].reads = vec![target];
        graph.steps[step.0].reads = vec![filtered];
    }
    moved.extend(lower_maps(graph, id));
    moved.dedup();
    (!moved.is_empty()).then(|| format!("`{}` ({}) goes before {}", filter.name, own.name, quoted(&moved)))
}

/// Lets steps that the filter doesn't need work on its rows: those whose columns nobody sees unfiltered.
fn lower_maps(graph: &mut Graph, id: StepId) -> Vec<String> {
    let filter = graph.step(id).clone();
    let Some(from) = filter.reads.first().copied() else { return Vec::new() };
    let mut needed: Vec<StepId> = Vec::new();
    let mut waiting: Vec<StepId> = graph.needs(id);
    while let Some(step) = waiting.pop() {
        if !needed.contains(&step) {
            needed.push(step);
            waiting.extend(graph.needs(step));
        }
    }
    let mut moved = Vec::new();
    // From the last on: a step can be moved when those that read it have been.
    for at in (0..graph.steps.len()).rev() {
        let step = graph.step(StepId(at)).clone();
        let is_map = step.rows() == RowsClass::Map && step.relation == from;
        if !is_map || needed.contains(&StepId(at)) {
            continue;
        }
        let sees_filtered = |relation: RelationId| graph.lineage(relation).contains(&filter.relation);
        let all_filtered = step.outputs.iter().all(|output| {
            let (steps, comes_out) = readers(graph, *output);
            let by_steps = steps.iter().all(|reader| {
                let reader = graph.step(*reader);
                if reader.rows().is_row_local() {
                    sees_filtered(reader.relation)
                } else {
                    // What a step puts together it reads from the relation that it names.
                    reader.reads.iter().all(|relation| sees_filtered(*relation))
                }
            });
            by_steps && (!comes_out || sees_filtered(graph.output_relation))
        });
        if all_filtered {
            graph.steps[at].relation = filter.relation;
            graph.steps[at].reads = vec![filter.relation];
            for output in &step.outputs {
                graph.columns[output.0].relation = filter.relation;
            }
            moved.push(step.name);
        }
    }
    moved.reverse();
    moved
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
