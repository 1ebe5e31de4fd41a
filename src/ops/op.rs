//! What an op declares: typed for its author, erased for the compiler.

use std::path::Path;

use super::args::{Args, ParamSpec};
use super::kernel::Kernel;
use crate::types::ColumnType;

/// How an op changes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsClass {
    /// One row in, one row out.
    Map,
    /// One row in, that row or none out.
    Filter,
    /// One row in, any number of rows out.
    Expand,
    /// Some rows in, in their order, some others out.
    Pack,
    /// It needs all rows at once.
    Relational,
}

impl RowsClass {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Filter => "filter",
            Self::Expand => "expand",
            Self::Pack => "pack",
            Self::Relational => "relational",
        }
    }

    /// Whether a row that comes out is made from one row that goes in, whatever the others are.
    #[must_use]
    pub const fn is_row_local(self) -> bool {
        matches!(self, Self::Map | Self::Filter | Self::Expand)
    }
}

/// One input column of an op.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// Its name in the documentation.
    pub name: &'static str,
    /// What it must be, in words, e.g. `image (u8 [height, width, 3])`.
    pub expects: &'static str,
}

/// How a step says which columns its op reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// By `in`, one column for each port; without it, what the step before made.
    Ports,
    /// By `in`, one column or more.
    Several,
    /// By the names in the SQL expression that this parameter holds.
    Expression(&'static str),
    /// All columns of the rows that it works on.
    All,
}

/// What is fixed about an op.
#[derive(Debug)]
pub struct OpInfo {
    /// Its full name, `family.verb`.
    pub name: &'static str,
    /// Raised when the same input and parameters give other bytes than before.
    pub version: u32,
    /// One sentence.
    pub summary: &'static str,
    /// Exact behaviour, units, sources of the algorithm.
    pub details: &'static str,
    /// The columns it reads.
    pub inputs: &'static [Port],
    /// How the columns that it reads are given.
    pub reads: Reads,
    /// The names of its products (`image`, `label`); none when its one product keeps the name of its first input.
    pub products: &'static [&'static str],
    /// The parameters.
    pub params: &'static [ParamSpec],
    /// How it changes rows.
    pub rows: RowsClass,
    /// Whether its output depends on the epoch.
    pub random: bool,
    /// A complete `[[step]]` that works.
    pub example: &'static str,
}

/// Why parameters or input types don't fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindError {
    /// The parameter at fault, or none when it's an input.
    pub param: Option<&'static str>,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl BindError {
    /// An input column has the wrong type.
    pub fn input(message: impl Into<String>) -> Self {
        Self { param: None, message: message.into(), help: None }
    }

    /// A parameter has a value that doesn't fit the others or the input.
    pub fn param(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), message: message.into(), help: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// An op with its parameters and input types: what it makes, and the code that makes it.
pub struct Bound {
    /// The types of the columns it makes.
    pub outputs: Vec<ColumnType>,
    /// Their names, where the parameters say them (as a query does); else they are the op's products.
    pub names: Vec<String>,
    /// The code.
    pub kernel: Kernel,
}

impl Bound {
    /// One column.
    #[must_use]
    pub fn one(output: ColumnType, kernel: Kernel) -> Self {
        Self::several(vec![output], kernel)
    }

    /// Any number of columns, named as the op's products.
    #[must_use]
    pub const fn several(outputs: Vec<ColumnType>, kernel: Kernel) -> Self {
        Self { outputs, names: Vec::new(), kernel }
    }
}

/// An op as its author writes it.
pub trait Op: Send + Sync + 'static {
    /// What is fixed about it.
    const INFO: OpInfo;

    /// Its parameters, read from checked arguments (every parameter has passed its [`ParamSpec`]).
    type Params;

    /// Reads the parameters; only what one [`ParamSpec`] alone can't say is checked here.
    ///
    /// # Errors
    /// When parameters contradict each other.
    fn params(args: &Args) -> Result<Self::Params, BindError>;

    /// The type rule and the kernel.
    ///
    /// # Errors
    /// When the input types don't fit.
    fn bind(params: Self::Params, inputs: &[ColumnType]) -> Result<Bound, BindError>;

    /// Arguments that can only be known from the names of all source rows, such as a list of classes, filled in
    /// before the op is bound. `paths` is the whole first input when that is the source's path column.
    ///
    /// # Errors
    /// When the names don't allow it.
    fn fit(args: &Args, paths: &[&str]) -> Result<Option<Args>, BindError> {
        let _ = (args, paths);
        Ok(None)
    }

    /// Arguments that can only be known from the folder that the pipeline lies in, such as the content of files that
    /// the op depends on, filled in before the op is bound.
    ///
    /// # Errors
    /// When such a file isn't there.
    fn locate(args: &Args, folder: &Path) -> Result<Option<Args>, BindError> {
        let _ = (args, folder);
        Ok(None)
    }
}

/// An op as the compiler sees it.
pub trait ErasedOp: Send + Sync {
    /// What is fixed about it.
    fn info(&self) -> &'static OpInfo;
    /// See [`Op::bind`].
    ///
    /// # Errors
    /// When parameters or input types don't fit.
    fn bind(&self, args: &Args, inputs: &[ColumnType]) -> Result<Bound, BindError>;
    /// See [`Op::fit`].
    ///
    /// # Errors
    /// When the names don't allow it.
    fn fit(&self, args: &Args, paths: &[&str]) -> Result<Option<Args>, BindError>;
    /// See [`Op::locate`].
    ///
    /// # Errors
    /// When a file that the op depends on isn't there.
    fn locate(&self, args: &Args, folder: &Path) -> Result<Option<Args>, BindError>;
}

impl<T: Op> ErasedOp for T {
    fn info(&self) -> &'static OpInfo {
        const { &T::INFO }
    }

    fn bind(&self, args: &Args, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        T::bind(T::params(args)?, inputs)
    }

    fn fit(&self, args: &Args, paths: &[&str]) -> Result<Option<Args>, BindError> {
        T::fit(args, paths)
    }

    fn locate(&self, args: &Args, folder: &Path) -> Result<Option<Args>, BindError> {
        T::locate(args, folder)
    }
}
