//! `text.split`: the pieces of a text, each a row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};

use super::text_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{ExpandKernel, Expanded, Kernel, KernelError};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType};

/// `text.split`.
pub struct Split;

impl Op for Split {
    const INFO: OpInfo = OpInfo {
        name: "text.split",
        version: 1,
        summary: "The pieces of a text between separators, each a row of its own.",
        details: "Blanks around a piece are taken off, and pieces that are empty then make no row. `position` is the \
                  number of the piece among those that do, from 0.",
        inputs: &[Port { name: "text", expects: "text" }],
        reads: Reads::Ports,
        products: &["piece", "position"],
        params: &[ParamSpec {
            name: "by",
            kind: ArgKind::Text,
            default: Some("\"\\n\""),
            required: false,
            doc: "What stands between two pieces; by default the end of a line.",
        }],
        rows: RowsClass::Expand,
        random: false,
        example: "[[step]]\nop = \"text.split\"\nin = \"path\"\nby = \"/\"\n",
    };

    type Params = String;

    fn params(args: &Args) -> Result<String, BindError> {
        match args.text("by") {
            Some(by) if !by.is_empty() => Ok(by.to_owned()),
            _ => Err(BindError::param("by", "a separator has a character at least")),
        }
    }

    fn bind(by: String, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        text_input("text.split", inputs)?;
        let outputs = vec![ColumnType::Text, ColumnType::Scalar(DType::I64)];
        Ok(Bound::several(outputs, Kernel::Expand(Arc::new(Separator(by)))))
    }
}

struct Separator(String);

impl ExpandKernel for Separator {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Expanded, KernelError> {
        let texts = inputs.first().and_then(|input| input.as_string_opt::<i32>()).ok_or("the input isn't text")?;
        let (mut counts, mut pieces, mut positions) = (Vec::with_capacity(texts.len()), Vec::new(), Vec::new());
        for text in texts {
            let before = pieces.len();
            let found = text.unwrap_or_default().split(self.0.as_str()).map(str::trim);
            pieces.extend(found.filter(|piece| !piece.is_empty()));
            let count = pieces.len() - before;
            positions.extend((0_i64..).take(count));
            counts.push(count);
        }
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from_iter_values(pieces)), Arc::new(Int64Array::from(positions))];
        Ok(Expanded { counts, columns, failures: Vec::new() })
    }
}
