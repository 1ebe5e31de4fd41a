//! `profile` and `plan`, and what `build` shares with them.

use std::path::PathBuf;

use super::args::{PlanArgs, PlanOnlyArgs};
use super::console::Console;
use crate::diag::{Error, Result, nearest};
use crate::format::SourceKind;
use crate::materialize::{self, default_folder, definition};
use crate::pipeline::{
    self, ColumnId, CompileOptions, Cut, CutError, Graph, Objective, PlanSettings, Producer, Rewritten, cuts,
    parse_cut, relation_program, rewrite,
};
use crate::plan::{Plan, plan as choose};
use crate::profile::{self, BaseRows, Profile, ProfileLimit, Subject};
use crate::report::{plan_text, rewrites_json, rewrites_text};
use crate::store::{Dataset, Manifest};
use crate::types::Codec;
use crate::types::units::{parse_bytes, show_bytes, show_count, show_rate, show_seconds};
use crate::world::{files, machine};

/// A pipeline with everything that its arguments say.
pub struct Prepared {
    /// The rewritten graph.
    pub graph: Graph,
    /// What the rewrites did.
    pub rewritten: Rewritten,
    /// Its cuts.
    pub cuts: Vec<Cut>,
    /// The data set's folder.
    pub folder: PathBuf,
    /// Threads.
    pub jobs: usize,
    /// What the planner is asked for.
    pub settings: PlanSettings,
    /// How programs are compiled.
    pub options: CompileOptions,
}

/// Loads a pipeline and reads the arguments.
pub fn prepare(console: &Console, args: &PlanArgs) -> Result<Prepared> {
    let checked = pipeline::load(&args.pipeline)?;
    console.warnings(&checked.warnings);
    let rewritten = rewrite(&checked.graph, &args.no_rewrite);
    let graph = rewritten.graph.clone();
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
    let mut cuts = cuts(&graph);
    if let Some(word) = &settings.cut {
        // Before anything is measured: a wrong word should cost nobody ten seconds.
        let cut = resolve_cut(&graph, &cuts, word)?;
        settings.cut = Some(cut.word.clone());
        if cuts.iter().all(|other| other.word != cut.word) {
            cuts.push(cut);
        }
    }
    settings.epochs = args.epochs.or(settings.epochs);
    settings.trainer_rate = args.trainer_rate.or(settings.trainer_rate);
    let options = rewritten.options;
    Ok(Prepared { graph, rewritten, cuts, folder, jobs, settings, options })
}

/// The cut of a word: names of steps, joined by `+`; an op's full name does where only one step has it.
pub fn resolve_cut(graph: &Graph, cuts: &[Cut], word: &str) -> Result<Cut> {
    let mut of_op = graph.steps.iter().filter(|step| step.op_name() == word && !step.online_only);
    let word = match (of_op.next(), of_op.next()) {
        (Some(only), None) => only.name.as_str(),
        _ => word,
    };
    let error = match parse_cut(graph, word) {
        Ok(cut) => return Ok(cut),
        Err(error) => error,
    };
    let message = match &error {
        CutError::OnlineOnly(id) => format!(
            "there is no cut at `{}`: it is random, or comes after a random step, and can only run online",
            graph.step(*id).name
        ),
        CutError::Needed(id) => format!("there is no cut without `{}`: it is needed offline", graph.step(*id).name),
        CutError::Unknown(name) => format!("there is no cut `{name}`"),
    };
    let words: Vec<&str> = cuts.iter().map(|cut| cut.word.as_str()).collect();
    let help = match nearest(word, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? The cuts are {}", words.join(", ")),
        None => format!("the cuts are {}", words.join(", ")),
    };
    Err(Error::Usage { message, help: Some(help) })
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
        let files = materialize::files(&self.graph)?;
        let base = self.base_rows(args.sample)?;
        let base_rows = base.as_ref().map_or(0, |base| base.total);
        let subject = Subject {
            graph: &self.graph,
            cuts: &self.cuts,
            files: &files,
            base,
            options: self.options,
            shards: materialize::expected_shards(&self.graph, base_rows, args.shard_rows),
        };
        let profile = profile::profile(&subject, self.jobs, limit, &self.folder)?;
        console.say(&format!(
            "profiled {} of {} rows in {}",
            show_count(profile.rows_sampled),
            show_count(profile.rows_total),
            show_seconds(profile.seconds)
        ));
        if profile.bad_rows > 0 {
            console.say(&format!("{} rows of the sample can't be processed", show_count(profile.bad_rows)));
        }
        if profile.cuts.iter().all(|cut| cut.raw_bytes.estimate == 0.0) {
            console.say("no row of the sample is left behind the steps: nothing could be measured of what comes after");
        }
        let text = serde_json::to_vec_pretty(&profile).map_err(|error| Error::internal("the profile", error))?;
        files::write_atomic(&path, &text)?;
        Ok(profile)
    }

    /// Whether each row of the base relation is a file.
    fn is_files(&self) -> bool {
        match self.graph.relation(self.graph.base(self.graph.output_relation)).producer {
            Producer::Source(source) => self.graph.sources[source].kind == SourceKind::Files,
            Producer::Step(_) => false,
        }
    }

    /// Rows of the base relation for a profile, where its rows aren't files.
    fn base_rows(&self, wanted: usize) -> Result<Option<BaseRows>> {
        let graph = &self.graph;
        let base = graph.base(graph.output_relation);
        if self.is_files() {
            return Ok(None);
        }
        let mut columns: Vec<ColumnId> = Vec::new();
        let whole = relation_program(graph, graph.output_relation, &graph.outputs, self.options);
        let offline = self.cuts.iter().flat_map(|cut| cut.offline_program(graph, self.options).inputs);
        for id in whole.inputs.into_iter().chain(offline) {
            if !columns.contains(&id) {
                columns.push(id);
            }
        }
        let dataset = Dataset::at(&self.folder);
        materialize::base_rows(graph, base, &columns, self.jobs, wanted.max(1), &dataset).map(Some)
    }

    /// A profile of the same steps, machine and threads, of data that hasn't grown or shrunk by more than a tenth;
    /// its totals are brought up to date.
    fn still_valid(&self, mut profile: Profile) -> Option<Profile> {
        let files: usize = self.graph.sources.iter().map(|source| source.listing.fragments.len()).sum();
        let bytes: u64 = self.graph.sources.iter().map(crate::format::Source::bytes).sum();
        let near = |was: u64, is: u64| (is as f64 - was as f64).abs() <= DRIFT * was as f64;
        let rows = if self.is_files() { files as u64 } else { profile.rows_total };
        let valid = profile.version == profile::PROFILE_VERSION
            && profile.definition == profile::definition_fingerprint(&self.graph, &self.cuts)
            && profile.threads == self.jobs
            && profile.machine.cores == machine::cores()
            && near(profile.rows_total, rows)
            && near(profile.source_bytes_total, bytes);
        profile.rows_total = rows;
        profile.source_bytes_total = bytes;
        valid.then_some(profile)
    }

    /// Chooses from a profile, knowing what is published.
    pub fn choose(&self, profile: &Profile, published: Option<&Manifest>) -> Result<Plan> {
        // What is built is good as long as its own cut would still store the same.
        let built = published.filter(|manifest| {
            self.cuts.iter().any(|cut| {
                cut.word == manifest.cut
                    && definition(&self.graph, cut, manifest.codec, self.options) == manifest.definition
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
        "\nstorage: writes {}/s, reads {}/s, a small file is safe after {}\n",
        show_bytes(profile.storage.write_bytes_per_second.estimate),
        show_bytes(profile.storage.read_bytes_per_second.estimate),
        show_seconds(profile.storage.commit_seconds)
    ));
    if profile.bad_rows > 0 {
        text.push_str(&format!("{} rows of the sample can't be processed\n", profile.bad_rows));
    }
    console.print(&text)
}

/// Prints every candidate and the choice.
pub fn plan(console: &Console, args: &PlanOnlyArgs) -> Result<()> {
    let (explain, args) = (args.explain, &args.plan);
    let prepared = prepare(console, args)?;
    let profile = prepared.profile(console, args)?;
    let plan = prepared.choose(&profile, Dataset::at(&prepared.folder).manifest()?.as_ref())?;
    if args.json {
        let mut value = plan.to_json();
        if explain {
            value["rewrites"] = rewrites_json(&prepared.rewritten);
        }
        return console.print_json(&value);
    }
    let explained = if explain { format!("{}\n", rewrites_text(&prepared.rewritten)) } else { String::new() };
    console.print(&format!("{explained}{}", plan_text(&plan)))
}
