//! Resizing.

use std::sync::Arc;

use super::image_input;
use super::resizer::{Filter, ImageResizer, short_side_size};
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Kernel, RowContext, RowKernel, RowOut, RowRunner};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, Dim, TensorType, TensorView};

/// `image.resize`.
pub struct Resize;

#[derive(Debug, Clone, Copy)]
enum Target {
    Size(usize, usize),
    ShortSide(usize),
}

/// Parameters of [`Resize`].
#[derive(Debug, Clone, Copy)]
pub struct ResizeParams {
    target: Target,
    filter: Filter,
}

impl Op for Resize {
    const INFO: OpInfo = OpInfo {
        name: "image.resize",
        version: 1,
        summary: "A picture at another size, antialiased.",
        details: "The filter's support grows with the reduction, so that nothing aliases; the two sides are changed \
                  one after the other, each pass rounded to u8, in the order in which Pillow 13 does it. `bilinear` is within 1 of Pillow's `resize` \
                  for every value, the others are for at least 99.9 % of the values.",
        inputs: &[Port { name: "image", expects: "u8 [height, width, channels]" }],
        reads: Reads::Ports,
        products: &[],
        params: &[
            ParamSpec {
                name: "size",
                kind: ArgKind::Size,
                default: None,
                required: false,
                doc: "`[height, width]` in pixels, whatever the proportions were; one number for a square. Either \
                      this or `short_side`.",
            },
            ParamSpec {
                name: "short_side",
                kind: ArgKind::Int(1, 65_535),
                default: None,
                required: false,
                doc: "The length of the shorter side in pixels; the other keeps the proportions, rounded down.",
            },
            ParamSpec {
                name: "filter",
                kind: ArgKind::Word(&["nearest", "bilinear", "bicubic", "lanczos"]),
                default: Some("\"bilinear\""),
                required: false,
                doc: "How values are weighted. `nearest` is the only one that doesn't antialias.",
            },
        ],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"image.resize\"\nsize = [256, 256]\n",
    };

    type Params = ResizeParams;

    fn params(args: &Args) -> Result<ResizeParams, BindError> {
        let short = args.int("short_side").and_then(|side| usize::try_from(side).ok());
        let target = match (args.size("size"), short) {
            (Some((height, width)), None) => Target::Size(height, width),
            (None, Some(side)) => Target::ShortSide(side),
            (Some(_), Some(_)) => {
                return Err(BindError::param("short_side", "`size` and `short_side` are both given").help("keep one"));
            }
            (None, None) => {
                return Err(BindError::param("size", "neither `size` nor `short_side` is given")
                    .help("write `size = [256, 256]` or `short_side = 256`"));
            }
        };
        let filter = match args.text("filter") {
            Some("nearest") => Filter::Nearest,
            Some("bicubic") => Filter::Bicubic,
            Some("lanczos") => Filter::Lanczos,
            _ => Filter::Bilinear,
        };
        Ok(ResizeParams { target, filter })
    }

    fn bind(params: ResizeParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = image_input(Self::INFO.name, inputs)?;
        if tensor.dtype != DType::U8 {
            return Err(BindError::input(format!("`image.resize` reads a u8 image, but got {}", tensor.dtype))
                .help("resize before normalising"));
        }
        let (height, width) = match params.target {
            Target::Size(height, width) => (Dim::Fixed(height), Dim::Fixed(width)),
            Target::ShortSide(side) => match (tensor.shape[0], tensor.shape[1]) {
                (Dim::Fixed(height), Dim::Fixed(width)) => {
                    let (height, width) = short_side_size(height, width, side);
                    (Dim::Fixed(height), Dim::Fixed(width))
                }
                _ => (Dim::ANY, Dim::ANY),
            },
        };
        let shape = vec![height, width, tensor.shape[2]];
        let output = ColumnType::Tensor(TensorType { dtype: DType::U8, shape });
        Ok(Bound::one(output, Kernel::Rows(Arc::new(params))))
    }
}

impl RowKernel for ResizeParams {
    fn runner(&self) -> Box<dyn RowRunner> {
        Box::new(Runner { params: *self, resizer: ImageResizer::new() })
    }
}

struct Runner {
    params: ResizeParams,
    resizer: ImageResizer,
}

impl RowRunner for Runner {
    fn run(&mut self, _row: &mut RowContext, input: TensorView<'_>, out: &mut RowOut<'_>) -> Result<(), String> {
        let &[height, width, channels] = input.shape else {
            return Err(format!("not a picture: a tensor of {} extents", input.shape.len()));
        };
        let to = match self.params.target {
            Target::Size(height, width) => (height, width),
            Target::ShortSide(side) => short_side_size(height, width, side),
        };
        let pixels = out.allocate(DType::U8, &[to.0, to.1, channels])?;
        self.resizer.resize(input.data, (height, width), channels, pixels, to, self.params.filter)
    }
}
