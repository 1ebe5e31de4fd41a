//! Column types, and how each is laid out in Arrow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use serde::{Deserialize, Serialize};

use super::dtype::DType;

/// One extent of a tensor: known to the compiler, or different from row to row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// The same in every row.
    Fixed(usize),
    /// Known only when the row is there; written `null` in JSON and `?` for people.
    Any(()),
}

impl Dim {
    /// An extent that differs from row to row.
    pub const ANY: Self = Self::Any(());

    /// The extent, if it is the same in every row.
    #[must_use]
    pub const fn fixed(self) -> Option<usize> {
        match self {
            Self::Fixed(extent) => Some(extent),
            Self::Any(()) => None,
        }
    }
}

/// A tensor: dtype and extents, row-major. An image is `[height, width, channels]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: Vec<Dim>,
}

impl TensorType {
    /// The extents, if all of them are the same in every row.
    #[must_use]
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        self.shape.iter().map(|dim| dim.fixed()).collect()
    }

    /// Bytes of one row, if its shape is fixed.
    #[must_use]
    pub fn row_bytes(&self) -> Option<usize> {
        Some(self.fixed_shape()?.iter().product::<usize>() * self.dtype.size())
    }
}

/// The type of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// Opaque bytes: an encoded picture, a file.
    Bytes,
    /// One number.
    Scalar(DType),
    /// A tensor.
    Tensor(TensorType),
}

/// A column with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedColumn {
    /// Its name in the pipeline.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
}

const DTYPE_KEY: &str = "parbake.dtype";
const SHAPE_KEY: &str = "parbake.shape";

impl ColumnType {
    /// The type that a text means: `text`, `bytes`, `i64`, `f32[3, ?]`; the way in which a type is displayed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text {
            "text" => return Some(Self::Text),
            "bytes" => return Some(Self::Bytes),
            _ => {}
        }
        let Some((dtype, rest)) = text.split_once('[') else { return DType::parse(text).map(Self::Scalar) };
        let dims = rest.strip_suffix(']')?;
        let dim = |dim: &str| match dim.trim() {
            "?" => Some(Dim::ANY),
            extent => extent.parse().ok().map(Dim::Fixed),
        };
        let shape = dims.split(',').map(dim).collect::<Option<Vec<_>>>()?;
        Some(Self::Tensor(TensorType { dtype: DType::parse(dtype.trim())?, shape }))
    }

    /// The type of an image of any size: u8, `[?, ?, 3]`.
    #[must_use]
    pub fn image() -> Self {
        Self::Tensor(TensorType { dtype: DType::U8, shape: vec![Dim::ANY, Dim::ANY, Dim::Fixed(3)] })
    }

    /// The tensor type, if this is a tensor.
    #[must_use]
    pub const fn tensor(&self) -> Option<&TensorType> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Whether a row has the same number of bytes as every other.
    #[must_use]
    pub fn row_bytes(&self) -> Option<usize> {
        match self {
            Self::Text | Self::Bytes => None,
            Self::Scalar(dtype) => Some(dtype.size()),
            Self::Tensor(tensor) => tensor.row_bytes(),
        }
    }

    /// The Arrow type in memory.
    ///
    /// Text is `Utf8`, bytes are `BinaryView`. A tensor of fixed shape is a `BinaryView` of its bytes (native endian,
    /// row-major); one whose shape varies is `Struct{data: BinaryView, shape: FixedSizeList<Int32>(rank)}`.
    #[must_use]
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::BinaryView,
            Self::Scalar(dtype) => dtype.arrow(),
            Self::Tensor(tensor) if tensor.fixed_shape().is_some() => DataType::BinaryView,
            Self::Tensor(tensor) => DataType::Struct(ragged_fields(tensor.shape.len())),
        }
    }

    /// The Arrow field of a column of that name; dtype and shape of a tensor are in its metadata
    /// (`parbake.dtype`, e.g. `float32`; `parbake.shape`, e.g. `[224,224,3]`, `null` where it varies).
    #[must_use]
    pub fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.arrow(), false);
        let Self::Tensor(tensor) = self else { return field };
        field.with_metadata(HashMap::from([
            (DTYPE_KEY.to_owned(), tensor.dtype.numpy_name().to_owned()),
            (SHAPE_KEY.to_owned(), shape_json(&tensor.shape)),
        ]))
    }

    /// Reads a type back from a field written by [`ColumnType::field`], whichever binary layout the container used.
    #[must_use]
    pub fn from_field(field: &Field) -> Option<Self> {
        if let (Some(dtype), Some(shape)) = (field.metadata().get(DTYPE_KEY), field.metadata().get(SHAPE_KEY)) {
            let shape: Vec<Dim> = serde_json::from_str(shape).ok()?;
            return Some(Self::Tensor(TensorType { dtype: DType::parse(dtype)?, shape }));
        }
        match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Self::Text),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Some(Self::Bytes),
            other => DType::ALL.into_iter().find(|dtype| dtype.arrow() == *other).map(Self::Scalar),
        }
    }
}

/// The children of a tensor column whose shape varies.
#[must_use]
pub fn ragged_fields(rank: usize) -> Fields {
    Fields::from(vec![Field::new("data", DataType::BinaryView, false), Field::new("shape", shape_list(rank), false)])
}

/// The Arrow type of the `shape` child: `FixedSizeList<Int32>(rank)`.
#[must_use]
pub fn shape_list(rank: usize) -> DataType {
    DataType::FixedSizeList(shape_item(), i32::try_from(rank).unwrap_or(i32::MAX))
}

/// The item field of the `shape` child.
#[must_use]
pub fn shape_item() -> FieldRef {
    Arc::new(Field::new("item", DataType::Int32, false))
}

fn shape_json(shape: &[Dim]) -> String {
    let dims: Vec<String> =
        shape.iter().map(|dim| dim.fixed().map_or("null".to_owned(), |extent| extent.to_string())).collect();
    format!("[{}]", dims.join(","))
}

impl std::fmt::Display for ColumnType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Bytes => f.write_str("bytes"),
            Self::Scalar(dtype) => write!(f, "{dtype}"),
            Self::Tensor(tensor) => {
                let dims: Vec<String> = tensor
                    .shape
                    .iter()
                    .map(|dim| dim.fixed().map_or("?".to_owned(), |extent| extent.to_string()))
                    .collect();
                write!(f, "{}[{}]", tensor.dtype, dims.join(", "))
            }
        }
    }
}
