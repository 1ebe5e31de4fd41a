//! `tensor.length`: how many elements a tensor has along its first axis.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::tensor_input;
use crate::ops::args::Args;
use crate::ops::kernel::{ColumnKernel, Kernel, KernelError, Made};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, TensorColumn};

/// `tensor.length`.
pub struct Length;

impl Op for Length {
    const INFO: OpInfo = OpInfo {
        name: "tensor.length",
        version: 1,
        summary: "The number of elements along a tensor's first axis.",
        details: "An i64: tokens of a list, frames of a recording, rows of a picture. Conditions and expressions, which \
                  can't look into tensors, use it.",
        inputs: &[Port { name: "tensor", expects: "a tensor of any dtype, of rank 1 at least" }],
        reads: Reads::Ports,
        products: &["length"],
        params: &[],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"tensor.length\"\n",
    };

    type Params = ();

    fn params(_args: &Args) -> Result<(), BindError> {
        Ok(())
    }

    fn bind((): (), inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = tensor_input("tensor.length", inputs)?;
        if tensor.shape.is_empty() {
            return Err(BindError::input("a tensor of rank 0 has no first axis"));
        }
        let kernel = FirstExtent(ColumnType::Tensor(tensor.clone()));
        Ok(Bound::one(ColumnType::Scalar(DType::I64), Kernel::Columns(Arc::new(kernel))))
    }
}

struct FirstExtent(ColumnType);

impl ColumnKernel for FirstExtent {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let tensors = TensorColumn::new(inputs.first().ok_or("no input")?, &self.0)?;
        let mut shape = Vec::new();
        let lengths = (0..tensors.len()).map(|row| {
            tensors.shape(row, &mut shape);
            i64::try_from(shape.first().copied().unwrap_or(0)).unwrap_or(i64::MAX)
        });
        let lengths: Int64Array = lengths.collect::<Vec<_>>().into();
        Ok(Made { columns: vec![Arc::new(lengths)], failures: Vec::new() })
    }
}
