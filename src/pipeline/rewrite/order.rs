//! Putting a changed graph in order again: steps after what they need, ids that say where things are, what is online.

use crate::pipeline::graph::{ColumnId, Graph, Producer, RelationId, StepId};

/// Brings steps into an order in which everything is made before it is read, the text's as far as it goes, and works
/// out anew what can only run online.
pub fn settle(graph: &mut Graph) {
    let count = graph.steps.len();
    let mut order: Vec<usize> = Vec::with_capacity(count);
    let mut done = vec![false; count];
    while order.len() < count {
        let ready = |at: &usize| !done[*at] && graph.needs(StepId(*at)).iter().all(|need| done[need.0]);
        // A graph that isn't one any more stays as it is: the compiler's own mistake shows up in every test of cuts.
        let Some(next) = (0..count).find(ready) else { return };
        done[next] = true;
        order.push(next);
    }
    let mut places = vec![0; count];
    for (to, from) in order.iter().enumerate() {
        places[*from] = to;
    }
    renumber(graph, &|id| Some(StepId(places[id.0])));
    let mut steps: Vec<_> = order.iter().map(|at| graph.steps[*at].clone()).collect();
    for at in 0..count {
        let step = &steps[at];
        let is_online = |producer: Producer| match producer {
            Producer::Step(id) => id.0 < at && steps[id.0].online_only,
            Producer::Source(_) => false,
        };
        let before = step.inputs.iter().any(|input| is_online(graph.column(*input).producer))
            || step.reads.iter().any(|relation| is_online(graph.relation(*relation).producer));
        let own = step.random() && step.variants.is_none();
        steps[at].online_only = before || own;
    }
    graph.steps = steps;
}

/// Takes a step out whose columns and rows nobody reads any more.
pub fn remove(graph: &mut Graph, gone: StepId) {
    graph.steps.remove(gone.0);
    renumber(graph, &|id| match id.cmp(&gone) {
        std::cmp::Ordering::Less => Some(id),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(StepId(id.0 - 1)),
    });
}

/// Gives the makers of columns and relations their new places; what has no maker any more is nobody's.
fn renumber(graph: &mut Graph, place: &dyn Fn(StepId) -> Option<StepId>) {
    let producers = graph.columns.iter_mut().map(|column| &mut column.producer);
    for producer in producers.chain(graph.relations.iter_mut().map(|relation| &mut relation.producer)) {
        if let Producer::Step(id) = *producer {
            // Nobody reads such a column: where it points makes no difference.
            *producer = place(id).map_or(Producer::Source(usize::MAX), Producer::Step);
        }
    }
}

/// Puts one column in the place of another wherever that is read.
pub fn replace(graph: &mut Graph, old: ColumnId, new: ColumnId) {
    let swap = |id: &mut ColumnId| {
        if *id == old {
            *id = new;
        }
    };
    for step in &mut graph.steps {
        step.inputs.iter_mut().for_each(swap);
        step.carried.iter_mut().for_each(|carried| carried.from.iter_mut().for_each(swap));
    }
    graph.outputs.iter_mut().for_each(swap);
}

/// The steps that read a column, and whether it comes out.
pub fn readers(graph: &Graph, id: ColumnId) -> (Vec<StepId>, bool) {
    let reads = |step: &crate::pipeline::Step| {
        step.inputs.contains(&id) || step.carried.iter().any(|carried| carried.from.contains(&id))
    };
    let steps = graph.step_ids().filter(|(_, step)| reads(step)).map(|(id, _)| id).collect();
    (steps, graph.outputs.contains(&id))
}

/// The steps that make rows of a relation's rows.
pub fn row_readers(graph: &Graph, id: RelationId) -> Vec<StepId> {
    let makes_rows = |at: StepId| graph.relations.iter().any(|relation| relation.producer == Producer::Step(at));
    graph.step_ids().filter(|(at, step)| step.reads.contains(&id) && makes_rows(*at)).map(|(id, _)| id).collect()
}
