//! From the text of a pipeline to programs: parse, check, graph, cuts, programs and the interpreter that runs them.

pub mod ast;
mod check;
pub mod cut;
mod fingerprint;
pub mod graph;

mod machine;
mod parse;
pub mod program;
mod segment;

pub mod settings;

pub use check::{Checked, arguments, check, load};
pub use cut::{Cut, cuts};
pub use graph::{ColumnId, Graph, GraphColumn, Producer, Source, Step, StepId};

pub use machine::{Machine, Outcome, StepFailure};
pub use parse::{parse, parse_value};
pub use program::{Call, Program};
pub use settings::{Objective, OnError, PlanSettings};
