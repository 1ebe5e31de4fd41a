//! The rows of a data set: where each is, and fetching any of them in any order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};

use crate::diag::{Error, Result};
use crate::format::shard::ShardReader;
use crate::pipeline::{Program, ROWS};
use crate::store::{Dataset, Manifest};
use crate::types::{Batch, BufferPool, ColumnType, NamedColumn, RowKey};
use crate::world::LocalFile;

/// The rows of a data set, in row order: those whose order a stream decides about. A stored row is one of them, or
/// becomes several.
pub struct Rows {
    keys: Vec<RowKey>,
    places: Vec<Place>,
    shards: Vec<Shard>,
    columns: Vec<NamedColumn>,
    expands: bool,
}

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    shard: u32,
    row: u32,
}

struct Shard {
    name: String,
    reader: ShardReader,
    /// The key of each stored row.
    keys: Vec<RowKey>,
    /// Its source files, and how many stored rows come from each.
    files: Vec<(String, u64)>,
}

/// Rows that were fetched.
pub struct Fetched {
    /// The stored rows.
    pub batch: Batch,
    /// For each of them, one of the wanted rows that it becomes.
    pub rows: Vec<usize>,
    /// The keys of the wanted rows, in order, where stored rows become several.
    pub wanted: Option<Vec<RowKey>>,
}

impl Rows {
    /// Opens the rows of a published data set with the columns that a remainder reads.
    ///
    /// # Errors
    /// When a shard is missing or damaged.
    pub fn open(dataset: &Dataset, manifest: &Manifest, remainder: &Program) -> Result<Self> {
        let columns = remainder.input_columns().to_vec();
        let expands = manifest.columns.iter().any(|column| column.name == ROWS);
        let (mut keys, mut places, mut shards) = (Vec::new(), Vec::new(), Vec::new());
        for (shard, record) in (0_u32..).zip(&manifest.shards) {
            let path = dataset.shard_path(record.id);
            let damaged = |message: String| Error::Dataset {
                message: format!("{}: {message}", path.display()),
                help: Some("build the data set again: only this shard is rebuilt if it is removed".to_owned()),
            };
            let open = |columns: &[NamedColumn]| {
                ShardReader::open(Arc::new(LocalFile::open(&path)?), columns).map_err(damaged)
            };
            let reader = open(&columns)?;
            let shard_keys = reader.keys().map_err(damaged)?;
            if shard_keys.len() as u64 != record.rows {
                let (found, wanted) = (shard_keys.len(), record.rows);
                return Err(damaged(format!("{found} rows where the manifest says {wanted}")));
            }
            if expands {
                let rows = [NamedColumn { name: ROWS.to_owned(), column_type: ColumnType::Bytes }];
                let all: Vec<usize> = (0..shard_keys.len()).collect();
                let becomes = open(&rows)?.fetch(&all, &BufferPool::new(0)).map_err(damaged)?;
                let becomes = becomes.first().and_then(|column| column.as_binary_view_opt());
                let becomes = becomes.ok_or_else(|| damaged("it doesn't say what its rows become".to_owned()))?;
                for (row, inner) in (0_u32..).zip(becomes.iter()) {
                    for key in inner.unwrap_or_default().chunks_exact(16) {
                        keys.push(RowKey(key.try_into().unwrap_or_default()));
                        places.push(Place { shard, row });
                    }
                }
            } else {
                places.extend((0_u32..).zip(&shard_keys).map(|(row, _)| Place { shard, row }));
                keys.extend_from_slice(&shard_keys);
            }
            let files = record.fragments.iter().map(|fragment| (fragment.path.clone(), fragment.rows)).collect();
            shards.push(Shard { name: path.display().to_string(), reader, keys: shard_keys, files });
        }
        Ok(Self { keys, places, shards, columns, expands })
    }

    /// The key of every row, in order.
    #[must_use]
    pub fn keys(&self) -> &[RowKey] {
        &self.keys
    }

    /// The source file of a row, relative to the source's root, or the shard where there is none; and its number among
    /// the stored rows of that.
    #[must_use]
    pub fn place(&self, row: usize) -> (String, u64) {
        let Some(place) = self.places.get(row) else { return (String::new(), 0) };
        let shard = &self.shards[place.shard as usize];
        let mut number = u64::from(place.row);
        for (file, rows) in &shard.files {
            if number < *rows {
                return (file.clone(), number);
            }
            number -= rows;
        }
        (shard.name.clone(), u64::from(place.row))
    }

    /// Fetches the stored rows of those rows, each once, in the order in which they are first wanted.
    ///
    /// # Errors
    /// When a shard is damaged.
    pub fn fetch(&self, wanted: &[usize], pool: &BufferPool) -> Result<Fetched> {
        if !self.expands {
            let columns = self.fetch_stored(wanted.iter().map(|row| self.places[*row]), pool)?;
            let keys = wanted.iter().map(|row| self.keys[*row]).collect();
            return Ok(Fetched { batch: Batch { keys, columns }, rows: wanted.to_vec(), wanted: None });
        }
        let mut first: Vec<(Place, usize)> = wanted.iter().map(|row| (self.places[*row], *row)).collect();
        first.sort_unstable();
        first.dedup_by_key(|(place, _)| *place);
        let columns = self.fetch_stored(first.iter().map(|(place, _)| *place), pool)?;
        let keys = first.iter().map(|(place, _)| self.shards[place.shard as usize].keys[place.row as usize]).collect();
        let rows = first.iter().map(|(_, row)| *row).collect();
        let keys_wanted = wanted.iter().map(|row| self.keys[*row]).collect();
        Ok(Fetched { batch: Batch { keys, columns }, rows, wanted: Some(keys_wanted) })
    }

    fn fetch_stored(&self, wanted: impl Iterator<Item = Place>, pool: &BufferPool) -> Result<Vec<ArrayRef>> {
        // Rows of one shard are fetched together, then put into the wanted order.
        let mut shards: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut order = Vec::new();
        for place in wanted {
            let shard = place.shard as usize;
            let group = shards.iter().position(|(other, _)| *other == shard).unwrap_or_else(|| {
                shards.push((shard, Vec::new()));
                shards.len() - 1
            });
            let rows = &mut shards[group].1;
            order.push((group, rows.len()));
            rows.push(place.row as usize);
        }
        let parts = shards
            .iter()
            .map(|(shard, rows)| {
                let Shard { name, reader, .. } = &self.shards[*shard];
                reader.fetch(rows, pool).map_err(|message| Error::Dataset {
                    message: format!("{name}: {message}"),
                    help: Some("the shard is damaged: remove it and build again".to_owned()),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        match parts.as_slice() {
            [] => Ok(self
                .columns
                .iter()
                .map(|column| arrow::array::new_empty_array(&column.column_type.arrow()))
                .collect()),
            [only] => Ok(only.clone()),
            parts => (0..self.columns.len())
                .map(|column| {
                    let arrays: Vec<&dyn Array> = parts.iter().map(|part| part[column].as_ref()).collect();
                    arrow::compute::interleave(&arrays, &order).map_err(|error| Error::internal("reading", error))
                })
                .collect(),
        }
    }
}
