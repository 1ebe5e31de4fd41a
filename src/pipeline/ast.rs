//! The syntax tree of a pipeline: values with their spans, nothing looked up yet.
