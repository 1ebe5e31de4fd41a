//! Random mirroring.

use std::sync::Arc;

use super::image_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Kernel, RowContext, Selection, Window};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::ColumnType;

/// `image.random_flip`.
pub struct RandomFlip;

/// Parameters of [`RandomFlip`].
pub struct FlipParams {
    probability: f64,
    vertical: bool,
}

impl Op for RandomFlip {
    const INFO: OpInfo = OpInfo {
        name: "image.random_flip",
        version: 1,
        summary: "Mirrors a picture with some probability, drawn anew each epoch.",
        details: "`horizontal` exchanges left and right, `vertical` top and bottom.",
        inputs: &[Port { name: "image", expects: "a tensor [height, width, channels] of any dtype" }],
        reads: Reads::Ports,
        products: &[],
        params: &[
            ParamSpec {
                name: "direction",
                kind: ArgKind::Word(&["horizontal", "vertical"]),
                default: Some("\"horizontal\""),
                required: false,
                doc: "What is exchanged: left and right, or top and bottom.",
            },
            ParamSpec {
                name: "p",
                kind: ArgKind::Float(0.0, 1.0),
                default: Some("0.5"),
                required: false,
                doc: "The probability of mirroring, from 0 to 1.",
            },
        ],
        rows: RowsClass::Map,
        random: true,
        example: "[[step]]\nop = \"image.random_flip\"\np = 0.5\n",
    };

    type Params = FlipParams;

    fn params(args: &Args) -> Result<FlipParams, BindError> {
        Ok(FlipParams {
            probability: args.float("p").unwrap_or(0.5),
            vertical: args.text("direction") == Some("vertical"),
        })
    }

    fn bind(params: FlipParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = image_input(Self::INFO.name, inputs)?;
        Ok(Bound::one(ColumnType::Tensor(tensor.clone()), Kernel::Select(Arc::new(params))))
    }
}

impl Selection for FlipParams {
    fn window(&self, row: &mut RowContext, height: usize, width: usize) -> Result<Window, String> {
        let random = row.random.as_mut().ok_or("no random stream for a random step")?;
        let flip = random.chance(self.probability);
        Ok(Window { mirrored: flip && !self.vertical, flipped: flip && self.vertical, ..Window::whole(height, width) })
    }
}
