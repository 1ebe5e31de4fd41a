//! Where a row that was put together comes from, read off its place in the row order.

use std::sync::Arc;

use crate::ops::{JoinKind, Kernel, Relational};
use crate::pipeline::{Graph, Producer, RelationId};

/// How places in the row order of a relation are made up.
#[derive(Debug, Clone)]
pub enum Places {
    /// A file's number and a row's in it, four bytes each, and maybe more.
    Files(Arc<[String]>),
    /// The number of a branch, one byte, then a place in it.
    Branches(Vec<Places>),
    /// A row's number, eight bytes.
    Numbered(String),
}

impl Places {
    /// Those of a relation: a joined row is told by its left side.
    pub fn of(graph: &Graph, relation: RelationId) -> Self {
        match graph.relation(graph.base(relation)).producer {
            Producer::Source(source) => {
                let fragments = &graph.sources[source].listing.fragments;
                Self::Files(fragments.iter().map(|fragment| fragment.path.clone()).collect())
            }
            Producer::Step(id) => {
                let step = graph.step(id);
                match graph.kernel(step) {
                    Some(Kernel::Relational(
                        Relational::Join(JoinKind::Inner | JoinKind::Left) | Relational::Distinct,
                    )) => Self::of(graph, step.reads[0]),
                    Some(Kernel::Relational(Relational::Union)) => {
                        Self::Branches(step.reads.iter().map(|branch| Self::of(graph, *branch)).collect())
                    }
                    _ => Self::Numbered(format!("the rows of step `{}`", step.name)),
                }
            }
        }
    }

    /// The file, or what stands for one, and the row in it.
    pub fn describe(&self, place: &[u8]) -> (String, u64) {
        let number = |range: std::ops::Range<usize>| {
            place.get(range).map_or(0, |bytes| bytes.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte)))
        };
        match self {
            Self::Files(files) => {
                let file = usize::try_from(number(0..4)).ok().and_then(|at| files.get(at));
                (file.cloned().unwrap_or_default(), number(4..8))
            }
            Self::Branches(branches) => match place.split_first() {
                Some((branch, rest)) => match branches.get(usize::from(*branch)) {
                    Some(branch) => branch.describe(rest),
                    None => (String::new(), 0),
                },
                None => (String::new(), 0),
            },
            Self::Numbered(name) => (name.clone(), number(0..8)),
        }
    }
}
