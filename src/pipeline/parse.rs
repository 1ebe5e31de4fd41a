//! TOML text to syntax tree.
