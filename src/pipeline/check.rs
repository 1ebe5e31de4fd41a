//! Syntax tree to graph, with all diagnostics at once.
