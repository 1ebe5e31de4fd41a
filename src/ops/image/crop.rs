//! Crops: windows of a picture, in the middle or drawn at random.

use std::sync::Arc;

use super::image_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Kernel, RowContext, Selection, Window};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, Dim, TensorType};

const SIZE: ParamSpec = ParamSpec {
    name: "size",
    kind: ArgKind::Size,
    default: None,
    required: true,
    doc: "`[height, width]` of the window in pixels; one number for a square.",
};

const IMAGE: Port = Port { name: "image", expects: "a tensor [height, width, channels] of any dtype" };

/// `image.center_crop`.
pub struct CenterCrop;

/// `image.random_crop`.
pub struct RandomCrop;

/// The size of a window.
pub struct CropSize {
    height: usize,
    width: usize,
}

fn crop_size(args: &Args) -> Result<CropSize, BindError> {
    let (height, width) = args.size("size").ok_or_else(|| BindError::param("size", "`size` is missing"))?;
    Ok(CropSize { height, width })
}

fn crop_type(op: &str, size: &CropSize, inputs: &[ColumnType]) -> Result<ColumnType, BindError> {
    let tensor = image_input(op, inputs)?;
    for (dim, want, side) in [(tensor.shape[0], size.height, "high"), (tensor.shape[1], size.width, "wide")] {
        if let Some(extent) = dim.fixed().filter(|extent| *extent < want) {
            return Err(BindError::param("size", format!("the pictures are {extent} {side}, the crop {want}"))
                .help("crop less, or resize to more before"));
        }
    }
    let shape = vec![Dim::Fixed(size.height), Dim::Fixed(size.width), tensor.shape[2]];
    Ok(ColumnType::Tensor(TensorType { dtype: tensor.dtype, shape }))
}

impl CropSize {
    /// How far the window may move down and right.
    fn slack(&self, height: usize, width: usize) -> Result<(usize, usize), String> {
        match (height.checked_sub(self.height), width.checked_sub(self.width)) {
            (Some(down), Some(right)) => Ok((down, right)),
            _ => Err(format!(
                "the picture is {height}x{width} (height x width), smaller than the crop of {}x{}",
                self.height, self.width
            )),
        }
    }

    fn at(&self, top: usize, left: usize) -> Window {
        Window { top, left, height: self.height, width: self.width, mirrored: false, flipped: false }
    }
}

impl Op for CenterCrop {
    const INFO: OpInfo = OpInfo {
        name: "image.center_crop",
        version: 1,
        summary: "The middle of a picture.",
        details: "When the margins are odd, the extra row is left below and the extra column on the right: the window \
                  starts at `floor((extent - size) / 2)`. A picture smaller than the window is a bad sample.",
        inputs: &[IMAGE],
        reads: Reads::Ports,
        products: &[],
        params: &[SIZE],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"image.center_crop\"\nsize = [224, 224]\n",
    };

    type Params = CropSize;

    fn params(args: &Args) -> Result<CropSize, BindError> {
        crop_size(args)
    }

    fn bind(size: CropSize, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let output = crop_type(Self::INFO.name, &size, inputs)?;
        Ok(Bound::one(output, Kernel::Select(Arc::new(Center(size)))))
    }
}

struct Center(CropSize);

impl Selection for Center {
    fn window(&self, _row: &mut RowContext, height: usize, width: usize) -> Result<Window, String> {
        let (down, right) = self.0.slack(height, width)?;
        Ok(self.0.at(down / 2, right / 2))
    }
}

impl Op for RandomCrop {
    const INFO: OpInfo = OpInfo {
        name: "image.random_crop",
        version: 1,
        summary: "A window of a picture at a place drawn anew each epoch.",
        details: "Every place at which the window fits is equally likely. A picture smaller than the window is a bad \
                  sample. The top edge is drawn first, then the left one, from the step's stream of the row and epoch.",
        inputs: &[IMAGE],
        reads: Reads::Ports,
        products: &[],
        params: &[SIZE],
        rows: RowsClass::Map,
        random: true,
        example: "[[step]]\nop = \"image.random_crop\"\nsize = [224, 224]\n",
    };

    type Params = CropSize;

    fn params(args: &Args) -> Result<CropSize, BindError> {
        crop_size(args)
    }

    fn bind(size: CropSize, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let output = crop_type(Self::INFO.name, &size, inputs)?;
        Ok(Bound::one(output, Kernel::Select(Arc::new(Random(size)))))
    }
}

struct Random(CropSize);

impl Selection for Random {
    fn window(&self, row: &mut RowContext, height: usize, width: usize) -> Result<Window, String> {
        let (down, right) = self.0.slack(height, width)?;
        let random = row.random.as_mut().ok_or("no random stream for a random step")?;
        let mut draw = |slack: usize| -> Result<usize, String> {
            let places = u32::try_from(slack + 1).map_err(|_| "the picture is too large to crop at random")?;
            Ok(random.below(places) as usize)
        };
        let top = draw(down)?;
        let left = draw(right)?;
        Ok(self.0.at(top, left))
    }
}
