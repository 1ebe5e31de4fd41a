//! `verify`: a data set against its checksums and its sources.

use std::collections::BTreeSet;

use serde_json::json;

use super::args::VerifyArgs;
use super::console::Console;
use crate::diag::{Error, Result};
use crate::materialize::verify::{Verified, checksums, recompute};
use crate::materialize::{Pending, Request, default_folder, definition};
use crate::pipeline::{self, parse_cut, rewrite};
use crate::store::Dataset;
use crate::types::RowKey;
use crate::types::random::StreamKey;
use crate::world::machine::cores;

/// Of how many shards one is computed again if nobody says otherwise.
const ONE_IN: usize = 20;

/// Verifies a data set.
pub fn verify(console: &Console, args: &VerifyArgs) -> Result<()> {
    let checked = pipeline::load(&args.pipeline)?;
    console.warnings(&checked.warnings);
    let rewritten = rewrite(&checked.graph, &args.no_rewrite);
    let graph = &rewritten.graph;
    let folder = args.out.clone().unwrap_or_else(|| default_folder(graph));
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let dataset = Dataset::at(&folder);
    let manifest = dataset.open()?;
    let mut verified = Verified::default();
    checksums(&dataset, &manifest, &mut verified)?;
    let cut = parse_cut(graph, &manifest.cut).ok();
    let cut = cut.filter(|cut| definition(graph, cut, manifest.codec, rewritten.options) == manifest.definition);
    let Some(cut) = cut else {
        return Err(Error::Dataset {
            message: "the data set was built of other steps than the pipeline has now: only its checksums can be \
                      compared"
                .to_owned(),
            help: Some("`parbake status` says what has changed; build again, or use the pipeline as it was".to_owned()),
        });
    };
    let request = Request {
        graph,
        cut: &cut,
        codec: manifest.codec,
        options: rewritten.options,
        shard_rows: Some(manifest.files_per_shard),
        plan: serde_json::Value::Null,
    };
    let pending = Pending::find(&request, &dataset, Some(manifest.clone()))?;
    let places = sample(manifest.shards.len(), args);
    recompute(pending, &dataset, &manifest, &places, jobs, &mut verified)?;
    report(console, args, &dataset, &verified)?;
    if verified.findings.is_empty() {
        return Ok(());
    }
    Err(Error::Dataset {
        message: format!("{} of {} shards aren't as they should be", verified.findings.len(), verified.shards),
        help: Some("remove the shard files that are named and build again: only they are rebuilt".to_owned()),
    })
}

/// The shards to compute again.
fn sample(shards: usize, args: &VerifyArgs) -> BTreeSet<usize> {
    let wanted = if args.all { shards } else { args.shards.unwrap_or(shards.div_ceil(ONE_IN)).min(shards) };
    let mut random = StreamKey::new(args.seed, "__verify").stream(0, RowKey([0; 16]));
    let mut places: Vec<usize> = (0..shards).collect();
    // The first places of a Fisher-Yates shuffle.
    for at in 0..wanted {
        let left = u32::try_from(shards - at).unwrap_or(u32::MAX);
        places.swap(at, at + random.below(left) as usize);
    }
    places.into_iter().take(wanted).collect()
}

fn report(console: &Console, args: &VerifyArgs, dataset: &Dataset, verified: &Verified) -> Result<()> {
    if args.json {
        let findings: Vec<_> = verified
            .findings
            .iter()
            .map(|finding| json!({ "shard": finding.shard, "what": finding.what, "step": finding.step }))
            .collect();
        return console.print_json(&json!({
            "shards": verified.shards,
            "checked": verified.checked,
            "recomputed": verified.recomputed,
            "stale": verified.stale,
            "findings": findings,
        }));
    }
    let mut text = format!(
        "{} shards: {} compared with their checksums, {} computed again and compared bit for bit\n",
        verified.shards, verified.checked, verified.recomputed
    );
    if verified.stale > 0 {
        text.push_str(&format!("{} can't be computed again: their sources have changed since\n", verified.stale));
    }
    for finding in &verified.findings {
        text.push_str(&format!("{}: {}\n", dataset.shard_path(finding.shard).display(), finding.what));
    }
    if verified.findings.is_empty() {
        text.push_str("nothing differs\n");
    }
    console.print(&text)
}
