//! Ops on which rows there are: filters, computed columns, joins, unions, queries.

mod compute;
mod distinct;
mod filter;
mod join;
mod sample;
mod sql;
mod union;

pub use compute::Compute;
pub use distinct::Distinct;
pub use filter::Filter;
pub use join::Join;
pub use sample::Sample;
pub use sql::Sql;
pub use union::Union;

use super::args::Args;
use super::expression::{Expression, ExpressionError};
use super::op::BindError;
use crate::types::{ColumnType, NamedColumn};

/// The argument, filled in by the compiler, that names the columns that an expression or a query reads.
pub const COLUMNS: &str = "columns";

/// The columns that an expression reads.
fn named(args: &Args, inputs: &[ColumnType]) -> Result<Vec<NamedColumn>, BindError> {
    let names = args.words(COLUMNS).unwrap_or_default();
    if names.len() != inputs.len() {
        return Err(BindError::input(format!("{} columns for {} names", inputs.len(), names.len())));
    }
    Ok(names
        .into_iter()
        .zip(inputs)
        .map(|(name, column_type)| NamedColumn { name, column_type: column_type.clone() })
        .collect())
}

/// Compiles the expression that a parameter holds.
fn expression(args: &Args, param: &'static str, inputs: &[ColumnType]) -> Result<Expression, BindError> {
    let text = args.text(param).unwrap_or_default();
    Expression::compile(text, &named(args, inputs)?).map_err(|error| match error {
        ExpressionError::UnknownColumn(name) => BindError::param(param, format!("there is no column `{name}`")),
        ExpressionError::Other(message, help) => BindError { param: Some(param), message, help },
    })
}
