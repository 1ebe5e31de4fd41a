//! The rows that a program is at work on: their keys and columns, and where each comes from.

use arrow::array::{ArrayRef, BooleanArray, UInt32Array};

use crate::types::RowKey;

/// Rows in the middle of a program.
pub struct Frame {
    /// A key for each row.
    pub keys: Vec<RowKey>,
    /// The columns that are there and still needed.
    pub columns: Vec<Option<ArrayRef>>,
    /// For each row, the row of the batch that went in that it comes from.
    pub origins: Vec<u32>,
    /// Whether each row is still there.
    pub alive: Vec<bool>,
    dead: usize,
}

impl Frame {
    /// The rows of a batch.
    pub fn new(keys: Vec<RowKey>, columns: Vec<Option<ArrayRef>>) -> Self {
        let rows = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        Self { alive: vec![true; keys.len()], origins: (0..rows).collect(), dead: 0, keys, columns }
    }

    /// Number of rows, those that are gone and not yet taken out included.
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// Lets a row go; says whether it was still there.
    pub fn kill(&mut self, row: usize) -> bool {
        let was = std::mem::replace(&mut self.alive[row], false);
        self.dead += usize::from(was);
        was
    }

    /// Counts the rows that a kernel has marked as gone.
    pub fn recount(&mut self) {
        self.dead = self.alive.iter().filter(|alive| !**alive).count();
    }

    /// Takes out the rows that are gone.
    pub fn compact(&mut self) -> Result<(), String> {
        if self.dead == 0 {
            return Ok(());
        }
        let mask = BooleanArray::from(self.alive.clone());
        for column in self.columns.iter_mut().flatten() {
            *column = arrow::compute::filter(column, &mask).map_err(|error| error.to_string())?;
        }
        let mut alive = self.alive.iter();
        self.keys.retain(|_| *alive.next().unwrap_or(&false));
        let mut alive = self.alive.iter();
        self.origins.retain(|_| *alive.next().unwrap_or(&false));
        self.alive = vec![true; self.keys.len()];
        self.dead = 0;
        Ok(())
    }

    /// Makes several rows of each; all columns that are there go along.
    pub fn expand(&mut self, counts: &[usize]) -> Result<(), String> {
        let mut from = Vec::new();
        let mut keys = Vec::new();
        for (row, count) in counts.iter().enumerate() {
            let key = self.keys[row];
            keys.extend((0..*count as u64).map(|position| key.child(position)));
            from.extend(std::iter::repeat_n(row, *count));
        }
        self.take(&from)?;
        self.keys = keys;
        Ok(())
    }

    /// Brings rows into that order; rows may be left out or repeat.
    pub fn take(&mut self, from: &[usize]) -> Result<(), String> {
        let places: UInt32Array = from
            .iter()
            .map(|row| u32::try_from(*row))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| e.to_string())?
            .into();
        for column in self.columns.iter_mut().flatten() {
            *column = arrow::compute::take(column, &places, None).map_err(|error| error.to_string())?;
        }
        self.keys = from.iter().map(|row| self.keys[*row]).collect();
        self.origins = from.iter().map(|row| self.origins[*row]).collect();
        self.alive = vec![true; from.len()];
        self.dead = 0;
        Ok(())
    }

    /// Brings the rows with those keys into that order; a key that isn't there is left out.
    pub fn select(&mut self, wanted: &[RowKey]) -> Result<(), String> {
        self.compact()?;
        let mut places: Vec<(RowKey, usize)> =
            self.keys.iter().copied().enumerate().map(|(at, key)| (key, at)).collect();
        places.sort_unstable();
        let from: Vec<usize> = wanted
            .iter()
            .filter_map(|key| places.binary_search_by(|(other, _)| other.cmp(key)).ok().map(|at| places[at].1))
            .collect();
        self.take(&from)
    }
}
