//! The op vocabulary: one struct an op, one visible list.
//!
//! An op is a unit struct that implements [`Op`]: its name, version, documentation, parameters, type rule and kernel
//! in one place. Adding one means writing that struct in its family's file and one line in [`OPS`]; the parser's
//! checks, the reference, the SQL functions, the profile and the conformance tests walk the list.

mod args;
mod exec;
pub mod expression;
mod image;
mod kernel;
mod op;
mod path;
mod pixels;
mod query;
pub mod relational;
mod rows;
mod tensor;
mod text;

pub use args::{ArgKind, ArgValue, Args, ParamSpec};
pub use exec::OUTS;
pub use kernel::{
    ColumnKernel, Elementwise, ExpandKernel, Expanded, FilterKernel, Kept, Kernel, KernelError, Made, PackKernel,
    Packed, Packer, RowContext, RowFailure, RowKernel, RowOut, RowRunner, Selection, Window,
};
pub use op::{BindError, Bound, ErasedOp, Op, OpInfo, Port, Reads, RowsClass};
pub use pixels::{PassFailure, PixelPass};
pub use query::{INPUT, query_inputs};
pub use relational::{JoinKind, Relational};
pub use rows::COLUMNS;

/// Every op, in the order of the reference.
pub static OPS: &[&dyn ErasedOp] = &[
    &rows::Filter,
    &rows::Compute,
    &rows::Join,
    &rows::Union,
    &rows::Sql,
    &rows::Distinct,
    &rows::Sample,
    &exec::Exec,
    &exec::ExecExpand,
    &path::Label,
    &image::Decode,
    &image::Shape,
    &image::Resize,
    &image::CenterCrop,
    &image::RandomCrop,
    &image::RandomFlip,
    &image::ColorJitter,
    &image::Normalize,
    &text::Bytes,
    &text::Split,
    &tensor::Cast,
    &tensor::Length,
    &tensor::Windows,
    &tensor::Pack,
];

/// The op of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn ErasedOp> {
    OPS.iter().copied().find(|op| op.info().name == name)
}
