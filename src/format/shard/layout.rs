//! How columns lie in a shard's file.

use arrow::datatypes::{DataType, Field, Fields, Schema};

use crate::types::NamedColumn;

/// The column of row keys, the first one of every shard.
pub const KEY: &str = "__key";

/// The key-value entry that names the layout.
pub const LAYOUT_KEY: &str = "parbake.layout";
/// Raised when files are laid out in a way that an older reader can't follow.
pub const LAYOUT: &str = "1";

/// The least mean size in bytes at which a column is wide.
pub const WIDE: usize = 16 << 10;

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
