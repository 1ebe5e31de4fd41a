//! `join`: rows of two relations side by side.

use crate::ops::args::{ArgKind, Args, ParamSpec};
use crate::ops::kernel::Kernel;
use crate::ops::op::{BindError, Bound, Op, OpInfo, Port, Reads, RowsClass};
use crate::ops::relational::{JoinKind, Relational};
use crate::types::ColumnType;

/// `join`.
pub struct Join;

impl Op for Join {
    const INFO: OpInfo = OpInfo {
        name: "join",
        version: 1,
        summary: "Puts the columns of other rows beside those of these rows, where their keys are equal.",
        details: "Keys may repeat on either side: a row comes out for each pair. Rows stand in the order of the left \
                  side, and under one left row in the order of the right side; the key of a row is made from the keys \
                  of the two. With `how = \"left\"`, rows without a partner stay, and the other side's columns have \
                  their types' empty values: no text, no bytes, 0, a tensor of zeros or without elements. Key columns \
                  of the right side don't come out where they are called as on the left. It runs offline, before any \
                  random step.",
        inputs: &[Port { name: "keys", expects: "text, bytes or whole numbers, the same types on both sides" }],
        reads: Reads::All,
        products: &[],
        params: &[
            ParamSpec {
                name: "join",
                kind: ArgKind::Text,
                default: None,
                required: true,
                doc: "The other rows: the name of a source, or one given by `rows` to what a step made.",
            },
            ParamSpec {
                name: "on",
                kind: ArgKind::Names,
                default: None,
                required: true,
                doc: "The key column, or several; `left = right` where the names differ.",
            },
            ParamSpec {
                name: "how",
                kind: ArgKind::Word(&["inner", "left"]),
                default: Some("\"inner\""),
                required: false,
                doc: "Whether rows without a partner vanish or stay.",
            },
            ParamSpec {
                name: "suffix",
                kind: ArgKind::Text,
                default: None,
                required: false,
                doc: "What is added to the names of right columns that the left side has too; without it, such a name \
                      can't be used afterwards.",
            },
        ],
        rows: RowsClass::Relational,
        random: false,
        example: "[[step]]\njoin = \"captions\"\non = \"path\"\n",
    };

    type Params = JoinKind;

    fn params(args: &Args) -> Result<JoinKind, BindError> {
        Ok(if args.text("how") == Some("left") { JoinKind::Left } else { JoinKind::Inner })
    }

    fn bind(kind: JoinKind, inputs: &[ColumnType]) -> Result<Bound, BindError> {
        if inputs.is_empty() || !inputs.len().is_multiple_of(2) {
            return Err(BindError::input("a join reads a key of each side"));
        }
        let (left, right) = inputs.split_at(inputs.len() / 2);
        for (left, right) in left.iter().zip(right) {
            if left != right {
                let message = format!("the keys have different types: {left} on the left, {right} on the right");
                return Err(BindError::param("on", message).help("bring one into the other's type with `compute`"));
            }
            let float = matches!(left, ColumnType::Scalar(dtype) if !dtype.is_whole());
            if float || matches!(left, ColumnType::Tensor(_)) {
                let message = format!("a key can't be {left}: equality of such values is an accident");
                return Err(BindError::param("on", message));
            }
        }
        Ok(Bound::several(Vec::new(), Kernel::Relational(Relational::Join(kind))))
    }
}
