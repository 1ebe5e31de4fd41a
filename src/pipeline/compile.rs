//! From a cut to the two programs: steps become calls, columns become places.

use std::collections::BTreeMap;

use super::cut::Cut;
use super::graph::{Action, ColumnId, Graph, Producer, RelationId, Step, StepId};
use super::program::{Call, DIGEST, KEYS, PICK, Program, SOURCE};
use crate::format::{DIGEST as DIGEST_COLUMN, SourceKind};
use crate::ops::{ArgValue, Args, RowsClass};
use crate::types::{ColumnType, NamedColumn};

/// How programs are compiled.
#[derive(Debug, Clone, Copy)]
pub struct CompileOptions {
    /// Whether chains of tensor ops are fused.
    pub fused: bool,
}

/// A column in a program: the graph's, and the number of its draw where frozen draws are stored one by one.
type Slot = (ColumnId, u32);

/// A program, and which of the graph's columns its inputs are.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// Its inputs.
    pub inputs: Vec<ColumnId>,
}

struct Compiler<'g> {
    graph: &'g Graph,
    program: Program,
    inputs: Vec<ColumnId>,
    places: BTreeMap<Slot, usize>,
}

impl<'g> Compiler<'g> {
    fn new(graph: &'g Graph, options: CompileOptions) -> Self {
        let program = Program {
            seed: graph.seed,
            columns: Vec::new(),
            inputs: 0,
            calls: Vec::new(),
            outputs: Vec::new(),
            names: Vec::new(),
            settled: 0,
            fused: options.fused,
        };
        Self { graph, program, inputs: Vec::new(), places: BTreeMap::new() }
    }

    fn column(&mut self, name: String, column_type: ColumnType) -> usize {
        self.program.columns.push(NamedColumn { name, column_type });
        self.program.columns.len() - 1
    }

    fn input(&mut self, id: ColumnId, name: &str) -> usize {
        let column_type = self.graph.column(id).column_type.clone();
        let place = self.column(name.to_owned(), column_type);
        self.places.insert((id, 0), place);
        self.inputs.push(id);
        self.program.inputs = self.program.columns.len();
        place
    }

    fn compiled(self) -> Compiled {
        Compiled { program: self.program, inputs: self.inputs }
    }

    fn place(&self, id: ColumnId, draw: u32) -> usize {
        // A column without draws is the same for all of them.
        let draws = self.graph.variants(id);
        self.places.get(&(id, draw % draws.max(1))).or(self.places.get(&(id, 0))).copied().unwrap_or(usize::MAX)
    }

    /// Adds the call of a step; `draw` is given where frozen draws are made one by one.
    fn call(&mut self, step: &Step, draw: Option<u32>) {
        let inputs = step.inputs.iter().map(|input| self.place(*input, draw.unwrap_or(0))).collect();
        let mut outputs = Vec::new();
        for output in &step.outputs {
            let column = self.graph.column(*output);
            let place = self.column(column.name.clone(), column.column_type.clone());
            self.places.insert((*output, draw.unwrap_or(0)), place);
            outputs.push(place);
        }
        self.program.calls.push(Call {
            step: step.name.clone(),
            op: step.op_name().to_owned(),
            version: step.op_version(),
            args: match step.action {
                Action::Op(_) => step.args.clone(),
                Action::Read(source) => source_argument(self.graph, source),
            },
            inputs,
            outputs,
            variants: step.variants,
            key: None,
            draw: draw.filter(|_| step.random()),
        });
    }

    /// Adds a call that parbake itself makes.
    fn own_call(&mut self, op: &str, args: Args, inputs: Vec<usize>, output: usize) {
        self.program.calls.push(Call {
            step: op.to_owned(),
            op: op.to_owned(),
            version: 1,
            args,
            inputs,
            outputs: vec![output],
            variants: None,
            key: None,
            draw: None,
        });
    }

    fn output(&mut self, place: usize, name: String) {
        self.program.outputs.push(place);
        self.program.names.push(name);
    }
}

fn source_argument(graph: &Graph, source: usize) -> Args {
    let name = graph.sources.get(source).map_or(String::new(), |source| source.name.clone());
    Args(BTreeMap::from([(SOURCE.to_owned(), ArgValue::Text(name))]))
}

/// A column that is stored: the graph's with its draw, the digest that a step which reads online checks, or the keys of
/// rows before an expansion, by which steps on those rows draw online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Column(ColumnId, u32),
    Digest(StepId),
    Keys(RelationId),
}

impl Cut {
    /// What is stored, with the names that it has in shards: unique, else those of the graph.
    fn stored(&self, graph: &Graph) -> Vec<(Stored, String)> {
        let mut all = Vec::new();
        for id in &self.frontier {
            let name = &graph.column(*id).name;
            let same = self.frontier.iter().filter(|other| graph.column(**other).name == *name).count();
            let name = match graph.column(*id).producer {
                Producer::Step(step) if same > 1 => format!("{name}.{}", graph.step(step).name),
                Producer::Source(_) if same > 1 => format!("{name}.source"),
                _ => name.clone(),
            };
            match graph.variants(*id) {
                0 | 1 => all.push((Stored::Column(*id, 0), name)),
                draws => all.extend((0..draws).map(|draw| (Stored::Column(*id, draw), format!("{name}#{draw}")))),
            }
        }
        for (at, step) in self.references.iter().enumerate() {
            let number = if at == 0 { String::new() } else { at.to_string() };
            all.push((Stored::Digest(*step), format!("{DIGEST_COLUMN}{number}")));
        }
        for (at, relation) in self.drawing_relations(graph).into_iter().enumerate() {
            all.push((Stored::Keys(relation), format!("__keys{at}")));
        }
        all
    }

    /// The relations whose row keys random steps draw by online, where what is stored are rows that were made of them.
    fn drawing_relations(&self, graph: &Graph) -> Vec<RelationId> {
        let lineage = graph.lineage(self.stored);
        let here = keyed_like(graph, self.stored);
        let mut relations = Vec::new();
        for (id, step) in graph.step_ids() {
            let relation = keyed_like(graph, step.relation);
            let draws = step.random() && !self.offline.contains(&id);
            if draws && lineage.contains(&relation) && relation != here && !relations.contains(&relation) {
                relations.push(relation);
            }
        }
        relations
    }

    /// The program of the offline side: from the columns of the rows that it begins with, those of the base of what is
    /// stored, to what is stored.
    #[must_use]
    pub fn offline_program(&self, graph: &Graph, options: CompileOptions) -> Compiled {
        let stored = self.stored(graph);
        let is_offline = |id: StepId| self.offline.contains(&id);
        let steps = row_local_steps(graph, self.stored, &is_offline);
        let mut compiler = begin(graph, self.stored, &steps, options);
        let wanted: Vec<ColumnId> = self.frontier.clone();
        add_inputs(&mut compiler, &steps, &wanted);
        for id in &self.references {
            if let Some(column) = source_digest(graph, *id) {
                compiler.input(column, DIGEST_COLUMN);
            } else if let Some(path) = graph.step(*id).inputs.first() {
                add_missing_input(&mut compiler, *path);
            }
        }
        let drawing = self.drawing_relations(graph);
        let mut keys: BTreeMap<RelationId, usize> = BTreeMap::new();
        for id in steps.into_iter().filter(|id| !is_scanned(graph, *id)) {
            let step = graph.step(id);
            // Before rows become others, the keys that are drawn by later are noted.
            let reads = step.reads.first().map(|relation| keyed_like(graph, *relation));
            if let Some(relation) =
                reads.filter(|relation| step.rows() == RowsClass::Expand && drawing.contains(relation))
            {
                let output = compiler.column(KEYS.to_owned(), ColumnType::Bytes);
                compiler.own_call(KEYS, Args::default(), Vec::new(), output);
                keys.insert(relation, output);
            }
            let draws = step.outputs.iter().map(|output| graph.variants(*output)).max().unwrap_or(1);
            if draws > 1 {
                (0..draws).for_each(|draw| compiler.call(step, Some(draw)));
            } else {
                compiler.call(step, None);
            }
        }
        for (stored, name) in stored {
            let place = match stored {
                Stored::Column(id, draw) => compiler.place(id, draw),
                Stored::Keys(relation) => keys.get(&relation).copied().unwrap_or(usize::MAX),
                Stored::Digest(id) => match source_digest(graph, id) {
                    Some(column) => compiler.place(column, 0),
                    None => {
                        let path = compiler.place(graph.step(id).inputs[0], 0);
                        let Action::Read(source) = graph.step(id).action else { continue };
                        let output = compiler.column(DIGEST_COLUMN.to_owned(), ColumnType::Bytes);
                        compiler.own_call(DIGEST, source_argument(graph, source), vec![path], output);
                        output
                    }
                },
            };
            compiler.output(place, name);
        }
        compiler.compiled()
    }

    /// The program of the online side: from what is stored to the stream's columns.
    #[must_use]
    pub fn remainder(&self, graph: &Graph, options: CompileOptions) -> Program {
        let mut compiler = Compiler::new(graph, options);
        let stored = self.stored(graph);
        let mut digests = BTreeMap::new();
        let mut picks: BTreeMap<ColumnId, Vec<usize>> = BTreeMap::new();
        let mut keys: BTreeMap<RelationId, usize> = BTreeMap::new();
        for (stored, name) in &stored {
            match stored {
                Stored::Keys(relation) => {
                    let place = compiler.column(name.clone(), ColumnType::Bytes);
                    compiler.program.inputs = compiler.program.columns.len();
                    keys.insert(*relation, place);
                }
                Stored::Column(id, draw) => {
                    let place = compiler.input(*id, name);
                    if graph.variants(*id) > 1 {
                        compiler.places.remove(&(*id, 0));
                        picks.entry(*id).or_default().push(place);
                    }
                    debug_assert!(graph.variants(*id) > *draw || *draw == 0, "a draw that there isn't");
                }
                Stored::Digest(id) => {
                    let place = compiler.column(name.clone(), ColumnType::Bytes);
                    compiler.program.inputs = compiler.program.columns.len();
                    digests.insert(*id, place);
                }
            }
        }
        for (id, draws) in picks {
            let column = graph.column(id);
            let output = compiler.column(column.name.clone(), column.column_type.clone());
            compiler.own_call(PICK, Args::default(), draws, output);
            for draw in 0..graph.variants(id) {
                compiler.places.insert((id, draw), output);
            }
        }
        let is_online = |id: StepId| !self.offline.contains(&id);
        for id in row_local_steps(graph, graph.output_relation, &is_online) {
            let step = graph.step(id);
            compiler.call(step, None);
            if let (Some(digest), Some(call)) = (digests.get(&id), compiler.program.calls.last_mut()) {
                call.inputs.push(*digest);
            }
            if let (true, Some(call)) = (step.random(), compiler.program.calls.last_mut()) {
                call.key = keys.get(&keyed_like(graph, step.relation)).copied();
            }
            if !step.online_only && step.rows() != RowsClass::Map {
                compiler.program.settled = compiler.program.calls.len();
            }
        }
        for id in &graph.outputs {
            let place = compiler.place(*id, 0);
            compiler.output(place, graph.column(*id).name.clone());
        }
        compiler.program
    }
}

/// The program that makes those columns of a relation from its base, whatever is stored: for steps that need its rows.
#[must_use]
pub fn relation_program(
    graph: &Graph,
    relation: RelationId,
    columns: &[ColumnId],
    options: CompileOptions,
) -> Compiled {
    let steps = row_local_steps(graph, relation, &|_| true);
    let steps = needed_steps(graph, relation, &steps, columns);
    let mut compiler = begin(graph, relation, &steps, options);
    add_inputs(&mut compiler, &steps, columns);
    for id in steps.into_iter().filter(|id| !is_scanned(graph, *id)) {
        compiler.call(graph.step(id), None);
    }
    for (at, id) in columns.iter().enumerate() {
        let place = compiler.place(*id, 0);
        compiler.output(place, format!("c{at}"));
    }
    compiler.compiled()
}

/// A program of one step alone, from its inputs to its outputs.
#[must_use]
pub fn step_program(graph: &Graph, id: StepId, options: CompileOptions) -> Program {
    let mut compiler = Compiler::new(graph, options);
    let step = graph.step(id);
    for input in &step.inputs {
        add_missing_input(&mut compiler, *input);
    }
    compiler.call(step, None);
    for output in &step.outputs {
        let place = compiler.place(*output, 0);
        compiler.output(place, graph.column(*output).name.clone());
    }
    compiler.program
}

/// The steps that work row by row on the way from a relation's base to it, in the order in which they run: all that
/// work on one relation before the step that leads to the next.
fn row_local_steps(graph: &Graph, relation: RelationId, wanted: &dyn Fn(StepId) -> bool) -> Vec<StepId> {
    let mut lineage = graph.lineage(relation);
    lineage.reverse();
    let mut steps = Vec::new();
    for (depth, relation) in lineage.iter().enumerate() {
        for (id, step) in graph.step_ids() {
            let makes_rows = graph.relation(step.relation).producer == Producer::Step(id);
            if step.relation != *relation || !step.rows().is_row_local() || !wanted(id) {
                continue;
            }
            steps.push(((depth, !makes_rows, id), id));
        }
    }
    steps.sort_unstable();
    steps.into_iter().map(|(_, id)| id).collect()
}

/// The relation, of this one and those that it comes from, that gave its rows their keys: filters leave them as they
/// are.
fn keyed_like(graph: &Graph, relation: RelationId) -> RelationId {
    let mut at = relation;
    while let Producer::Step(id) = graph.relation(at).producer {
        match (graph.step(id).rows(), graph.step(id).reads.first()) {
            (RowsClass::Filter, Some(from)) => at = *from,
            _ => break,
        }
    }
    at
}

/// Those of the steps that the columns, or which rows there are, depend on.
fn needed_steps(graph: &Graph, relation: RelationId, steps: &[StepId], columns: &[ColumnId]) -> Vec<StepId> {
    let lineage = graph.lineage(relation);
    let mut needed: Vec<ColumnId> = columns.to_vec();
    let mut kept = Vec::new();
    for id in steps.iter().rev() {
        let step = graph.step(*id);
        let makes_rows =
            graph.relation(step.relation).producer == Producer::Step(*id) && lineage.contains(&step.relation);
        if makes_rows || step.outputs.iter().any(|output| needed.contains(output)) {
            needed.extend(&step.inputs);
            kept.push(*id);
        }
    }
    kept.reverse();
    kept
}

/// A program that begins with the rows of a relation's base. The content of files that are rows themselves is an
/// input: whoever scans them reads them anyway.
fn begin<'g>(graph: &'g Graph, relation: RelationId, steps: &[StepId], options: CompileOptions) -> Compiler<'g> {
    let mut compiler = Compiler::new(graph, options);
    let base = graph.base(relation);
    for id in steps {
        let step = graph.step(*id);
        if is_scanned(graph, *id) && step.relation == base {
            compiler.input(step.outputs[0], crate::format::BYTES);
        }
    }
    compiler
}

/// Whether a step reads the files of the very source whose rows it works on.
fn is_scanned(graph: &Graph, id: StepId) -> bool {
    let step = graph.step(id);
    match (step.action, graph.relation(step.relation).producer) {
        (Action::Read(source), Producer::Source(rows)) => {
            source == rows && graph.sources[source].kind == SourceKind::Files
        }
        _ => false,
    }
}

/// The digest column of the source that a step reads online, if its files are the rows.
fn source_digest(graph: &Graph, id: StepId) -> Option<ColumnId> {
    if !is_scanned(graph, id) {
        return None;
    }
    let Action::Read(source) = graph.step(id).action else { return None };
    graph.source_columns(source).find(|column| graph.column(*column).name == DIGEST_COLUMN)
}

fn add_inputs(compiler: &mut Compiler<'_>, steps: &[StepId], wanted: &[ColumnId]) {
    let graph = compiler.graph;
    let made: Vec<ColumnId> = steps.iter().flat_map(|id| graph.step(*id).outputs.iter().copied()).collect();
    let read: Vec<ColumnId> =
        steps.iter().filter(|id| !is_scanned(graph, **id)).flat_map(|id| graph.step(*id).inputs.clone()).collect();
    for id in read.iter().chain(wanted) {
        if !made.contains(id) {
            add_missing_input(compiler, *id);
        }
    }
}

fn add_missing_input(compiler: &mut Compiler<'_>, id: ColumnId) {
    if !compiler.places.contains_key(&(id, 0)) {
        let name = base_name(compiler.graph, id);
        compiler.input(id, &name);
    }
}

/// Columns of a base relation, with their names among those that their maker makes.
#[must_use]
pub fn base_columns(graph: &Graph, ids: &[ColumnId]) -> Vec<NamedColumn> {
    let named = ids.iter().zip(graph.types(ids));
    named.map(|(id, column_type)| NamedColumn { name: base_name(graph, *id), column_type }).collect()
}

/// The name of a column among those that its maker makes: the graph's, numbered where several have it.
fn base_name(graph: &Graph, id: ColumnId) -> String {
    let column = graph.column(id);
    let Producer::Step(step) = column.producer else { return column.name.clone() };
    let step = graph.step(step);
    let made = step.outputs.iter().copied().chain(step.carried.iter().map(|carried| carried.to));
    let same: Vec<ColumnId> = made.filter(|other| graph.column(*other).name == column.name).collect();
    match same.iter().position(|other| *other == id) {
        Some(at) if at > 0 => format!("{}.{at}", column.name),
        _ => column.name.clone(),
    }
}
