//! Joins of files: which file's content each row has. The right values are the files' own bytes.

use std::collections::BTreeSet;
use std::fs;

use arrow::array::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::project::Project;

/// Builds both cuts of a pipeline whose rows have `path`, `path_b` and the content of the latter, checks that they
/// stream the same, and gives the rows that are stored with content.
fn joined(project: &Project, pipeline: &str) -> BTreeSet<(String, String, Vec<u8>)> {
    let output = "[output]\ncolumns = [\"path\", \"path_b\", \"bytes_b\"]\n";
    fs::write(project.path("p.toml"), format!("{pipeline}{output}")).unwrap();
    let [by_path, with_content] = ["source", "bytes"].map(|cut| {
        project.done(&["build", "p.toml", "--out", cut, "--cut", cut, "--profile-seconds", "0", "--codec", "none"]);
        project.done(&["stream", cut, "--epoch", "1", "--digest"])
    });
    assert_eq!(by_path, with_content);
    let mut rows = BTreeSet::new();
    for shard in fs::read_dir(project.path("bytes/shards")).unwrap() {
        let path = shard.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "parquet") {
            continue;
        }
        let file = fs::File::open(path).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let column = |name: &str| arrow::compute::cast(&batch[name], &arrow::datatypes::DataType::Binary).unwrap();
            let [path, path_b, content] = ["path", "path_b", "bytes_b"].map(column);
            let text = |array: &arrow::array::ArrayRef, at: usize| {
                String::from_utf8(array.as_binary::<i32>().value(at).to_vec()).unwrap()
            };
            for at in 0..batch.num_rows() {
                let content = content.as_binary::<i32>().value(at).to_vec();
                rows.insert((text(&path, at), text(&path_b, at), content));
            }
        }
    }
    rows
}

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(&[], "", "");
    for (name, text) in files {
        let path = project.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    project
}

fn row(path: &str, path_b: &str, content: &str) -> (String, String, Vec<u8>) {
    (path.to_owned(), path_b.to_owned(), content.as_bytes().to_vec())
}

/// Pairs of the files of one source: what the right side's path names, not the left side's.
#[test]
fn rows_joined_with_themselves_have_the_content_of_their_own_side() {
    let project = project(&[("a/1.txt", "one"), ("a/2.txt", "two")]);
    let rows = joined(
        &project,
        "[source.a]\nfiles = \"a/*\"\n[[step]]\nfrom = \"a\"\ncompute = \"length(path)\"\nout = \"n\"\n\
         [[step]]\nfrom = \"a\"\njoin = \"a\"\non = \"n\"\nsuffix = \"_b\"\n",
    );
    let pairs = [("1", "1", "one"), ("1", "2", "two"), ("2", "1", "one"), ("2", "2", "two")];
    let wanted = pairs.map(|(a, b, content)| row(&format!("{a}.txt"), &format!("{b}.txt"), content));
    assert_eq!(rows, wanted.into());
}

/// Without a partner there is no file: its content is empty as its path is, and the row is no bad one.
#[test]
fn a_row_without_partner_has_empty_content() {
    let project = project(&[("a/1.txt", "one"), ("a/22.txt", "two"), ("b/3.txt", "three")]);
    let rows = joined(
        &project,
        "[source.a]\nfiles = \"a/*\"\n[source.b]\nfiles = \"b/*\"\n\
         [[step]]\nfrom = \"a\"\ncompute = \"length(path)\"\nout = \"n\"\n\
         [[step]]\nfrom = \"b\"\ncompute = \"length(path)\"\nout = \"n\"\n\
         [[step]]\nfrom = \"a\"\njoin = \"b\"\non = \"n\"\nhow = \"left\"\nsuffix = \"_b\"\n",
    );
    assert_eq!(rows, [row("1.txt", "3.txt", "three"), row("22.txt", "", "")].into());
}
