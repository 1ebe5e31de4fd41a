//! Exact rewrites: passes that change where and in which order steps run, and no bit of the stream.
//!
//! Each pass has a name, by which it can be turned off, and an obligation: what has to hold for the change to be exact.
//! A pass that can't show it for a step leaves the step where it is. Rows that fail are left out of a stream (or end it)
//! wherever they fail, so a step may be moved before or after one that fails on other rows.

mod merge;
mod order;
mod raise;
mod sink;
mod unused;

use super::compile::CompileOptions;
use super::graph::{Graph, Producer};

/// A rewrite.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What makes it exact.
    pub obligation: &'static str,
    /// Changes the graph; says what it did, a line for each change.
    apply: fn(&mut Graph) -> Vec<String>,
}

/// All rewrites, in the order in which they are made.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "merge-common",
        obligation: "two deterministic steps with the same op, arguments and inputs make the same column",
        apply: merge::apply,
    },
    Pass {
        name: "drop-unused",
        obligation: "a column that no step and no output reads changes no row",
        apply: unused::apply,
    },
    Pass {
        name: "raise-filters",
        obligation: "a deterministic filter keeps the same rows, under the same keys, before steps that it doesn't read",
        apply: raise::apply,
    },
    Pass {
        name: "sink-elementwise",
        obligation: "a total map of each element by its value and channel commutes with choosing a window of the picture",
        apply: sink::elementwise,
    },
    Pass {
        name: "widen-late",
        obligation: "a total cast commutes with cutting a tensor into stretches, and maps the zeros of padding to zeros",
        apply: sink::casts,
    },
];

/// The pass that works on programs and not on the graph.
pub const FUSE: &str = "fuse-elementwise";
/// What makes it exact.
pub const FUSE_OBLIGATION: &str =
    "kernels of a chain see the same elements, row by row, whether or not what lies between is kept";

/// The names of all passes.
#[must_use]
pub fn names() -> Vec<&'static str> {
    PASSES.iter().map(|pass| pass.name).chain([FUSE]).collect()
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its name.
    pub name: &'static str,
    /// What makes it exact.
    pub obligation: &'static str,
    /// Whether it was turned off.
    pub off: bool,
    /// What it did, a line for each change.
    pub changes: Vec<String>,
    /// The steps afterwards, a line each.
    pub after: Vec<String>,
}

/// A rewritten graph.
#[derive(Clone)]
pub struct Rewritten {
    /// The graph.
    pub graph: Graph,
    /// How its programs are compiled.
    pub options: CompileOptions,
    /// The steps before, a line each.
    pub before: Vec<String>,
    /// What each pass did.
    pub passes: Vec<Applied>,
}

/// Makes all rewrites but those that are turned off, by name.
#[must_use]
pub fn rewrite(graph: &Graph, off: &[String]) -> Rewritten {
    let mut graph = graph.clone();
    let before = lines(&graph);
    let mut passes = Vec::new();
    let is_off = |name: &str| off.iter().any(|other| other == name);
    for pass in PASSES {
        let changes = if is_off(pass.name) { Vec::new() } else { (pass.apply)(&mut graph) };
        passes.push(Applied {
            name: pass.name,
            obligation: pass.obligation,
            off: is_off(pass.name),
            changes,
            after: lines(&graph),
        });
    }
    let options = CompileOptions { fused: !is_off(FUSE) };
    passes.push(Applied {
        name: FUSE,
        obligation: FUSE_OBLIGATION,
        off: is_off(FUSE),
        changes: Vec::new(),
        after: lines(&graph),
    });
    Rewritten { graph, options, before, passes }
}

/// The steps of a graph, a line each: what a step reads and makes, and of which rows.
#[must_use]
pub fn lines(graph: &Graph) -> Vec<String> {
    let names = |ids: &[super::graph::ColumnId]| {
        ids.iter().map(|id| graph.column(*id).name.as_str()).collect::<Vec<_>>().join(", ")
    };
    graph
        .step_ids()
        .map(|(id, step)| {
            let makes_rows = graph.relation(step.relation).producer == Producer::Step(id);
            let makes = if step.outputs.is_empty() { String::new() } else { format!(" -> {}", names(&step.outputs)) };
            let rows = if makes_rows { format!(" [{}]", step.rows().name()) } else { String::new() };
            format!("{}: {}({}){makes}{rows}", step.name, step.op_name(), names(&step.inputs))
        })
        .collect()
}
