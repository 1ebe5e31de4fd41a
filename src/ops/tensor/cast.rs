//! Casts: the same values in another dtype.

use std::sync::Arc;

use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::{Elementwise, Kernel};
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType, TensorType};

/// `tensor.cast`.
pub struct Cast;

impl Op for Cast {
    const INFO: OpInfo = OpInfo {
        name: "tensor.cast",
        version: 1,
        summary: "The same values in another dtype.",
        details: "Widening is exact. A fraction is cut off towards zero when the new dtype holds whole numbers; a value \
                  out of its range, or one that is not a number, makes a bad sample. f64 to f32 and large whole numbers \
                  to floats are rounded to the nearest, ties to even.",
        inputs: &[Port { name: "tensor", expects: "a tensor of any dtype and shape" }],
        reads: Reads::Ports,
        products: &[],
        params: &[ParamSpec {
            name: "dtype",
            kind: ArgKind::Word(&["u8", "u16", "i32", "i64", "f32", "f64"]),
            default: None,
            required: true,
            doc: "The dtype to make.",
        }],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"tensor.cast\"\ndtype = \"f32\"\n",
    };

    type Params = DType;

    fn params(args: &Args) -> Result<DType, BindError> {
        args.text("dtype").and_then(DType::parse).ok_or_else(|| BindError::param("dtype", "`dtype` is missing"))
    }

    fn bind(dtype: DType, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let Some(ColumnType::Tensor(tensor)) = inputs.first() else {
            let found = inputs.first().map_or("nothing".to_owned(), ToString::to_string);
            return Err(BindError::input(format!("`tensor.cast` reads a tensor, but got {found}")));
        };
        let output = ColumnType::Tensor(TensorType { dtype, shape: tensor.shape.clone() });
        Ok(Bound::one(output, Kernel::Elementwise(Arc::new(Caster(dtype)))))
    }
}

struct Caster(DType);

/// An element of some dtype, by way of types that hold every element exactly.
trait Element: bytemuck::Pod {
    fn widen(self) -> Wide;
    fn narrow(wide: Wide) -> Option<Self>;
}

#[derive(Clone, Copy)]
enum Wide {
    Int(i64),
    Float(f64),
}

macro_rules! integer_element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn widen(self) -> Wide {
                Wide::Int(i64::from(self))
            }
            fn narrow(wide: Wide) -> Option<Self> {
                match wide {
                    Wide::Int(value) => Self::try_from(value).ok(),
                    Wide::Float(value) => {
                        let whole = value.trunc();
                        // 2^63 is the least f64 that is out of range; every |whole| below it converts exactly.
                        let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole);
                        #[expect(clippy::cast_possible_truncation, reason = "in range and whole")]
                        in_range.then_some(whole as i64).and_then(|value| Self::try_from(value).ok())
                    }
                }
            }
        }
    )*};
}

integer_element!(u8, u16, i32, i64);

impl Element for f32 {
    fn widen(self) -> Wide {
        Wide::Float(f64::from(self))
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "rounds to the nearest, as documented"
    )]
    fn narrow(wide: Wide) -> Option<Self> {
        Some(match wide {
            Wide::Int(value) => value as Self,
            Wide::Float(value) => value as Self,
        })
    }
}

impl Element for f64 {
    fn widen(self) -> Wide {
        Wide::Float(self)
    }
    fn narrow(wide: Wide) -> Option<Self> {
        Some(match wide {
            Wide::Int(value) => value as Self,
            Wide::Float(value) => value,
        })
    }
}

fn convert<From: Element, To: Element>(from: &[u8], to: &mut [u8], dtype: DType) -> Result<(), String> {
    let from: &[From] = bytemuck::try_cast_slice(from).map_err(|error| error.to_string())?;
    let to: &mut [To] = bytemuck::try_cast_slice_mut(to).map_err(|error| error.to_string())?;
    for (to, from) in to.iter_mut().zip(from) {
        let wide = from.widen();
        *to = To::narrow(wide).ok_or_else(|| {
            let value = match wide {
                Wide::Int(value) => value.to_string(),
                Wide::Float(value) => value.to_string(),
            };
            format!("the value {value} doesn't fit {dtype}")
        })?;
    }
    Ok(())
}

fn convert_from<From: Element>(from: &[u8], to: &mut [u8], dtype: DType) -> Result<(), String> {
    match dtype {
        DType::U8 => convert::<From, u8>(from, to, dtype),
        DType::U16 => convert::<From, u16>(from, to, dtype),
        DType::I32 => convert::<From, i32>(from, to, dtype),
        DType::I64 => convert::<From, i64>(from, to, dtype),
        DType::F32 => convert::<From, f32>(from, to, dtype),
        DType::F64 => convert::<From, f64>(from, to, dtype),
    }
}

impl Elementwise for Caster {
    fn dtype(&self) -> DType {
        self.0
    }

    fn is_total(&self, dtype: DType) -> bool {
        matches!(self.0, DType::F32 | DType::F64)
            || dtype == self.0
            || matches!(
                (dtype, self.0),
                (DType::U8, DType::U16 | DType::I32 | DType::I64)
                    | (DType::U16, DType::I32 | DType::I64)
                    | (DType::I32, DType::I64)
            )
    }

    fn map(&self, dtype: DType, _channels: usize, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        match dtype {
            DType::U8 => convert_from::<u8>(from, to, self.0),
            DType::U16 => convert_from::<u16>(from, to, self.0),
            DType::I32 => convert_from::<i32>(from, to, self.0),
            DType::I64 => convert_from::<i64>(from, to, self.0),
            DType::F32 => convert_from::<f32>(from, to, self.0),
            DType::F64 => convert_from::<f64>(from, to, self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast<From: bytemuck::Pod, To: bytemuck::Pod + Default>(
        from: &[From],
        source: DType,
        dtype: DType,
    ) -> Result<Vec<To>, String> {
        let mut to = vec![To::default(); from.len()];
        Caster(dtype).map(source, 1, bytemuck::cast_slice(from), bytemuck::cast_slice_mut(&mut to))?;
        Ok(to)
    }

    /// Values by NumPy 2.4: `np.array(...).astype(...)` wherever the value is in range.
    #[test]
    fn casts_agree_with_numpy_in_range_and_refuse_the_rest() {
        assert_eq!(cast::<u8, f32>(&[0, 7, 255], DType::U8, DType::F32), Ok(vec![0.0, 7.0, 255.0]));
        assert_eq!(cast::<f32, u8>(&[1.9, 254.99, -0.5], DType::F32, DType::U8), Ok(vec![1, 254, 0]));
        assert_eq!(cast::<f64, i64>(&[-1.5, 9.007e15], DType::F64, DType::I64), Ok(vec![-1, 9_007_000_000_000_000]));
        assert_eq!(cast::<i64, f32>(&[16_777_217], DType::I64, DType::F32), Ok(vec![16_777_216.0]));
        assert_eq!(cast::<f32, u8>(&[256.0], DType::F32, DType::U8), Err("the value 256 doesn't fit u8".to_owned()));
        assert!(cast::<f32, i32>(&[f32::NAN], DType::F32, DType::I32).is_err());
        assert!(cast::<i32, u16>(&[-1], DType::I32, DType::U16).is_err());
    }
}
