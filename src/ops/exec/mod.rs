//! `exec` and `exec.expand`: columns and rows that a command in any language makes.

mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};

use super::args::{ArgKind, ArgValue, Args, ParamSpec};
use super::kernel::{ColumnKernel, ExpandKernel, Expanded, Kernel, KernelError, Made};
use super::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use super::rows::COLUMNS;
use crate::types::canonical::from_other;
use crate::types::{ColumnType, Fingerprint, NamedColumn};
use crate::world::files;
use worker::Worker;

/// `exec`.
pub struct Exec;

/// `exec.expand`.
pub struct ExecExpand;

/// The column by which an expanding command says which row a row comes from.
const ROW: &str = "row";
/// The arguments that the compiler fills in: where the pipeline is, and what the declared files hold.
const FOLDER: &str = "__folder";
const DIGESTS: &str = "digests";

const PARAMS: &[ParamSpec] = &[
    ParamSpec {
        name: "command",
        kind: ArgKind::Names,
        default: None,
        required: true,
        doc: "The program and its arguments; it is started in the pipeline's folder.",
    },
    ParamSpec {
        name: "types",
        kind: ArgKind::Names,
        default: None,
        required: true,
        doc: "The type of each column that it makes, in the order of `out`: `text`, `bytes`, a number's (`i64`, `f32`, \
              ...) or a tensor's (`f32[3, ?]`; `?` for an extent that differs from row to row).",
    },
    ParamSpec {
        name: "files",
        kind: ArgKind::Names,
        default: Some("[]"),
        required: false,
        doc: "The files that it depends on, such as the script: when one changes, what it made is stale.",
    },
    ParamSpec {
        name: "timeout",
        kind: ArgKind::Float(0.001, 86400.0),
        default: Some("60.0"),
        required: false,
        doc: "Seconds that it may take for a batch.",
    },
];

const INPUT: Port = Port { name: "columns", expects: "any columns" };

impl Op for Exec {
    const INFO: OpInfo = OpInfo {
        name: "exec",
        version: 1,
        summary: "Columns that a command in any language makes.",
        details: "The command reads an Arrow IPC stream on its standard input and writes one on its standard output: for \
                  each batch one batch with as many rows, in the same order, and the columns that `out` names; it has \
                  to flush after each. It is started once for each thread and gets batches as long as there are any; \
                  what it makes of a row may not depend on the others, nor on time or chance. If it fails, takes too \
                  long or gives other rows than promised, the run ends with what it said on standard error. Its \
                  fingerprint is the command line and the content of the declared files.",
        inputs: &[INPUT],
        reads: Reads::Several,
        products: &["value"],
        params: PARAMS,
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"exec\"\nin = \"path\"\nout = \"length\"\ncommand = [\"python3\", \"length.py\"]\ntypes = \
                  \"i64\"\n",
    };

    type Params = Setup;

    fn params(args: &Args) -> Result<Setup, BindError> {
        Setup::new(args)
    }

    fn bind(setup: Setup, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let commanded = setup.bound(inputs, false)?;
        let outputs = commanded.outputs.iter().map(|column| column.column_type.clone()).collect();
        Ok(Bound::several(outputs, Kernel::Columns(Arc::new(commanded))))
    }

    fn locate(args: &Args, folder: &Path) -> Result<Option<Args>, BindError> {
        locate(args, folder).map(Some)
    }
}

impl Op for ExecExpand {
    const INFO: OpInfo = OpInfo {
        name: "exec.expand",
        version: 1,
        summary: "Rows that a command in any language makes of each row.",
        details: "As `exec`, but the command may give any number of rows for each row, none too: a column `row` of its \
                  output (i64) says which row of the batch, counted from 0, each comes from, in ascending order.",
        inputs: &[INPUT],
        reads: Reads::Several,
        products: &["value"],
        params: PARAMS,
        rows: RowsClass::Expand,
        random: false,
        example: "[[step]]\nop = \"exec.expand\"\nin = \"path\"\nout = \"word\"\ncommand = [\"python3\", \"words.py\"]\ntypes \
                  = \"text\"\n",
    };

    type Params = Setup;

    fn params(args: &Args) -> Result<Setup, BindError> {
        Setup::new(args)
    }

    fn bind(setup: Setup, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        let commanded = setup.bound(inputs, true)?;
        let outputs = commanded.outputs.iter().map(|column| column.column_type.clone()).collect();
        Ok(Bound::several(outputs, Kernel::Expand(Arc::new(commanded))))
    }

    fn locate(args: &Args, folder: &Path) -> Result<Option<Args>, BindError> {
        locate(args, folder).map(Some)
    }
}

/// Fills in the folder and the digests of the declared files.
fn locate(args: &Args, folder: &Path) -> Result<Args, BindError> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut digests = Vec::new();
    for file in args.words("files").unwrap_or_default() {
        let content = files::read(&folder.join(&file))
            .map_err(|error| BindError::param("files", format!("`{file}` can't be read: {error}")))?;
        digests.push(ArgValue::Text(Fingerprint::of_bytes(&content).to_string()));
    }
    let mut args = args.clone();
    args.0.insert(FOLDER.to_owned(), ArgValue::Text(folder.display().to_string()));
    args.0.insert(DIGESTS.to_owned(), ArgValue::List(digests));
    Ok(args)
}

/// Parameters of a command.
pub struct Setup {
    command: Vec<String>,
    types: Vec<ColumnType>,
    names: Vec<String>,
    outs: Vec<String>,
    folder: String,
    declared: Vec<(String, String)>,
    timeout: Duration,
}

/// The argument, filled in by the compiler, that names the columns that a command makes.
pub const OUTS: &str = "outs";

impl Setup {
    fn new(args: &Args) -> Result<Self, BindError> {
        let words = |name: &str| args.words(name).unwrap_or_default();
        let named = words("types");
        let types = named.iter().map(|text| {
            ColumnType::parse(text).ok_or_else(|| {
                let help = "a type is `text`, `bytes`, `i64`, `f32`, `u8[224, 224, 3]`, `f32[?]` or the like";
                BindError::param("types", format!("`{text}` is no type")).help(help)
            })
        });
        let types = types.collect::<Result<Vec<_>, _>>()?;
        let command = words("command");
        if command.first().is_none_or(String::is_empty) {
            return Err(BindError::param("command", "the command is empty"));
        }
        let declared = words("files").into_iter().zip(words(DIGESTS)).collect();
        let timeout = Duration::from_secs_f64(args.float("timeout").unwrap_or(60.0));
        let folder = args.text(FOLDER).unwrap_or(".").to_owned();
        Ok(Self { command, types, names: words(COLUMNS), outs: words(OUTS), folder, declared, timeout })
    }

    fn bound(self, inputs: &[ColumnType], expands: bool) -> Result<Commanded, BindError> {
        if inputs.is_empty() {
            return Err(BindError::input("a command reads a column at least"));
        }
        let outs = if self.outs.is_empty() { vec!["value".to_owned(); self.types.len()] } else { self.outs };
        if outs.len() != self.types.len() {
            let message = format!("{} types for {} columns of `out`", self.types.len(), outs.len());
            return Err(BindError::param("types", message));
        }
        let name = |at: usize| self.names.get(at).cloned().unwrap_or_else(|| format!("c{at}"));
        let inputs = inputs.iter().enumerate();
        let inputs = inputs.map(|(at, column_type)| NamedColumn { name: name(at), column_type: column_type.clone() });
        let outputs = outs.into_iter().zip(self.types);
        Ok(Commanded {
            command: self.command,
            inputs: inputs.collect(),
            outputs: outputs.map(|(name, column_type)| NamedColumn { name, column_type }).collect(),
            folder: self.folder,
            declared: self.declared,
            timeout: self.timeout,
            expands,
            idle: Mutex::new(Vec::new()),
        })
    }
}

/// A command with its idle workers.
struct Commanded {
    command: Vec<String>,
    inputs: Vec<NamedColumn>,
    outputs: Vec<NamedColumn>,
    folder: String,
    declared: Vec<(String, String)>,
    timeout: Duration,
    expands: bool,
    /// Started workers that nobody uses now: as many come to be as threads run the step at once.
    idle: Mutex<Vec<Worker>>,
}

impl Commanded {
    fn name(&self) -> String {
        self.command.join(" ")
    }

    fn fail(&self, what: impl std::fmt::Display) -> KernelError {
        KernelError::Command(format!("the command `{}` {what}", self.name()))
    }

    fn worker(&self) -> Result<Worker, KernelError> {
        if let Some(worker) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(worker);
        }
        for (file, digest) in &self.declared {
            let content = files::read(&Path::new(&self.folder).join(file)).map_err(|error| self.fail(error))?;
            if Fingerprint::of_bytes(&content).to_string() != *digest {
                return Err(self.fail(format!("needs `{file}`, which has changed: build again")));
            }
        }
        Worker::start(&self.command, Path::new(&self.folder), &self.inputs)
            .map_err(|error| self.fail(format!("can't be started: {error}")))
    }

    /// What the command makes of a batch, as it gave it.
    fn ask(&self, inputs: &[ArrayRef]) -> Result<RecordBatch, KernelError> {
        let mut worker = self.worker()?;
        match worker.ask(inputs, self.timeout) {
            Ok(batch) => {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                Ok(batch)
            }
            Err(what) => Err(self.fail(format!("{what}; {}", worker.end()))),
        }
    }

    fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, KernelError> {
        self.outputs
            .iter()
            .map(|column| {
                let array = batch.column_by_name(&column.name);
                let array = array.ok_or_else(|| self.fail(format!("gave no column `{}`", column.name)))?;
                from_other(array, &column.column_type)
                    .map_err(|error| self.fail(format!("gave a column `{}` that doesn't fit: {error}", column.name)))
            })
            .collect()
    }
}

impl ColumnKernel for Commanded {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let rows = inputs.first().map_or(0, Array::len);
        if rows == 0 {
            let empty = |column: &NamedColumn| arrow::array::new_empty_array(&column.column_type.arrow());
            return Ok(Made { columns: self.outputs.iter().map(empty).collect(), failures: Vec::new() });
        }
        let batch = self.ask(inputs)?;
        if batch.num_rows() != rows {
            return Err(self.fail(format!("gave {} rows for {rows}", batch.num_rows())));
        }
        Ok(Made { columns: self.columns(&batch)?, failures: Vec::new() })
    }
}

impl ExpandKernel for Commanded {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Expanded, KernelError> {
        debug_assert!(self.expands, "a command that makes columns expands nothing");
        let rows = inputs.first().map_or(0, Array::len);
        let mut counts = vec![0; rows];
        if rows == 0 {
            let empty = |column: &NamedColumn| arrow::array::new_empty_array(&column.column_type.arrow());
            let columns = self.outputs.iter().map(empty).collect();
            return Ok(Expanded { counts, columns, failures: Vec::new() });
        }
        let batch = self.ask(inputs)?;
        let from = batch.column_by_name(ROW).ok_or_else(|| self.fail(format!("gave no column `{ROW}`")))?;
        let from = arrow::compute::cast(from, &DataType::Int64).map_err(|error| self.fail(error))?;
        let from = from.as_primitive::<Int64Type>();
        let mut before = 0;
        for row in from {
            let row = row.and_then(|row| usize::try_from(row).ok()).filter(|row| *row < rows && *row >= before);
            let row = row.ok_or_else(|| {
                self.fail(format!("gave a `{ROW}` that isn't between 0 and {} in ascending order", rows - 1))
            })?;
            before = row;
            counts[row] += 1;
        }
        Ok(Expanded { counts, columns: self.columns(&batch)?, failures: Vec::new() })
    }
}
