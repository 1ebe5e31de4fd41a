//! Ops on the names of source files.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};

use super::args::{ArgKind, ArgValue, Args, ParamSpec};
use super::kernel::{ColumnKernel, Kernel, KernelError, Made, RowFailure};
use super::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::types::{ColumnType, DType};

/// `path.label`.
pub struct Label;

/// Parameters of [`Label`].
pub struct LabelParams {
    top: bool,
    classes: Vec<String>,
}

impl Op for Label {
    const INFO: OpInfo = OpInfo {
        name: "path.label",
        version: 1,
        summary: "The class of a file as a number, from the folder it lies in.",
        details: "The class of `plant/p01.jpg` is `plant`. Classes are numbered from 0 in the bytewise order of their \
                  names, whatever the locale; hidden files and empty folders make no class. The list of classes is \
                  read from the source when the pipeline is checked, unless `classes` gives it.",
        inputs: &[Port { name: "path", expects: "text: the source's `path`" }],
        reads: Reads::Ports,
        products: &["label"],
        params: &[
            ParamSpec {
                name: "folder",
                kind: ArgKind::Word(&["parent", "top"]),
                default: Some("\"parent\""),
                required: false,
                doc: "Which folder is the class: the one the file lies in (`parent`), or the first one below the \
                      source's root (`top`).",
            },
            ParamSpec {
                name: "classes",
                kind: ArgKind::Words,
                default: None,
                required: false,
                doc: "The class names in the order of their numbers; a file of another class is then an error. \
                      Without it, the folders that are there.",
            },
        ],
        rows: RowsClass::Map,
        random: false,
        example: "[[step]]\nop = \"path.label\"\nin = \"path\"\nout = \"label\"\n",
    };

    type Params = LabelParams;

    fn params(args: &Args) -> Result<LabelParams, BindError> {
        let classes = args.words("classes").unwrap_or_default();
        let distinct: BTreeSet<&String> = classes.iter().collect();
        if distinct.len() != classes.len() {
            return Err(BindError::param("classes", "a class is named twice"));
        }
        Ok(LabelParams { top: args.text("folder") == Some("top"), classes })
    }

    fn bind(params: LabelParams, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        if inputs != [ColumnType::Text] {
            return Err(BindError::input("`path.label` reads a text column").help("use `in = \"path\"`"));
        }
        Ok(Bound::one(ColumnType::Scalar(DType::I64), Kernel::Columns(Arc::new(params))))
    }

    fn fit(args: &Args, paths: &[&str]) -> Result<Option<Args>, BindError> {
        if args.get("classes").is_some() {
            return Ok(None);
        }
        let top = args.text("folder") == Some("top");
        let classes: BTreeSet<&str> = paths.iter().filter_map(|path| class_of(path, top)).collect();
        let mut fitted = args.clone();
        let classes = classes.into_iter().map(|class| ArgValue::Text(class.to_owned())).collect();
        fitted.0.insert("classes".to_owned(), ArgValue::List(classes));
        Ok(Some(fitted))
    }
}

fn class_of(path: &str, top: bool) -> Option<&str> {
    let (folder, _) = path.rsplit_once('/')?;
    if top { folder.split('/').next() } else { folder.rsplit('/').next() }
}

impl ColumnKernel for LabelParams {
    fn run(&self, inputs: &[ArrayRef]) -> Result<Made, KernelError> {
        let paths = inputs.first().and_then(|input| input.as_string_opt::<i32>()).ok_or("`path` isn't text")?;
        let mut failures = Vec::new();
        let labels: Int64Array = paths
            .iter()
            .enumerate()
            .map(|(row, path)| {
                let reason = match path.and_then(|path| class_of(path, self.top)) {
                    None => "it lies directly in the source's root, in no class folder".to_owned(),
                    Some(class) => match self.classes.iter().position(|known| known == class) {
                        Some(label) => return i64::try_from(label).unwrap_or(i64::MAX),
                        None => format!("its folder `{class}` is not one of the {} classes", self.classes.len()),
                    },
                };
                failures.push(RowFailure { row, reason });
                -1
            })
            .collect::<Vec<i64>>()
            .into();
        Ok(Made { columns: vec![Arc::new(labels)], failures })
    }
}
