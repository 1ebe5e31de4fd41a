//! Cuts: which columns are made offline, and what is stored between the two sides.
//!
//! A cut is a closed set of steps: whatever one of them needs, columns or rows, is in it. Steps that need several rows
//! at once, and what leads to them, are in every cut; random steps and what follows from them are in none. What is
//! stored is the *frontier*: the columns that the offline side has and the online side needs, each for itself.

use std::collections::BTreeSet;

use super::graph::{Action, ColumnId, Graph, Producer, RelationId, StepId};

/// A set of offline steps, closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Its word.
    pub word: String,
    /// The steps that run offline.
    pub offline: BTreeSet<StepId>,
    /// The relation whose rows are stored.
    pub stored: RelationId,
    /// What is stored of the graph's columns, in its order.
    pub frontier: Vec<ColumnId>,
    /// Steps that read source files online: what is stored of those is a reference, with the digest of the content.
    pub references: Vec<StepId>,
}

/// The word of the cut that makes no column offline but those that decide about rows.
pub const BY_REFERENCE: &str = "source";
/// The word of the step that reads source files, as part of a cut.
pub const SOURCE_BYTES: &str = "bytes";

/// The most cuts that are looked at by default.
const MAX_CUTS: usize = 48;

/// What is known of a graph's steps with regard to cuts.
struct Steps<'g> {
    graph: &'g Graph,
    /// The steps in every cut.
    pinned: BTreeSet<StepId>,
    /// The steps that may be in a cut or not, in the graph's order.
    free: Vec<StepId>,
}

impl<'g> Steps<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut pinned = BTreeSet::new();
        for (id, step) in graph.step_ids() {
            if !step.rows().is_row_local() {
                add(graph, id, &mut pinned);
            }
        }
        let is_free = |id: &StepId| {
            let step = graph.step(*id);
            !pinned.contains(id) && !step.online_only
        };
        let free = (0..graph.steps.len()).map(StepId).filter(is_free).collect();
        Self { graph, pinned, free }
    }

    /// The free steps that make nothing but numbers: where what they need is offline, they are too, unless a cut says
    /// otherwise, since a number is smaller than what it is made of.
    fn is_small(&self, id: StepId) -> bool {
        let step = self.graph.step(id);
        let numbers = |id: &ColumnId| matches!(self.graph.column(*id).column_type, crate::types::ColumnType::Scalar(_));
        matches!(step.action, Action::Op(_)) && !step.outputs.is_empty() && step.outputs.iter().all(numbers)
    }

    /// Adds the small steps that have all they need.
    fn close_small(&self, offline: &mut BTreeSet<StepId>, without: &BTreeSet<StepId>) {
        for id in &self.free {
            let has_all = self.graph.needs(*id).iter().all(|need| offline.contains(need));
            if self.is_small(*id) && has_all && !without.contains(id) {
                offline.insert(*id);
            }
        }
    }

    fn name(&self, id: StepId) -> &str {
        match self.graph.step(id).action {
            Action::Read(_) if self.graph.step(id).name == super::graph::READ => SOURCE_BYTES,
            _ => &self.graph.step(id).name,
        }
    }

    /// The word of a closed set: its last steps, those that follow of themselves left out; what would follow and isn't
    /// there with a `!`.
    fn word(&self, offline: &BTreeSet<StepId>) -> String {
        let chosen: Vec<StepId> = self.free.iter().copied().filter(|id| offline.contains(id)).collect();
        if chosen.is_empty() {
            return BY_REFERENCE.to_owned();
        }
        let is_last = |id: &StepId| !chosen.iter().any(|other| self.graph.needs(*other).contains(id));
        let last: Vec<StepId> = chosen.iter().copied().filter(is_last).collect();
        // The fewest last steps from which the others follow.
        let mut named: Vec<StepId> = last.clone();
        for id in last.iter().rev() {
            let fewer: Vec<StepId> = named.iter().copied().filter(|other| other != id).collect();
            if self.is_small(*id) && !fewer.is_empty() && self.generated(&fewer).contains(id) {
                named = fewer;
            }
        }
        let generated = self.generated(&named);
        let missing = generated.difference(offline).filter(|id| {
            !self.graph.needs(**id).iter().any(|need| generated.contains(need) && !offline.contains(need))
        });
        let mut words: Vec<String> = named.iter().map(|id| self.name(*id).to_owned()).collect();
        words.extend(missing.map(|id| format!("!{}", self.name(*id))));
        words.join("+")
    }

    fn generated(&self, named: &[StepId]) -> BTreeSet<StepId> {
        let mut offline = self.pinned.clone();
        for id in named {
            add(self.graph, *id, &mut offline);
        }
        self.close_small(&mut offline, &BTreeSet::new());
        offline
    }

    fn cut(&self, offline: BTreeSet<StepId>) -> Cut {
        let graph = self.graph;
        let word = self.word(&offline);
        let made = |relation: &RelationId| match graph.relation(*relation).producer {
            Producer::Source(_) => true,
            Producer::Step(id) => offline.contains(&id),
        };
        let lineage = graph.lineage(graph.output_relation);
        let stored = lineage.iter().copied().find(made).unwrap_or(graph.output_relation);
        let mut needed: BTreeSet<ColumnId> = graph.outputs.iter().copied().collect();
        let mut references = Vec::new();
        for (id, step) in graph.step_ids().filter(|(id, _)| !offline.contains(id)) {
            needed.extend(&step.inputs);
            if matches!(step.action, Action::Read(_)) {
                references.push(id);
            }
        }
        let there = |id: &ColumnId| match graph.column(*id).producer {
            Producer::Source(_) => true,
            Producer::Step(step) => offline.contains(&step),
        };
        let frontier = needed.into_iter().filter(there).collect();
        Cut { word, offline, stored, frontier, references }
    }
}

/// Adds a step and all that it needs.
fn add(graph: &Graph, id: StepId, to: &mut BTreeSet<StepId>) {
    if to.insert(id) {
        for need in graph.needs(id) {
            add(graph, need, to);
        }
    }
}

/// The cuts that are looked at: every closed set in which small steps are where they can be, from storing references to
/// running every step offline that may be. Of very many, those that a chain through the steps in the text's order has.
#[must_use]
pub fn cuts(graph: &Graph) -> Vec<Cut> {
    let steps = Steps::new(graph);
    let mut first = steps.pinned.clone();
    let mut sets: Vec<BTreeSet<StepId>> = Vec::new();
    steps.close_small(&mut first, &BTreeSet::new());
    let mut waiting = vec![first];
    while let Some(set) = waiting.pop() {
        if sets.len() > MAX_CUTS {
            break;
        }
        if sets.contains(&set) {
            continue;
        }
        for id in &steps.free {
            if !set.contains(id) && graph.needs(*id).iter().all(|need| set.contains(need)) {
                let mut more = set.clone();
                more.insert(*id);
                steps.close_small(&mut more, &BTreeSet::new());
                waiting.push(more);
            }
        }
        sets.push(set);
    }
    if sets.len() > MAX_CUTS {
        sets = chain(graph, &steps);
    }
    // Storing references alone is always one of them.
    sets.push(steps.pinned.clone());
    // Sets are found depth first; people read them from little to much.
    sets.sort_by_key(|set| (set.len(), set.clone()));
    sets.dedup();
    sets.into_iter().map(|set| steps.cut(set)).collect()
}

fn chain(graph: &Graph, steps: &Steps<'_>) -> Vec<BTreeSet<StepId>> {
    let mut sets = vec![steps.pinned.clone()];
    let mut set = steps.pinned.clone();
    for id in &steps.free {
        add(graph, *id, &mut set);
        steps.close_small(&mut set, &BTreeSet::new());
        sets.push(set.clone());
        let mut alone = steps.pinned.clone();
        add(graph, *id, &mut alone);
        steps.close_small(&mut alone, &BTreeSet::new());
        sets.push(alone);
    }
    sets
}

/// Every closed set of steps as a cut, up to that many.
#[must_use]
pub fn all_cuts(graph: &Graph, most: usize) -> Vec<Cut> {
    let steps = Steps::new(graph);
    let mut sets = BTreeSet::new();
    let mut waiting = vec![steps.pinned.clone()];
    while let Some(set) = waiting.pop() {
        if sets.len() >= most || sets.contains(&set) {
            continue;
        }
        for id in &steps.free {
            if !set.contains(id) && graph.needs(*id).iter().all(|need| set.contains(need)) {
                let mut more = set.clone();
                more.insert(*id);
                waiting.push(more);
            }
        }
        sets.insert(set);
    }
    sets.into_iter().map(|set| steps.cut(set)).collect()
}

/// Why a word isn't a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutError {
    /// A part of it is no step's name.
    Unknown(String),
    /// A step can't be offline.
    OnlineOnly(StepId),
    /// A step is needed offline and can't be left out.
    Needed(StepId),
}

/// The cut of a word: names of steps joined by `+`, each with all that it needs, small steps along with them but for
/// those named after a `!`.
///
/// # Errors
/// When a part isn't the name of a step, or the step can't be there or left out.
pub fn parse_cut(graph: &Graph, word: &str) -> Result<Cut, CutError> {
    let steps = Steps::new(graph);
    if word == BY_REFERENCE {
        return Ok(steps.cut(steps.pinned.clone()));
    }
    let (mut offline, mut without) = (steps.pinned.clone(), BTreeSet::new());
    for part in word.split('+').map(str::trim).filter(|part| !part.is_empty() && *part != BY_REFERENCE) {
        let name = part.trim_start_matches('!');
        let named = |id: &StepId| steps.name(*id) == name || graph.step(*id).name == name;
        let unknown = || CutError::Unknown(name.to_owned());
        let id = (0..graph.steps.len()).map(StepId).find(named).ok_or_else(unknown)?;
        if graph.step(id).online_only {
            return Err(CutError::OnlineOnly(id));
        }
        if part.starts_with('!') {
            without.insert(id);
        } else {
            add(graph, id, &mut offline);
        }
    }
    if let Some(needed) = without.iter().find(|id| offline.contains(id)) {
        return Err(CutError::Needed(*needed));
    }
    steps.close_small(&mut offline, &without);
    Ok(steps.cut(offline))
}
