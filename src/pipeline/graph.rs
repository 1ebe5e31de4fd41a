//! The checked graph: a node per step, an edge per column read.

use crate::diag::Span;
use crate::format::Listing;
use crate::ops::{Args, ErasedOp, RowsClass};
use crate::types::ColumnType;

use super::settings::{OnError, PlanSettings};

/// A column, by its place in [`Graph::columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub usize);

/// A step, by its place in [`Graph::steps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub usize);

/// Who makes a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Producer {
    /// The source.
    Source,
    /// A step.
    Step(StepId),
}

/// A column of the graph. Names may repeat: a later definition shadows an earlier one.
#[derive(Debug, Clone)]
pub struct GraphColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// Who makes it.
    pub producer: Producer,
}

/// A step of the graph.
#[derive(Clone)]
pub struct Step {
    /// Its name, unique in the pipeline: given by `name`, or the op's last word (`resize`, `resize2`, ...).
    pub name: String,
    /// What it does.
    pub op: &'static dyn ErasedOp,
    /// Its checked arguments, defaults and fitted values filled in.
    pub args: Args,
    /// The columns it reads.
    pub inputs: Vec<ColumnId>,
    /// The column it makes.
    pub output: ColumnId,
    /// Whether it, or anything before it, is random: then it can never be materialized.
    pub online_only: bool,
    /// Where it stands in the text.
    pub span: Span,
}

impl Step {
    /// How it changes rows.
    #[must_use]
    pub fn rows(&self) -> RowsClass {
        self.op.info().rows
    }

    /// Whether its own output depends on the epoch.
    #[must_use]
    pub fn random(&self) -> bool {
        self.op.info().random
    }
}

/// The source of rows: files, each of them a row with the columns `path`, `bytes` and `size`.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name that messages use.
    pub name: String,
    /// The files that match, in row-key order.
    pub listing: Listing,
}

/// The checked pipeline.
///
/// Invariant: steps stand in an order in which every input is made before it is read.
#[derive(Clone)]
pub struct Graph {
    /// The pipeline's name; the data set goes to `out/NAME`.
    pub name: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// The source.
    pub source: Source,
    /// The columns: those of the source first, then one for each step.
    pub columns: Vec<GraphColumn>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The columns of the stream, in order.
    pub outputs: Vec<ColumnId>,
    /// What happens to a row that a step can't process.
    pub on_error: OnError,
    /// What the planner is asked for.
    pub plan: PlanSettings,
}

impl Graph {
    /// The column of that id.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> &GraphColumn {
        &self.columns[id.0]
    }

    /// The step of that id.
    #[must_use]
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0]
    }

    /// The columns of the source, by id.
    pub fn source_columns(&self) -> impl Iterator<Item = ColumnId> + '_ {
        (0..self.columns.len()).map(ColumnId).filter(|id| self.column(*id).producer == Producer::Source)
    }
}
