//! `compute`: a column by an SQL expression.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::expression;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::expression::{Expression, to_column};
use crate::ops::kernel::{ColumnKernel, Kernel, KernelError, Made};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::ColumnType;

/// `compute`.
pub struct Compute;

impl Op for Compute {
    const INFO: OpInfo = OpInfo {
        name: "compute",
        version: 1,
        summary: "A column by an SQL expression.",
        details: "The expression reads the columns that are there, such as `lower(caption)` or `cast(size as double) / \
                  1000`. Names keep their case. It is evaluated row by row and has to be deterministic. A truth value \
                  becomes a u8, 0 or 1. A row for which it is NULL, or can't be evaluated, is a bad sample.",
        inputs: &[Port { name: "columns", expects: "text, bytes or numbers: those that the expression names" }],
        reads: Reads::Expression("compute"),
        products: &["value"],
        params: &[ParamSpec {
            name: "compute",
            kind: ArgKind::Text,
            default: None,
            required: true,
            doc: "The expression.",
        }],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\ncompute = \"size / 1000\"\nout = \"kilobytes\"\n",
    };

    type Params = Args;

    fn params(args: &Args) -> Result<Args, BindError> {
        Ok(args.clone())
    }

    fn bind(args: Args, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let expression = expression(&args, "compute", inputs)?;
        if inputs.is_empty() {
            return Err(BindError::param("compute", "the expression names no column: it is the same for all rows"));
        }
        let Some(column_type) = expression.column_type() else {
            let message = format!("the expression is {}, which no column can be", expression.describe());
            return Err(BindError::param("compute", message).help("cast it to a number or to text (`varchar`)"));
        };
        Ok(Bound::one(column_type.clone(), Kernel::Columns(Arc::new(Computed { expression, column_type }))))
    }
}

struct Computed {
    expression: Expression,
    column_type: ColumnType,
}

impl ColumnKernel for Computed {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let (values, failures) = self.expression.evaluate(inputs)?;
        Ok(Made { columns: vec![to_column(&values, &self.column_type)?], failures })
    }
}
