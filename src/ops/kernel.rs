//! The code of ops: kinds of kernel, told apart by what the compiler may do with them.
//!
//! A [`RowKernel`] makes one tensor from one tensor, row by row, into memory that the caller owns: chains of them run
//! without materialising what lies between. A [`Selection`] only chooses a window of the picture, an [`Elementwise`]
//! only maps each element by its value and channel; the two commute exactly, so the interpreter moves selections
//! first and runs a whole sequence of them as one pass over memory. A [`ColumnKernel`] works on whole columns. A
//! [`FilterKernel`] and an [`ExpandKernel`] change which rows there are, row by row; a [`PackKernel`] makes rows out of
//! neighbouring ones. What needs all rows at once is a [`Relational`] description, which the engine carries out.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};

use super::relational::Relational;
use crate::types::{AlignedBuf, DType, RandomStream, RowKey, TensorView};

/// The code of a bound op.
#[derive(Clone)]
pub enum Kernel {
    /// Tensor in, tensor out, row by row.
    Rows(Arc<dyn RowKernel>),
    /// A window of an image `[height, width, channels]`.
    Select(Arc<dyn Selection>),
    /// Each element by its value and channel.
    Elementwise(Arc<dyn Elementwise>),
    /// Whole columns.
    Columns(Arc<dyn ColumnKernel>),
    /// Some of the rows.
    Filter(Arc<dyn FilterKernel>),
    /// Rows into several rows.
    Expand(Arc<dyn ExpandKernel>),
    /// Neighbouring rows into others.
    Pack(Arc<dyn PackKernel>),
    /// All rows at once.
    Relational(Relational),
}

/// What a kernel knows of the row at hand besides its data.
pub struct RowContext {
    /// The row.
    pub key: RowKey,
    /// The random numbers of this step for this row and epoch; none for a step that isn't random.
    pub random: Option<RandomStream>,
}

/// Where a kernel puts its product: a slot of a batch, or scratch memory kept from row to row.
pub struct RowOut<'a> {
    target: Target<'a>,
    dtype: Option<DType>,
    /// The extents of what was written.
    pub shape: Vec<usize>,
}

enum Target<'a> {
    Slot(&'a mut [u8]),
    Scratch(&'a mut AlignedBuf),
}

impl<'a> RowOut<'a> {
    /// A slot of exactly the product's size.
    #[must_use]
    pub fn slot(slot: &'a mut [u8], shape: Vec<usize>) -> Self {
        Self { target: Target::Slot(slot), dtype: None, shape }
    }

    /// Memory that grows as needed.
    #[must_use]
    pub fn scratch(scratch: &'a mut AlignedBuf, shape: Vec<usize>) -> Self {
        Self { target: Target::Scratch(scratch), dtype: None, shape }
    }

    /// The dtype of what was written; none before anything was.
    #[must_use]
    pub const fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// Sets the extents and gives the memory for that many elements of the dtype. What is in it is unspecified.
    ///
    /// # Errors
    /// When the product doesn't fit the slot: the op's type rule promised another shape.
    pub fn allocate(&mut self, dtype: DType, shape: &[usize]) -> Result<&mut [u8], String> {
        let bytes = shape.iter().product::<usize>() * dtype.size();
        self.dtype = Some(dtype);
        self.shape.clear();
        self.shape.extend_from_slice(shape);
        match &mut self.target {
            Target::Slot(slot) if slot.len() != bytes => {
                Err(format!("a product of {bytes} bytes where {} were declared", slot.len()))
            }
            Target::Slot(slot) => Ok(slot),
            Target::Scratch(scratch) => Ok(scratch.resize(bytes)),
        }
    }
}

/// Makes one tensor from one tensor.
pub trait RowKernel: Send + Sync {
    /// A runner with the scratch memory of one thread.
    fn runner(&self) -> Box<dyn RowRunner>;
}

/// A [`RowKernel`] on one thread.
pub trait RowRunner: Send {
    /// Processes one row. A column of encoded bytes is seen as u8 `[length]`.
    ///
    /// # Errors
    /// The reason, in words, why this row can't be processed.
    fn run(&mut self, row: &mut RowContext, input: TensorView<'_>, out: &mut RowOut<'_>) -> Result<(), String>;
}

/// A window of an image, mirrored or flipped or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First row.
    pub top: usize,
    /// First column (of the unmirrored picture).
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Whether columns are read from right to left.
    pub mirrored: bool,
    /// Whether rows are read from the bottom up.
    pub flipped: bool,
}

impl Window {
    /// The whole of a picture.
    #[must_use]
    pub const fn whole(height: usize, width: usize) -> Self {
        Self { top: 0, left: 0, height, width, mirrored: false, flipped: false }
    }

    /// The window `inner` of what this window shows, as a window of the whole.
    #[must_use]
    pub const fn then(self, inner: Self) -> Self {
        let top = if self.flipped { self.height - inner.top - inner.height } else { inner.top };
        let left = if self.mirrored { self.width - inner.left - inner.width } else { inner.left };
        Self {
            top: self.top + top,
            left: self.left + left,
            height: inner.height,
            width: inner.width,
            mirrored: self.mirrored != inner.mirrored,
            flipped: self.flipped != inner.flipped,
        }
    }
}

/// Chooses a window of an image.
pub trait Selection: Send + Sync {
    /// The window for a picture of that size.
    ///
    /// # Errors
    /// The reason when the picture doesn't allow it, e.g. it is smaller than the crop.
    fn window(&self, row: &mut RowContext, height: usize, width: usize) -> Result<Window, String>;
}

/// Maps each element by its value and channel.
pub trait Elementwise: Send + Sync {
    /// The dtype that it makes.
    fn dtype(&self) -> DType;
    /// Whether every value of that dtype can be mapped. Only then may a selection be moved before the map: a value
    /// that is cut away must not decide whether the row is good.
    fn is_total(&self, dtype: DType) -> bool {
        let _ = dtype;
        true
    }
    /// Maps whole pixels: `from` holds elements of dtype `dtype`, `channels` a pixel, starting with channel 0; `to`
    /// has room for as many elements of [`Elementwise::dtype`]. Both are aligned for their dtype.
    ///
    /// # Errors
    /// The reason when a value has no image in the new dtype.
    fn map(&self, dtype: DType, channels: usize, from: &[u8], to: &mut [u8]) -> Result<(), String>;
}

/// A row that failed in a column kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFailure {
    /// Its index in the batch.
    pub row: usize,
    /// Why, in words.
    pub reason: String,
}

/// Why a kernel couldn't run at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelError {
    /// The columns aren't of the types that the op was bound to: a mistake of parbake's own.
    Internal(String),
    /// A program of the user's failed, in words.
    Command(String),
}

impl From<String> for KernelError {
    fn from(message: String) -> Self {
        Self::Internal(message)
    }
}

impl From<&str> for KernelError {
    fn from(message: &str) -> Self {
        Self::Internal(message.to_owned())
    }
}

/// What a column kernel made.
#[derive(Debug, Clone)]
pub struct Made {
    /// The output columns, as long as the inputs.
    pub columns: Vec<ArrayRef>,
    /// Rows that failed; they have any value in the columns.
    pub failures: Vec<RowFailure>,
}

/// Works on whole columns.
pub trait ColumnKernel: Send + Sync {
    /// Makes the output columns.
    ///
    /// # Errors
    /// When the columns aren't of the types that the op was bound to, or a program of the user's fails.
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError>;
}

/// What a filter found.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Whether each row stays.
    pub mask: BooleanArray,
    /// Rows for which that couldn't be said.
    pub failures: Vec<RowFailure>,
}

/// Says which rows stay.
pub trait FilterKernel: Send + Sync {
    /// Looks at the rows; `rows` has the context of each.
    ///
    /// # Errors
    /// When the columns aren't of the types that the op was bound to.
    fn run(&self, rows: &mut [RowContext], inputs: &[ArrayRef]) -> Result<Kept, String>;
}

/// What an expansion made.
#[derive(Debug, Clone)]
pub struct Expanded {
    /// How many rows each row became.
    pub counts: Vec<usize>,
    /// The columns of the new rows: those of the first row, then those of the second, and so on.
    pub columns: Vec<ArrayRef>,
    /// Rows that failed; their count is 0.
    pub failures: Vec<RowFailure>,
}

/// Makes several rows of one.
pub trait ExpandKernel: Send + Sync {
    /// Makes the new rows' columns.
    ///
    /// # Errors
    /// When the columns aren't of the types that the op was bound to, or a program of the user's fails.
    fn run(&self, inputs: &[ArrayRef]) -> Result<Expanded, KernelError>;
}

/// Rows that a packer has finished.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    /// For each finished row, the keys of the rows that it is made of, in order, and its number among the rows that
    /// begin in the first of them.
    pub of: Vec<(Vec<RowKey>, u64)>,
    /// The finished rows' columns.
    pub columns: Vec<ArrayRef>,
}

/// Makes rows out of neighbouring rows.
pub trait PackKernel: Send + Sync {
    /// A packer that has seen no row.
    fn packer(&self) -> Box<dyn Packer>;
}

/// A [`PackKernel`] at work.
pub trait Packer: Send {
    /// Takes in the next rows, in order; gives those that are finished.
    ///
    /// # Errors
    /// When the columns aren't of the types that the op was bound to.
    fn push(&mut self, keys: &[RowKey], inputs: &[ArrayRef]) -> Result<Packed, String>;

    /// After the last row: gives what is left.
    ///
    /// # Errors
    /// When the columns can't be made.
    fn finish(&mut self) -> Result<Packed, String>;
}
