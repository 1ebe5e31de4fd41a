//! `union`: the rows of several relations one after another.

use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::Kernel;
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::ops::relational::Relational;
use crate::types::ColumnType;

/// `union`.
pub struct Union;

impl Op for Union {
    const INFO: OpInfo = OpInfo {
        name: "union",
        version: 1,
        summary: "The rows of several sources or steps, one after another.",
        details: "The columns that all of them have, by name, come out; their types have to be equal. Rows stand in the \
                  order in which they are named here; the key of a row is made from its key and the place of its \
                  relation in that list. It runs offline, before any random step.",
        inputs: &[Port { name: "columns", expects: "any columns" }],
        reads: Reads::All,
        products: &[],
        params: &[ParamSpec {
            name: "union",
            kind: ArgKind::Names,
            default: None,
            required: true,
            doc: "The names of two relations or more: sources, or names given by `rows` to what a step made.",
        }],
        rows: RowsClass::Relational,
        random: false,
        example: "[[step]]\nunion = [\"books\", \"news\"]\n",
    };

    type Params = ();

    fn params(args: &Args) -> Result<(), BindError> {
        if args.words("union").is_none_or(|names| names.len() < 2) {
            return Err(BindError::param("union", "a union is of two relations or more"));
        }
        Ok(())
    }

    fn bind((): (), _inputs: &[ColumnType]) -> Result<Bound, BindError> {
        Ok(Bound::several(Vec::new(), Kernel::Relational(Relational::Union)))
    }
}
