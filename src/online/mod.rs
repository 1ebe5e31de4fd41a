//! The training side: opens a data set and streams it, running the remainder on all cores.
//!
//! `rows.rs` finds and fetches stored rows (or reads the source files that a data set refers to), `order.rs` says in
//! which order an epoch goes through them, `stream.rs` runs the remainder in worker threads and gives batches in
//! order, `digest.rs` reduces a stream to one line, `ipc.rs` writes batches for other programs.

mod digest;
mod ipc;
mod order;
mod rows;
mod stream;

pub use digest::{RowDigest, StreamDigest};
pub use ipc::{output_schema, to_output};
pub use order::epoch_order;
pub use rows::Rows;
pub use stream::{Stream, StreamBatch, StreamOptions};
