//! `filter`: keeps the rows for which a condition holds.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};

use super::expression;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::expression::Expression;
use crate::ops::kernel::{FilterKernel, Kept, Kernel, RowContext};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::ColumnType;

/// `filter`.
pub struct Filter;

impl Op for Filter {
    const INFO: OpInfo = OpInfo {
        name: "filter",
        version: 1,
        summary: "Keeps the rows for which a condition holds.",
        details: "The condition is an SQL expression over the columns that are there, such as `size < 5000000 and label \
                  <> 3`. Names keep their case. It is evaluated row by row and has to be deterministic. A row for \
                  which it is NULL is a bad sample.",
        inputs: &[Port { name: "columns", expects: "text, bytes or numbers: those that the condition names" }],
        reads: Reads::Expression("filter"),
        products: &[],
        params: &[ParamSpec {
            name: "filter",
            kind: ArgKind::Text,
            default: None,
            required: true,
            doc: "The condition, over the columns that are there.",
        }],
        rows: RowsClass::Filter,
        random: false,
        example: "[[step]]\nfilter = \"size < 5000000\"\n",
    };

    type Params = Args;

    fn params(args: &Args) -> Result<Args, BindError> {
        Ok(args.clone())
    }

    fn bind(args: Args, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let condition = expression(&args, "filter", inputs)?;
        if !condition.is_boolean() {
            let message = format!("the condition is {} and neither true nor false", condition.describe());
            return Err(BindError::param("filter", message).help("compare it with something"));
        }
        if inputs.is_empty() {
            return Err(BindError::param("filter", "the condition names no column: it is the same for all rows"));
        }
        Ok(Bound::several(Vec::new(), Kernel::Filter(Arc::new(Condition(condition)))))
    }
}

struct Condition(Expression);

impl FilterKernel for Condition {
    fn run(&self, _rows: &mut [RowContext], inputs: &[ArrayRef]) -> Result<Kept, String> {
        let (values, failures) = self.0.evaluate(inputs)?;
        let truth = values.as_boolean_opt().ok_or("a condition that is no truth value")?;
        let mask: BooleanArray = (0..truth.len()).map(|row| Some(truth.is_valid(row) && truth.value(row))).collect();
        Ok(Kept { mask, failures })
    }
}
