//! `distinct`: the first of equal rows.

use crate::ops::args::Args;
use crate::ops::kernel::Kernel;
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::ops::relational::Relational;
use crate::types::ColumnType;

/// `distinct`.
pub struct Distinct;

impl Op for Distinct {
    const INFO: OpInfo = OpInfo {
        name: "rows.distinct",
        version: 1,
        summary: "Keeps the first of all rows that have equal values in some columns.",
        details: "Values are compared exactly. The row that stays is the first in row order; it keeps its key and all \
                  its columns. It runs offline, before any random step.",
        inputs: &[Port { name: "columns", expects: "any columns" }],
        reads: Reads::Several,
        products: &[],
        params: &[],
        rows: RowsClass::Relational,
        random: false,
        example: "[[step]]\nop = \"rows.distinct\"\nin = \"size\"\n",
    };

    type Params = ();

    fn params(_args: &Args) -> Result<(), BindError> {
        Ok(())
    }

    fn bind((): (), inputs: &[ColumnType]) -> Result<Bound, BindError> {
        if inputs.is_empty() {
            return Err(BindError::input("`rows.distinct` reads a column at least"));
        }
        Ok(Bound::several(Vec::new(), Kernel::Relational(Relational::Distinct)))
    }
}
