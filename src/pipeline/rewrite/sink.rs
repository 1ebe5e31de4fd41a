//! `sink-elementwise` and `widen-late`: maps of single elements go behind steps that only choose among elements, so
//! that less is computed, and what is stored is narrower.

use super::order::{readers, settle};
use crate::ops::{Kernel, RowsClass};
use crate::pipeline::graph::{Action, ColumnId, Graph, Step, StepId};
use crate::types::ColumnType;

/// Sinks maps below crops and flips.
pub fn elementwise(graph: &mut Graph) -> Vec<String> {
    sink(graph, &|_, (graph, below)| matches!(graph.kernel(below), Some(Kernel::Select(_))))
}

/// Sinks casts below windows.
pub fn casts(graph: &mut Graph) -> Vec<String> {
    sink(graph, &|map, below| map.op_name() == "tensor.cast" && below.1.op_name() == "tensor.windows")
}

/// Whether a step maps single elements, and every value that its input can have.
fn is_total_map(graph: &Graph, step: &Step) -> bool {
    let Some(Kernel::Elementwise(map)) = graph.kernel(step) else { return false };
    let input = step.inputs.first().and_then(|input| graph.column(*input).column_type.tensor());
    step.rows() == RowsClass::Map && !step.random() && input.is_some_and(|tensor| map.is_total(tensor.dtype))
}

/// A step below a map, with its graph.
type Below<'g> = (&'g Graph, &'g Step);

fn sink(graph: &mut Graph, fits: &dyn Fn(&Step, Below<'_>) -> bool) -> Vec<String> {
    let mut changes = Vec::new();
    // Each exchange brings a map one step down, and none ever goes up: this ends.
    while let Some((above, below)) = next(graph, fits) {
        changes.push(format!("`{}` goes behind `{}`", graph.step(above).name, graph.step(below).name));
        exchange(graph, above, below);
        settle(graph);
    }
    changes
}

/// A map whose only reader is a step that it commutes with.
fn next(graph: &Graph, fits: &dyn Fn(&Step, Below<'_>) -> bool) -> Option<(StepId, StepId)> {
    graph.step_ids().find_map(|(id, step)| {
        let [output] = step.outputs[..] else { return None };
        let (steps, comes_out) = readers(graph, output);
        let [below] = steps[..] else { return None };
        let reader = graph.step(below);
        let only_input = reader.inputs == [output] && !reader.outputs.is_empty();
        let may = !comes_out && only_input && is_total_map(graph, step) && fits(step, (graph, reader));
        (may && retyped(graph, id, below).is_some()).then_some((id, below))
    })
}

/// The types of the columns of the two steps after the exchange: of what the lower step makes, and the map of that.
fn retyped(graph: &Graph, above: StepId, below: StepId) -> Option<(Vec<ColumnType>, ColumnType)> {
    let (map, lower) = (graph.step(above), graph.step(below));
    let (Action::Op(map_op), Action::Op(lower_op)) = (map.action, lower.action) else { return None };
    let input = graph.column(*map.inputs.first()?).column_type.clone();
    let chosen = lower_op.bind(&lower.args, &[input]).ok()?.outputs;
    let mapped = map_op.bind(&map.args, std::slice::from_ref(chosen.first()?)).ok()?.outputs;
    let last = mapped.first()?.clone();
    (last == graph.column(*lower.outputs.first()?).column_type).then_some((chosen, last))
}

/// Was: x -map-> y -lower-> z. Is: x -lower-> y -map-> z, y being of another type, and the map a step of z's rows.
fn exchange(graph: &mut Graph, above: StepId, below: StepId) {
    let Some((chosen, _)) = retyped(graph, above, below) else { return };
    let (map, lower) = (graph.step(above).clone(), graph.step(below).clone());
    let (x, y, z): (ColumnId, ColumnId, ColumnId) = (map.inputs[0], map.outputs[0], lower.outputs[0]);
    let rows = graph.column(z).relation;
    let lower_step = &mut graph.steps[below.0];
    lower_step.inputs = vec![x];
    lower_step.outputs[0] = y;
    graph.columns[y.0].column_type = chosen[0].clone();
    let name = graph.columns[z.0].name.clone();
    graph.columns[y.0].name = name;
    graph.columns[y.0].relation = rows;
    graph.columns[y.0].producer = crate::pipeline::Producer::Step(below);
    let map_step = &mut graph.steps[above.0];
    map_step.inputs = vec![y];
    map_step.outputs = vec![z];
    map_step.reads = vec![rows];
    map_step.relation = rows;
    graph.columns[z.0].producer = crate::pipeline::Producer::Step(above);
}
