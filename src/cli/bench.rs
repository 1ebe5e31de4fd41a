//! `bench`: predicted beside measured.

use super::args::BenchArgs;
use super::build::run;
use super::console::Console;
use super::plan::{Prepared, prepare};
use super::stream::Opened;
use crate::diag::Result;
use crate::online::StreamOptions;
use crate::pipeline::PlanSettings;
use crate::plan::predicted;
use crate::report::{BenchRow, bench_json, bench_text};
use crate::store::Dataset;
use crate::world::files;

/// Seconds that each data set is streamed for, in that many measurements.
const SECONDS: f64 = 3.0;
const STREAMS: u32 = 3;

/// Builds, streams, and prints predicted beside measured.
pub fn bench(console: &Console, args: &BenchArgs) -> Result<()> {
    let mut prepared = prepare(console, &args.plan)?;
    let mut rows = Vec::new();
    if args.all {
        files::make_folder(&prepared.folder)?;
        let profile = prepared.profile(console, &args.plan)?;
        let stored =
            serde_json::to_vec(&profile).map_err(|error| crate::diag::Error::internal("the profile", error))?;
        let home = prepared.folder.clone();
        let words: Vec<String> = prepared.cuts.iter().map(|cut| cut.word.clone()).collect();
        for word in words {
            prepared.folder = home.join(format!(".bench-{word}"));
            files::make_folder(&prepared.folder)?;
            files::write_atomic(&prepared.folder.join("profile.json"), &stored)?;
            prepared.settings = PlanSettings { cut: Some(word), ..prepared.settings.clone() };
            let row = measure(console, &prepared, args);
            files::remove_folder(&prepared.folder)?;
            rows.push(row?);
        }
    } else {
        rows.push(measure(console, &prepared, args)?);
    }
    if args.plan.json { console.print_json(&bench_json(&rows)) } else { console.print(&bench_text(&rows)) }
}

/// Builds that are shorter than that many seconds in all are repeated, up to that often: one by itself is chance.
const BUILD_SECONDS: f64 = 2.0;
const BUILDS: usize = 5;

fn measure(console: &Console, prepared: &Prepared, args: &BenchArgs) -> Result<BenchRow> {
    let mut manifest = run(console, prepared, &args.plan)?.manifest;
    let mut seconds = vec![manifest.built.seconds];
    while args.all && seconds.len() < BUILDS && seconds.iter().sum::<f64>() < BUILD_SECONDS {
        let dataset = Dataset::at(&prepared.folder);
        dataset.remove()?;
        manifest = run(console, prepared, &args.plan)?.manifest;
        seconds.push(manifest.built.seconds);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let opened = Opened::new(&prepared.folder, prepared.jobs)?;
    let options = StreamOptions { epoch: 0, shuffle: Some(0), batch_rows: 64, jobs: prepared.jobs, digest: false };
    // One epoch brings everything into memory, as every epoch after the first finds it.
    opened.measure(&options, 0.0)?;
    // On a shared machine one measurement is chance, too.
    let mut rates = Vec::new();
    for _ in 0..STREAMS {
        let rate = opened.measure(&options, SECONDS / f64::from(STREAMS))?;
        rates.push(rate.rows as f64 / rate.seconds);
    }
    rates.sort_by(f64::total_cmp);
    Ok(BenchRow {
        cut: manifest.cut.clone(),
        codec: manifest.codec.word().to_owned(),
        predicted: predicted(&manifest.plan),
        stored_bytes: manifest.stored_bytes() as f64,
        offline_seconds: (manifest.built.shards_kept == 0).then_some(median),
        online_rows_per_second: rates[rates.len() / 2],
    })
}
