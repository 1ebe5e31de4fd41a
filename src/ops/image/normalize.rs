//! Normalisation of pixel values to f32.

use std::sync::Arc;

use super::image_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Elementwise, Kernel};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, TensorType};

/// `image.normalize`.
pub struct Normalize;

/// Parameters of [`Normalize`]: none for the range -1 to 1.
pub struct NormalizeParams(Option<(Vec<f64>, Vec<f64>)>);

impl Op for Normalize {
    const INFO: OpInfo = OpInfo {
        name: "image.normalize",
        version: 1,
        summary: "Pixel values as f32 around zero.",
        details: "Without parameters `x / 127.5 - 1`, which maps 0..255 to -1..1. With `mean` and `std` a u8 value \
                  becomes `(x / 255 - mean) / std`, an f32 value `(x - mean) / std`. Every operation is rounded to \
                  f32, in the order written.",
        inputs: &[Port {
            name: "image",
            expects: "u8 [height, width, channels], or f32 when `mean` and `std` are given",
        }],
        reads: Reads::Ports,
        products: &[],
        params: &[
            ParamSpec {
                name: "mean",
                kind: ArgKind::PerChannel,
                default: None,
                required: false,
                doc: "What is subtracted, on the scale 0 to 1; one number, or one for each channel.",
            },
            ParamSpec {
                name: "std",
                kind: ArgKind::PerChannel,
                default: None,
                required: false,
                doc: "What the difference is divided by; one number, or one for each channel. Not 0.",
            },
        ],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"image.normalize\"\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]\n",
    };

    type Params = NormalizeParams;

    fn params(args: &Args) -> Result<NormalizeParams, BindError> {
        match (args.floats("mean"), args.floats("std")) {
            (None, None) => Ok(NormalizeParams(None)),
            (Some(_), None) => {
                Err(BindError::param("mean", "`mean` is given without `std`").help("give both or neither"))
            }
            (None, Some(_)) => {
                Err(BindError::param("std", "`std` is given without `mean`").help("give both or neither"))
            }
            #[expect(clippy::cast_possible_truncation, reason = "what matters is whether the f32 is zero")]
            (Some(_), Some(std)) if std.iter().any(|value| *value as f32 == 0.0) => {
                Err(BindError::param("std", "a `std` of 0 can't divide"))
            }
            (Some(mean), Some(std)) => Ok(NormalizeParams(Some((mean, std)))),
        }
    }

    fn bind(params: NormalizeParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = image_input(Self::INFO.name, inputs)?;
        match (tensor.dtype, &params.0) {
            (DType::U8, _) | (DType::F32, Some(_)) => {}
            (DType::F32, None) => {
                return Err(BindError::input("an f32 image is normalised by `mean` and `std` only").help("give both"));
            }
            (other, _) => {
                return Err(BindError::input(format!("`image.normalize` reads u8 or f32, but got {other}"))
                    .help("convert before, with `op = \"tensor.cast\"` and `dtype = \"f32\"`"));
            }
        }
        let channels = tensor.shape[2].fixed().unwrap_or(1);
        let kernel: Arc<dyn Elementwise> = match params.0 {
            None => Arc::new(Centre),
            Some((mean, std)) => {
                for (name, values) in [("mean", &mean), ("std", &std)] {
                    if values.len() != 1 && values.len() != channels {
                        let message = format!("`{name}` has {} values for {channels} channels", values.len());
                        return Err(BindError::param(name, message));
                    }
                }
                Arc::new(MeanStd { mean: lanes(&mean), std: lanes(&std) })
            }
        };
        let output = ColumnType::Tensor(TensorType { dtype: DType::F32, shape: tensor.shape.clone() });
        Ok(Bound::one(output, Kernel::Elementwise(kernel)))
    }
}

/// Elements handled at a time: a multiple of 1, 2, 3 and 4 channels and of every vector width, so that the constants
/// of a channel stay in the same lane and the loop needs no gather.
const LANES: usize = 48;

#[expect(clippy::cast_possible_truncation, reason = "parameters are used as f32")]
fn lanes(values: &[f64]) -> [f32; LANES] {
    std::array::from_fn(|lane| values[lane % values.len()] as f32)
}

/// `x / 127.5 - 1`.
struct Centre;

impl Elementwise for Centre {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn map(&self, dtype: DType, _channels: usize, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        debug_assert_eq!(dtype, DType::U8, "the type rule admits nothing else");
        let to: &mut [f32] = bytemuck::try_cast_slice_mut(to).map_err(|error| error.to_string())?;
        for (to, from) in to.iter_mut().zip(from) {
            *to = f32::from(*from) / 127.5 - 1.0;
        }
        Ok(())
    }
}

/// `(x * scale - mean) / std`, a channel a lane.
struct MeanStd {
    mean: [f32; LANES],
    std: [f32; LANES],
}

impl MeanStd {
    fn run<T: Copy>(&self, from: &[T], to: &mut [f32], unit: impl Fn(T) -> f32) {
        let mut from_chunks = from.chunks_exact(LANES);
        let mut to_chunks = to.chunks_exact_mut(LANES);
        for (from, to) in from_chunks.by_ref().zip(to_chunks.by_ref()) {
            for lane in 0..LANES {
                to[lane] = (unit(from[lane]) - self.mean[lane]) / self.std[lane];
            }
        }
        let rest = from_chunks.remainder().iter().zip(to_chunks.into_remainder());
        for (lane, (from, to)) in rest.enumerate() {
            *to = (unit(*from) - self.mean[lane]) / self.std[lane];
        }
    }
}

impl Elementwise for MeanStd {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn map(&self, dtype: DType, _channels: usize, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let to: &mut [f32] = bytemuck::try_cast_slice_mut(to).map_err(|error| error.to_string())?;
        if dtype == DType::U8 {
            self.run(from, to, |x| f32::from(x) / 255.0);
        } else {
            let from: &[f32] = bytemuck::try_cast_slice(from).map_err(|error| error.to_string())?;
            self.run(from, to, |x| x);
        }
        Ok(())
    }
}
