//! `rows.sample`: another random part of the rows in each epoch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};

use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{FilterKernel, Kept, Kernel, RowContext};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::ColumnType;

/// `rows.sample`.
pub struct Sample;

impl Op for Sample {
    const INFO: OpInfo = OpInfo {
        name: "rows.sample",
        version: 1,
        summary: "Keeps each row with a given probability, drawn anew in each epoch.",
        details: "Whether a row stays depends on seed, epoch, row key and step name alone, not on the other rows: the \
                  number of rows differs a little from epoch to epoch.",
        inputs: &[Port { name: "column", expects: "any column: it isn't looked at" }],
        reads: Reads::Ports,
        products: &[],
        params: &[ParamSpec {
            name: "keep",
            kind: ArgKind::Float(0.0, 1.0),
            default: None,
            required: true,
            doc: "The probability with which a row stays.",
        }],
        rows: RowsClass::Filter,
        random: true,
        example: "[[step]]\nop = \"rows.sample\"\nin = \"path\"\nkeep = 0.5\n",
    };

    type Params = f64;

    fn params(args: &Args) -> Result<f64, BindError> {
        args.float("keep").ok_or_else(|| BindError::param("keep", "`keep` is missing"))
    }

    fn bind(keep: f64, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        if inputs.len() != 1 {
            return Err(BindError::input("`rows.sample` reads one column"));
        }
        Ok(Bound::several(Vec::new(), Kernel::Filter(Arc::new(Chance(keep)))))
    }
}

struct Chance(f64);

impl FilterKernel for Chance {
    fn run(&self, rows: &mut [RowContext], inputs: &[ArrayRef]) -> Result<Kept, String> {
        if inputs.first().map(Array::len) != Some(rows.len()) {
            return Err("another number of rows than contexts".to_owned());
        }
        let mask: BooleanArray =
            rows.iter_mut().map(|row| row.random.as_mut().map(|random| random.chance(self.0))).collect();
        Ok(Kept { mask, failures: Vec::new() })
    }
}
