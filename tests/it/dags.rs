//! One stream whatever the cut, over random pipelines: several sources, all rows classes, random steps, rewrites.
//!
//! Every pipeline is built at cuts drawn from all closed sets of its steps, with rewrites on and off, one and two
//! threads, small and large shards; two epochs of all of them have to have the same digests, and between the epochs
//! only what is downstream of a random step may differ. `PARBAKE_DAGS` sets the number of pipelines, `PARBAKE_SEED`
//! where they start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use parbake::diag::SourceText;
use parbake::materialize::{Pending, Request};
use parbake::online::{self, Rows, Stream, StreamDigest, StreamOptions};
use parbake::pipeline::rewrite::{self, Rewritten};
use parbake::pipeline::{self, Cut, Graph, all_cuts};
use parbake::store::{Dataset, Manifest};
use parbake::types::row_digest::value_digests;
use parbake::types::{BufferPool, Codec, RowKey};

/// `SplitMix64` (Steele, Lea and Flood 2014): enough to draw pipelines.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.below(items.len())].clone())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Int,
    List,
    Bytes,
    Image,
    ImageF32,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: Kind,
    random: bool,
}

#[derive(Debug, Clone)]
struct Relation {
    name: String,
    columns: Vec<Column>,
    random: bool,
}

/// A pipeline's text under construction, with what is there to go on with.
struct Writer {
    draw: Draw,
    text: String,
    relations: Vec<Relation>,
    current: usize,
    names: usize,
    grown: usize,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind, random: false };
        let relation = |name: &str, columns| Relation { name: name.to_owned(), columns, random: false };
        let relations = vec![
            relation("pics", vec![column("path", Kind::Text), column("bytes", Kind::Bytes), column("size", Kind::Int)]),
            relation("texts", vec![column("id", Kind::Int), column("text", Kind::Text), column("n", Kind::Int)]),
            relation("words", vec![column("id", Kind::Int), column("word", Kind::Text), column("k", Kind::Int)]),
        ];
        let mut draw = Draw(seed);
        let current = draw.below(3);
        let text = "seed = 5\non_error = \"skip\"\n[source.pics]\nfiles = \"pics/*.bmp\"\n[source.texts]\njsonl = \
                    \"texts/*.jsonl\"\n[source.words]\ncsv = \"words.csv\"\n"
            .to_owned();
        Self { draw, text, relations, current, names: 0, grown: 0 }
    }

    fn here(&self) -> &Relation {
        &self.relations[self.current]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("c{}", self.names)
    }

    fn column(&mut self, kinds: &[Kind]) -> Option<Column> {
        let fit: Vec<Column> =
            self.here().columns.iter().filter(|column| kinds.contains(&column.kind)).cloned().collect();
        self.draw.of(&fit)
    }

    fn begin(&mut self) {
        let from = self.here().name.clone();
        let _ = writeln!(self.text, "[[step]]\nfrom = \"{from}\"");
    }

    /// A step that makes columns.
    fn map(&mut self, op: &str, input: &Column, kinds: &[Kind], random: bool) {
        self.begin();
        let outs: Vec<String> = kinds.iter().map(|_| self.name()).collect();
        let quoted: Vec<String> = outs.iter().map(|out| format!("\"{out}\"")).collect();
        let _ = writeln!(self.text, "{op}\nout = [{}]", quoted.join(", "));
        if !op.starts_with("compute") {
            let _ = writeln!(self.text, "in = \"{}\"", input.name);
        }
        let random = random || input.random || self.here().random;
        let columns = outs.into_iter().zip(kinds).map(|(name, kind)| Column { name, kind: *kind, random });
        let current = self.current;
        self.relations[current].columns.extend(columns);
    }

    /// What a step that makes rows leaves behind: a relation of its own, or the one that it worked on anew.
    fn rows(&mut self, columns: Vec<Column>, random: bool) {
        if self.draw.chance(40) {
            self.names += 1;
            let name = format!("r{}", self.names);
            let _ = writeln!(self.text, "rows = \"{name}\"");
            self.relations.push(Relation { name, columns, random });
            self.current = self.relations.len() - 1;
        } else {
            let name = self.here().name.clone();
            let current = self.current;
            self.relations[current] = Relation { name, columns, random };
        }
    }

    fn step(&mut self) -> Option<()> {
        let has = |kind: Kind| self.here().columns.iter().any(|column| column.kind == kind);
        let (has_bytes, has_image) = (has(Kind::Bytes), has(Kind::Image) || has(Kind::ImageF32));
        // Steps on pictures need one: without that they would hardly ever be drawn.
        let choice = match self.draw.below(100) {
            0..30 if has_bytes && !has_image => 12,
            0..25 if has_image => 13,
            25..45 if has_image => 15,
            _ => self.draw.below(22),
        };
        match choice {
            0 | 1 => {
                let input = self.column(&[Kind::Int])?;
                self.map(&format!("compute = \"{} * 3 + 1\"", input.name), &input, &[Kind::Int], false);
            }
            2 => {
                let input = self.column(&[Kind::Text])?;
                self.map(&format!("compute = \"upper({})\"", input.name), &input, &[Kind::Text], false);
            }
            3 => {
                let input = self.column(&[Kind::Text])?;
                self.map(&format!("compute = \"length({})\"", input.name), &input, &[Kind::Int], false);
            }
            4 | 5 => {
                let input = self.column(&[Kind::Int, Kind::Text])?;
                self.begin();
                let condition = match input.kind {
                    Kind::Text => format!("length({}) > 4", input.name),
                    _ => format!("{} % 3 <> 1", input.name),
                };
                let _ = writeln!(self.text, "filter = \"{condition}\"");
                let (columns, random) = (self.here().columns.clone(), self.here().random || input.random);
                self.rows(columns, random);
            }
            6 => {
                let input = self.column(&[Kind::Text])?;
                self.map("op = \"text.bytes\"", &input, &[Kind::List], false);
            }
            7 => {
                let input = self.column(&[Kind::List])?;
                self.map("op = \"tensor.length\"", &input, &[Kind::Int], false);
            }
            8 => {
                let input = self.column(&[Kind::List])?;
                self.map("op = \"tensor.cast\"\ndtype = \"f64\"", &input, &[Kind::List], false);
            }
            9 | 10 => self.expand()?,
            11 => {
                let input = self.column(&[Kind::List]).filter(|input| !input.random && !self.here().random)?;
                self.begin();
                let out = self.name();
                let _ = writeln!(
                    self.text,
                    "op = \"tensor.pack\"\nin = \"{}\"\nout = \"{out}\"\nlength = 5\nend = 0\npad = 1",
                    input.name
                );
                self.rows(vec![Column { name: out, kind: Kind::List, random: false }], false);
            }
            12 => {
                let input = self.column(&[Kind::Bytes])?;
                self.map("op = \"image.decode\"", &input, &[Kind::Image], false);
            }
            13 | 14 => self.image()?,
            15 => {
                let input = self.column(&[Kind::Image, Kind::ImageF32])?;
                let frozen = if self.draw.chance(30) { "\nvariants = 2" } else { "" };
                let op = match self.draw.below(2) {
                    0 => format!("op = \"image.random_crop\"\nsize = [2, 2]{frozen}"),
                    _ => format!("op = \"image.random_flip\"{frozen}"),
                };
                self.map(&op, &input, &[input.kind], true);
            }
            16 => {
                let input = self.here().columns.first()?.clone();
                self.begin();
                let _ = writeln!(self.text, "op = \"rows.sample\"\nin = \"{}\"\nkeep = 0.6", input.name);
                let columns = self.here().columns.clone();
                self.rows(columns, true);
            }
            17 => {
                let input = self.column(&[Kind::Int, Kind::Text, Kind::List])?;
                self.together(&input)?;
                self.begin();
                let _ = writeln!(self.text, "op = \"rows.distinct\"\nin = \"{}\"", input.name);
                let columns = self.fixed_columns();
                self.rows(columns, false);
            }
            18 => {
                let (number, text) = (self.column(&[Kind::Int])?, self.column(&[Kind::Text])?);
                self.together(&number)?;
                self.together(&text)?;
                self.begin();
                let (group, many, top) = (self.name(), self.name(), self.name());
                let _ = writeln!(
                    self.text,
                    "sql = \"select {} % 4 as {group}, count(*) as {many}, max({}) as {top} from input group by 1\"",
                    number.name, text.name
                );
                let column = |name: String, kind| Column { name, kind, random: false };
                self.rows(vec![column(group, Kind::Int), column(many, Kind::Int), column(top, Kind::Text)], false);
            }
            19 => self.join()?,
            20 => self.union()?,
            _ => self.current = self.draw.below(self.relations.len()),
        }
        Some(())
    }

    /// Rows can only be put together where nothing random is in the way.
    fn together(&self, input: &Column) -> Option<()> {
        (!input.random && !self.here().random).then_some(())
    }

    fn fixed_columns(&self) -> Vec<Column> {
        self.here().columns.iter().filter(|column| !column.random).cloned().collect()
    }

    fn expand(&mut self) -> Option<()> {
        if self.grown >= 2 {
            return None;
        }
        let input = self.column(&[Kind::Text, Kind::List])?;
        self.grown += 1;
        self.begin();
        let (piece, position) = (self.name(), self.name());
        let (op, kind) = match input.kind {
            Kind::Text => ("op = \"text.split\"\nby = \" \"", Kind::Text),
            _ => ("op = \"tensor.windows\"\nsize = 3\nhop = 2\nrest = \"pad\"", Kind::List),
        };
        let _ = writeln!(self.text, "{op}\nin = \"{}\"\nout = [\"{piece}\", \"{position}\"]", input.name);
        let random = self.here().random || input.random;
        let mut columns = self.here().columns.clone();
        columns.push(Column { name: piece, kind, random });
        columns.push(Column { name: position, kind: Kind::Int, random });
        self.rows(columns, random);
        Some(())
    }

    fn image(&mut self) -> Option<()> {
        let input = self.column(&[Kind::Image, Kind::ImageF32])?;
        let is_u8 = input.kind == Kind::Image;
        match self.draw.below(6) {
            0 if is_u8 => self.map("op = \"image.resize\"\nsize = [6, 5]", &input, &[Kind::Image], false),
            1 => self.map("op = \"image.center_crop\"\nsize = [4, 3]", &input, &[input.kind], false),
            2 | 3 if is_u8 => self.map("op = \"image.normalize\"", &input, &[Kind::ImageF32], false),
            4 if is_u8 => self.map("op = \"tensor.cast\"\ndtype = \"f32\"", &input, &[Kind::ImageF32], false),
            _ => self.map("op = \"image.shape\"", &input, &[Kind::Int, Kind::Int], false),
        }
        Some(())
    }

    fn join(&mut self) -> Option<()> {
        if self.grown >= 2 {
            return None;
        }
        let other = self.draw.below(self.relations.len());
        let left = self.column(&[Kind::Int])?;
        self.together(&left)?;
        let right = self.relations[other].clone();
        let keys: Vec<Column> =
            right.columns.iter().filter(|column| column.kind == Kind::Int && !column.random).cloned().collect();
        let key = self.draw.of(&keys)?;
        if right.random {
            return None;
        }
        self.grown += 1;
        self.begin();
        self.names += 1;
        let suffix = format!("_s{}", self.names);
        let how = if self.draw.chance(50) { "left" } else { "inner" };
        let _ = writeln!(
            self.text,
            "join = \"{}\"\non = \"{} = {}\"\nhow = \"{how}\"\nsuffix = \"{suffix}\"",
            right.name, left.name, key.name
        );
        let mut columns = self.fixed_columns();
        let all: BTreeSet<String> = self.here().columns.iter().map(|column| column.name.clone()).collect();
        for mut column in right.columns.into_iter().filter(|column| !column.random) {
            if left.name == key.name && column.name == key.name {
                continue;
            }
            if all.contains(&column.name) {
                column.name.push_str(&suffix);
            }
            // An empty file is no picture: a left join would make bad rows of all that it adds.
            if how == "left" && matches!(column.kind, Kind::Bytes | Kind::Image | Kind::ImageF32) {
                continue;
            }
            columns.push(column);
        }
        self.rows(columns, false);
        Some(())
    }

    fn union(&mut self) -> Option<()> {
        let other = self.draw.below(self.relations.len());
        let right = self.relations[other].clone();
        let left = self.here().clone();
        if left.random || right.random || self.grown >= 2 {
            return None;
        }
        self.grown += 1;
        let common: Vec<Column> = left
            .columns
            .iter()
            .filter(|column| !column.random)
            .filter(|column| right.columns.iter().any(|o| o.name == column.name && o.kind == column.kind && !o.random))
            .cloned()
            .collect();
        if common.is_empty() {
            return None;
        }
        self.begin();
        let _ = writeln!(self.text, "union = [\"{}\", \"{}\"]", left.name, right.name);
        self.rows(common, false);
        Some(())
    }

    fn finish(mut self) -> String {
        let here = self.here().clone();
        let mut columns: Vec<Column> =
            here.columns.iter().filter(|column| column.kind != Kind::Bytes).cloned().collect();
        // The latest columns, and some of the others.
        while columns.len() > 4 {
            let at = self.draw.below(columns.len().div_ceil(2));
            columns.remove(at);
        }
        let quoted: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        let _ = writeln!(self.text, "[output]\nfrom = \"{}\"\ncolumns = [{}]", here.name, quoted.join(", "));
        self.text
    }
}

fn pipeline_text(seed: u64) -> String {
    let mut writer = Writer::new(seed);
    let steps = 2 + writer.draw.below(14);
    let mut made = 0;
    for _ in 0..8 * steps {
        if made == steps {
            break;
        }
        made += usize::from(writer.step().is_some());
    }
    writer.finish()
}

/// A 24-bit BMP, the simplest picture there is.
fn bitmap(width: u32, height: u32, seed: u64) -> Vec<u8> {
    let mut draw = Draw(seed);
    let stride = (width * 3).div_ceil(4) * 4;
    let mut file = Vec::new();
    file.extend(b"BM");
    for field in [54 + stride * height, 0, 54, 40, width, height] {
        file.extend(field.to_le_bytes());
    }
    file.extend([1, 0, 24, 0]);
    for field in [0, stride * height, 2835, 2835, 0, 0] {
        file.extend(u32::to_le_bytes(field));
    }
    file.extend((0..stride * height).map(|_| draw.next().to_le_bytes()[0]));
    file
}

fn lay_out(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    for (at, (width, height)) in (0_u64..).zip([(5, 4), (9, 7), (4, 6), (8, 8), (6, 5)]) {
        write(&format!("pics/p{at}.bmp"), &bitmap(width, height, at));
    }
    write("pics/broken.bmp", &bitmap(6, 6, 9)[..70]);
    let sentences = [
        "the quick brown fox",
        "jumps",
        "over the lazy dog",
        "",
        "a bb ccc dddd eeeee",
        "größe zählt",
        "the quick brown fox",
        "x y",
        "one two three",
        "jumps",
    ];
    let line =
        |(at, text): (usize, &&str)| format!("{{\"id\": {}, \"text\": \"{text}\", \"n\": {}}}\n", at % 7, at * 5 % 11);
    let lines: Vec<String> = sentences.iter().enumerate().map(line).collect();
    write("texts/a.jsonl", lines[..4].concat().as_bytes());
    write("texts/b.jsonl", lines[4..].concat().as_bytes());
    write(
        "words.csv",
        b"id,word,k\n1,alpha beta,4\n2,gamma,0\n2,delta epsilon,9\n5,zeta,4\n8,eta theta,1\n1,alpha beta,7\n",
    );
}

struct Run<'a> {
    folder: &'a Path,
    rewritten: &'a Rewritten,
}

impl Run<'_> {
    fn build(&self, cut: &Cut, jobs: usize, shard_rows: u32) -> Result<(Dataset, Manifest), String> {
        let folder = self.folder.join("D");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let dataset = Dataset::at(&folder);
        let lock = dataset.lock().unwrap();
        let request = Request {
            graph: &self.rewritten.graph,
            cut,
            codec: Codec::None,
            options: self.rewritten.options,
            shard_rows: Some(shard_rows),
            plan: serde_json::Value::Null,
        };
        let pending = Pending::find(&request, &dataset, None).map_err(|error| error.to_string())?;
        let built = pending.build(&dataset, &lock, jobs, Arc::default()).map_err(|error| error.to_string())?;
        Ok((dataset, built.manifest))
    }
}

/// Cuts that are tried of a pipeline, with rewrites and without.
const CUTS: usize = 10;

/// The digest of an epoch, and each column's values by row key.
type Epoch = (String, Vec<BTreeMap<RowKey, [u8; 32]>>);

fn stream(
    dataset: &Dataset,
    manifest: &Manifest,
    epoch: u64,
    shuffle: Option<u64>,
    jobs: usize,
) -> Result<Epoch, String> {
    let remainder = manifest.remainder.at_epoch(epoch);
    let rows = Arc::new(Rows::open(dataset, manifest, &remainder).map_err(|error| error.to_string())?);
    let files = online::files(manifest).map_err(|error| error.to_string())?;
    let options = StreamOptions { epoch, shuffle, batch_rows: 3 + jobs * 4, jobs, digest: true };
    let pool = BufferPool::new(8);
    let stream = Stream::start(&rows, &remainder, &files, manifest.on_error, &pool, &options);
    let stream = stream.map_err(|error| error.to_string())?;
    let columns = stream.columns().to_vec();
    let mut digest = StreamDigest::new(&columns);
    let mut values = vec![BTreeMap::new(); columns.len()];
    for batch in stream {
        let batch = batch.map_err(|error| error.to_string())?;
        digest.add(&batch.digests);
        for (at, column) in columns.iter().enumerate() {
            let array = std::slice::from_ref(&batch.batch.columns[at]);
            let digests = value_digests(array, &[&column.column_type], batch.batch.rows())?;
            values[at].extend(batch.batch.keys.iter().zip(digests).map(|(key, digest)| (*key, digest.0)));
        }
    }
    Ok((digest.finish(), values))
}

/// Whether a column is made of numbers that are drawn anew in each epoch.
fn is_drawn(graph: &Graph, id: pipeline::ColumnId) -> bool {
    match graph.column(id).producer {
        pipeline::Producer::Step(step) => {
            let step = graph.step(step);
            let draws = step.random() && step.rows() == parbake::ops::RowsClass::Map;
            draws || step.inputs.iter().any(|input| is_drawn(graph, *input))
        }
        pipeline::Producer::Source(_) => false,
    }
}

#[derive(Default)]
struct Tally {
    pipelines: usize,
    refused: usize,
    builds: usize,
    rows: usize,
    random_columns: usize,
    random_columns_that_differ: usize,
    classes: BTreeMap<String, usize>,
}

fn check(seed: u64, folder: &Path, tally: &mut Tally) -> Result<(), String> {
    let text = pipeline_text(seed);
    let source = SourceText { name: "p.toml".to_owned(), text: text.clone().into() };
    let graph = match pipeline::check(&source, folder) {
        Ok(checked) => checked.graph,
        Err(diagnostics) => {
            tally.refused += 1;
            if std::env::var_os("PARBAKE_REFUSED").is_some() {
                println!("{text}\n{}", parbake::report::render_diagnostics(&diagnostics, false, 100));
            }
            return Ok(());
        }
    };
    tally.pipelines += 1;
    for step in &graph.steps {
        *tally.classes.entry(step.op_name().to_owned()).or_default() += 1;
    }
    let failed = |what: String| format!("seed {seed}: {what}\n{text}");
    let mut draw = Draw(seed ^ 0xABCD);
    let mut first: Option<[Epoch; 2]> = None;
    for off in [Vec::new(), rewrite::names().into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()] {
        let rewritten = rewrite::rewrite(&graph, &off);
        let mut cuts = all_cuts(&rewritten.graph, 200);
        while cuts.len() > CUTS {
            cuts.remove(draw.below(cuts.len()));
        }
        let run = Run { folder, rewritten: &rewritten };
        for (at, cut) in cuts.iter().enumerate() {
            let (jobs, shard_rows) = [(1, 1), (2, 3), (1, 3), (2, 1)][(at + draw.below(4)) % 4];
            let place = format!("cut {}, rewrites off {off:?}, {jobs} threads, {shard_rows} rows a shard", cut.word);
            let told = |error: String| failed(format!("{place}: {error}"));
            let (dataset, manifest) = run.build(cut, jobs, shard_rows).map_err(told)?;
            tally.builds += 1;
            let epochs = [
                stream(&dataset, &manifest, 0, Some(7), jobs).map_err(told)?,
                stream(&dataset, &manifest, 1, None, 3 - jobs).map_err(told)?,
            ];
            match &first {
                None => first = Some(epochs),
                Some(first) => {
                    for (epoch, (one, other)) in first.iter().zip(&epochs).enumerate() {
                        if one.0 != other.0 {
                            let rows = [one, other].map(|e| e.1.first().map_or(0, BTreeMap::len));
                            let columns: Vec<usize> =
                                (0..one.1.len()).filter(|at| one.1[*at] != other.1[*at]).collect();
                            return Err(told(format!("epoch {epoch}: {rows:?} rows, columns {columns:?} differ")));
                        }
                    }
                }
            }
        }
    }
    let Some([one, other]) = first else { return Err(failed("no cut".to_owned())) };
    tally.rows += one.1.first().map_or(0, BTreeMap::len);
    for (at, random) in graph.outputs.iter().map(|id| is_drawn(&graph, *id)).enumerate() {
        let differ = one.1[at].iter().any(|(key, value)| other.1[at].get(key).is_some_and(|other| other != value));
        // The extents of a crop are the same whatever it shows.
        let is_picture = graph.column(graph.outputs[at]).column_type.tensor().is_some_and(|t| t.shape.len() == 3);
        if random {
            if one.1[at].is_empty() || !is_picture {
                continue;
            }
            tally.random_columns += 1;
            tally.random_columns_that_differ += usize::from(differ);
        } else if differ {
            return Err(failed(format!("output {at} isn't random and differs between epochs")));
        }
    }
    Ok(())
}

#[test]
fn random_pipelines_give_one_stream() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (wanted, first) = (number("PARBAKE_DAGS", 200), number("PARBAKE_SEED", 1));
    let next = std::sync::atomic::AtomicU64::new(first);
    let tally = std::sync::Mutex::new(Tally::default());
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                lay_out(folder.path());
                loop {
                    if tally.lock().unwrap().pipelines as u64 >= wanted || failures.lock().unwrap().len() > 2 {
                        return;
                    }
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let mut mine = Tally::default();
                    let result = check(seed, folder.path(), &mut mine);
                    let mut all = tally.lock().unwrap();
                    all.pipelines += mine.pipelines;
                    all.refused += mine.refused;
                    all.builds += mine.builds;
                    all.rows += mine.rows;
                    all.random_columns += mine.random_columns;
                    all.random_columns_that_differ += mine.random_columns_that_differ;
                    for (class, count) in mine.classes {
                        *all.classes.entry(class).or_default() += count;
                    }
                    failures.lock().unwrap().extend(result.err());
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let tally = tally.into_inner().unwrap();
    println!(
        "{} pipelines, {} refused, {} builds, {} of {} random columns differ, {:?}",
        tally.pipelines,
        tally.refused,
        tally.builds,
        tally.random_columns_that_differ,
        tally.random_columns,
        tally.classes
    );
    assert!(tally.refused * 3 <= tally.pipelines, "{} of {} refused", tally.refused, tally.pipelines);
    assert!(tally.rows > tally.pipelines, "{} rows of {} pipelines", tally.rows, tally.pipelines);
    // A flip or a crop may draw the same twice for all rows of a small pipeline; most don't.
    assert!(
        tally.random_columns_that_differ * 2 > tally.random_columns,
        "{} of {} random columns differ",
        tally.random_columns_that_differ,
        tally.random_columns
    );
    for class in ["filter", "join", "union", "sql", "tensor.pack", "tensor.windows", "text.split", "image.random_crop"]
    {
        assert!(tally.classes.contains_key(class), "no `{class}` was drawn");
    }
}
