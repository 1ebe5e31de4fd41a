//! Steps that are commands: what they must not do is an error with their name and their own words.

use std::fs;

use crate::project::{Project, Ran, SMALL};

fn run(step: &str) -> Ran {
    let head = "[[step]]\nop = \"image.decode\"\nin = \"bytes\"\n[[step]]\nop = \"image.resize\"\nsize = 8\n";
    let project = Project::new(&SMALL, "", &format!("{head}[[step]]\n{step}\n[output]\ncolumns = [\"value\"]\n"));
    fs::write(project.path("two.py"), TWO_ROWS).unwrap();
    project.run(&["build", "p.toml", "--out", "D", "--profile-seconds", "0", "--sample", "2"])
}

/// Answers any batch with two rows.
const TWO_ROWS: &str = "import sys, pyarrow as pa\nschema = pa.schema([('value', pa.int64())])\nwith \
    pa.ipc.open_stream(sys.stdin.buffer) as reader:\n    writer = pa.ipc.new_stream(sys.stdout.buffer, schema)\n    for \
    batch in reader:\n        writer.write_batch(pa.record_batch([pa.array([1, 2, 3])], schema=schema))\n        \
    sys.stdout.buffer.flush()\n";

#[test]
fn a_command_that_fails_is_named_with_its_own_words() {
    let step = |command: &str, more: &str| {
        run(&format!("op = \"exec\"\nin = \"image\"\ntypes = \"i64\"\ncommand = {command}\n{more}"))
    };
    for (command, more, words) in [
        ("[\"sh\", \"-c\", \"echo so it goes >&2; exit 3\"]", "", vec!["so it goes", "exit status: 3"]),
        ("[\"no-such-program\"]", "", vec!["no-such-program", "can't be started"]),
        ("[\"sh\", \"-c\", \"cat > /dev/null; sleep 60\"]", "timeout = 0.5", vec!["within 0.5 s", "flush"]),
        ("[\"cat\"]", "", vec!["gave no column `value`"]),
    ] {
        let ran = step(command, more);
        assert_eq!(ran.code, Some(1), "{command}: {}", ran.err);
        for word in words.into_iter().chain(["step `exec`"]) {
            assert!(ran.err.contains(word), "no `{word}` in {}", ran.err);
        }
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
}

#[test]
fn a_command_that_gives_other_rows_than_promised_is_an_error() {
    let Some(python) = std::env::var_os("PARBAKE_PYTHON") else { return };
    let python = crate::project::root().join(python);
    let command = format!("[\"{}\", \"two.py\"]", python.display());
    let ran = run(&format!("op = \"exec\"\nin = \"image\"\ntypes = \"i64\"\ncommand = {command}\nfiles = \"two.py\""));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("gave 3 rows for 2"), "{}", ran.err);
}

#[test]
fn a_declared_file_that_is_missing_is_an_error_of_the_pipeline() {
    let ran = run("op = \"exec\"\nin = \"image\"\ntypes = \"i64\"\ncommand = \"cat\"\nfiles = \"nowhere.py\"");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("nowhere.py") && ran.err.contains("can't be read"), "{}", ran.err);
    let ran = run("op = \"exec\"\nin = \"image\"\ntypes = \"int64_t\"\ncommand = \"cat\"");
    assert!(ran.code == Some(2) && ran.err.contains("is no type"), "{}", ran.err);
}
