//! What a change makes stale, and because of what.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::dataset::Dataset;
use super::layout::assign;
use super::manifest::{FragmentRecord, Manifest, ShardRecord, shard_fingerprint};
use crate::diag::Result;
use crate::format::{Fragment, Listing};
use crate::pipeline::{OnError, Program};
use crate::types::{Codec, Fingerprint};
use crate::world::files;

/// What is wanted of a data set.
pub struct Wanted<'a> {
    /// See [`super::definition`].
    pub definition: Fingerprint,
    /// The source files as they are now.
    pub listing: &'a Listing,
    /// How many files a shard holds on average.
    pub files_per_shard: u32,
    /// The offline side.
    pub offline: &'a Program,
    /// The cut's word.
    pub cut: &'a str,
    /// How stored columns are compressed.
    pub codec: Codec,
    /// What happens to bad rows.
    pub on_error: OnError,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Freshness {
    /// The shards that are wanted, in order.
    pub shards: Vec<ShardState>,
    /// Published shards that nobody wants any more.
    pub orphans: Vec<Fingerprint>,
}

/// A shard that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardState {
    /// Its files, as places in the listing.
    pub range: Range<usize>,
    /// Whether it is there.
    pub state: State,
}

/// Whether a shard is there.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It is; the record has the files' present times.
    Fresh(ShardRecord),
    /// It has to be built, because of that.
    Stale(Vec<Reason>),
}

/// Why a shard has to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Nothing is published yet.
    New,
    /// Steps, cut or codec changed; what did, in words.
    Definition(String),
    /// A source file is new.
    Added(String),
    /// A source file is gone.
    Removed(String),
    /// A source file's content changed.
    Changed(String),
    /// Files are dealt to shards in another way.
    Dealt,
    /// The shard's own file is missing or of another size.
    Lost(String),
    /// It leaves rows out, and now bad rows end the build.
    Strict,
    /// Rows were put together, and other ones are now.
    Gathered,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("nothing is built yet"),
            Self::Definition(what) => f.write_str(what),
            Self::Added(path) => write!(f, "{path} was added"),
            Self::Removed(path) => write!(f, "{path} was removed"),
            Self::Changed(path) => write!(f, "{path} has changed"),
            Self::Dealt => f.write_str("files are grouped into shards in another way"),
            Self::Lost(name) => write!(f, "the shard's file {name} is missing or damaged"),
            Self::Gathered => f.write_str("the rows that it is made of are others now"),
            Self::Strict => f.write_str("it leaves bad rows out, and `on_error` is now \"fail\""),
        }
    }
}

/// Compares what is wanted with what is published. `digest` reads a file whose size is as it was and whose time is
/// not; a shard that was finished by a build that didn't end is fresh too.
///
/// # Errors
/// When a file can't be read.
pub fn compare(
    previous: Option<&Manifest>,
    wanted: &Wanted<'_>,
    dataset: &Dataset,
    digest: &mut dyn FnMut(&Fragment) -> Result<Fingerprint>,
) -> Result<Freshness> {
    let same_definition = previous.filter(|manifest| manifest.definition == wanted.definition);
    let mut old: BTreeMap<&str, (&FragmentRecord, usize)> = BTreeMap::new();
    for (shard, record) in previous.iter().flat_map(|manifest| &manifest.shards).enumerate() {
        old.extend(record.fragments.iter().map(|fragment| (fragment.path.as_str(), (fragment, shard))));
    }
    let mut used = vec![false; previous.map_or(0, |manifest| manifest.shards.len())];
    let mut shards = Vec::new();
    for range in assign(wanted.listing, wanted.files_per_shard) {
        let fragments = &wanted.listing.fragments[range.clone()];
        let state = match same_definition {
            Some(manifest) => published(manifest, fragments, wanted, dataset, &old, &mut used, digest)?,
            None => State::Stale(vec![definition_reason(previous, wanted)]),
        };
        let state = match state {
            State::Stale(reasons) => resumed(fragments, wanted, dataset).map_or(State::Stale(reasons), State::Fresh),
            fresh @ State::Fresh(_) => fresh,
        };
        shards.push(ShardState { range, state });
    }
    let orphans = previous.iter().flat_map(|manifest| &manifest.shards).zip(&used);
    Ok(Freshness { orphans: orphans.filter(|(_, used)| !**used).map(|(shard, _)| shard.id).collect(), shards })
}

/// Compares the source files that rows were put together from with those that there are. Without a reason, all
/// published shards are as they should be.
///
/// # Errors
/// When a file can't be read.
pub fn compare_inputs(
    previous: Option<&Manifest>,
    wanted: &Wanted<'_>,
    sources: &[&Listing],
    dataset: &Dataset,
    digest: &mut dyn FnMut(usize, &Fragment) -> Result<Fingerprint>,
) -> Result<Vec<Reason>> {
    let Some(manifest) = previous else { return Ok(vec![Reason::New]) };
    if manifest.definition != wanted.definition {
        return Ok(vec![definition_reason(previous, wanted)]);
    }
    let mut reasons = Vec::new();
    let mut old: BTreeMap<(usize, &str), &super::manifest::InputRecord> =
        manifest.inputs.iter().map(|input| ((input.source, input.path.as_str()), input)).collect();
    for (source, listing) in sources.iter().enumerate() {
        for fragment in &listing.fragments {
            match old.remove(&(source, fragment.path.as_str())) {
                None => reasons.push(Reason::Added(fragment.path.clone())),
                Some(input) if input.size != fragment.size => reasons.push(Reason::Changed(fragment.path.clone())),
                Some(input) if input.modified_ns == fragment.modified_ns => {}
                Some(input) if input.digest.is_some() && input.digest == Some(digest(source, fragment)?) => {}
                Some(_) => reasons.push(Reason::Changed(fragment.path.clone())),
            }
        }
    }
    reasons.extend(old.keys().map(|(_, path)| Reason::Removed((*path).to_owned())));
    for record in &manifest.shards {
        if files::length_if_there(&dataset.shard_path(record.id))? != Some(record.bytes) {
            reasons.push(Reason::Lost(format!("{}.parquet", record.id)));
        }
    }
    if wanted.on_error == OnError::Fail && manifest.quarantined().next().is_some() {
        reasons.push(Reason::Strict);
    }
    Ok(reasons)
}

/// Whether a published shard holds just those files.
fn published(
    manifest: &Manifest,
    fragments: &[Fragment],
    wanted: &Wanted<'_>,
    dataset: &Dataset,
    old: &BTreeMap<&str, (&FragmentRecord, usize)>,
    used: &mut [bool],
    digest: &mut dyn FnMut(&Fragment) -> Result<Fingerprint>,
) -> Result<State> {
    let mut reasons = Vec::new();
    let mut records = Vec::with_capacity(fragments.len());
    let mut from = Vec::new();
    for fragment in fragments {
        let Some((record, shard)) = old.get(fragment.path.as_str()) else {
            reasons.push(Reason::Added(fragment.path.clone()));
            continue;
        };
        if !from.contains(shard) {
            from.push(*shard);
        }
        let same_time = record.modified_ns == fragment.modified_ns;
        if record.size == fragment.size && (same_time || digest(fragment)? == record.digest) {
            records.push(FragmentRecord { modified_ns: fragment.modified_ns, ..(*record).clone() });
        } else {
            reasons.push(Reason::Changed(fragment.path.clone()));
        }
    }
    // Files that lay between these, in the shards that these came from, and are no more.
    let is_listed =
        |path: &str| wanted.listing.fragments.binary_search_by(|fragment| fragment.path.as_str().cmp(path)).is_ok();
    for shard in &from {
        let gone = manifest.shards[*shard].fragments.iter().filter(|fragment| !is_listed(&fragment.path));
        reasons.extend(gone.map(|fragment| Reason::Removed(fragment.path.clone())));
    }
    let [shard] = from.as_slice() else {
        if reasons.is_empty() {
            reasons.push(Reason::Dealt);
        }
        return Ok(State::Stale(reasons));
    };
    let record = &manifest.shards[*shard];
    if reasons.is_empty() && record.fragments.len() != fragments.len() {
        reasons.push(Reason::Dealt);
    }
    if files::length_if_there(&dataset.shard_path(record.id))? != Some(record.bytes) {
        reasons.push(Reason::Lost(format!("{}.parquet", record.id)));
    }
    if wanted.on_error == OnError::Fail && !record.quarantined.is_empty() {
        reasons.push(Reason::Strict);
    }
    if !reasons.is_empty() {
        return Ok(State::Stale(reasons));
    }
    used[*shard] = true;
    Ok(State::Fresh(ShardRecord { fragments: records, ..record.clone() }))
}

/// A shard that an earlier build finished and nobody published.
fn resumed(fragments: &[Fragment], wanted: &Wanted<'_>, dataset: &Dataset) -> Option<ShardRecord> {
    let record = dataset.finished(shard_fingerprint(wanted.definition, fragments))?;
    (wanted.on_error == OnError::Skip || record.quarantined.is_empty()).then_some(record)
}

/// What changed in the definition, in words.
fn definition_reason(previous: Option<&Manifest>, wanted: &Wanted<'_>) -> Reason {
    let Some(previous) = previous else { return Reason::New };
    if previous.cut != wanted.cut {
        return Reason::Definition(format!("the cut was `{}` and is `{}`", previous.cut, wanted.cut));
    }
    if previous.codec != wanted.codec {
        let (was, is) = (previous.codec.word(), wanted.codec.word());
        return Reason::Definition(format!("the codec was {was} and is {is}"));
    }
    for (old, new) in previous.offline.calls.iter().zip(&wanted.offline.calls) {
        if old.op != new.op {
            return Reason::Definition(format!("step `{}` was `{}` and is `{}`", new.step, old.op, new.op));
        }
        if old.version != new.version {
            return Reason::Definition(format!(
                "`{}` has a new version, {}, which was {}",
                new.op, new.version, old.version
            ));
        }
        for (name, value) in &new.args.0 {
            match old.args.get(name) {
                Some(before) if before == value => {}
                Some(_) if name == "classes" => {
                    return Reason::Definition(format!("step `{}`: the classes have changed", new.step));
                }
                Some(before) => {
                    return Reason::Definition(format!("step `{}`: `{name}` was {before} and is {value}", new.step));
                }
                None => return Reason::Definition(format!("step `{}`: `{name}` is now {value}", new.step)),
            }
        }
    }
    Reason::Definition("the steps that run offline have changed".to_owned())
}
