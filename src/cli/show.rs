//! `check` and `ops`.

use serde_json::Value;

use super::args::{CheckArgs, OpsArgs};
use super::console::Console;
use super::plan::resolve_cut;
use crate::diag::{Error, Result, nearest};
use crate::ops::{self, ErasedOp};
use crate::pipeline;
use crate::report::{Drawing, graph_json, graph_text, reference_json, reference_text};

/// Checks a pipeline and prints its graph.
pub fn check(console: &Console, args: &CheckArgs) -> Result<()> {
    let checked = pipeline::load(&args.pipeline)?;
    console.warnings(&checked.warnings);
    let rewritten = pipeline::rewrite(&checked.graph, &args.no_rewrite).graph;
    let cuts = pipeline::cuts(&rewritten);
    if args.dot || args.svg {
        let cut = args.cut.as_ref().map(|word| resolve_cut(&rewritten, &cuts, word)).transpose()?;
        let drawing = Drawing::new(&rewritten, cut.as_ref());
        return console.print(&if args.dot { drawing.dot() } else { drawing.svg() });
    }
    if args.json {
        return console.print_json(&graph_json(&checked.graph, &cuts));
    }
    console.print(&graph_text(&checked.graph, &cuts))
}

/// Prints the reference of ops.
pub fn ops(console: &Console, args: &OpsArgs) -> Result<()> {
    let wanted: Vec<&dyn ErasedOp> = match &args.op {
        None => ops::OPS.to_vec(),
        Some(name) => vec![ops::find(name).ok_or_else(|| Error::Usage {
            message: format!("there is no op `{name}`"),
            help: nearest(name, ops::OPS.iter().map(|op| op.info().name)).map(|near| format!("did you mean `{near}`?")),
        })?],
    };
    if args.json {
        return console.print_json(&Value::Array(wanted.into_iter().map(reference_json).collect()));
    }
    console.print(&wanted.into_iter().map(reference_text).collect::<Vec<_>>().join("\n"))
}
