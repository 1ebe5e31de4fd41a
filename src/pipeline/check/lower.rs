//! From checked steps to the graph: what nobody needs is left out, reading of files is put in where it is needed, and
//! everything is numbered anew.

use std::collections::BTreeMap;

use super::output::Output;
use super::scope::{Maker, Scope};
use super::steps::CheckedStep;
use crate::diag::{Diagnostic, Span};
use crate::format::{DIGEST, Source, SourceKind};
use crate::ops::Args;
use crate::pipeline::graph::{
    Action, Carried, ColumnId, GraphColumn, Producer, READ, Relation, RelationId, Step, StepId,
};
use crate::types::ColumnType;

/// The parts of a graph.
pub struct Lowered {
    /// The relations.
    pub relations: Vec<Relation>,
    /// The columns.
    pub columns: Vec<GraphColumn>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The columns that come out.
    pub outputs: Vec<ColumnId>,
    /// The relation whose rows come out.
    pub output_relation: RelationId,
}

/// What is needed for the output.
struct Needed {
    columns: Vec<bool>,
    relations: Vec<bool>,
}

impl Needed {
    fn column(&mut self, at: usize, scope: &Scope) {
        self.columns[at] = true;
        self.relations[scope.columns[at].relation] = true;
        if let Some((_, path)) = scope.columns[at].content_of {
            self.columns[path] = true;
        }
    }

    fn step(&self, step: &CheckedStep, scope: &Scope) -> bool {
        let makes_rows = scope.relations[step.relation].maker == Maker::Step(step.at);
        (makes_rows && self.relations[step.relation]) || step.outputs.iter().any(|output| self.columns[*output])
    }
}

/// Lowers checked steps; a step whose columns and rows nobody needs is left out, with a warning.
pub fn lower(
    scope: &Scope,
    steps: Vec<CheckedStep>,
    output: &Output,
    sources: &[Source],
    spans: &[Span],
    list: &mut Vec<Diagnostic>,
) -> Option<Lowered> {
    let mut needed =
        Needed { columns: vec![false; scope.columns.len()], relations: vec![false; scope.relations.len()] };
    needed.relations[output.relation] = true;
    for column in &output.columns {
        needed.column(*column, scope);
    }
    for step in steps.iter().rev() {
        if !needed.step(step, scope) {
            continue;
        }
        needed.relations[step.relation] = true;
        for relation in &step.reads {
            needed.relations[*relation] = true;
        }
        for input in &step.inputs {
            needed.column(*input, scope);
        }
        for handed in &step.carried {
            if needed.columns[handed.to] && scope.columns[handed.to].content_of.is_none() {
                for column in &handed.from {
                    needed.column(*column, scope);
                }
            }
        }
    }
    let unused = |step: &&CheckedStep| !needed.step(step, scope);
    for step in steps.iter().filter(unused) {
        let names: Vec<String> =
            step.outputs.iter().map(|output| format!("`{}`", scope.columns[*output].name)).collect();
        let span = step.outputs.first().map_or(step.span.clone(), |output| scope.columns[*output].span.clone());
        let warning = match names.as_slice() {
            [] => Diagnostic::warning(
                "unused-rows",
                format!("nobody uses the rows of `{}`", step.name),
                span,
                "made here",
            )
            .help("use them with `from`, `join`, `union` or `[output] from`, or remove the step"),
            _ => {
                let message = format!("nobody uses column {}: its step is left out", names.join(" and "));
                Diagnostic::warning("unused-column", message, span, "made here")
                    .help("name it in `[output] columns`, or remove the step")
            }
        };
        list.push(warning);
    }
    for (at, relation) in scope.relations.iter().enumerate() {
        if let (Maker::Source(source), false) = (relation.maker, needed.relations[at])
            && sources.len() > 1
        {
            let message = format!("nobody uses the source `{}`", sources[source].name);
            list.push(
                Diagnostic::warning("unused-source", message, spans[source].clone(), "not needed")
                    .help("join it, or remove it"),
            );
        }
    }
    let mut lowering = Lowering::new(scope, &needed, sources)?;
    for step in steps {
        if needed.step(&step, scope) {
            lowering.step(step)?;
        }
    }
    lowering.finish(output)
}

struct Lowering<'s> {
    scope: &'s Scope,
    needed: &'s Needed,
    relations: Vec<Relation>,
    columns: Vec<GraphColumn>,
    steps: Vec<Step>,
    relation_places: BTreeMap<usize, RelationId>,
    column_places: BTreeMap<usize, ColumnId>,
    reads: usize,
}

impl<'s> Lowering<'s> {
    fn new(scope: &'s Scope, needed: &'s Needed, sources: &[Source]) -> Option<Self> {
        let mut lowering = Self {
            scope,
            needed,
            relations: Vec::new(),
            columns: Vec::new(),
            steps: Vec::new(),
            relation_places: BTreeMap::new(),
            column_places: BTreeMap::new(),
            reads: 0,
        };
        for (at, relation) in scope.relations.iter().enumerate() {
            if let Maker::Source(source) = relation.maker {
                lowering.add_relation(at, Producer::Source(source));
            }
        }
        for (at, column) in scope.columns.iter().enumerate() {
            if let (Maker::Source(source), None) = (column.maker, column.content_of) {
                lowering.add_column(at, Producer::Source(source))?;
            }
        }
        for (at, source) in sources.iter().enumerate() {
            if source.kind == SourceKind::Files {
                lowering.columns.push(GraphColumn {
                    name: DIGEST.to_owned(),
                    column_type: ColumnType::Bytes,
                    producer: Producer::Source(at),
                    relation: RelationId(at),
                });
            }
        }
        for at in 0..sources.len() {
            lowering.read_content(at)?;
        }
        Some(lowering)
    }

    fn add_relation(&mut self, at: usize, producer: Producer) -> RelationId {
        let id = RelationId(self.relations.len());
        self.relations.push(Relation { name: self.scope.relations[at].name.clone(), producer });
        self.relation_places.insert(at, id);
        id
    }

    fn add_column(&mut self, at: usize, producer: Producer) -> Option<ColumnId> {
        let column = &self.scope.columns[at];
        let id = ColumnId(self.columns.len());
        self.columns.push(GraphColumn {
            name: column.name.clone(),
            column_type: column.column_type.clone()?,
            producer,
            relation: *self.relation_places.get(&column.relation)?,
        });
        self.column_places.insert(at, id);
        Some(id)
    }

    /// Puts in the steps that read files for the rows of that relation of the scope, where their content is needed.
    fn read_content(&mut self, relation: usize) -> Option<()> {
        for (at, column) in self.scope.columns.iter().enumerate() {
            let Some((source, path)) = column.content_of.filter(|_| column.relation == relation) else { continue };
            if !self.needed.columns[at] {
                continue;
            }
            let step = StepId(self.steps.len());
            let input = *self.column_places.get(&path)?;
            let output = self.add_column(at, Producer::Step(step))?;
            self.reads += 1;
            let name = if self.reads == 1 { READ.to_owned() } else { format!("{READ}{}", self.reads) };
            let relation = *self.relation_places.get(&relation)?;
            self.steps.push(Step {
                name,
                action: Action::Read(source),
                args: Args::default(),
                inputs: vec![input],
                outputs: vec![output],
                carried: Vec::new(),
                reads: vec![relation],
                relation,
                variants: None,
                online_only: false,
                span: 0..0,
            });
        }
        Some(())
    }

    fn step(&mut self, step: CheckedStep) -> Option<()> {
        let id = StepId(self.steps.len());
        let places = |lowering: &Self, columns: &[usize]| -> Option<Vec<ColumnId>> {
            columns.iter().map(|column| lowering.column_places.get(column).copied()).collect()
        };
        let inputs = places(self, &step.inputs)?;
        let reads: Vec<RelationId> =
            step.reads.iter().map(|relation| self.relation_places.get(relation).copied()).collect::<Option<_>>()?;
        let makes_rows = self.scope.relations[step.relation].maker == Maker::Step(step.at);
        let relation = if makes_rows {
            self.add_relation(step.relation, Producer::Step(id))
        } else {
            *self.relation_places.get(&step.relation)?
        };
        let mut outputs = Vec::new();
        for output in &step.outputs {
            outputs.push(self.add_column(*output, Producer::Step(id))?);
        }
        let mut carried = Vec::new();
        for handed in &step.carried {
            let is_content = self.scope.columns[handed.to].content_of.is_some();
            // The path that content is read by later is handed on with it.
            if self.needed.columns[handed.to] && !is_content {
                let from = places(self, &handed.from)?;
                carried.push(Carried { from, to: self.add_column(handed.to, Producer::Step(id))?, side: handed.side });
            }
        }
        let random = step.op.info().random;
        let frozen = step.variants.is_some();
        let before = inputs.iter().any(|input| match self.columns[input.0].producer {
            Producer::Step(step) => self.steps[step.0].online_only,
            Producer::Source(_) => false,
        });
        let rows_before = reads.iter().any(|relation| match self.relations[relation.0].producer {
            Producer::Step(step) => self.steps[step.0].online_only,
            Producer::Source(_) => false,
        });
        self.steps.push(Step {
            name: step.name,
            action: Action::Op(step.op),
            args: step.args,
            inputs,
            outputs,
            carried,
            reads,
            relation,
            variants: step.variants,
            online_only: before || rows_before || (random && !frozen),
            span: step.span,
        });
        if makes_rows {
            self.read_content(step.relation)?;
        }
        Some(())
    }

    fn finish(self, output: &Output) -> Option<Lowered> {
        let outputs: Option<Vec<ColumnId>> =
            output.columns.iter().map(|column| self.column_places.get(column).copied()).collect();
        let output_relation = *self.relation_places.get(&output.relation)?;
        Some(Lowered {
            relations: self.relations,
            columns: self.columns,
            steps: self.steps,
            outputs: outputs?,
            output_relation,
        })
    }
}
