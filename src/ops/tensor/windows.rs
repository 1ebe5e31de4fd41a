//! `tensor.windows`: stretches of a tensor along its first axis, each a row.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use bytes::Bytes;

use super::tensor_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{ExpandKernel, Expanded, Kernel, KernelError};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::batch::{binary_view_of_rows, tensor_array};
use crate::types::{ColumnType, DType, Dim, TensorColumn, TensorType};

/// `tensor.windows`.
pub struct Windows;

/// Parameters of [`Windows`].
#[derive(Clone, Copy)]
pub struct WindowsParams {
    size: usize,
    hop: usize,
    pad: bool,
}

impl Op for Windows {
    const INFO: OpInfo = OpInfo {
        name: "tensor.windows",
        version: 1,
        summary: "Stretches of a tensor along its first axis, each a row of its own.",
        details: "Window k holds the elements k * hop to k * hop + size - 1 of the first axis, with all of the others. \
                  What is left at the end is dropped, or filled up with zeros to one more window (`rest = \"pad\"`); a \
                  tensor without elements makes no row. `start` is the place of a window's first element.",
        inputs: &[Port { name: "tensor", expects: "a tensor of any dtype, of rank 1 at least" }],
        reads: Reads::Ports,
        products: &["window", "start"],
        params: &[
            ParamSpec {
                name: "size",
                kind: ArgKind::Int(1, i32::MAX as i64),
                default: None,
                required: true,
                doc: "Elements of a window along the first axis.",
            },
            ParamSpec {
                name: "hop",
                kind: ArgKind::Int(1, i32::MAX as i64),
                default: None,
                required: false,
                doc: "Elements from one window's start to the next one's; as many as a window has, if it isn't given.",
            },
            ParamSpec {
                name: "rest",
                kind: ArgKind::Word(&["drop", "pad"]),
                default: Some("\"drop\""),
                required: false,
                doc: "What becomes of the elements after the last whole window that no window holds.",
            },
        ],
        rows: RowsClass::Expand,
        random: false,
        example: "[[step]]\nop = \"tensor.windows\"\nsize = 100\nhop = 50\n",
    };

    type Params = WindowsParams;

    fn params(args: &Args) -> Result<WindowsParams, BindError> {
        let count = |name: &'static str| args.int(name).and_then(|value| usize::try_from(value).ok());
        let size = count("size").ok_or_else(|| BindError::param("size", "`size` is missing"))?;
        Ok(WindowsParams { size, hop: count("hop").unwrap_or(size), pad: args.text("rest") == Some("pad") })
    }

    fn bind(params: WindowsParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = tensor_input("tensor.windows", inputs)?;
        if tensor.shape.is_empty() {
            return Err(BindError::input("a tensor of rank 0 has no first axis"));
        }
        let mut shape = tensor.shape.clone();
        shape[0] = Dim::Fixed(params.size);
        let output = TensorType { dtype: tensor.dtype, shape };
        let kernel = Stretches { params, input: ColumnType::Tensor(tensor.clone()), output: output.clone() };
        let outputs = vec![ColumnType::Tensor(output), ColumnType::Scalar(DType::I64)];
        Ok(Bound::several(outputs, Kernel::Expand(Arc::new(kernel))))
    }
}

struct Stretches {
    params: WindowsParams,
    input: ColumnType,
    output: TensorType,
}

impl WindowsParams {
    /// How many windows `length` elements make.
    fn count(self, length: usize) -> usize {
        let whole = length.checked_sub(self.size).map_or(0, |slack| slack / self.hop + 1);
        // Without a whole window everything is rest; with one, what lies behind the last one's end.
        let covered = if whole == 0 { 0 } else { (whole - 1) * self.hop + self.size };
        whole + usize::from(self.pad && covered < length)
    }
}

impl ExpandKernel for Stretches {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Expanded, KernelError> {
        let tensors = TensorColumn::new(inputs.first().ok_or("no input")?, &self.input)?;
        let (mut counts, mut starts) = (Vec::with_capacity(tensors.len()), Vec::new());
        let (mut rows, mut shapes, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..tensors.len() {
            tensors.shape(row, &mut shape);
            let data = tensors.data(row);
            let length = shape[0];
            let element = data.len().checked_div(length).unwrap_or(0);
            let count = self.params.count(length);
            counts.push(count);
            for window in 0..count {
                let start = window * self.params.hop;
                let end = (start + self.params.size).min(length);
                let mut bytes = data.get(start * element..end * element).unwrap_or_default().to_vec();
                bytes.resize(self.params.size * element, 0);
                rows.push(Bytes::from(bytes));
                starts.push(i64::try_from(start).map_err(|error| error.to_string())?);
                shapes.push(i32::try_from(self.params.size).map_err(|error| error.to_string())?);
                for extent in &shape[1..] {
                    shapes.push(i32::try_from(*extent).map_err(|error| error.to_string())?);
                }
            }
        }
        let windows = tensor_array(&self.output, binary_view_of_rows(rows)?, shapes)?;
        Ok(Expanded { counts, columns: vec![windows, Arc::new(Int64Array::from(starts))], failures: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 10 elements in windows of 4 every 3 start at 0, 3, 6; every 4 leave 2 over, which padding takes.
    #[test]
    fn windows_cover_what_they_can() {
        let params = |size, hop, pad| WindowsParams { size, hop, pad };
        assert_eq!(params(4, 3, false).count(10), 3);
        assert_eq!(params(4, 3, true).count(10), 3);
        assert_eq!(params(4, 4, false).count(10), 2);
        assert_eq!(params(4, 4, true).count(10), 3);
        assert_eq!(params(4, 4, true).count(3), 1);
        assert_eq!(params(4, 4, true).count(0), 0);
        // A hop of more than the size skips elements; those behind the last window's end are rest.
        assert_eq!(params(2, 5, false).count(10), 2);
        assert_eq!(params(2, 5, true).count(7), 2);
    }
}
