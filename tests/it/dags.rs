//! One stream whatever the cut, over random pipelines: several sources, all rows classes, random steps, rewrites.
//!
//! Every pipeline is built at cuts drawn from all closed sets of its steps, with rewrites on and off, one and two
//! threads, small and large shards; two epochs of all of them have to have the same digests, and between the epochs
//! only what is downstream of a random step may differ. `PARBAKE_DAGS` sets the number of pipelines, `PARBAKE_SEED`
//! where they start; with `PARBAKE_WHOLE` each cut is built in all four ways instead of one of them.

use std::collections::BTreeMap;
use std::path::Path;

use parbake::diag::SourceText;
use parbake::pipeline::rewrite::{self, rewrite};
use parbake::pipeline::{self, Graph, all_cuts};

use crate::random_pipeline::{Draw, pipeline_text};
use crate::runs::{Epoch, Run, stream};

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
    // A black corner: the one element that a cast of normalized pictures can't take.
    file.extend([0; 3]);
    file.extend((3..stride * height).map(|_| draw.next().to_le_bytes()[0]));
    file
}

/// Writes the three sources.
pub fn lay_out(folder: &Path) {
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

/// Cuts that are tried of a pipeline with each set of rewrites.
const CUTS: usize = 7;

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

#[expect(clippy::print_stdout, reason = "refused pipelines are for whoever asks for them")]
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
    let names: Vec<String> = rewrite::names().into_iter().map(ToOwned::to_owned).collect();
    // All rewrites, none, and one of them alone.
    let alone = draw.below(names.len());
    let others = names.iter().enumerate().filter(|(at, _)| *at != alone).map(|(_, name)| name.clone()).collect();
    for off in [Vec::new(), names.clone(), others] {
        let rewritten = rewrite(&graph, &off);
        let mut cuts = all_cuts(&rewritten.graph, 200);
        while cuts.len() > CUTS {
            cuts.remove(draw.below(cuts.len()));
        }
        let run = Run { folder, rewritten: &rewritten };
        for (at, cut) in cuts.iter().enumerate() {
            let all = [(1, 1), (2, 3), (1, 3), (2, 1)];
            let one = (at + draw.below(4)) % 4;
            let whole = std::env::var_os("PARBAKE_WHOLE").is_some();
            for (jobs, shard_rows) in if whole { all.to_vec() } else { vec![all[one]] } {
                let place =
                    format!("cut {}, rewrites off {off:?}, {jobs} threads, {shard_rows} rows a shard", cut.word);
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
#[expect(clippy::print_stdout, reason = "the tally is for people")]
fn random_pipelines_give_one_stream() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (wanted, first) = (number("PARBAKE_DAGS", 250), number("PARBAKE_SEED", 1));
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
    // Of a few pipelines nothing of the kind can be said.
    if wanted < 200 {
        return;
    }
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
