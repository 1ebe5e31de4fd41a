//! parbake: a compiler for data-preprocessing pipelines.
//!
//! The tree is the way of a pipeline: its text is parsed and checked into a graph ([`pipeline`]), a short run over a
//! sample measures it ([`profile`]), estimates follow from what was measured ([`cost`]), the best cut is chosen
//! ([`plan`]), the offline side is run into shards ([`exec`], [`store`], [`materialize`]) and the remainder is run in
//! the training loop ([`online`]). Below lie the op vocabulary ([`ops`]), the file formats ([`mod@format`]) and the
//! shared nouns ([`types`], [`diag`], [`world`]); above, the texts ([`report`]) and the command line ([`cli`]).
//! A module uses only its own folder and strictly lower layers.

pub mod cli;
pub mod cost;
pub mod diag;
pub mod exec;
pub mod format;
pub mod materialize;
pub mod online;
pub mod ops;
pub mod pipeline;
pub mod plan;
pub mod profile;
pub mod report;
pub mod store;
pub mod types;
pub mod world;
