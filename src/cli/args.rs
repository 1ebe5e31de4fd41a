//! The arguments, and nothing but.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::profile::ProfileLimit;

/// Bakes the dear, deterministic part of a data pipeline once; the rest runs while training.
#[derive(Debug, Parser)]
#[command(name = "parbake", version, max_term_width = 100)]
#[command(
    after_help = "Examples:\n  parbake check pipelines/photos.toml\n  parbake build pipelines/photos.toml\n  parbake stream out/photos --epoch 0 --shuffle 1 --bench"
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Whether messages are coloured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// Whether messages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a pipeline and print its graph.
    Check(CheckArgs),
    /// Measure a sample of the data and print what each step costs.
    Profile(PlanArgs),
    /// Print every way of materializing, what it would cost, and the choice.
    Plan(PlanOnlyArgs),
    /// Build the data set, or what is stale of it.
    #[command(
        after_help = "Examples:\n  parbake build pipelines/photos.toml\n  parbake build photos.toml --cut resize --codec none --out /data/photos"
    )]
    Build(BuildArgs),
    /// Say what is stale, and because of what.
    Status(BuildArgs),
    /// Stream a data set: run what is left of the pipeline.
    #[command(
        after_help = "Examples:\n  parbake stream out/photos > batches.arrows\n  parbake stream out/photos --epoch 3 --shuffle 5 --digest\n  parbake stream out/photos --bench"
    )]
    Stream(StreamArgs),
    /// Compare a data set with its checksums, and some or all of it with what the sources give now.
    #[command(
        after_help = "Examples:\n  parbake verify pipelines/photos.toml\n  parbake verify photos.toml --all --out /data/photos"
    )]
    Verify(VerifyArgs),
    /// Build and stream, and print predicted beside measured.
    Bench(BenchArgs),
    /// Print the reference of ops.
    Ops(OpsArgs),
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// Print a picture of the rewritten graph for Graphviz.
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    pub dot: bool,
    /// Print a picture of the rewritten graph as SVG.
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    /// With --dot or --svg: draw this cut.
    #[arg(long, value_name = "STEP")]
    pub cut: Option<String>,
    /// Leave this rewrite out; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(crate::pipeline::rewrite::names()))]
    pub no_rewrite: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ops`.
#[derive(Debug, Args)]
pub struct OpsArgs {
    /// Only this op.
    pub op: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What a plan is made from.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// Where the data set is [default: out/NAME].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Threads [default: all cores].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Source files (or rows, where they come from several sources) of a shard, about [default: by their size].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub shard_rows: Option<u32>,
    /// Materialize at this step: its name, `bytes` or `source`; several joined by `+`; `!NAME` leaves a small step
    /// out that would come along.
    #[arg(long, value_name = "STEP")]
    pub cut: Option<String>,
    /// Compress with this: none, lz4, zstd1 or zstd3.
    #[arg(long, value_name = "CODEC")]
    pub codec: Option<String>,
    /// Store at most this much, e.g. "150 GB".
    #[arg(long, visible_alias = "storage-budget", value_name = "SIZE", allow_hyphen_values = true)]
    pub budget: Option<String>,
    /// How often the stream will be read [default: 90].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub epochs: Option<u64>,
    /// What to make best: train-time, throughput or storage.
    #[arg(long, value_name = "WORD")]
    pub objective: Option<String>,
    /// The most rows a second that the trainer takes.
    #[arg(long, value_name = "RATE", value_parser = positive, allow_negative_numbers = true)]
    pub trainer_rate: Option<f64>,
    /// Profile at most this many rows.
    #[arg(long, value_name = "N", default_value_t = ProfileLimit::DEFAULT.rows)]
    pub sample: usize,
    /// Profile for at most this many seconds, about.
    #[arg(long, value_name = "S", default_value_t = ProfileLimit::DEFAULT.seconds, value_parser = not_negative, allow_negative_numbers = true)]
    pub profile_seconds: f64,
    /// Leave this rewrite out; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(crate::pipeline::rewrite::names()))]
    pub no_rewrite: Vec<String>,
    /// Profile again, whatever is stored.
    #[arg(long)]
    pub reprofile: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanOnlyArgs {
    /// What to plan.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Print what each rewrite did to the steps, too.
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `build` and `status`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// What to build.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Only say what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `stream`.
#[derive(Debug, Args)]
pub struct StreamArgs {
    /// The data set's folder, or a pipeline file whose data set is in out/NAME.
    pub dataset: PathBuf,
    /// The epoch: random steps and the shuffle depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub epoch: u64,
    /// Shuffle with this seed; without it rows come in the source's order.
    #[arg(long, value_name = "SEED")]
    pub shuffle: Option<u64>,
    /// Rows a batch.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// Threads [default: all cores].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Measure rows a second instead of writing batches.
    #[arg(long, conflicts_with = "digest")]
    pub bench: bool,
    /// Print a digest of the rows instead of writing batches.
    #[arg(long)]
    pub digest: bool,
    /// With --bench: stream epochs for at least this many seconds.
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = not_negative, allow_negative_numbers = true)]
    pub seconds: f64,
    /// With --bench or --digest: print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// Where the data set is [default: out/NAME].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Threads [default: all cores].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Shards to compute again, drawn at random [default: one in twenty].
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub shards: Option<usize>,
    /// Compute all shards again.
    #[arg(long)]
    pub all: bool,
    /// The seed of the draw.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Leave this rewrite out, if the data set was built so; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(crate::pipeline::rewrite::names()))]
    pub no_rewrite: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to build.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Every cut and not only the chosen one, each in a folder of its own that is removed.
    #[arg(long)]
    pub all: bool,
}

fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|number| *number > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}
