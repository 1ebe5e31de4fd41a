//! `image.shape`: height and width as numbers.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::image_input;
use crate::ops::args::Args;
use crate::ops::kernel::{ColumnKernel, Kernel, KernelError, Made};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, TensorColumn};

/// `image.shape`.
pub struct Shape;

impl Op for Shape {
    const INFO: OpInfo = OpInfo {
        name: "image.shape",
        version: 1,
        summary: "Height and width of a picture as numbers, for conditions and expressions.",
        details: "Two i64 columns, in pixels.",
        inputs: &[Port { name: "image", expects: "a tensor [height, width, channels] of any dtype" }],
        reads: Reads::Ports,
        products: &["height", "width"],
        params: &[],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"image.shape\"\n",
    };

    type Params = ();

    fn params(_args: &Args) -> Result<(), BindError> {
        Ok(())
    }

    fn bind((): (), inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = image_input("image.shape", inputs)?;
        let kernel = Extents(ColumnType::Tensor(tensor.clone()));
        Ok(Bound::several(vec![ColumnType::Scalar(DType::I64); 2], Kernel::Columns(Arc::new(kernel))))
    }
}

struct Extents(ColumnType);

impl ColumnKernel for Extents {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let pictures = TensorColumn::new(inputs.first().ok_or("no input")?, &self.0)?;
        let mut shape = Vec::new();
        let (mut heights, mut widths) = (Vec::with_capacity(pictures.len()), Vec::with_capacity(pictures.len()));
        for row in 0..pictures.len() {
            pictures.shape(row, &mut shape);
            let extent = |axis: usize| i64::try_from(shape.get(axis).copied().unwrap_or(0)).unwrap_or(i64::MAX);
            heights.push(extent(0));
            widths.push(extent(1));
        }
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(heights)), Arc::new(Int64Array::from(widths))];
        Ok(Made { columns, failures: Vec::new() })
    }
}
