//! What operators tell each other about shards besides rows: where each row comes from, which were bad, how it went.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::progress::Progress;
use crate::diag::{DataError, Error, Result};
use crate::format::Fragment;
use crate::pipeline::OnError;
use crate::types::Fingerprint;

/// One shard to be made.
#[derive(Debug, Clone, Default)]
pub struct ShardTask {
    /// Its source files, in row-key order; none where its rows were put together from several relations.
    pub fragments: Vec<Fragment>,
    /// The place of the first of them among all files of the source.
    pub first: usize,
    /// Its part of the rows that were put together, by number.
    pub part: usize,
}

/// A row that a step couldn't process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRow {
    /// The source file, relative to its source's root.
    pub file: String,
    /// The row inside the file, from 0.
    pub row: u64,
    /// The step.
    pub step: String,
    /// Why, in words.
    pub reason: String,
}

/// What came of a shard.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ShardOutcome {
    /// The task, by its place in the job.
    pub task: usize,
    /// The digest of each source file's content, in order.
    pub digests: Vec<Fingerprint>,
    /// How many stored rows come from each source file, in order.
    pub rows_of: Vec<u64>,
    /// The rows that couldn't be processed, in order.
    pub bad: Vec<BadRow>,
    /// The rows that were written.
    pub rows: u64,
    /// Seconds from the first read to the end.
    pub seconds: f64,
    /// CPU seconds of running the program and writing.
    pub cpu_seconds: f64,
}

/// Rows that were read one after another from one place.
#[derive(Debug, Clone)]
struct Run {
    /// The number of the first of them among the rows of the task.
    first: usize,
    /// The file, by its place in the task; none for rows that were put together.
    fragment: Option<usize>,
    file: String,
    /// The row inside the file.
    row: u64,
}

/// The notes of one run.
pub struct Notes {
    tasks: Arc<Vec<ShardTask>>,
    outcomes: Mutex<Vec<ShardOutcome>>,
    runs: Mutex<Vec<Vec<Run>>>,
    on_error: OnError,
    progress: Arc<Progress>,
}

impl Notes {
    /// Notes on those tasks.
    pub fn new(tasks: Arc<Vec<ShardTask>>, on_error: OnError, progress: Arc<Progress>) -> Self {
        let outcome = |(task, of): (usize, &ShardTask)| ShardOutcome {
            task,
            rows_of: vec![0; of.fragments.len()],
            ..ShardOutcome::default()
        };
        let outcomes = tasks.iter().enumerate().map(outcome).collect();
        let runs = Mutex::new(vec![Vec::new(); tasks.len()]);
        Self { tasks, outcomes: Mutex::new(outcomes), runs, on_error, progress }
    }

    /// The tasks.
    pub const fn tasks(&self) -> &Arc<Vec<ShardTask>> {
        &self.tasks
    }

    /// What happens to bad rows.
    pub const fn on_error(&self) -> OnError {
        self.on_error
    }

    /// How far the run is.
    pub const fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Notes that the rows of a task from number `first` on come from that row on of one of its files.
    pub fn add_run(&self, task: usize, first: usize, fragment: usize, row: u64) {
        let file = self.tasks.get(task).and_then(|task| task.fragments.get(fragment));
        let file = file.map(|fragment| fragment.path.clone()).unwrap_or_default();
        self.push_run(task, Run { first, fragment: Some(fragment), file, row });
    }

    /// Notes where a row that was put together comes from, in words.
    pub fn add_place(&self, task: usize, first: usize, file: String, row: u64) {
        self.push_run(task, Run { first, fragment: None, file, row });
    }

    fn push_run(&self, task: usize, run: Run) {
        if let Some(runs) = self.runs.lock().unwrap_or_else(PoisonError::into_inner).get_mut(task) {
            runs.push(run);
        }
    }

    /// Where the row of that number of a task comes from: its file's place in the task, its file, its row there.
    pub fn place(&self, task: usize, row: usize) -> (Option<usize>, String, u64) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = runs.get(task).map(Vec::as_slice).unwrap_or_default();
        let at = runs.partition_point(|run| run.first <= row);
        match at.checked_sub(1).and_then(|at| runs.get(at)) {
            Some(run) => (run.fragment, run.file.clone(), run.row + (row - run.first) as u64),
            None => (None, String::new(), row as u64),
        }
    }

    /// Counts stored rows under the files that they come from; `numbers` are those of the rows of the task.
    pub fn count_stored(&self, task: usize, numbers: impl Iterator<Item = usize>) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = runs.get(task).map(Vec::as_slice).unwrap_or_default();
        let mut counts: Vec<u64> = Vec::new();
        let mut at = 0;
        for number in numbers {
            // Rows come in order, nearly always from the run at hand.
            if runs.get(at).is_none_or(|run| run.first > number)
                || runs.get(at + 1).is_some_and(|run| run.first <= number)
            {
                at = runs.partition_point(|run| run.first <= number).saturating_sub(1);
            }
            if let Some(fragment) = runs.get(at).and_then(|run| run.fragment) {
                if counts.len() <= fragment {
                    counts.resize(fragment + 1, 0);
                }
                counts[fragment] += 1;
            }
        }
        self.update(task, |outcome| {
            for (sum, count) in outcome.rows_of.iter_mut().zip(counts) {
                *sum += count;
            }
        });
    }

    /// Files bad rows by policy: notes them, or ends the run.
    ///
    /// # Errors
    /// When bad rows end the run.
    pub fn bad_rows(&self, task: usize, bad: Vec<BadRow>) -> Result<()> {
        if bad.is_empty() {
            return Ok(());
        }
        self.progress.add_rows(0, bad.len() as u64);
        if self.on_error == OnError::Fail {
            let errors = bad
                .into_iter()
                .map(|bad| DataError { file: bad.file, row: bad.row, step: bad.step, reason: bad.reason })
                .collect();
            return Err(Error::Data(errors));
        }
        self.update(task, |outcome| outcome.bad.extend(bad));
        Ok(())
    }

    /// Changes what is known of a task.
    pub fn update(&self, task: usize, change: impl FnOnce(&mut ShardOutcome)) {
        if let Some(outcome) = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(task) {
            change(outcome);
        }
    }

    /// What is known of a task, for good.
    pub fn take(&self, task: usize) -> ShardOutcome {
        if let Some(runs) = self.runs.lock().unwrap_or_else(PoisonError::into_inner).get_mut(task) {
            runs.clear();
        }
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.get_mut(task).map(std::mem::take).unwrap_or_default()
    }

    /// Everything bad that is noted, in the order of the tasks.
    pub fn all_bad(&self) -> Vec<BadRow> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.iter().flat_map(|outcome| outcome.bad.iter().cloned()).collect()
    }

    /// The digests of all files that were read, in the order of the tasks; none where they weren't.
    pub fn all_digests(&self) -> Vec<Option<Fingerprint>> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let digests = |(task, outcome): (&ShardTask, &ShardOutcome)| {
            (0..task.fragments.len()).map(|at| outcome.digests.get(at).copied()).collect::<Vec<_>>()
        };
        self.tasks.iter().zip(outcomes.iter()).flat_map(digests).collect()
    }
}
