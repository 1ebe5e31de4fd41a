//! `stream`: batches on standard output, a digest, or a measurement.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::ipc::writer::StreamWriter;
use serde_json::json;

use super::args::StreamArgs;
use super::console::{Console, output_error};
use crate::diag::{DataError, Error, Result};
use crate::materialize::default_folder;
use crate::online::{Rows, Stream, StreamDigest, StreamOptions, files, output_schema, to_output};
use crate::pipeline::{self, Files};
use crate::store::{Dataset, Manifest};
use crate::types::BufferPool;
use crate::types::units::{show_count, show_rate, show_seconds};
use crate::world::machine::{cores, now, peak_resident_bytes, process_cpu_seconds};

/// An opened data set.
pub struct Opened {
    dataset: Dataset,
    manifest: Manifest,
    rows: Arc<Rows>,
    files: Files,
    pool: BufferPool,
}

/// What a measurement found.
pub struct Rate {
    /// Rows that were streamed.
    pub rows: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// CPU seconds that it took.
    pub cpu_seconds: f64,
    /// Epochs.
    pub epochs: u64,
}

impl Opened {
    /// Opens a data set's folder.
    pub fn new(folder: &Path, jobs: usize) -> Result<Self> {
        let dataset = Dataset::at(folder);
        let manifest = dataset.open()?;
        let rows = Arc::new(Rows::open(&dataset, &manifest, &manifest.remainder.at_epoch(0))?);
        let files = files(&manifest)?;
        // Pages being read and batches being made, for every worker.
        Ok(Self { dataset, manifest, rows, files, pool: BufferPool::new(80 * jobs) })
    }

    fn start(&self, options: &StreamOptions) -> Result<Stream> {
        let remainder = self.manifest.remainder.at_epoch(options.epoch);
        // Of stored draws, each epoch reads its own.
        let rows = if self.manifest.remainder.picks() {
            Arc::new(Rows::open(&self.dataset, &self.manifest, &remainder)?)
        } else {
            Arc::clone(&self.rows)
        };
        Stream::start(&rows, &remainder, &self.files, self.manifest.on_error, &self.pool, options)
    }

    /// Streams whole epochs for at least that long.
    pub fn measure(&self, options: &StreamOptions, seconds: f64) -> Result<Rate> {
        let mut options = options.clone();
        let (started, cpu) = (now(), process_cpu_seconds());
        let mut rate = Rate { rows: 0, seconds: 0.0, cpu_seconds: 0.0, epochs: 0 };
        while rate.epochs == 0 || started.elapsed().as_secs_f64() < seconds {
            for batch in self.start(&options)? {
                rate.rows += std::hint::black_box(batch?).batch.rows() as u64;
            }
            rate.epochs += 1;
            options.epoch += 1;
        }
        rate.seconds = started.elapsed().as_secs_f64();
        rate.cpu_seconds = process_cpu_seconds() - cpu;
        Ok(rate)
    }
}

/// Streams a data set.
pub fn stream(console: &Console, args: &StreamArgs) -> Result<()> {
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let folder = if args.dataset.extension().is_some_and(|extension| extension == "toml") {
        default_folder(&pipeline::load(&args.dataset)?.graph)
    } else {
        args.dataset.clone()
    };
    let opened = Opened::new(&folder, jobs)?;
    let options = StreamOptions {
        epoch: args.epoch,
        shuffle: args.shuffle,
        batch_rows: args.batch as usize,
        jobs,
        digest: args.digest,
    };
    if args.bench {
        let rate = opened.measure(&options, args.seconds)?;
        let (per_second, per_cpu) = (rate.rows as f64 / rate.seconds, rate.rows as f64 / rate.cpu_seconds);
        if args.json {
            return console.print_json(&json!({
                "rows": rate.rows, "epochs": rate.epochs, "seconds": rate.seconds, "cpu_seconds": rate.cpu_seconds,
                "rows_per_second": per_second, "rows_per_cpu_second": per_cpu, "jobs": jobs,
                "peak_memory_bytes": peak_resident_bytes(),
            }));
        }
        return console.print(&format!(
            "{} rows/s, {} rows per CPU-second: {} rows in {} ({} epochs, {jobs} threads)\n",
            show_rate(per_second),
            show_rate(per_cpu),
            show_count(rate.rows),
            show_seconds(rate.seconds),
            rate.epochs
        ));
    }
    if args.digest {
        let stream = opened.start(&options)?;
        let mut digest = StreamDigest::new(stream.columns());
        let mut skipped = Vec::new();
        for batch in stream {
            let batch = batch?;
            digest.add(&batch.digests);
            skipped.extend(batch.skipped);
        }
        tell_skipped(console, &skipped);
        if args.json {
            return console
                .print_json(&json!({ "digest": digest.finish(), "rows": digest.rows(), "epoch": args.epoch }));
        }
        return console.print(&format!("{}\n", digest.finish()));
    }
    write(console, &opened, &options)
}

fn write(console: &Console, opened: &Opened, options: &StreamOptions) -> Result<()> {
    if io::stdout().is_terminal() {
        return Err(Error::Usage {
            message: "batches are binary and standard output is a terminal".to_owned(),
            help: Some("send them to a file or a program, or use --bench or --digest".to_owned()),
        });
    }
    let stream = opened.start(options)?;
    let columns = stream.columns().to_vec();
    let schema = output_schema(&columns);
    let failed = |error: arrow::error::ArrowError| match error {
        arrow::error::ArrowError::IoError(_, error) => output_error(error),
        other => Error::internal("the output", other),
    };
    let out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut writer = StreamWriter::try_new(out, &schema).map_err(failed)?;
    let mut skipped = Vec::new();
    for batch in stream {
        let batch = batch?;
        skipped.extend(batch.skipped);
        let record =
            to_output(&batch.batch, &columns, &schema).map_err(|error| Error::internal("the output", error))?;
        writer.write(&record).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    let mut out = writer.into_inner().map_err(failed)?;
    out.flush().map_err(output_error)?;
    tell_skipped(console, &skipped);
    Ok(())
}

fn tell_skipped(console: &Console, skipped: &[DataError]) {
    if !skipped.is_empty() {
        console.say(&format!("{} rows were left out: {}", skipped.len(), skipped[0]));
    }
}
