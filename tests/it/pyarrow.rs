//! Written files as pyarrow reads them. Left out where `PARBAKE_PYTHON` names no Python with pyarrow.

use std::path::PathBuf;
use std::process::Command;

use crate::project::{PHOTO_STEPS, Project, SMALL, root};

fn python() -> Option<PathBuf> {
    let python = root().join(std::env::var_os("PARBAKE_PYTHON")?);
    let works = Command::new(&python).args(["-c", "import numpy, pyarrow.parquet"]).status().is_ok_and(|s| s.success());
    works.then_some(python)
}

/// Pixels of the Parquet file equal those of the stream before normalising: `x / 127.5 - 1` of the stored u8 is what
/// the stream gives, computed by NumPy.
#[test]
fn stored_pixels_are_those_of_the_stream_before_normalising() {
    let Some(python) = python() else {
        return;
    };
    let project = Project::new(
        &SMALL,
        "",
        &PHOTO_STEPS.replace("op = \"image.random_crop\"\nsize = 32", "op = \"tensor.cast\"\ndtype = \"f32\""),
    );
    project.build("resize");
    let stream = project.command(&["stream", "D"]).output().unwrap();
    std::fs::write(project.path("stream.arrows"), stream.stdout).unwrap();
    let script = root().join("tests/reference/compare_stream.py");
    let output =
        Command::new(python).arg(script).arg(project.path("D")).arg(project.path("stream.arrows")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("6 rows equal"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
