//! `profile` and `plan`, and what `build` shares with them.

use std::path::PathBuf;

use super::args::PlanArgs;
use super::console::Console;
use crate::diag::{Error, Result};
use crate::materialize::default_folder;
use crate::pipeline::{self, Cut, Graph, Objective, PlanSettings, cuts};
use crate::plan::{Plan, StepName, plan as choose, resolve_cut};
use crate::profile::{self, Profile, ProfileLimit};
use crate::report::plan_text;
use crate::store::{Dataset, Manifest, definition};
use crate::types::Codec;
use crate::types::units::{parse_bytes, show_bytes, show_count, show_rate, show_seconds};
use crate::world::{files, machine};

/// A pipeline with everything that its arguments say.
pub struct Prepared {
    /// The graph.
    pub graph: Graph,
    /// Its cuts.
    pub cuts: Vec<Cut>,
    /// The data set's folder.
    pub folder: PathBuf,
    /// Threads.
    pub jobs: usize,
    /// What the planner is asked for.
    pub settings: PlanSettings,
}

/// Loads a pipeline and reads the arguments.
pub fn prepare(console: &Console, args: &PlanArgs) -> Result<Prepared> {
    let checked = pipeline::load(&args.pipeline)?;
    console.warnings(&checked.warnings);
    let graph = checked.graph;
    let folder = args.out.clone().unwrap_or_else(|| default_folder(&graph));
    let jobs = args.jobs.map_or_else(machine::cores, usize::from);
    let mut settings = graph.plan.clone();
    if let Some(cut) = &args.cut {
        settings.cut = Some(cut.clone());
    }
    if let Some(word) = &args.codec {
        let codec = Codec::parse(word).ok_or_else(|| Error::Usage {
            message: format!("there is no codec `{word}`"),
            help: Some(format!("the codecs are {}", Codec::WORDS.join(", "))),
        })?;
        settings.codec = Some(codec);
    }
    if let Some(word) = &args.objective {
        settings.objective = Objective::parse(word).ok_or_else(|| Error::Usage {
            message: format!("there is no objective `{word}`"),
            help: Some(format!("the objectives are {}", Objective::WORDS.join(", "))),
        })?;
    }
    if let Some(size) = &args.budget {
        settings.storage_budget = Some(parse_bytes(size).map_err(|error| Error::usage(format!("--budget: {error}")))?);
    }
    let cuts = cuts(&graph);
    if let Some(word) = &settings.cut {
        // Before anything is measured: a wrong word should cost nobody ten seconds.
        let words: Vec<&str> = cuts.iter().map(|cut| cut.word.as_str()).collect();
        let steps: Vec<StepName<'_>> = graph
            .steps
            .iter()
            .map(|step| StepName { step: &step.name, op: step.op.info().name, online_only: step.online_only })
            .collect();
        settings.cut = Some(resolve_cut(&words, &steps, word)?);
    }
    settings.epochs = args.epochs.or(settings.epochs);
    settings.trainer_rate = args.trainer_rate.or(settings.trainer_rate);
    Ok(Prepared { graph, cuts, folder, jobs, settings })
}

/// How much the source may have changed for a profile to stay valid.
const DRIFT: f64 = 0.1;

impl Prepared {
    /// The stored profile if it is still valid, else a new one, which is stored.
    pub fn profile(&self, console: &Console, args: &PlanArgs) -> Result<Profile> {
        let path = self.folder.join("profile.json");
        if !args.reprofile
            && let Some(stored) = files::read_if_there(&path)?
            && let Ok(profile) = serde_json::from_slice::<Profile>(&stored)
            && let Some(profile) = self.still_valid(profile)
        {
            return Ok(profile);
        }
        let limit = ProfileLimit { rows: args.sample.max(1), seconds: args.profile_seconds };
        let profile = profile::profile(&self.graph, &self.cuts, self.jobs, limit, &self.folder)?;
        console.say(&format!(
            "profiled {} of {} rows in {}",
            show_count(profile.rows_sampled),
            show_count(profile.rows_total),
            show_seconds(profile.seconds)
        ));
        let text = serde_json::to_vec_pretty(&profile).map_err(|error| Error::internal("the profile", error))?;
        files::write_atomic(&path, &text)?;
        Ok(profile)
    }

    /// A profile of the same steps, machine and threads, of data that hasn't grown or shrunk by more than a tenth;
    /// its totals are brought up to date.
    fn still_valid(&self, mut profile: Profile) -> Option<Profile> {
        let fragments = &self.graph.source.listing.fragments;
        let bytes: u64 = fragments.iter().map(|fragment| fragment.size).sum();
        let near = |was: u64, is: u64| (is as f64 - was as f64).abs() <= DRIFT * was as f64;
        let valid = profile.version == 1
            && profile.definition == profile::definition_fingerprint(&self.graph, &self.cuts)
            && profile.threads == self.jobs
            && profile.machine.cores == machine::cores()
            && near(profile.rows_total, fragments.len() as u64)
            && near(profile.source_bytes_total, bytes);
        profile.rows_total = fragments.len() as u64;
        profile.source_bytes_total = bytes;
        valid.then_some(profile)
    }

    /// Chooses from a profile, knowing what is published.
    pub fn choose(&self, profile: &Profile, published: Option<&Manifest>) -> Result<Plan> {
        // What is built is good as long as its own cut would still store the same.
        let built = published.filter(|manifest| {
            self.cuts.iter().any(|cut| {
                let now = definition(&cut.offline_program(&self.graph), manifest.codec, cut.by_reference);
                cut.word == manifest.cut && now == manifest.definition
            })
        });
        let built = built.map(|manifest| (manifest.cut.as_str(), manifest.codec));
        let unpublished = Dataset::at(&self.folder).unpublished_bytes(published)?;
        let room = files::free_bytes(&self.folder).map(|free| free.saturating_add(unpublished));
        choose(profile, &self.settings, room, built)
    }

    /// The cut that a plan chose.
    pub fn cut(&self, plan: &Plan) -> Result<&Cut> {
        let word = &plan.choice().cut;
        self.cuts.iter().find(|cut| cut.word == *word).ok_or_else(|| Error::internal("the plan", "it chose no cut"))
    }
}

/// Measures a sample and prints what was found.
pub fn profile(console: &Console, args: &PlanArgs) -> Result<()> {
    let prepared = prepare(console, args)?;
    let profile = prepared.profile(console, args)?;
    if args.json {
        let value = serde_json::to_value(&profile).map_err(|error| Error::internal("the profile", error))?;
        return console.print_json(&value);
    }
    let mut rows = vec![["step", "op", "per row", "rows/s a thread", "bytes a row"].map(ToOwned::to_owned).to_vec()];
    rows.push(vec![
        "read".to_owned(),
        "source".to_owned(),
        show_seconds(profile.read_source.estimate),
        show_rate(1.0 / profile.read_source.estimate),
        show_bytes(profile.source_bytes_total as f64 / profile.rows_total.max(1) as f64),
    ]);
    for step in &profile.steps {
        rows.push(vec![
            step.step.clone(),
            step.op.clone(),
            show_seconds(step.seconds.estimate),
            show_rate(1.0 / step.seconds.estimate),
            show_bytes(step.bytes.estimate),
        ]);
    }
    let mut text = crate::report::table(&rows, &[2, 3, 4]);
    text.push_str(&format!(
        "\nstorage: writes {}/s, reads {}/s, a sync takes {}\n",
        show_bytes(profile.storage.write_bytes_per_second.estimate),
        show_bytes(profile.storage.read_bytes_per_second.estimate),
        show_seconds(profile.storage.sync_seconds)
    ));
    if profile.bad_rows > 0 {
        text.push_str(&format!("{} rows of the sample can't be processed\n", profile.bad_rows));
    }
    console.print(&text)
}

/// Prints every candidate and the choice.
pub fn plan(console: &Console, args: &PlanArgs) -> Result<()> {
    let prepared = prepare(console, args)?;
    let profile = prepared.profile(console, args)?;
    let plan = prepared.choose(&profile, Dataset::at(&prepared.folder).manifest()?.as_ref())?;
    if args.json { console.print_json(&plan.to_json()) } else { console.print(&plan_text(&plan)) }
}
