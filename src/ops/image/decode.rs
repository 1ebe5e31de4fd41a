//! Decoding of encoded pictures.

use std::sync::Arc;

use super::decoder::{DecodeOptions, ImageDecoder};
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Kernel, RowContext, RowKernel, RowOut, RowRunner};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, TensorView};

/// `image.decode`.
pub struct Decode;

/// Parameters of [`Decode`].
#[derive(Clone, Copy)]
pub struct DecodeParams(DecodeOptions);

impl Op for Decode {
    const INFO: OpInfo = OpInfo {
        name: "image.decode",
        version: 1,
        summary: "An encoded picture (JPEG, PNG, WebP, GIF, BMP, TIFF) as RGB u8.",
        details: "The format is told by the content, never by the name. Grey is repeated to three channels, palettes \
                  are looked up, alpha is dropped (not composited), 16-bit values keep their high byte, CMYK becomes \
                  `(255-C)(255-K)/255` and so on, an animation gives its first frame and a TIFF its first page. The \
                  EXIF orientation is applied. Colour profiles are not: values are as stored. A truncated or damaged \
                  picture is a bad sample, never a half-grey one.",
        inputs: &[Port { name: "bytes", expects: "bytes: an encoded picture" }],
        reads: Reads::Ports,
        products: &["image"],
        params: &[
            ParamSpec {
                name: "orientation",
                kind: ArgKind::Bool,
                default: Some("true"),
                required: false,
                doc: "Whether the picture is turned upright as its EXIF orientation says.",
            },
            ParamSpec {
                name: "max_pixels",
                kind: ArgKind::Int(1, i64::MAX),
                default: Some("178956970"),
                required: false,
                doc: "A picture that claims more pixels than this is refused before memory is taken for it.",
            },
        ],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"image.decode\"\nin = \"bytes\"\n",
    };

    type Params = DecodeParams;

    fn params(args: &Args) -> Result<DecodeParams, BindError> {
        let max_pixels = args.int("max_pixels").and_then(|pixels| u64::try_from(pixels).ok());
        Ok(DecodeParams(DecodeOptions {
            apply_orientation: args.bool("orientation"),
            max_pixels: max_pixels.unwrap_or(DecodeOptions::default().max_pixels),
        }))
    }

    fn bind(params: DecodeParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        match inputs {
            [ColumnType::Bytes] => Ok(Bound::one(ColumnType::image(), Kernel::Rows(Arc::new(params)))),
            _ => {
                let found = inputs.first().map_or("nothing".to_owned(), ToString::to_string);
                Err(BindError::input(format!("`image.decode` reads bytes, but got {found}"))
                    .help("the source's `bytes` column holds the content of each file: use `in = \"bytes\"`"))
            }
        }
    }
}

impl RowKernel for DecodeParams {
    fn runner(&self) -> Box<dyn RowRunner> {
        Box::new(Runner { decoder: ImageDecoder::new(self.0), rgb: Vec::new() })
    }
}

struct Runner {
    decoder: ImageDecoder,
    rgb: Vec<u8>,
}

impl RowRunner for Runner {
    fn run(&mut self, _row: &mut RowContext, input: TensorView<'_>, out: &mut RowOut<'_>) -> Result<(), String> {
        let (height, width) = self.decoder.decode_rgb(input.data, &mut self.rgb)?;
        out.allocate(DType::U8, &[height, width, 3])?.copy_from_slice(&self.rgb);
        Ok(())
    }
}
