//! Plans, builds and graphs as text and JSON: values in, text out.

mod bench;
mod diagnostics;
mod draw;
mod graph;
mod plan;
mod reference;
mod status;

pub use bench::{BenchRow, bench_json, bench_text};
pub use diagnostics::render_diagnostics;
pub use draw::Drawing;
pub use graph::{graph_json, graph_text, rewrites_json, rewrites_text};
pub use plan::{plan_text, table};
pub use reference::{reference_json, reference_text};
pub use status::{status_json, status_text};
