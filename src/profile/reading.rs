//! How long reading and digesting source files takes, done as a build does it: on all threads, one batch ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::facts::Measured;
use crate::diag::{Error, Result};
use crate::format::{FileSource, Fragment};
use crate::types::Fingerprint;
use crate::world::machine::now;

/// Passes over the sample, at least and at most, and seconds, about, that they take: the first finds the files as they
/// lie, the others in the page cache.
const PASSES: std::ops::Range<usize> = 3..40;
const SECONDS: f64 = 0.3;
/// How much slower the first pass is than the others where files come from the device.
const COLD: f64 = 3.0;

/// Thread-seconds a file, including what waiting for the device takes.
///
/// A first pass that is far slower than the others says that the files are not in the page cache, as the rest of them
/// won't be; then it is the measure, else the others are. Files that can't be read are left to those who name them.
///
/// # Errors
/// When no threads can be had.
pub fn measure(source: &FileSource, sample: &[Fragment], threads: usize) -> Result<Measured> {
    if sample.is_empty() {
        return Ok(Measured::exact(0.0));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build();
    let runtime = runtime.map_err(|error| Error::internal("the runtime", error))?;
    let sample: Arc<[Fragment]> = sample.into();
    let mut passes = Vec::new();
    let started = now();
    for pass in 0..PASSES.end {
        if pass >= PASSES.start && started.elapsed().as_secs_f64() > SECONDS {
            break;
        }
        let next = Arc::new(AtomicUsize::new(0));
        let begun = now();
        // Two files in flight a thread: one is read while the other is digested.
        let tasks: Vec<_> = (0..2 * threads)
            .map(|_| {
                let (source, sample, next) = (source.clone(), Arc::clone(&sample), Arc::clone(&next));
                runtime.spawn(async move {
                    while let Some(fragment) = sample.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Ok(bytes) = source.read(fragment).await {
                            std::hint::black_box(Fingerprint::of_bytes(&bytes));
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).map_err(|error| Error::internal("the profile", error))?;
        }
        passes.push(begun.elapsed().as_secs_f64() * threads as f64 / sample.len() as f64);
    }
    let (first, others) = (passes[0], &passes[1..]);
    let warm = Measured::of(others);
    Ok(if first > COLD * warm.estimate { Measured::exact(first) } else { warm })
}
