//! The op vocabulary: one struct an op, one visible list.
//!
//! An op is a unit struct that implements [`Op`]: its name, version, documentation, parameters, type rule and kernel
//! in one place. Adding one means writing that struct in its family's file and one line in [`OPS`]; the parser's
//! checks, the reference, the SQL functions, the profile and the conformance tests walk the list.

mod args;
mod image;
mod kernel;
mod op;
mod path;
mod pixels;
mod tensor;

pub use args::{ArgKind, ArgValue, Args, ParamSpec};
pub use kernel::{
    ColumnKernel, Elementwise, Kernel, RowContext, RowFailure, RowKernel, RowOut, RowRunner, Selection, Window,
};
pub use op::{BindError, Bound, ErasedOp, Op, OpInfo, Port, RowsClass};
pub use pixels::{PassFailure, PixelPass};

/// Every op, in the order of the reference.
pub static OPS: &[&dyn ErasedOp] = &[
    &path::Label,
    &image::Decode,
    &image::Resize,
    &image::CenterCrop,
    &image::RandomCrop,
    &image::RandomFlip,
    &image::Normalize,
    &tensor::Cast,
];

/// The op of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn ErasedOp> {
    OPS.iter().copied().find(|op| op.info().name == name)
}
