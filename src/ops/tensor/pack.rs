//! `tensor.pack`: lists of numbers one after another, cut into rows of equal length.

use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::Bytes;

use super::tensor_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Kernel, PackKernel, Packed, Packer};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::batch::{binary_view_of_rows, tensor_array};
use crate::types::{ColumnType, DType, Dim, RowKey, TensorColumn, TensorType};

/// `tensor.pack`.
pub struct Pack;

/// Parameters of [`Pack`].
#[derive(Clone)]
pub struct PackParams {
    length: usize,
    end: Option<i64>,
    pad: Option<i64>,
}

impl Op for Pack {
    const INFO: OpInfo = OpInfo {
        name: "tensor.pack",
        version: 1,
        summary: "Lists of numbers, such as tokens, one after another, cut into rows of equal length.",
        details: "The lists of all rows, in row order, each followed by `end` if it is given, make one long list, which \
                  is cut every `length` elements. What is left at the end is dropped, or filled up with `pad`. No other \
                  column survives, since a row has parts of several. The key of a row is made from the keys of the rows \
                  in it. It runs offline, before any random step.",
        inputs: &[Port { name: "list", expects: "a tensor of rank 1" }],
        reads: Reads::Ports,
        products: &[],
        params: &[
            ParamSpec {
                name: "length",
                kind: ArgKind::Int(1, i32::MAX as i64),
                default: None,
                required: true,
                doc: "Elements of a row.",
            },
            ParamSpec {
                name: "end",
                kind: ArgKind::Int(i64::MIN, i64::MAX),
                default: None,
                required: false,
                doc: "What follows each list, such as the token that ends a text.",
            },
            ParamSpec {
                name: "pad",
                kind: ArgKind::Int(i64::MIN, i64::MAX),
                default: None,
                required: false,
                doc: "What the last row is filled up with; without it, what doesn't fill a row is dropped.",
            },
        ],
        rows: RowsClass::Pack,
        random: false,
        example: "[[step]]\nop = \"tensor.pack\"\nlength = 1024\nend = 0\n",
    };

    type Params = PackParams;

    fn params(args: &Args) -> Result<PackParams, BindError> {
        let length = args.int("length").and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| BindError::param("length", "`length` is missing"))?;
        Ok(PackParams { length, end: args.int("end"), pad: args.int("pad") })
    }

    fn bind(params: PackParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = tensor_input("tensor.pack", inputs)?;
        if tensor.shape.len() != 1 {
            return Err(BindError::input(format!(
                "`tensor.pack` reads a list, a tensor of rank 1, but got {}",
                inputs[0]
            )));
        }
        let bytes = |name: &'static str, value: Option<i64>| {
            value
                .map(|value| {
                    element(value, tensor.dtype)
                        .ok_or_else(|| BindError::param(name, format!("{value} is no {}", tensor.dtype)))
                })
                .transpose()
        };
        let shared = Shared {
            length: params.length,
            end: bytes("end", params.end)?.unwrap_or_default(),
            pad: bytes("pad", params.pad)?,
            input: inputs[0].clone(),
            output: TensorType { dtype: tensor.dtype, shape: vec![Dim::Fixed(params.length)] },
        };
        let output = ColumnType::Tensor(shared.output.clone());
        Ok(Bound::one(output, Kernel::Pack(Arc::new(Packing(Arc::new(shared))))))
    }
}

/// The bytes of a whole number in that dtype, if it holds it.
fn element(value: i64, dtype: DType) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::U8 => u8::try_from(value).ok()?.to_ne_bytes().to_vec(),
        DType::U16 => u16::try_from(value).ok()?.to_ne_bytes().to_vec(),
        DType::I32 => i32::try_from(value).ok()?.to_ne_bytes().to_vec(),
        DType::I64 => value.to_ne_bytes().to_vec(),
        DType::F32 => f32::from(i16::try_from(value).ok()?).to_ne_bytes().to_vec(),
        DType::F64 => f64::from(i32::try_from(value).ok()?).to_ne_bytes().to_vec(),
    })
}

struct Shared {
    length: usize,
    end: Vec<u8>,
    pad: Option<Vec<u8>>,
    input: ColumnType,
    output: TensorType,
}

struct Packing(Arc<Shared>);

impl PackKernel for Packing {
    fn packer(&self) -> Box<dyn Packer> {
        Box::new(Filling { shared: Arc::clone(&self.0), row: Vec::new(), of: Vec::new(), part: 0 })
    }
}

/// The row that is being filled.
struct Filling {
    shared: Arc<Shared>,
    row: Vec<u8>,
    of: Vec<RowKey>,
    /// How many finished rows begin in the first of `of`.
    part: u64,
}

impl Filling {
    fn add(&mut self, key: RowKey, mut bytes: &[u8], done: &mut Done) {
        let full = self.shared.length * self.shared.output.dtype.size();
        while !bytes.is_empty() {
            if self.of.last() != Some(&key) {
                if self.of.is_empty() {
                    self.part = 0;
                }
                self.of.push(key);
            }
            let (now, later) = bytes.split_at(bytes.len().min(full - self.row.len()));
            self.row.extend_from_slice(now);
            bytes = later;
            if self.row.len() == full {
                self.close(key, !bytes.is_empty(), done);
            }
        }
    }

    /// Finishes the row; if its last list goes on, the next row begins in it.
    fn close(&mut self, key: RowKey, goes_on: bool, done: &mut Done) {
        let of = std::mem::take(&mut self.of);
        let began_here = of.first() == Some(&key);
        done.rows.push(Bytes::from(std::mem::take(&mut self.row)));
        done.of.push((of, self.part));
        if goes_on {
            self.of.push(key);
            self.part = if began_here { self.part + 1 } else { 1 };
        } else {
            self.part = 0;
        }
    }
}

#[derive(Default)]
struct Done {
    rows: Vec<Bytes>,
    of: Vec<(Vec<RowKey>, u64)>,
}

impl Done {
    fn packed(self, output: &TensorType) -> Result<Packed, String> {
        let column = tensor_array(output, binary_view_of_rows(self.rows)?, Vec::new())?;
        Ok(Packed { of: self.of, columns: vec![column] })
    }
}

impl Packer for Filling {
    fn push(&mut self, keys: &[RowKey], inputs: &[ArrayRef]) -> Result<Packed, String> {
        let shared = Arc::clone(&self.shared);
        let lists = TensorColumn::new(inputs.first().ok_or("no input")?, &shared.input)?;
        let mut done = Done::default();
        for (row, key) in keys.iter().enumerate() {
            // The end belongs to the list: a row that a list fills exactly is not finished before its end is placed.
            let list = [lists.data(row), &shared.end].concat();
            self.add(*key, &list, &mut done);
        }
        done.packed(&shared.output)
    }

    fn finish(&mut self) -> Result<Packed, String> {
        let mut done = Done::default();
        if let (Some(pad), false) = (&self.shared.pad, self.row.is_empty()) {
            let full = self.shared.length * self.shared.output.dtype.size();
            while self.row.len() < full {
                self.row.extend_from_slice(pad);
            }
            done.rows.push(Bytes::from(std::mem::take(&mut self.row)));
            done.of.push((std::mem::take(&mut self.of), self.part));
        }
        done.packed(&self.shared.output)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::BinaryViewArray;

    use super::*;

    fn pack(args: PackParams, lists: &[&[u8]]) -> Vec<(Vec<u8>, usize, u64)> {
        let input = TensorType { dtype: DType::U8, shape: vec![Dim::ANY] };
        let Ok(Bound { kernel: Kernel::Pack(kernel), .. }) = Pack::bind(args, &[ColumnType::Tensor(input.clone())])
        else {
            panic!("binds");
        };
        let mut packer = kernel.packer();
        let mut rows = Vec::new();
        let mut take = |packed: Packed| {
            for (row, (of, part)) in packed.of.iter().enumerate() {
                let bytes = TensorColumn::new(
                    &packed.columns[0],
                    &ColumnType::Tensor(TensorType { dtype: DType::U8, shape: vec![Dim::Fixed(4)] }),
                );
                rows.push((bytes.expect("a column").data(row).to_vec(), of.len(), *part));
            }
        };
        for (at, list) in lists.iter().enumerate() {
            let shapes = vec![i32::try_from(list.len()).expect("short")];
            let array = tensor_array(&input, BinaryViewArray::from(vec![*list]), shapes).expect("a column");
            take(packer.push(&[RowKey::of_fragment("x", at as u64)], &[array]).expect("packs"));
        }
        take(packer.finish().expect("packs"));
        rows
    }

    /// By hand: 1 2 0 | 3 4 5 6 7 0 | 8 0 in fours.
    #[test]
    fn lists_are_laid_end_to_end_and_cut() {
        let lists: [&[u8]; 3] = [&[1, 2], &[3, 4, 5, 6, 7], &[8]];
        let args = |pad| PackParams { length: 4, end: Some(0), pad };
        let whole = [(vec![1, 2, 0, 3], 2, 0), (vec![4, 5, 6, 7], 1, 1)];
        assert_eq!(pack(args(None), &lists), whole);
        let padded = [whole[0].clone(), whole[1].clone(), (vec![0, 8, 0, 9], 2, 2)];
        assert_eq!(pack(args(Some(9)), &lists), padded);
        assert!(
            Pack::bind(
                PackParams { length: 4, end: Some(300), pad: None },
                &[ColumnType::Tensor(TensorType { dtype: DType::U8, shape: vec![Dim::ANY] })]
            )
            .is_err()
        );
    }
}
