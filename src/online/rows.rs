//! The rows of a data set: where each is, and fetching any of them in any order.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
use bytes::Bytes;

use crate::diag::{DataError, Error, Result};
use crate::format::shard::ShardReader;
use crate::format::{FileSource, Fragment};
use crate::store::{Dataset, FragmentRecord, Manifest};
use crate::types::batch::binary_view_of_rows;
use crate::types::{Batch, BufferPool, Fingerprint, NamedColumn, RowKey};
use crate::world::LocalFile;

/// The rows of a data set, in row-key order.
pub struct Rows {
    keys: Vec<RowKey>,
    places: Vec<Place>,
    store: Store,
    fragments: Vec<FragmentRecord>,
    columns: Vec<NamedColumn>,
}

/// Where a row is.
#[derive(Debug, Clone, Copy)]
struct Place {
    shard: u32,
    row: u32,
    /// Its source file, by its place in `Rows::fragments`.
    fragment: usize,
}

enum Store {
    /// In the source's own files.
    Reference(FileSource),
    /// In shards.
    Shards(Vec<(String, ShardReader)>),
}

/// Rows that were fetched, and those that couldn't be.
pub struct Fetched {
    /// The rows.
    pub batch: Batch,
    /// Which of the wanted rows they are.
    pub rows: Vec<usize>,
    /// Rows whose source file couldn't be read.
    pub failures: Vec<DataError>,
}

impl Rows {
    /// Opens the rows of a published data set with the columns that its remainder reads.
    ///
    /// # Errors
    /// When a shard is missing or damaged.
    pub fn open(dataset: &Dataset, manifest: &Manifest) -> Result<Self> {
        let columns = manifest.remainder.input_columns().to_vec();
        let (mut keys, mut places, mut fragments) = (Vec::new(), Vec::new(), Vec::new());
        let mut readers = Vec::new();
        for (shard, record) in (0_u32..).zip(&manifest.shards) {
            let first = fragments.len();
            let good = record.fragments.iter().enumerate().filter(|(_, fragment)| fragment.rows > 0);
            let places_before = places.len();
            places.extend((0_u32..).zip(good).map(|(row, (at, _))| Place { shard, row, fragment: first + at }));
            fragments.extend(record.fragments.iter().cloned());
            if manifest.by_reference {
                let paths = places[places_before..].iter().map(|place| &fragments[place.fragment].path);
                keys.extend(paths.map(|path| RowKey::of_fragment(path, 0)));
                continue;
            }
            let path = dataset.shard_path(record.id);
            let damaged = |message: String| Error::Dataset {
                message: format!("{}: {message}", path.display()),
                help: Some("build the data set again: only this shard is rebuilt if it is removed".to_owned()),
            };
            let file = LocalFile::open(&path)?;
            let reader = ShardReader::open(Arc::new(file), &columns).map_err(damaged)?;
            let shard_keys = reader.keys().map_err(damaged)?;
            if shard_keys.len() != places.len() - places_before {
                let (found, wanted) = (shard_keys.len(), places.len() - places_before);
                return Err(damaged(format!("{found} rows where the manifest says {wanted}")));
            }
            keys.extend(shard_keys);
            readers.push((path.display().to_string(), reader));
        }
        let store = if manifest.by_reference {
            Store::Reference(FileSource::new(Path::new(&manifest.root))?)
        } else {
            Store::Shards(readers)
        };
        Ok(Self { keys, places, store, fragments, columns })
    }

    /// The key of every row, in order.
    #[must_use]
    pub fn keys(&self) -> &[RowKey] {
        &self.keys
    }

    /// The source file of a row, relative to the source's root.
    #[must_use]
    pub fn path(&self, row: usize) -> &str {
        self.places.get(row).and_then(|place| self.fragments.get(place.fragment)).map_or("", |fragment| &fragment.path)
    }

    /// Fetches rows, in that order.
    ///
    /// # Errors
    /// When a shard is damaged, or a source file isn't what it was when the data set was built.
    pub fn fetch(&self, wanted: &[usize], pool: &BufferPool) -> Result<Fetched> {
        match &self.store {
            Store::Reference(source) => self.fetch_files(source, wanted),
            Store::Shards(readers) => {
                let columns = self.fetch_stored(readers, wanted, pool)?;
                let keys = wanted.iter().map(|row| self.keys[*row]).collect();
                Ok(Fetched { batch: Batch { keys, columns }, rows: wanted.to_vec(), failures: Vec::new() })
            }
        }
    }

    fn fetch_files(&self, source: &FileSource, wanted: &[usize]) -> Result<Fetched> {
        let needs_bytes = self.columns.iter().any(|column| column.name == "bytes");
        let (mut rows, mut files, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for row in wanted {
            let record = &self.fragments[self.places[*row].fragment];
            if !needs_bytes {
                rows.push(*row);
                files.push((record, Bytes::new()));
                continue;
            }
            let FragmentRecord { path, size, modified_ns, .. } = record.clone();
            match source.read_blocking(&Fragment { path, size, modified_ns }) {
                Ok(bytes) if Fingerprint::of_bytes(&bytes) == record.digest => {
                    rows.push(*row);
                    files.push((record, bytes));
                }
                Ok(_) => {
                    return Err(Error::Dataset {
                        message: format!("{}: its content has changed since the data set was built", record.path),
                        help: Some("run `parbake build` again: it takes in what has changed".to_owned()),
                    });
                }
                Err(error) => failures.push(DataError {
                    file: record.path.clone(),
                    row: 0,
                    step: "source".to_owned(),
                    reason: error.to_string(),
                }),
            }
        }
        let columns = self
            .columns
            .iter()
            .map(|column| -> Result<ArrayRef> {
                Ok(match column.name.as_str() {
                    "path" => Arc::new(files.iter().map(|(file, _)| Some(&file.path)).collect::<StringArray>()),
                    "size" => {
                        let sizes = files.iter().map(|(file, _)| i64::try_from(file.size).unwrap_or(i64::MAX));
                        Arc::new(Int64Array::from_iter_values(sizes))
                    }
                    "bytes" => {
                        let bytes = files.iter().map(|(_, bytes)| bytes.clone()).collect();
                        Arc::new(binary_view_of_rows(bytes).map_err(|error| Error::internal("reading", error))?)
                    }
                    other => return Err(Error::internal("reading", format!("files have no column `{other}`"))),
                })
            })
            .collect::<Result<_>>()?;
        let keys = rows.iter().map(|row| self.keys[*row]).collect();
        Ok(Fetched { batch: Batch { keys, columns }, rows, failures })
    }

    fn fetch_stored(
        &self,
        readers: &[(String, ShardReader)],
        wanted: &[usize],
        pool: &BufferPool,
    ) -> Result<Vec<ArrayRef>> {
        // Rows of one shard are fetched together, then put into the wanted order.
        let mut shards: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut order = Vec::with_capacity(wanted.len());
        for row in wanted {
            let place = self.places[*row];
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
                let (name, reader) = &readers[*shard];
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
