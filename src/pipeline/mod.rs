//! From the text of a pipeline to programs: parse, check, graph, cuts, programs and the interpreter that runs them.

pub mod ast;
mod check;
mod compile;
pub mod cut;
mod fingerprint;
mod frame;
pub mod graph;

mod machine;
mod parse;
pub mod program;
mod read;
pub mod rewrite;
mod segment;

pub mod settings;

pub use check::{Checked, arguments, check, load};
pub use compile::{CompileOptions, Compiled, base_columns, relation_program, step_program};
pub use cut::{Cut, CutError, all_cuts, cuts, parse_cut};
pub use fingerprint::gathered_fingerprint;
pub use graph::{Action, ColumnId, Graph, GraphColumn, Producer, Relation, RelationId, Step, StepId};

pub use machine::{CallTime, Files, Machine, Outcome, StepFailure};
pub use parse::{parse, parse_value};
pub use program::{Call, Program, ROWS};
pub use rewrite::{Rewritten, rewrite};
pub use settings::{Objective, OnError, PlanSettings};
