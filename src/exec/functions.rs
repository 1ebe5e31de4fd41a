//! Ops as DataFusion scalar functions.
