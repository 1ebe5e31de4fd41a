//! Rows of several relations put together by the query engine: joins, unions, queries, packing. What comes out is
//! spooled in row order, dealt to shards; each shard then goes through the offline program as a source's would.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, JoinType, SessionConfig, SessionContext, ident};

use super::batches::{KEY, ORDER, internal, ordered_schema, wrap};
use super::combine;
use super::notes::{Notes, ShardTask};
use super::places::Places;
use super::plan_table::PlanTable;
use super::program_map::{BadPlaces, ordered_program_exec};
use super::progress::Progress;
use super::scan::{Scan, ScanOptions};
use crate::ops::expression::session_config;
use crate::ops::{INPUT, JoinKind, Kernel, Relational};
use crate::pipeline::{
    ColumnId, CompileOptions, Files, Graph, OnError, Producer, RelationId, Step, base_columns, relation_program,
};
use crate::types::NamedColumn;

/// What is needed to put rows together.
pub struct Relations<'g> {
    /// The pipeline.
    pub graph: &'g Graph,
    /// The source files.
    pub files: Arc<Files>,
    /// How programs are compiled.
    pub options: CompileOptions,
    /// Threads.
    pub jobs: usize,
    /// Source bytes of a batch, about.
    pub batch_bytes: u64,
    /// The files of each source, dealt to tasks.
    pub tasks: Vec<Vec<ShardTask>>,
    /// The most memory in bytes that operators which can spill hold before they do.
    pub memory_limit: usize,
    /// What happens to bad rows.
    pub on_error: OnError,
    /// How far it is.
    pub progress: Arc<Progress>,
}

/// Plans under construction.
pub struct Planner<'g> {
    relations: &'g Relations<'g>,
    runtime: Arc<RuntimeEnv>,
    /// The notes on each source.
    pub source_notes: Vec<Arc<Notes>>,
    /// The notes on rows that were put together.
    pub joined_notes: Arc<Notes>,
}

/// A plan, and whether its rows come out in row order, in one partition.
pub struct Planned {
    /// The plan: a key, a place in the row order, columns.
    pub plan: Arc<dyn ExecutionPlan>,
    /// Whether it is in order.
    pub sorted: bool,
}

impl<'g> Planner<'g> {
    /// Plans in that environment.
    pub fn new(relations: &'g Relations<'g>, runtime: Arc<RuntimeEnv>) -> Self {
        let notes = |tasks: Vec<ShardTask>| {
            Arc::new(Notes::new(Arc::new(tasks), relations.on_error, Arc::clone(&relations.progress)))
        };
        let source_notes = relations.tasks.iter().map(|tasks| notes(tasks.clone())).collect();
        Self { relations, runtime, source_notes, joined_notes: notes(vec![ShardTask::default()]) }
    }

    fn session(&self, partitions: usize) -> SessionContext {
        let mut config: SessionConfig =
            session_config().with_target_partitions(partitions.max(1)).with_batch_size(1024);
        // A hash join holds one side in memory; a merge join sorts both, and sorts spill.
        config.options_mut().optimizer.prefer_hash_join = false;
        // What each sort keeps back for merging what it has spilled: several of them share the memory.
        config.options_mut().execution.sort_spill_reservation_bytes = merge_reserve(self.relations.memory_limit);
        SessionContext::new_with_config_rt(config, Arc::clone(&self.runtime))
    }

    fn table(&self, partitions: usize, plan: Arc<dyn ExecutionPlan>) -> Result<DataFrame> {
        self.session(partitions).read_table(Arc::new(PlanTable::new(plan)))
    }

    /// The rows of a base relation, with those of its columns, named as [`base_columns`] says.
    pub async fn base(&self, relation: RelationId, columns: &[ColumnId]) -> Result<Planned> {
        let graph = self.relations.graph;
        let named = base_columns(graph, columns);
        match graph.relation(relation).producer {
            Producer::Source(source) => {
                let options = ScanOptions { batch_bytes: self.relations.batch_bytes, ordered: true };
                let scan = Scan::of(&graph.sources[source], &self.relations.files).map_err(wrap)?;
                let plan = scan.plan(&named, &options, &self.source_notes[source]);
                Ok(Planned { plan, sorted: self.source_notes[source].tasks().len() == 1 })
            }
            Producer::Step(id) => {
                let step = graph.step(id);
                match graph.kernel(step) {
                    Some(Kernel::Relational(Relational::Join(kind))) => self.join(step, kind, columns, &named).await,
                    Some(Kernel::Relational(Relational::Union)) => self.union(step, columns, &named).await,
                    Some(Kernel::Relational(Relational::Distinct)) => self.distinct(step, columns, &named).await,
                    Some(Kernel::Relational(Relational::Sql(text))) => self.sql(step, &text, columns, &named).await,
                    Some(Kernel::Pack(kernel)) => {
                        let rows = self.sorted(step.reads[0], &step.inputs).await?;
                        let places = places_of(&step.outputs, columns)?;
                        Ok(Planned { plan: combine::pack(rows, kernel, places, &named), sorted: true })
                    }
                    _ => Err(internal(format!("`{}` makes no rows of several", step.op_name()))),
                }
            }
        }
    }

    /// The rows of any relation, with those columns, named `c0`, `c1`, ...
    async fn rows(&self, relation: RelationId, columns: &[ColumnId]) -> Result<Planned> {
        let graph = self.relations.graph;
        let base = graph.base(relation);
        let compiled = relation_program(graph, relation, columns, self.relations.options);
        // `Box::pin`: rows of rows of rows.
        let before = Box::pin(self.base(base, &compiled.inputs)).await?;
        let (notes, by_task) = match graph.relation(base).producer {
            Producer::Source(source) => (Arc::clone(&self.source_notes[source]), true),
            Producer::Step(_) => (Arc::clone(&self.joined_notes), false),
        };
        let bad = BadPlaces { notes, by_task, places: Arc::new(Places::of(graph, base)) };
        let plan = ordered_program_exec(before.plan, &compiled.program, &self.relations.files, bad);
        Ok(Planned { plan, sorted: before.sorted })
    }

    /// The same, in row order, in one partition.
    async fn sorted(&self, relation: RelationId, columns: &[ColumnId]) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.rows(relation, columns).await?;
        self.sort(rows).await
    }

    /// Brings a plan's rows into row order, in one partition.
    pub async fn sort(&self, rows: Planned) -> Result<Arc<dyn ExecutionPlan>> {
        if rows.sorted {
            return Ok(rows.plan);
        }
        let frame = self.table(self.relations.jobs, rows.plan)?;
        frame.sort(vec![ident(ORDER).sort(true, true)])?.create_physical_plan().await
    }

    async fn join(&self, step: &Step, kind: JoinKind, columns: &[ColumnId], named: &[NamedColumn]) -> Result<Planned> {
        let (left_keys, right_keys) = step.inputs.split_at(step.inputs.len() / 2);
        let mut sides = [left_keys.to_vec(), right_keys.to_vec()];
        // Of each wanted column: its side, and its place among that side's columns.
        let mut places = Vec::new();
        for id in columns {
            let carried = step.carried.iter().find(|carried| carried.to == *id);
            let carried = carried.ok_or_else(|| internal("a join hands on no such column"))?;
            let side = carried.side.min(1);
            let from = *carried.from.first().ok_or_else(|| internal("a join hands on nothing"))?;
            let place = sides[side].iter().position(|other| *other == from).unwrap_or_else(|| {
                sides[side].push(from);
                sides[side].len() - 1
            });
            places.push((side, place));
        }
        let mut frames = Vec::new();
        for (side, prefix) in ["l", "r"].into_iter().enumerate() {
            let rows = self.rows(step.reads[side], &sides[side]).await?;
            let frame = self.table(self.relations.jobs, rows.plan)?;
            let mut selected =
                vec![ident(KEY).alias(format!("{prefix}_key")), ident(ORDER).alias(format!("{prefix}_order"))];
            selected.extend((0..sides[side].len()).map(|at| ident(format!("c{at}")).alias(format!("{prefix}{at}"))));
            frames.push(frame.select(selected)?);
        }
        let right = frames.pop().ok_or_else(|| internal("a join has two sides"))?;
        let left = frames.pop().ok_or_else(|| internal("a join has two sides"))?;
        let keys = |prefix: &str| (0..left_keys.len()).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>();
        let (left_on, right_on) = (keys("l"), keys("r"));
        let left_on: Vec<&str> = left_on.iter().map(String::as_str).collect();
        let right_on: Vec<&str> = right_on.iter().map(String::as_str).collect();
        let join_type = if kind == JoinKind::Left { JoinType::Left } else { JoinType::Inner };
        let joined = left.join(right, join_type, &left_on, &right_on, None)?;
        let mut wanted = vec![ident("l_key"), ident("l_order"), ident("r_key"), ident("r_order")];
        for (at, (side, place)) in places.iter().enumerate() {
            wanted.push(ident(format!("{}{place}", ["l", "r"][*side])).alias(format!("w{at}")));
        }
        let sorted = joined
            .sort(vec![ident("l_order").sort(true, true), ident("r_order").sort(true, true)])?
            .select(wanted)?
            .create_physical_plan()
            .await?;
        Ok(Planned { plan: combine::joined(sorted, named), sorted: true })
    }

    async fn union(&self, step: &Step, columns: &[ColumnId], named: &[NamedColumn]) -> Result<Planned> {
        let mut all: Option<DataFrame> = None;
        let session = self.session(self.relations.jobs);
        for (branch, relation) in step.reads.iter().enumerate() {
            let from: Option<Vec<ColumnId>> = columns
                .iter()
                .map(|id| step.carried.iter().find(|carried| carried.to == *id)?.from.get(branch).copied())
                .collect();
            let from = from.ok_or_else(|| internal("a union hands on no such column"))?;
            let rows = self.rows(*relation, &from).await?;
            let part = combine::branch(rows.plan, branch, named);
            let frame = session.read_table(Arc::new(PlanTable::new(part)))?;
            all = Some(match all {
                None => frame,
                Some(before) => before.union(frame)?,
            });
        }
        let all = all.ok_or_else(|| internal("a union of nothing"))?;
        let plan = all.sort(vec![ident(ORDER).sort(true, true)])?.create_physical_plan().await?;
        Ok(Planned { plan: combine::renamed(plan, ordered_schema(named)), sorted: true })
    }

    async fn distinct(&self, step: &Step, columns: &[ColumnId], named: &[NamedColumn]) -> Result<Planned> {
        let mut from = step.inputs.clone();
        let mut places = Vec::new();
        for id in columns {
            let before = step.carried.iter().find(|carried| carried.to == *id).and_then(|carried| carried.from.first());
            let before = *before.ok_or_else(|| internal("no such column is handed on"))?;
            places.push(from.iter().position(|other| *other == before).unwrap_or_else(|| {
                from.push(before);
                from.len() - 1
            }));
        }
        let rows = self.rows(step.reads[0], &from).await?;
        let digested = combine::digested(rows.plan, self.relations.graph.types(&step.inputs));
        let session = self.session(self.relations.jobs);
        session.register_table("rows", Arc::new(PlanTable::new(digested)))?;
        let wanted: Vec<String> = places.iter().enumerate().map(|(at, place)| format!("c{place} as w{at}")).collect();
        let list = [vec![KEY.to_owned(), ORDER.to_owned()], wanted].concat().join(", ");
        let first = format!(
            "select {list} from (select *, row_number() over (partition by {digest} order by {ORDER} rows \
             between unbounded preceding and current row) as __number from rows) where __number = 1 order by {ORDER}",
            digest = combine::DIGEST
        );
        let plan = session.sql(&first).await?.create_physical_plan().await?;
        Ok(Planned { plan: combine::renamed(plan, ordered_schema(named)), sorted: true })
    }

    async fn sql(&self, step: &Step, text: &str, columns: &[ColumnId], named: &[NamedColumn]) -> Result<Planned> {
        let rows = self.sorted(step.reads[0], &step.inputs).await?;
        let read = step.args.words(crate::ops::COLUMNS).unwrap_or_default();
        // One partition: what a query gives may depend on the order of its input, which is the row order.
        let frame = self.table(1, rows)?;
        let list =
            read.iter().enumerate().map(|(at, name)| ident(format!("c{at}")).alias(name.as_str())).collect::<Vec<_>>();
        let input = frame.select(list)?.create_physical_plan().await?;
        let session = self.session(1);
        session.register_table(INPUT, Arc::new(PlanTable::new(input)))?;
        let logical = combine::with_order(session.state().create_logical_plan(text).await?)?;
        let plan = session.state().create_physical_plan(&logical).await?;
        let types = self.relations.graph.types(&step.outputs);
        let places = places_of(&step.outputs, columns)?;
        Ok(Planned { plan: combine::queried(plan, types, places, named, step.name.clone()), sorted: true })
    }
}

/// The places of columns among those that a step makes.
fn places_of(made: &[ColumnId], wanted: &[ColumnId]) -> Result<Vec<usize>> {
    let place = |id: &ColumnId| made.iter().position(|other| other == id);
    wanted.iter().map(|id| place(id).ok_or_else(|| internal("a step makes no such column"))).collect()
}

/// Where a spool goes.
#[derive(Debug, Clone)]
pub struct SpoolPlace {
    /// The file.
    pub path: PathBuf,
    /// Rows of a part, on average.
    pub rows_per_part: u32,
}

/// Bytes that a sort keeps back to merge what it has spilled.
pub fn merge_reserve(memory_limit: usize) -> usize {
    (memory_limit / 64).clamp(1 << 20, 10 << 20)
}
