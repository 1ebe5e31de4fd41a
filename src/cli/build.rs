//! `build` and `status`.

use std::sync::Arc;

use serde_json::json;

use super::args::{BuildArgs, PlanArgs};
use super::console::Console;
use super::plan::{Prepared, prepare};
use super::progress::Bar;
use crate::diag::{Error, Result};
use crate::exec::Progress;
use crate::materialize::{Built, Pending, Request};
use crate::plan::predicted;
use crate::report::{status_json, status_text};
use crate::store::{Dataset, Manifest};
use crate::types::units::{show_bytes, show_count, show_seconds};
use crate::world::files;

/// Rows in quarantine that a summary lists.
const LISTED: usize = 5;

/// Builds what is stale.
pub fn build(console: &Console, args: &BuildArgs) -> Result<()> {
    let prepared = prepare(console, &args.plan)?;
    if args.dry_run {
        return report_status(console, &prepared, &args.plan);
    }
    let built = run(console, &prepared, &args.plan)?;
    let manifest = &built.manifest;
    if args.plan.json {
        let value = json!({
            "changed": built.changed,
            "folder": prepared.folder,
            "generation": manifest.generation,
            "cut": manifest.cut,
            "codec": manifest.codec,
            "rows": manifest.rows(),
            "stored_bytes": manifest.stored_bytes(),
            "built": manifest.built,
            "quarantined": manifest.quarantined().collect::<Vec<_>>(),
            "predicted": manifest.plan.get("chosen"),
        });
        return console.print_json(&value);
    }
    console.print(&summary(&prepared, &built))
}

/// Profiles, plans and builds.
pub fn run(console: &Console, prepared: &Prepared, args: &PlanArgs) -> Result<Built> {
    files::make_folder(&prepared.folder)?;
    let dataset = Dataset::at(&prepared.folder);
    let lock = dataset.lock()?;
    let published = dataset.manifest()?;
    if let Some(other) = published.as_ref().filter(|manifest| manifest.name != prepared.graph.name) {
        return Err(Error::Usage {
            message: format!(
                "{} holds the data set of another pipeline, `{}`, and this one is called `{}`",
                prepared.folder.display(),
                other.name,
                prepared.graph.name
            ),
            help: Some("build into another folder with `--out`, or remove what is there".to_owned()),
        });
    }
    let profile = prepared.profile(console, args)?;
    let plan = prepared.choose(&profile, published.as_ref())?;
    let request = Request {
        graph: &prepared.graph,
        cut: prepared.cut(&plan)?,
        codec: plan.choice().codec,
        options: prepared.options,
        shard_rows: args.shard_rows,
        plan: plan.to_json(),
    };
    let pending = Pending::find(&request, &dataset, published)?;
    if pending.stale_shards() > 0 {
        console.say(&format!("cut {}: {}", plan.choice().cut, plan.reason));
        let files = pending.stale_rows();
        if files == 0 {
            console.say("putting rows together");
        } else {
            console.say(&format!(
                "building {} of {} shards: {} files",
                show_count(pending.stale_shards() as u64),
                show_count(pending.freshness().shards.len() as u64),
                show_count(files)
            ));
        }
    }
    let progress = Arc::new(Progress::default());
    let bar = Bar::follow(console, &progress, pending.stale_rows());
    let built = pending.build(&dataset, &lock, prepared.jobs, progress);
    drop(bar);
    built
}
fn summary(prepared: &Prepared, built: &Built) -> String {
    let manifest = &built.manifest;
    let folder = prepared.folder.display();
    let stored = show_bytes(manifest.stored_bytes() as f64);
    let rows = show_count(manifest.rows());
    let mut text = if built.changed {
        let figures = &manifest.built;
        let mut text = format!(
            "built {folder}: {rows} rows, {stored}, {} shards built and {} kept, in {}\n",
            show_count(figures.shards_built),
            show_count(figures.shards_kept),
            show_seconds(figures.seconds)
        );
        if let Some(predicted) = predicted(&manifest.plan).filter(|_| figures.shards_kept == 0) {
            text.push_str(&format!(
                "predicted: {}, {}\n",
                show_bytes(predicted.stored_bytes.estimate),
                show_seconds(predicted.offline_seconds.estimate)
            ));
        }
        text
    } else {
        format!("{folder} is up to date: {rows} rows, {stored}\n")
    };
    text.push_str(&quarantine(manifest));
    text
}

fn quarantine(manifest: &Manifest) -> String {
    let count = manifest.quarantined().count();
    if count == 0 {
        return String::new();
    }
    let mut text = format!("{} rows are in quarantine (quarantine.json):\n", show_count(count as u64));
    for row in manifest.quarantined().take(LISTED) {
        text.push_str(&format!("  {}, row {}, step `{}`: {}\n", row.path, row.row, row.step, row.reason));
    }
    if count > LISTED {
        text.push_str(&format!("  and {} more\n", count - LISTED));
    }
    text
}

/// Says what is stale, and because of what.
pub fn status(console: &Console, args: &BuildArgs) -> Result<()> {
    let prepared = prepare(console, &args.plan)?;
    report_status(console, &prepared, &args.plan)
}

/// A data set is compared with the cut and codec that it has, unless others are asked for: what would be chosen
/// today needs a profile, and a status costs nothing.
fn report_status(console: &Console, prepared: &Prepared, args: &PlanArgs) -> Result<()> {
    let dataset = Dataset::at(&prepared.folder);
    let published = dataset.manifest()?;
    let word = prepared.settings.cut.as_ref().or(published.as_ref().map(|manifest| &manifest.cut));
    let cut = word.and_then(|word| prepared.cuts.iter().find(|cut| cut.word == *word)).or(prepared.cuts.last());
    let Some(cut) = cut else { return Err(Error::internal("the status", "there is no cut")) };
    let codec = prepared.settings.codec.or(published.as_ref().map(|manifest| manifest.codec));
    let request = Request {
        graph: &prepared.graph,
        cut,
        codec: codec.unwrap_or(crate::types::Codec::None),
        options: prepared.options,
        shard_rows: args.shard_rows.or(published.as_ref().map(|manifest| manifest.files_per_shard)),
        plan: serde_json::Value::Null,
    };
    let pending = Pending::find(&request, &dataset, published.clone())?;
    let (found, up_to_date) = (pending.freshness(), pending.is_up_to_date());
    if args.json {
        return console.print_json(&status_json(published.as_ref(), found, up_to_date));
    }
    console.print(&status_text(published.as_ref(), found, up_to_date))
}
