//! The reference of ops, made from their definitions.

use serde_json::{Value, json};

use crate::ops::{ErasedOp, RowsClass};

/// What one op does, with its parameters and an example.
#[must_use]
pub fn reference_text(op: &dyn ErasedOp) -> String {
    let info = op.info();
    let mut text = format!("{}\n  {}\n\n  {}\n\n", info.name, info.summary, info.details);
    for port in info.inputs {
        text.push_str(&format!("  reads     {}: {}\n", port.name, port.expects));
    }
    let makes = match (info.products, info.rows) {
        ([], RowsClass::Filter | RowsClass::Relational) => "rows".to_owned(),
        ([], _) => "a column of its input's name".to_owned(),
        (products, _) => products.join(", "),
    };
    text.push_str(&format!("  makes     {makes}\n"));
    let random = match (info.random, info.rows.is_row_local()) {
        (true, _) => "random: online for ever",
        (false, true) => "not random: can be materialized",
        (false, false) => "runs offline",
    };
    text.push_str(&format!("  rows      {}; {random}\n  version   {}\n", info.rows.name(), info.version));
    for param in info.params {
        let default = match (param.default, param.required) {
            (Some(default), _) => format!("default {default}"),
            (None, true) => "required".to_owned(),
            (None, false) => "optional".to_owned(),
        };
        text.push_str(&format!("\n  {} ({}; {default})\n    {}\n", param.name, param.kind.expected(), param.doc));
    }
    text.push_str("\n  example\n");
    for line in info.example.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

/// The same as JSON.
#[must_use]
pub fn reference_json(op: &dyn ErasedOp) -> Value {
    let info = op.info();
    json!({
        "name": info.name,
        "version": info.version,
        "summary": info.summary,
        "details": info.details,
        "inputs": info.inputs.iter().map(|port| json!({ "name": port.name, "expects": port.expects })).collect::<Vec<_>>(),
        "products": info.products,
        "rows": info.rows.name(),
        "random": info.random,
        "params": info.params.iter().map(|param| json!({
            "name": param.name,
            "expects": param.kind.expected(),
            "default": param.default,
            "required": param.required,
            "doc": param.doc,
        })).collect::<Vec<_>>(),
        "example": info.example,
    })
}
