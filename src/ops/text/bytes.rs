//! `text.bytes`: text as the numbers of its bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use bytes::Bytes as Buffer;

use super::text_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{ColumnKernel, Kernel, KernelError, Made};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::batch::{binary_view_of_rows, tensor_array};
use crate::types::{ColumnType, DType, Dim, TensorType};

/// `text.bytes`.
pub struct Bytes;

impl Op for Bytes {
    const INFO: OpInfo = OpInfo {
        name: "text.bytes",
        version: 1,
        summary: "Text as the numbers of its UTF-8 bytes: the tokens of byte-level models.",
        details: "An i32 for each byte, plus `offset`: ByT5, for example, keeps the first three numbers for special \
                  tokens (`offset = 3`).",
        inputs: &[Port { name: "text", expects: "text" }],
        reads: Reads::Ports,
        products: &["tokens"],
        params: &[ParamSpec {
            name: "offset",
            kind: ArgKind::Int(0, 1 << 30),
            default: Some("0"),
            required: false,
            doc: "What is added to each byte.",
        }],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"text.bytes\"\nin = \"path\"\n",
    };

    type Params = i32;

    fn params(args: &Args) -> Result<i32, BindError> {
        let offset = args.int("offset").and_then(|offset| i32::try_from(offset).ok());
        offset.ok_or_else(|| BindError::param("offset", "`offset` is missing"))
    }

    fn bind(offset: i32, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        text_input("text.bytes", inputs)?;
        let output = TensorType { dtype: DType::I32, shape: vec![Dim::ANY] };
        let kernel = Numbers { offset, output: output.clone() };
        Ok(Bound::one(ColumnType::Tensor(output), Kernel::Columns(Arc::new(kernel))))
    }
}

struct Numbers {
    offset: i32,
    output: TensorType,
}

impl ColumnKernel for Numbers {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let texts = inputs.first().and_then(|input| input.as_string_opt::<i32>()).ok_or("the input isn't text")?;
        let (mut rows, mut shapes) = (Vec::with_capacity(texts.len()), Vec::with_capacity(texts.len()));
        for text in texts {
            let bytes = text.unwrap_or_default().as_bytes();
            let numbers: Vec<i32> = bytes.iter().map(|byte| i32::from(*byte) + self.offset).collect();
            shapes.push(i32::try_from(numbers.len()).map_err(|error| error.to_string())?);
            rows.push(Buffer::from(bytemuck::cast_slice::<i32, u8>(&numbers).to_vec()));
        }
        let tokens = tensor_array(&self.output, binary_view_of_rows(rows)?, shapes)?;
        Ok(Made { columns: vec![tokens], failures: Vec::new() })
    }
}
