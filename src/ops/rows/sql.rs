//! `sql`: a query over all rows.

use super::named;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::Kernel;
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::ops::query::query_columns;
use crate::ops::relational::Relational;
use crate::types::ColumnType;

/// `sql`.
pub struct Sql;

impl Op for Sql {
    const INFO: OpInfo = OpInfo {
        name: "sql",
        version: 1,
        summary: "The rows that an SQL query gives.",
        details: "The query reads the table `input`: the rows so far, with all columns that aren't tensors, in row \
                  order. Its result's columns are the only ones afterwards. Rows stand as its `order by` says; rows \
                  that it leaves equal, or all of them without one, stand in the order of their values. The key of a \
                  row is made from its values, and from its number among rows with the same values. The query has to \
                  be deterministic: `random()` and `now()` are errors. It runs offline, before any random step.",
        inputs: &[Port { name: "columns", expects: "text, bytes or numbers" }],
        reads: Reads::All,
        products: &[],
        params: &[ParamSpec {
            name: "sql",
            kind: ArgKind::Text,
            default: None,
            required: true,
            doc: "The query, over the table `input`.",
        }],
        rows: RowsClass::Relational,
        random: false,
        example: "[[step]]\nsql = \"select path, size from input where size > 1000 order by size\"\n",
    };

    type Params = Args;

    fn params(args: &Args) -> Result<Args, BindError> {
        Ok(args.clone())
    }

    fn bind(args: Args, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let text = args.text("sql").unwrap_or_default();
        let columns = query_columns(text, &named(&args, inputs)?).map_err(|(message, help)| BindError {
            param: Some("sql"),
            message,
            help,
        })?;
        let (names, outputs) = columns.into_iter().map(|column| (column.name, column.column_type)).unzip();
        Ok(Bound { outputs, names, kernel: Kernel::Relational(Relational::Sql(text.to_owned())) })
    }
}
