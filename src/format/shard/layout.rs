//! How columns lie in a shard's file.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Fields, Schema};

use crate::types::{ColumnType, NamedColumn, TensorColumn};

/// The column of row keys, the first one of every shard.
pub const KEY: &str = "__key";

/// The key-value entry that names the layout.
pub const LAYOUT_KEY: &str = "parbake.layout";
/// Raised when files are laid out in a way that an older reader can't follow.
pub const LAYOUT: &str = "1";

/// The least mean size in bytes at which a column is wide: a page of its own costs a value about 40 bytes, and a row
/// of a narrow column the decoding of its row group.
pub const WIDE: usize = 2 << 10;

/// The schema of the arrays that are written.
pub fn memory_schema(columns: &[NamedColumn]) -> Schema {
    let mut fields = vec![Field::new(KEY, DataType::FixedSizeBinary(16), false)];
    fields.extend(columns.iter().map(|column| column.column_type.field(&column.name)));
    Schema::new(fields)
}

/// The schema that other readers are told: `LargeBinary` instead of views, which old ones don't know.
pub fn declared_schema(columns: &[NamedColumn]) -> Schema {
    Schema::new(memory_schema(columns).fields().iter().map(|field| declared(field)).collect::<Vec<_>>())
}

fn declared(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::BinaryView => DataType::LargeBinary,
        DataType::Struct(children) => {
            DataType::Struct(children.iter().map(|child| declared(child)).collect::<Fields>())
        }
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// Whether every value of a tensor column has the bytes that its shape says.
pub fn check_sizes(array: &ArrayRef, column_type: &ColumnType) -> Result<(), String> {
    if column_type.tensor().is_none() {
        return Ok(());
    }
    let tensors = TensorColumn::new(array, column_type)?;
    let mut shape = Vec::new();
    for row in 0..tensors.len() {
        tensors.shape(row, &mut shape);
        let bytes = tensors.data(row).len();
        let said = shape.iter().try_fold(tensors.dtype().size(), |product, extent| product.checked_mul(*extent));
        if said != Some(bytes) {
            return Err(format!("a value of {bytes} bytes for {}{shape:?}", tensors.dtype()));
        }
    }
    Ok(())
}
