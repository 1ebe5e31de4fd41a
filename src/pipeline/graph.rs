//! The checked graph: a node per step, an edge per column read, and the relations whose rows they work on.

use crate::diag::Span;
use crate::format::Source;
use crate::ops::{Args, ErasedOp, Kernel, RowsClass};
use crate::types::ColumnType;

use super::settings::{OnError, PlanSettings};

/// A column, by its place in [`Graph::columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub usize);

/// A step, by its place in [`Graph::steps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub usize);

/// A relation, by its place in [`Graph::relations`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(pub usize);

/// Who makes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Producer {
    /// A source, by its place in [`Graph::sources`].
    Source(usize),
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
    /// The rows that it has a value for. A relation that filters or expands this one has it too: a row's values are
    /// those of the row that it comes from.
    pub relation: RelationId,
}

/// Rows: those of a source, or those that a step makes of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its name in messages.
    pub name: String,
    /// Whose rows these are.
    pub producer: Producer,
}

/// What a step does.
#[derive(Clone, Copy)]
pub enum Action {
    /// Runs an op.
    Op(&'static dyn ErasedOp),
    /// Reads the files whose paths its input column holds: the column `bytes` of that source.
    Read(usize),
}

/// A column that a relational step hands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The columns that it comes from: one, or one of each branch of a union.
    pub from: Vec<ColumnId>,
    /// What it is afterwards.
    pub to: ColumnId,
    /// Of a join: 0 for the left side's columns, 1 for the right side's.
    pub side: usize,
}

/// A step of the graph.
#[derive(Clone)]
pub struct Step {
    /// Its name, unique in the pipeline: given by `name`, or the op's last word (`resize`, `resize2`, ...).
    pub name: String,
    /// What it does.
    pub action: Action,
    /// Its checked arguments, defaults and fitted values filled in.
    pub args: Args,
    /// The columns that its op reads.
    pub inputs: Vec<ColumnId>,
    /// The columns that its op makes.
    pub outputs: Vec<ColumnId>,
    /// The columns that it hands on, if it makes new rows of several.
    pub carried: Vec<Carried>,
    /// The relations that it reads: one, or several for a join or a union.
    pub reads: Vec<RelationId>,
    /// The relation whose rows it makes or works on.
    pub relation: RelationId,
    /// Draws that are frozen, for a random step that the user allows it: epoch e has draw e mod `variants`.
    pub variants: Option<u32>,
    /// Whether it, or anything before it, is random: then it can never be materialized.
    pub online_only: bool,
    /// Where it stands in the text.
    pub span: Span,
}

/// The op's name of a step that reads source files.
pub const READ: &str = "read";

impl Step {
    /// How it changes rows.
    #[must_use]
    pub fn rows(&self) -> RowsClass {
        match self.action {
            Action::Op(op) => op.info().rows,
            Action::Read(_) => RowsClass::Map,
        }
    }

    /// Whether its own output depends on the epoch.
    #[must_use]
    pub fn random(&self) -> bool {
        matches!(self.action, Action::Op(op) if op.info().random)
    }

    /// Its op's name.
    #[must_use]
    pub fn op_name(&self) -> &'static str {
        match self.action {
            Action::Op(op) => op.info().name,
            Action::Read(_) => READ,
        }
    }

    /// Its op's version.
    #[must_use]
    pub fn op_version(&self) -> u32 {
        match self.action {
            Action::Op(op) => op.info().version,
            Action::Read(_) => 1,
        }
    }
}

/// The checked pipeline.
///
/// Invariant: steps stand in an order in which everything is made before it is read.
#[derive(Clone)]
pub struct Graph {
    /// The pipeline's name; the data set goes to `out/NAME`.
    pub name: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// The sources, in the text's order.
    pub sources: Vec<Source>,
    /// The relations: those of the sources first.
    pub relations: Vec<Relation>,
    /// The columns: those of the sources first.
    pub columns: Vec<GraphColumn>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The columns of the stream, in order.
    pub outputs: Vec<ColumnId>,
    /// The relation whose rows come out.
    pub output_relation: RelationId,
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

    /// The relation of that id.
    #[must_use]
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.0]
    }

    /// The types of those columns.
    #[must_use]
    pub fn types(&self, columns: &[ColumnId]) -> Vec<ColumnType> {
        columns.iter().map(|id| self.column(*id).column_type.clone()).collect()
    }

    /// What a step's op runs on inputs of such types; none: the step reads files.
    #[must_use]
    pub fn kernel(&self, step: &Step) -> Option<Kernel> {
        let Action::Op(op) = step.action else { return None };
        // A checked step binds.
        op.bind(&step.args, &self.types(&step.inputs)).ok().map(|bound| bound.kernel)
    }

    /// All steps with their ids, in order.
    pub fn step_ids(&self) -> impl Iterator<Item = (StepId, &Step)> + '_ {
        self.steps.iter().enumerate().map(|(at, step)| (StepId(at), step))
    }

    /// The columns of a source, by id.
    pub fn source_columns(&self, source: usize) -> impl Iterator<Item = ColumnId> + '_ {
        (0..self.columns.len()).map(ColumnId).filter(move |id| self.column(*id).producer == Producer::Source(source))
    }

    /// The relation and those that its rows come from one by one, from the relation up to the one of a source or of a
    /// step that needs several rows at once: its *base*, the last of them.
    #[must_use]
    pub fn lineage(&self, relation: RelationId) -> Vec<RelationId> {
        let mut chain = vec![relation];
        let mut at = relation;
        while let Producer::Step(id) = self.relation(at).producer {
            let step = self.step(id);
            match step.reads.first() {
                Some(from) if step.rows().is_row_local() => {
                    at = *from;
                    chain.push(at);
                }
                _ => break,
            }
        }
        chain
    }

    /// The relation of a source, or of a step that needs several rows at once, that this one's rows come from.
    #[must_use]
    pub fn base(&self, relation: RelationId) -> RelationId {
        self.lineage(relation).last().copied().unwrap_or(relation)
    }

    /// Everything that a step needs to have run before it: the makers of its columns and of the rows that it reads.
    #[must_use]
    pub fn needs(&self, id: StepId) -> Vec<StepId> {
        let step = self.step(id);
        let carried = step.carried.iter().flat_map(|carried| &carried.from);
        let columns = step.inputs.iter().chain(carried).map(|column| self.column(*column).producer);
        let rows = step.reads.iter().map(|relation| self.relation(*relation).producer);
        let mut needed: Vec<StepId> = columns
            .chain(rows)
            .filter_map(|producer| match producer {
                Producer::Step(step) => Some(step),
                Producer::Source(_) => None,
            })
            .filter(|step| *step != id)
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// How many different draws a column has, if it is downstream of random steps whose draws are frozen; 1 if of none.
    #[must_use]
    pub fn variants(&self, column: ColumnId) -> u32 {
        match self.column(column).producer {
            Producer::Source(_) => 1,
            Producer::Step(id) => {
                let step = self.step(id);
                let inputs = step.inputs.iter().map(|input| self.variants(*input));
                inputs.chain(step.variants).fold(1, least_common_multiple)
            }
        }
    }
}

fn least_common_multiple(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}
