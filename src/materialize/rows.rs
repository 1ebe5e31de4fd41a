//! Some rows of a graph's base relation, for a profile.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};

use super::files;
use super::pending::relations;
use crate::diag::Result;
use crate::exec::{self, SpoolPlace};
use crate::pipeline::{ColumnId, CompileOptions, Graph, RelationId};
use crate::profile::BaseRows;
use crate::store::Dataset;
use crate::types::{Batch, RowKey};
use crate::world::machine::now;

/// Puts the rows of a base relation together, as a build would, and gives some of them.
///
/// # Errors
/// As a build.
pub fn base_rows(
    graph: &Graph,
    base: RelationId,
    columns: &[ColumnId],
    jobs: usize,
    wanted: usize,
    dataset: &Dataset,
) -> Result<BaseRows> {
    let files = Arc::new(files(graph)?);
    let place = SpoolPlace { path: dataset.temporary("sample")?, rows_per_part: 64 };
    let relations = relations(graph, &files, CompileOptions { fused: true }, jobs);
    let started = now();
    let gathered = exec::gather(&relations, base, columns, &place)?;
    let elapsed = started.elapsed().as_secs_f64();
    let total: u64 = gathered.spool.parts().iter().map(|part| part.rows).sum();
    let parts = gathered.spool.parts().len();
    // Parts at equal distances, so that every stretch of the rows is represented.
    let step = (parts / (wanted / 64).max(1)).max(1);
    let (mut batches, mut places, mut taken) = (Vec::new(), Vec::new(), 0);
    for part in (0..parts).step_by(step) {
        if taken >= wanted {
            break;
        }
        for batch in gathered.spool.read(part)? {
            let batch: RecordBatch = batch?;
            let batch = batch.slice(0, batch.num_rows().min(wanted.saturating_sub(taken)));
            taken += batch.num_rows();
            let keys: Vec<RowKey> = exec::keys(&batch)?;
            let columns: Vec<ArrayRef> = batch.columns()[2..].to_vec();
            debug_assert!(columns.iter().all(|column| column.len() == keys.len()), "columns of one length");
            places.push(gathered.spool.places(&batch)?);
            batches.push(Batch { keys, columns });
        }
    }
    let seconds = elapsed * jobs.max(1) as f64 / total.max(1) as f64;
    Ok(BaseRows { columns: columns.to_vec(), batches, places, total, seconds })
}
