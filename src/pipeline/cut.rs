//! Cuts: which steps run offline, what is stored between the two sides, and the two programs.

use std::collections::BTreeSet;

use super::graph::{ColumnId, Graph, Producer, StepId};
use super::program::{Call, Program};
use crate::types::NamedColumn;

/// A set of offline steps, closed: whatever an offline step reads is offline too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Its word.
    pub word: String,
    /// Whether nothing is copied: source files are referred to by path, size and digest.
    pub by_reference: bool,
    /// The offline steps, in the graph's order.
    pub offline: Vec<StepId>,
    /// What is stored: the columns that the offline side has and the online side needs, in the graph's order. Empty
    /// when the source is referred to.
    pub frontier: Vec<ColumnId>,
}

/// The word of the cut that copies nothing.
pub const BY_REFERENCE: &str = "source";
/// The word of the cut that stores the source's columns and runs no step offline.
pub const SOURCE_BYTES: &str = "bytes";

/// Every legal cut, from storing nothing to running every step offline that may be.
///
/// The materializable steps, in the text's order, form a chain of closed sets; each is a cut.
#[must_use]
pub fn cuts(graph: &Graph) -> Vec<Cut> {
    let source: Vec<ColumnId> = Vec::new();
    let mut all = vec![
        Cut { word: BY_REFERENCE.to_owned(), by_reference: true, offline: Vec::new(), frontier: source },
        Cut {
            word: SOURCE_BYTES.to_owned(),
            by_reference: false,
            offline: Vec::new(),
            frontier: frontier(graph, &BTreeSet::new()),
        },
    ];
    let mut offline = BTreeSet::new();
    for (at, step) in graph.steps.iter().enumerate() {
        if step.online_only {
            continue;
        }
        offline.insert(StepId(at));
        all.push(Cut {
            word: step.name.clone(),
            by_reference: false,
            offline: offline.iter().copied().collect(),
            frontier: frontier(graph, &offline),
        });
    }
    all
}

/// The columns that are there when `offline` has run and that an online step or the output still needs.
fn frontier(graph: &Graph, offline: &BTreeSet<StepId>) -> Vec<ColumnId> {
    let mut needed: BTreeSet<ColumnId> = graph.outputs.iter().copied().collect();
    for (at, step) in graph.steps.iter().enumerate() {
        if !offline.contains(&StepId(at)) {
            needed.extend(&step.inputs);
        }
    }
    needed
        .into_iter()
        .filter(|id| match graph.column(*id).producer {
            Producer::Source => true,
            Producer::Step(step) => offline.contains(&step),
        })
        .collect()
}

impl Cut {
    /// The program of the offline side: from source columns to the frontier.
    #[must_use]
    pub fn offline_program(&self, graph: &Graph) -> Program {
        program(graph, &graph.source_columns().collect::<Vec<_>>(), &self.offline, &self.frontier)
    }

    /// The program of the online side: from the frontier (or the source's columns, when it is referred to) to the
    /// stream's columns.
    #[must_use]
    pub fn remainder(&self, graph: &Graph) -> Program {
        let online: Vec<StepId> =
            (0..graph.steps.len()).map(StepId).filter(|step| !self.offline.contains(step)).collect();
        let inputs = if self.by_reference { graph.source_columns().collect::<Vec<_>>() } else { self.frontier.clone() };
        program(graph, &inputs, &online, &graph.outputs)
    }
}

/// Compiles those steps to a program; inputs that neither a step nor the output reads are left out.
fn program(graph: &Graph, inputs: &[ColumnId], steps: &[StepId], outputs: &[ColumnId]) -> Program {
    let read: BTreeSet<ColumnId> =
        steps.iter().flat_map(|step| graph.step(*step).inputs.iter().copied()).chain(outputs.iter().copied()).collect();
    let inputs: Vec<ColumnId> = inputs.iter().copied().filter(|id| read.contains(id)).collect();
    let mut order = inputs.clone();
    order.extend(steps.iter().map(|step| graph.step(*step).output));
    let place = |id: ColumnId| order.iter().position(|other| *other == id).unwrap_or(usize::MAX);
    Program {
        seed: graph.seed,
        columns: order
            .iter()
            .map(|id| NamedColumn {
                name: graph.column(*id).name.clone(),
                column_type: graph.column(*id).column_type.clone(),
            })
            .collect(),
        inputs: inputs.len(),
        calls: steps
            .iter()
            .map(|id| {
                let step = graph.step(*id);
                Call {
                    step: step.name.clone(),
                    op: step.op.info().name.to_owned(),
                    version: step.op.info().version,
                    args: step.args.clone(),
                    inputs: step.inputs.iter().map(|id| place(*id)).collect(),
                    output: place(step.output),
                }
            })
            .collect(),
        outputs: outputs.iter().map(|id| place(*id)).collect(),
    }
}
