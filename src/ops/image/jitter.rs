//! `image.color_jitter`: brightness, contrast, saturation and hue, drawn anew each epoch.

use std::sync::Arc;

use super::image_input;
use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Kernel, RowContext, RowKernel, RowOut, RowRunner};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, Dim, RandomStream, TensorView};

/// `image.color_jitter`.
pub struct ColorJitter;

/// How far each property may move.
#[derive(Debug, Clone, Copy)]
pub struct JitterParams {
    /// Brightness, contrast and saturation, by how much the factor may differ from 1.
    amounts: [f64; 3],
    /// Hue, as a part of the circle.
    hue: f64,
}

const fn amount(name: &'static str, doc: &'static str, most: f64) -> ParamSpec {
    ParamSpec { name, kind: ArgKind::Float(0.0, most), default: Some("0.0"), required: false, doc }
}

impl Op for ColorJitter {
    const INFO: OpInfo = OpInfo {
        name: "image.color_jitter",
        version: 1,
        summary: "Brightness, contrast, saturation and hue of a picture, changed by factors drawn anew each epoch.",
        details: "Each factor is uniform in [max(0, 1 - amount), 1 + amount], the hue's shift in [-hue, hue] of the circle; \
                  the order of those that have an amount is drawn too, as torchvision's `ColorJitter` does. Values are \
                  Pillow's: `ImageEnhance.Brightness`, `Contrast` and `Color`, and the HSV picture's hue. Drawn from the \
                  step's stream in this order: brightness, contrast, saturation, hue, order.",
        inputs: &[Port { name: "image", expects: "a u8 tensor [height, width, 3]" }],
        reads: Reads::Ports,
        products: &[],
        params: &[
            amount("brightness", "By how much the factor of the brightness may differ from 1.", 100.0),
            amount("contrast", "By how much the factor of the contrast may differ from 1.", 100.0),
            amount("saturation", "By how much the factor of the saturation may differ from 1.", 100.0),
            amount("hue", "By how much of the colour circle the hue may move; half of it is the most.", 0.5),
        ],
        rows: RowsClass::Map,
        random: true,
        example: "[[step]]\nop = \"image.color_jitter\"\nbrightness = 0.4\ncontrast = 0.4\nsaturation = 0.2\nhue = 0.1\n",
    };

    type Params = JitterParams;

    fn params(args: &Args) -> Result<JitterParams, BindError> {
        let amounts = ["brightness", "contrast", "saturation"].map(|name| args.float(name).unwrap_or(0.0));
        Ok(JitterParams { amounts, hue: args.float("hue").unwrap_or(0.0) })
    }

    fn bind(params: JitterParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let tensor = image_input(Self::INFO.name, inputs)?;
        if tensor.dtype != DType::U8 || tensor.shape[2] != Dim::Fixed(3) {
            let found = &inputs[0];
            return Err(BindError::input(format!("`image.color_jitter` reads a u8 RGB image, but got {found}"))
                .help("jitter before normalising"));
        }
        Ok(Bound::one(ColumnType::Tensor(tensor.clone()), Kernel::Rows(Arc::new(params))))
    }
}

/// One change of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// A factor: 0 is black, 1 the picture.
    Brightness(f32),
    /// A factor: 0 is the mean grey, 1 the picture.
    Contrast(f32),
    /// A factor: 0 is grey, 1 the picture.
    Saturation(f32),
    /// A part of the colour circle.
    Hue(f64),
}

impl JitterParams {
    /// The changes that a row's stream draws, in their order.
    pub fn draw(self, random: &mut RandomStream) -> Vec<Change> {
        let mut within = |low: f64, high: f64| low + (high - low) * f64::from(random.unit_f32());
        let factors = self.amounts.map(|amount| within((1.0 - amount).max(0.0), 1.0 + amount));
        let shift = within(-self.hue, self.hue);
        #[expect(clippy::cast_possible_truncation, reason = "Pillow's own factors are single precision")]
        let [brightness, contrast, saturation] = factors.map(|factor| factor as f32);
        let all = [
            (self.amounts[0], Change::Brightness(brightness)),
            (self.amounts[1], Change::Contrast(contrast)),
            (self.amounts[2], Change::Saturation(saturation)),
            (self.hue, Change::Hue(shift)),
        ];
        let mut changes: Vec<Change> = all.into_iter().filter(|(amount, _)| *amount > 0.0).map(|(_, c)| c).collect();
        // Fisher and Yates: every order is equally likely.
        for at in (1..changes.len()).rev() {
            let bound = u32::try_from(at + 1).unwrap_or(1);
            changes.swap(at, random.below(bound) as usize);
        }
        changes
    }
}

impl Change {
    /// Changes RGB pixels in place, as Pillow does.
    pub fn apply(self, pixels: &mut [u8]) {
        match self {
            Self::Brightness(factor) => {
                for value in pixels.iter_mut() {
                    *value = blend(0, *value, factor);
                }
            }
            Self::Contrast(factor) => {
                let count = (pixels.len() / 3).max(1) as f64;
                let sum: u64 = pixels.as_chunks::<3>().0.iter().map(|pixel| u64::from(grey(*pixel))).sum();
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of u8 values")]
                let mean = (sum as f64 / count + 0.5) as u8;
                for value in pixels.iter_mut() {
                    *value = blend(mean, *value, factor);
                }
            }
            Self::Saturation(factor) => {
                for pixel in pixels.as_chunks_mut::<3>().0 {
                    let grey = grey(*pixel);
                    *pixel = pixel.map(|value| blend(grey, value, factor));
                }
            }
            Self::Hue(part) => {
                // torchvision adds the whole part of 255 times the shift, modulo 256.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 256 is meant")]
                let shift = (part * 255.0) as i32 as u8;
                for pixel in pixels.as_chunks_mut::<3>().0 {
                    let [hue, saturation, value] = to_hsv(*pixel);
                    *pixel = from_hsv([hue.wrapping_add(shift), saturation, value]);
                }
            }
        }
    }
}

/// Pillow's `ImagingBlend` of two values: single precision, cut off, clipped.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clipped to u8")]
fn blend(from: u8, to: u8, factor: f32) -> u8 {
    let mixed = f32::from(from) + factor * (f32::from(to) - f32::from(from));
    mixed.clamp(0.0, 255.0) as u8
}

/// Pillow's conversion to `L`: ITU-R 601-2 luma in 16-bit fixed point.
#[expect(clippy::cast_possible_truncation, reason = "the weights add up to 65,536")]
fn grey([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16) as u8
}

/// Pillow's conversion of a pixel to HSV.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values between 0 and 255")]
fn to_hsv([red, green, blue]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let saturation = range / f32::from(most);
    let part = |value: u8| f32::from(most - value) / range;
    let hue = if red == most {
        part(blue) - part(green)
    } else if green == most {
        (2.0 + f64::from(part(red)) - f64::from(part(blue))) as f32
    } else {
        (4.0 + f64::from(part(green)) - f64::from(part(red))) as f32
    };
    let hue = ((f64::from(hue) / 6.0 + 1.0) % 1.0) as f32;
    let byte = |value: f32| (f64::from(value) * 255.0) as i32 as u8;
    [byte(hue), byte(saturation), most]
}

/// Pillow's conversion of an HSV pixel to RGB.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values between 0 and 255")]
fn from_hsv([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    if saturation == 0 {
        return [value; 3];
    }
    let sector = (f64::from(hue) * 6.0 / 255.0).floor();
    let rest = f64::from((f64::from(hue) * 6.0 / 255.0 - sector) as f32);
    let full = f64::from((f64::from(saturation) / 255.0) as f32);
    let round = |part: f64| (f64::from(value) * part).round().clamp(0.0, 255.0) as u8;
    let (p, q, t) = (round(1.0 - full), round(1.0 - full * rest), round(1.0 - full * (1.0 - rest)));
    match sector as i32 % 6 {
        0 => [value, t, p],
        1 => [q, value, p],
        2 => [p, value, t],
        3 => [p, q, value],
        4 => [t, p, value],
        _ => [value, p, q],
    }
}

impl RowKernel for JitterParams {
    fn runner(&self) -> Box<dyn RowRunner> {
        Box::new(Runner(*self))
    }
}

struct Runner(JitterParams);

impl RowRunner for Runner {
    fn run(&mut self, row: &mut RowContext, input: TensorView<'_>, out: &mut RowOut<'_>) -> Result<(), String> {
        let random = row.random.as_mut().ok_or("no random stream for a random step")?;
        let changes = self.0.draw(random);
        let pixels = out.allocate(DType::U8, input.shape)?;
        pixels.copy_from_slice(input.data);
        for change in changes {
            change.apply(pixels);
        }
        Ok(())
    }
}
