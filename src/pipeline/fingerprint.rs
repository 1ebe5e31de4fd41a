//! Fingerprints of programs: what the stored bytes depend on, and nothing else.

use crate::types::{Fingerprint, FingerprintBuilder};

use super::compile::{CompileOptions, relation_program};
use super::graph::{ColumnId, Graph, Producer, RelationId};
use super::program::Program;
use crate::ops::RowsClass;

/// The fingerprint of how rows of several relations are put together, as far as those columns of the base relation go;
/// none for a source's own rows.
#[must_use]
pub fn gathered_fingerprint(graph: &Graph, base: RelationId, columns: &[ColumnId]) -> Option<Fingerprint> {
    let Producer::Step(id) = graph.relation(base).producer else { return None };
    let step = graph.step(id);
    let mut builder = FingerprintBuilder::new("gathered");
    builder.text(step.op_name()).number(u64::from(step.op_version()));
    for (name, value) in &step.args.0 {
        // The names of relations say nothing; what they are is told below.
        let is_name = matches!(name.as_str(), "join" | "union" | "suffix");
        let is_named_input = name == crate::ops::COLUMNS && step.op_name() == "rows.distinct";
        if !is_name && !is_named_input && !name.starts_with("__") {
            builder.text(name).text(&value.to_string());
        }
    }
    for column in columns {
        let made = step.outputs.iter().position(|output| output == column);
        let carried = step.carried.iter().position(|carried| carried.to == *column);
        builder.number(made.or(carried).unwrap_or(usize::MAX) as u64);
        builder.text(&graph.column(*column).column_type.to_string());
    }
    for (branch, relation) in step.reads.iter().enumerate() {
        let lineage = graph.lineage(*relation);
        let carried = step.carried.iter().filter(|carried| columns.contains(&carried.to));
        let from = carried.filter_map(|carried| match carried.from.len() {
            1 => carried.from.first().filter(|_| carried.side == branch || step.reads.len() == 1),
            _ => carried.from.get(branch),
        });
        let mut needed: Vec<ColumnId> =
            step.inputs.iter().filter(|input| lineage.contains(&graph.column(**input).relation)).copied().collect();
        needed.extend(from);
        let compiled = relation_program(graph, *relation, &needed, CompileOptions { fused: true });
        builder.fingerprint(compiled.program.fingerprint());
        match gathered_fingerprint(graph, graph.base(*relation), &compiled.inputs) {
            Some(before) => builder.fingerprint(before),
            None => builder.text("source"),
        };
    }
    Some(builder.finish())
}

impl Program {
    /// The fingerprint of what this program makes: op, version and arguments of every step, and how they are wired.
    ///
    /// Names of steps and of inner columns are left out where they change no byte: a step's name counts only if the op
    /// is random, a column's name only if it comes out of the program. Settings such as threads or batch sizes, and how
    /// calls are fused, are no part of it. Steps that change rows count for all columns after them.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut made: Vec<Option<Fingerprint>> = self
            .input_columns()
            .iter()
            .map(|column| {
                let mut builder = FingerprintBuilder::new("input");
                Some(builder.text(&column.name).text(&column.column_type.to_string()).finish())
            })
            .collect();
        made.resize(self.columns.len(), None);
        let mut rows = FingerprintBuilder::new("rows").finish();
        for call in &self.calls {
            let mut builder = FingerprintBuilder::new("call");
            builder.text(&call.op).number(u64::from(call.version));
            // What begins so says where things are on this machine, and changes no byte.
            for (name, value) in call.args.0.iter().filter(|(name, _)| !name.starts_with("__")) {
                builder.text(name).text(&value.to_string());
            }
            if crate::ops::find(&call.op).is_some_and(|op| op.info().random) {
                builder.text(&call.step).number(self.seed);
                builder.number(call.variants.map_or(0, u64::from)).number(call.draw.map_or(u64::MAX, u64::from));
                // Random numbers are drawn for the rows that there are: an expansion before gives them other keys.
                builder.fingerprint(rows);
            }
            for input in call.reads() {
                match made[input] {
                    Some(input) => builder.fingerprint(input),
                    None => builder.text("missing"),
                };
            }
            let call_print = builder.finish();
            for (place, output) in call.outputs.iter().enumerate() {
                let mut builder = FingerprintBuilder::new("product");
                made[*output] = Some(builder.fingerprint(call_print).number(place as u64).finish());
            }
            if call.rows() != Some(RowsClass::Map) {
                rows = FingerprintBuilder::new("rows").fingerprint(rows).fingerprint(call_print).finish();
            }
        }
        let mut builder = FingerprintBuilder::new("program");
        builder.fingerprint(rows);
        for (output, column) in self.outputs.iter().zip(self.output_columns()) {
            builder.text(&column.name).text(&column.column_type.to_string());
            match made[*output] {
                Some(made) => builder.fingerprint(made),
                None => builder.text("missing"),
            };
        }
        builder.finish()
    }
}
