//! Table sources: what can't be had is named with its row; nothing is changed or lost without a word.

use std::fs;

use crate::project::Project;

fn project(files: &[(&str, &str)], pipeline: &str) -> Project {
    let project = Project::new(&[], "", "");
    for (name, text) in files {
        fs::write(project.path(name), text).unwrap();
    }
    fs::write(project.path("p.toml"), pipeline).unwrap();
    project
}

const BUILD: [&str; 8] = ["build", "p.toml", "--out", "D", "--profile-seconds", "0", "--sample", "4"];

#[test]
fn a_fraction_among_whole_numbers_is_a_bad_row_and_not_cut_off() {
    let line = |id: u32| format!("{{\"id\": {id}, \"v\": 1}}\n");
    let mut lines = (0..1100).map(line).collect::<Vec<_>>().concat();
    lines.push_str("{\"id\": 1100, \"v\": 2.7}\n{\"id\": 1101, \"v\": \"3\"}\n{\"id\": 1102}\nnot json\n{\"id\": 1104, \"v\": 5}\n");
    let strict = project(&[("t.jsonl", &lines)], "[source]\njsonl = \"t.jsonl\"\n");
    let ran = strict.run(&BUILD);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("t.jsonl, row 1100") && ran.err.contains("`v` is Float64"), "{}", ran.err);
    let lenient = project(&[("t.jsonl", &lines)], "on_error = \"skip\"\n[source]\njsonl = \"t.jsonl\"\n");
    let said = lenient.done(&BUILD);
    assert!(said.contains("1,101 rows") && said.contains("4 rows are in quarantine"), "{said}");
    let table = fs::read_to_string(lenient.path("D/quarantine.json")).unwrap();
    for row in ["1100", "1101", "1102", "1103"] {
        assert!(table.contains(&format!("\"row\": {row}")), "{table}");
    }
}

#[test]
fn a_name_twice_is_an_error_and_a_type_that_cannot_be_held_a_warning() {
    let twice = project(&[("t.csv", "id,id\n1,2\n")], "[source]\ncsv = \"t.csv\"\n");
    let ran = twice.run(&["check", "p.toml"]);
    assert!(ran.code == Some(2) && ran.err.contains("two columns called `id`"), "{}", ran.err);
    let dates = project(&[("t.csv", "id,day\n1,2024-05-06\n")], "[source]\ncsv = \"t.csv\"\n");
    let ran = dates.run(&["check", "p.toml"]);
    assert!(ran.code == Some(0) && ran.err.contains("`day` is Date32") && ran.err.contains("left out"), "{}", ran.err);
}

#[test]
fn other_files_may_have_fewer_columns_that_nobody_reads_or_no_rows() {
    let files = [("1.csv", "id,w\n1,a\n2,b\n"), ("2.csv", "id,w\n"), ("3.csv", "w,id\nc,3\n")];
    let some = project(&files, "[source]\ncsv = \"*.csv\"\n");
    assert!(some.done(&BUILD).contains("3 rows"));
    let other = project(&[files[0], ("2.csv", "id\n7\n")], "[source]\ncsv = \"*.csv\"\n");
    let ran = other.run(&BUILD);
    assert!(ran.code == Some(1) && ran.err.contains("2.csv") && ran.err.contains("no column `w`"), "{}", ran.err);
}

#[test]
fn nothing_left_is_an_empty_data_set() {
    let line = |id: u32| format!("{{\"id\": {id}, \"t\": \"x\"}}\n");
    let lines = (0..3000).map(line).collect::<Vec<_>>().concat();
    let few = project(
        &[("t.jsonl", &lines)],
        "[source]\njsonl = \"t.jsonl\"\n[[step]]\nfilter = \"id > 2990\"\n[[step]]\nop = \"text.bytes\"\nin = \"t\"\n",
    );
    // None of the sampled rows is left, and nine of all are.
    let said = few.done(&["build", "p.toml", "--out", "D", "--cut", "bytes2", "--codec", "none", "--sample", "4"]);
    assert!(said.contains("9 rows"), "{said}");
    let none = project(
        &[("t.jsonl", &lines)],
        "[source]\njsonl = \"t.jsonl\"\n[[step]]\nsql = \"select id from input where id < 0\"\n",
    );
    assert!(none.done(&BUILD).contains("0 rows"));
    assert_eq!(none.done(&["stream", "D", "--digest"]).trim().len(), 64);
}

#[test]
fn files_of_others_are_left_alone_and_another_pipelines_data_set_too() {
    let project = project(&[("t.csv", "id\n1\n")], "name = \"one\"\n[source]\ncsv = \"t.csv\"\n");
    fs::create_dir_all(project.path("D/shards")).unwrap();
    for name in ["note.txt", "x.parquet"] {
        fs::write(project.path("D/shards").join(name), "mine").unwrap();
    }
    project.done(&BUILD);
    project.done(&[&BUILD[..], &["--codec", "zstd3"]].concat());
    for name in ["note.txt", "x.parquet"] {
        assert_eq!(fs::read_to_string(project.path("D/shards").join(name)).unwrap(), "mine");
    }
    fs::write(project.path("p.toml"), "name = \"two\"\n[source]\ncsv = \"t.csv\"\n").unwrap();
    let ran = project.run(&BUILD);
    assert!(ran.code == Some(2) && ran.err.contains("`one`") && ran.err.contains("--out"), "{}", ran.err);
}

#[test]
fn a_bad_value_in_an_expression_is_named_with_its_file_and_row() {
    let text = "[source]\ncsv = \"t.csv\"\n[[step]]\ncompute = \"cast(w as int)\"\n";
    let project = project(&[("t.csv", "id,w\n1,4\n2,four\n")], text);
    let ran = project.run(&BUILD);
    assert!(ran.code == Some(1) && ran.err.contains("t.csv, row 1") && ran.err.contains("four"), "{}", ran.err);
}

/// By arithmetic: 2^63 - 1 + 1 fits no i64.
#[test]
fn overflow_is_a_bad_row_and_a_failing_query_is_nobodys_bug() {
    let text = "[source]\ncsv = \"t.csv\"\n[[step]]\ncompute = \"9223372036854775807 + id\"\n";
    let over = project(&[("t.csv", "id\n0\n1\n")], text);
    let ran = over.run(&BUILD);
    assert!(ran.code == Some(1) && ran.err.contains("t.csv, row 1") && ran.err.contains("verflow"), "{}", ran.err);
    let text = "[source]\ncsv = \"t.csv\"\n[[step]]\nsql = \"select cast(w as int) as n from input\"\n";
    let query = project(&[("t.csv", "w\n1\nfour\n")], text);
    let ran = query.run(&BUILD);
    assert!(ran.code == Some(1) && ran.err.contains("step `sql`: the query fails"), "{}", ran.err);
    assert!(!ran.err.contains("bug"), "{}", ran.err);
}

#[test]
fn monstrous_texts_and_rows_are_errors_of_the_pipeline() {
    let sum = vec!["id"; 3000].join("+");
    let steps = format!("[[step]]\ncompute = \"{sum}\"\n");
    let window =
        "[[step]]\nop = \"text.bytes\"\nin = \"w\"\n[[step]]\nop = \"tensor.windows\"\nsize = 2147483647\n".to_owned();
    let line = format!("x='{}", "[".repeat(100_000));
    for (text, words) in [(steps, "are the most"), (window, "1 GiB is the most"), (line, "syntax")] {
        let odd = project(&[("t.csv", "id,w\n1,a\n")], &format!("{text}\n[source]\ncsv = \"t.csv\"\n"));
        let ran = odd.run(&["check", "p.toml"]);
        assert!(
            ran.code == Some(2) && ran.err.contains(words),
            "{:?} {}",
            ran.code,
            &ran.err[..ran.err.len().min(900)]
        );
    }
}
