//! What is stale, and because of what.

use serde_json::{Value, json};

use crate::store::{Freshness, Manifest, State};
use crate::types::units::{show_bytes, show_count};

/// Reasons that are listed for one shard.
const LISTED: usize = 5;

/// The state of a data set as text.
#[must_use]
pub fn status_text(published: Option<&Manifest>, found: &Freshness, up_to_date: bool) -> String {
    let mut text = String::new();
    match published {
        None => text.push_str("nothing is built yet\n"),
        Some(manifest) => text.push_str(&format!(
            "{}: generation {}, cut {}, {} rows in {} shards, {}\n",
            manifest.name,
            manifest.generation,
            manifest.cut,
            show_count(manifest.rows()),
            show_count(manifest.shards.len() as u64),
            show_bytes(manifest.stored_bytes() as f64)
        )),
    }
    let bad = published.map_or(0, |manifest| manifest.quarantined().count());
    if bad > 0 {
        text.push_str(&format!("{} rows are in quarantine\n", show_count(bad as u64)));
    }
    let mut stale = 0;
    for shard in &found.shards {
        let State::Stale(reasons) = &shard.state else { continue };
        stale += 1;
        match shard.range.len() {
            0 => text.push_str("stale: the rows that are put together"),
            files => text.push_str(&format!("stale: shard of {files} files")),
        }
        let listed: Vec<String> = reasons.iter().take(LISTED).map(ToString::to_string).collect();
        text.push_str(&format!(": {}", listed.join("; ")));
        if reasons.len() > LISTED {
            text.push_str(&format!("; and {} more", reasons.len() - LISTED));
        }
        text.push('\n');
    }
    if !found.orphans.is_empty() && published.is_some() {
        text.push_str(&format!("{} published shards are no longer needed\n", found.orphans.len()));
    }
    text.push_str(&match (stale, up_to_date) {
        (0, true) => "up to date\n".to_owned(),
        (0, false) => "no shard is stale; the next build publishes what changed in the steps that run online, in file times or in removed files\n".to_owned(),
        (stale, _) => format!("{stale} of {} shards are stale\n", found.shards.len()),
    });
    text
}

/// The same as JSON.
#[must_use]
pub fn status_json(published: Option<&Manifest>, found: &Freshness, up_to_date: bool) -> Value {
    let shards: Vec<Value> = found
        .shards
        .iter()
        .map(|shard| match &shard.state {
            State::Fresh(record) => {
                json!({ "state": "fresh", "id": record.id, "files": shard.range.len(), "rows": record.rows })
            }
            State::Stale(reasons) => json!({
                "state": "stale",
                "files": shard.range.len(),
                "reasons": reasons.iter().map(ToString::to_string).collect::<Vec<_>>(),
            }),
        })
        .collect();
    json!({
        "up_to_date": up_to_date,
        "published": published.map(|manifest| json!({
            "generation": manifest.generation,
            "cut": manifest.cut,
            "codec": manifest.codec,
            "rows": manifest.rows(),
            "stored_bytes": manifest.stored_bytes(),
            "quarantined": manifest.quarantined().collect::<Vec<_>>(),
        })),
        "shards": shards,
        "orphans": found.orphans,
    })
}
