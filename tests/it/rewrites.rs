//! Each rewrite where it is made and where its side condition forbids it: small pipelines that would give another stream
//! if the condition were left out.

use std::collections::BTreeSet;

use parbake::diag::SourceText;
use parbake::pipeline::rewrite::{self, rewrite};
use parbake::pipeline::{self, all_cuts};

use crate::dags::lay_out;
use crate::runs::{Run, stream};

const PICS: &str = "[source]\nfiles = \"pics/*.bmp\"\n[[step]]\nop = \"image.decode\"\nin = \"bytes\"\n";
const TEXTS: &str = "[source.texts]\njsonl = \"texts/*.jsonl\"\n";

/// Builds at every cut with all rewrites, none, and each alone; gives what the named pass did.
fn one_stream(pass: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let text = format!("seed = 5\non_error = \"skip\"\n{text}");
    let source = SourceText { name: "p.toml".to_owned(), text: text.clone().into() };
    let graph = match pipeline::check(&source, folder.path()) {
        Ok(checked) => checked.graph,
        Err(wrong) => panic!("{}", parbake::report::render_diagnostics(&wrong, false, 100)),
    };
    let names: Vec<String> = rewrite::names().into_iter().map(ToOwned::to_owned).collect();
    let others = names.iter().filter(|name| *name != pass).cloned().collect();
    let mut digests = BTreeSet::new();
    for off in [Vec::new(), names.clone(), others] {
        let rewritten = rewrite(&graph, &off);
        let run = Run { folder: folder.path(), rewritten: &rewritten };
        for (at, cut) in all_cuts(&rewritten.graph, 12).iter().enumerate() {
            let (dataset, manifest) =
                run.build(cut, 1 + at % 2, 2).unwrap_or_else(|error| panic!("{}, {off:?}: {error}\n{text}", cut.word));
            let both = [0, 1].map(|epoch| stream(&dataset, &manifest, epoch, Some(7), 1).unwrap());
            assert!(both[0].1.first().is_some_and(|values| !values.is_empty()), "no row\n{text}");
            digests.insert(both.map(|epoch| epoch.0));
        }
    }
    assert_eq!(digests.len(), 1, "{text}");
    let rewritten = rewrite(&graph, &[]);
    rewritten.passes.iter().find(|applied| applied.name == pass).map(|applied| applied.changes.clone()).unwrap()
}

#[test]
fn elementwise_sinks_only_where_it_is_total_and_nobody_else_reads_it() {
    let pass = "sink-elementwise";
    let normalize = "[[step]]\nop = \"image.normalize\"\nout = \"f\"\n";
    let crop = "[[step]]\nop = \"image.center_crop\"\nin = \"f\"\nout = \"c\"\nsize = [3, 2]\n";
    let output = |columns: &str| format!("[output]\ncolumns = [{columns}]\n");
    let made = one_stream(pass, &format!("{PICS}{normalize}{crop}{}", output("\"c\"")));
    assert_eq!(made, ["`normalize` goes behind `center_crop`"]);
    // It comes out itself.
    assert!(one_stream(pass, &format!("{PICS}{normalize}{crop}{}", output("\"c\", \"f\""))).is_empty());
    // Another step reads it.
    let flip = "[[step]]\nop = \"image.random_flip\"\nin = \"f\"\nout = \"r\"\n";
    assert!(one_stream(pass, &format!("{PICS}{normalize}{crop}{flip}{}", output("\"c\", \"r\""))).is_empty());
    // It may fail at an element that is cut away: -1, which is black, fits no u8.
    let cast = "[[step]]\nop = \"tensor.cast\"\nin = \"f\"\nout = \"f\"\ndtype = \"u8\"\n";
    let all = "[[step]]\nop = \"image.decode\"\nin = \"bytes\"\nout = \"whole\"\n";
    assert!(!one_stream(pass, &format!("{PICS}{normalize}{crop}{all}{}", output("\"c\", \"whole\""))).is_empty());
    let black = format!("{PICS}{all}{normalize}{cast}{crop}{}", output("\"c\""));
    // All pictures have a black corner, so all rows fail: one without is added by way of another crop.
    let lighter = black.replace(
        normalize,
        &format!("[[step]]\nop = \"image.random_crop\"\nin = \"image\"\nout = \"image\"\nsize = [4, 4]\n{normalize}"),
    );
    assert!(!one_stream(pass, &lighter).iter().any(|change| change.contains("`cast`")));
}

#[test]
fn casts_sink_below_windows_only_where_they_are_total() {
    let windows = "[[step]]\nop = \"tensor.windows\"\nsize = 2\nhop = 3\nout = \"w\"\n";
    let cast = |dtype: &str| format!("[[step]]\nop = \"tensor.cast\"\ndtype = \"{dtype}\"\n");
    let of = |offset: u32, dtype: &str| {
        let bytes = format!("[[step]]\nop = \"text.bytes\"\nin = \"text\"\noffset = {offset}\n");
        one_stream("widen-late", &format!("{TEXTS}{bytes}{}{windows}[output]\ncolumns = [\"w\"]\n", cast(dtype)))
    };
    assert_eq!(of(0, "f64"), ["`cast` goes behind `windows`"]);
    // Letters from k on fail, also those between two windows.
    assert!(of(149, "u8").is_empty());
}

#[test]
fn filters_rise_only_where_nobody_sees_the_rows_unfiltered() {
    let pass = "raise-filters";
    let split = "[[step]]\nop = \"text.split\"\nin = \"text\"\nby = \" \"\nout = \"piece\"\nrows = \"pieces\"\n";
    let filter = "[[step]]\nfilter = \"n % 3 <> 1\"\nrows = \"some\"\n";
    let made = one_stream(pass, &format!("{TEXTS}{split}{filter}[output]\ncolumns = [\"piece\", \"n\"]\n"));
    assert_eq!(made, ["`filter` (some) goes before `split`"]);
    let both = "[[step]]\nunion = [\"pieces\", \"some\"]\n[output]\ncolumns = [\"piece\", \"n\"]\n";
    assert!(one_stream(pass, &format!("{TEXTS}{split}{filter}{both}")).is_empty());
    // A column that is seen unfiltered is made before.
    let upper = "[[step]]\ncompute = \"upper(text)\"\nout = \"loud\"\n";
    let filter = "[[step]]\nfrom = \"texts\"\nfilter = \"n % 3 <> 1\"\nrows = \"some\"\n";
    let both = "[[step]]\nunion = [\"texts\", \"some\"]\n[output]\ncolumns = [\"loud\", \"n\"]\n";
    assert!(one_stream(pass, &format!("{TEXTS}{upper}{filter}{both}")).is_empty());
    // A random one stays where it is.
    let sample = "[[step]]\nop = \"rows.sample\"\nin = \"n\"\nkeep = 0.7\n";
    assert!(one_stream(pass, &format!("{TEXTS}{split}{sample}[output]\ncolumns = [\"piece\"]\n")).is_empty());
}

#[test]
fn steps_merge_only_where_they_make_the_same_for_the_same_rows() {
    let pass = "merge-common";
    let upper = |from: &str| format!("[[step]]\nfrom = \"{from}\"\ncompute = \"upper(text)\"\nout = \"loud\"\n");
    let length = "[[step]]\ncompute = \"length(loud)\"\nout = \"l\"\n";
    let twice = format!(
        "{TEXTS}{}{length}{}[[step]]\ncompute = \"concat(loud, text)\"\nout = \"c\"\n",
        upper("texts"),
        upper("texts")
    );
    let made = one_stream(pass, &format!("{twice}[output]\ncolumns = [\"l\", \"c\"]\n"));
    assert_eq!(made, ["`compute3` makes what `compute` makes"]);
    // Of other rows: those of a filter don't hold the values of all.
    let some = "[[step]]\nfrom = \"texts\"\nfilter = \"n % 3 <> 1\"\nrows = \"some\"\n";
    let both = "[[step]]\nunion = [\"texts\", \"some\"]\n[output]\ncolumns = [\"loud\", \"n\"]\n";
    assert!(one_stream(pass, &format!("{TEXTS}{some}{}{}{both}", upper("some"), upper("texts"))).is_empty());
    // Random ones draw by their own names.
    let crop =
        |out: &str| format!("[[step]]\nop = \"image.random_crop\"\nin = \"image\"\nout = \"{out}\"\nsize = [2, 2]\n");
    let shape = |of: &str| format!("[[step]]\nop = \"image.random_flip\"\nin = \"{of}\"\nout = \"{of}\"\np = 0.0\n");
    let text =
        format!("{PICS}{}{}{}{}[output]\ncolumns = [\"a\", \"b\"]\n", crop("a"), crop("b"), shape("a"), shape("b"));
    assert!(one_stream(pass, &text).is_empty());
}

/// What the compiler does besides the passes: keys by which random steps draw, and the order of a stream, whether an
/// expansion runs offline or online.
#[test]
fn an_expansion_changes_neither_draws_before_it_nor_the_order() {
    let crop = "[[step]]\nop = \"image.random_crop\"\nin = \"image\"\nout = \"crop\"\nsize = [2, 2]\n";
    let split = "[[step]]\nop = \"text.split\"\nin = \"path\"\nby = \".\"\nout = \"part\"\n";
    one_stream("fuse-elementwise", &format!("{PICS}{crop}{split}[output]\ncolumns = [\"crop\", \"part\"]\n"));
}
