//! Programs: straight-line lists of op calls over columns, the one form in which steps run, offline and online.

use serde::{Deserialize, Serialize};

use crate::ops::{Args, RowsClass};
use crate::types::NamedColumn;

/// One op call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The step's name: random streams are keyed by it.
    pub step: String,
    /// The op's name.
    pub op: String,
    /// The op's version when the program was compiled.
    pub version: u32,
    /// The step's arguments.
    pub args: Args,
    /// The columns it reads, as places in [`Program::columns`].
    pub inputs: Vec<usize>,
    /// The columns it makes, likewise.
    pub outputs: Vec<usize>,
    /// The number of frozen draws of a random step: epoch e has draw e mod `variants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variants: Option<u32>,
    /// The column that holds the keys by which a random step draws, where those aren't the keys of the rows at hand: an
    /// expansion has made others of these since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<usize>,
    /// The draw that is made whatever the epoch is, where frozen draws are stored one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<u32>,
}

impl Call {
    /// All columns that it reads.
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().copied().chain(self.key)
    }

    /// How it changes rows; none for an op that this version doesn't have.
    #[must_use]
    pub fn rows(&self) -> Option<RowsClass> {
        match self.op.as_str() {
            READ | DIGEST | PICK | KEYS => Some(RowsClass::Map),
            name => crate::ops::find(name).map(|op| op.info().rows),
        }
    }
}

/// The call that reads files: the path, and maybe the digest that their content has to have; the content.
pub const READ: &str = super::graph::READ;
/// The call that reads files and gives the digests of their content.
pub const DIGEST: &str = "digest";
/// The call that picks the epoch's draw among stored ones.
pub const PICK: &str = "pick";
/// The call that makes a column of the rows' keys.
pub const KEYS: &str = "keys";
/// The argument of [`READ`] and [`DIGEST`] that names the source.
pub const SOURCE: &str = "source";

/// The stored column with the keys of the rows that a stored row becomes online, one after another, 16 bytes each.
pub const ROWS: &str = "__rows";

/// A straight-line program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The seed of every random stream.
    pub seed: u64,
    /// All columns: the inputs first, then those that calls make.
    pub columns: Vec<NamedColumn>,
    /// How many of the columns are inputs.
    pub inputs: usize,
    /// The calls, in an order in which every column is made before it is read.
    pub calls: Vec<Call>,
    /// The columns that come out, in order.
    pub outputs: Vec<usize>,
    /// Their names, which columns inside the program may share.
    pub names: Vec<String>,
    /// How many of the calls, from the first on, decide which rows there are in every epoch: the order of a stream is
    /// that of the rows after them.
    pub settled: usize,
    /// Whether chains of tensor ops are fused; turned off, each of them runs by itself.
    pub fused: bool,
}

impl Program {
    /// The input columns.
    #[must_use]
    pub fn input_columns(&self) -> &[NamedColumn] {
        &self.columns[..self.inputs]
    }

    /// The output columns.
    pub fn output_columns(&self) -> impl Iterator<Item = NamedColumn> + '_ {
        self.outputs
            .iter()
            .zip(&self.names)
            .map(|(at, name)| NamedColumn { name: name.clone(), column_type: self.columns[*at].column_type.clone() })
    }

    /// Whether a row may become several before the order of the stream is decided.
    #[must_use]
    pub fn expands(&self) -> bool {
        self.calls[..self.settled].iter().any(|call| call.rows() == Some(RowsClass::Expand))
    }

    /// Whether it picks among stored draws, so that what it reads depends on the epoch.
    #[must_use]
    pub fn picks(&self) -> bool {
        self.calls.iter().any(|call| call.op == PICK)
    }

    /// The program for one epoch: of stored draws it reads that epoch's alone.
    #[must_use]
    pub fn at_epoch(&self, epoch: u64) -> Self {
        // Where each column is to be found, once draws that aren't picked are gone.
        let mut stands_for: Vec<usize> = (0..self.columns.len()).collect();
        for pick in self.calls.iter().filter(|call| call.op == PICK) {
            let draws = pick.inputs.len().max(1) as u64;
            let at = usize::try_from(epoch % draws).unwrap_or(0);
            if let (Some(output), Some(input)) = (pick.outputs.first(), pick.inputs.get(at)) {
                stands_for[*output] = *input;
            }
        }
        let calls: Vec<&Call> = self.calls.iter().filter(|call| call.op != PICK).collect();
        let mut needed = vec![false; self.columns.len()];
        let read = calls.iter().flat_map(|call| call.reads()).chain(self.outputs.iter().copied());
        read.for_each(|column| needed[stands_for[column]] = true);
        calls.iter().flat_map(|call| &call.outputs).for_each(|column| needed[*column] = true);
        let mut places = vec![usize::MAX; self.columns.len()];
        let mut columns = Vec::new();
        let mut inputs = 0;
        for (at, column) in self.columns.iter().enumerate().filter(|(at, _)| needed[*at]) {
            places[at] = columns.len();
            columns.push(column.clone());
            inputs += usize::from(at < self.inputs);
        }
        let place = |column: &usize| places[stands_for[*column]];
        let moved = |call: &&Call| Call {
            inputs: call.inputs.iter().map(place).collect(),
            outputs: call.outputs.iter().map(place).collect(),
            key: call.key.as_ref().map(place),
            ..(*call).clone()
        };
        let gone = self.calls[..self.settled].iter().filter(|call| call.op == PICK).count();
        Self {
            columns,
            inputs,
            calls: calls.iter().map(moved).collect(),
            outputs: self.outputs.iter().map(place).collect(),
            settled: self.settled - gone,
            ..self.clone()
        }
    }

    /// Its calls before the order is decided alone, without any column that comes out: which rows there are.
    #[must_use]
    pub fn structure(&self) -> Self {
        let mut calls = self.calls[..self.settled].to_vec();
        let mut read = vec![false; self.columns.len()];
        // Columns that decide about no row aren't made.
        for at in (0..calls.len()).rev() {
            let changes_rows = calls[at].rows() != Some(RowsClass::Map);
            if changes_rows || calls[at].outputs.iter().any(|output| read[*output]) {
                calls[at].reads().for_each(|input| read[input] = true);
            } else {
                calls.remove(at);
            }
        }
        let settled = calls.len();
        Self { calls, outputs: Vec::new(), names: Vec::new(), settled, ..self.clone() }
    }
}
