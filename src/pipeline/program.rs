//! Programs: straight-line lists of op calls over columns, the one form in which steps run, offline and online.

use serde::{Deserialize, Serialize};

use crate::ops::Args;
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
    /// The column it makes, likewise.
    pub output: usize,
}

/// A straight-line program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The seed of every random stream.
    pub seed: u64,
    /// All columns: the inputs first, then one for each call.
    pub columns: Vec<NamedColumn>,
    /// How many of the columns are inputs.
    pub inputs: usize,
    /// The calls, in an order in which every column is made before it is read.
    pub calls: Vec<Call>,
    /// The columns that come out, in order.
    pub outputs: Vec<usize>,
}

impl Program {
    /// The input columns.
    #[must_use]
    pub fn input_columns(&self) -> &[NamedColumn] {
        &self.columns[..self.inputs]
    }

    /// The output columns.
    pub fn output_columns(&self) -> impl Iterator<Item = &NamedColumn> + '_ {
        self.outputs.iter().map(|&at| &self.columns[at])
    }
}
