//! A pipeline with its source and data set in a temporary folder, and the command run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A temporary project.
pub struct Project {
    folder: tempfile::TempDir,
}

/// What a command printed.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The steps of the README's pipeline.
pub const PHOTO_STEPS: &str = r#"
[[step]]
op = "path.label"
in = "path"
[[step]]
op = "image.decode"
in = "bytes"
[[step]]
op = "image.resize"
size = [64, 48]
[[step]]
op = "image.normalize"
[[step]]
op = "image.random_crop"
size = 32
[output]
columns = ["image", "label"]
"#;

/// Small fixture pictures of several formats.
pub const SMALL: [&str; 6] = [
    "plant/p04_odd.jpg",
    "plant/p06_palette.png",
    "plant/p07_alpha.png",
    "plant/p08.gif",
    "thing/t06.png",
    "thing/t08_16bit.png",
];

impl Project {
    /// A project with copies of those fixtures and a pipeline of these steps.
    pub fn new(fixtures: &[&str], head: &str, steps: &str) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        for name in fixtures {
            let to = project.path("photos").join(name);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(root().join("fixtures/photos").join(name), to).unwrap();
        }
        project.pipeline(head, steps);
        project
    }

    /// Writes the pipeline.
    pub fn pipeline(&self, head: &str, steps: &str) {
        let text = format!("{head}\n[source]\nfiles = \"photos/**/*.{{jpg,png,gif,webp}}\"\n{steps}");
        fs::write(self.path("p.toml"), text).unwrap();
    }

    /// A path below the project's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command with those arguments, in the project's folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parbake"));
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    /// Runs a command.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        Ran { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Runs a command that has to succeed; gives what it printed.
    pub fn done(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.out, ran.err);
        ran.out
    }

    /// Builds at that cut, with a short profile.
    pub fn build(&self, cut: &str) -> String {
        self.done(&["build", "p.toml", "--out", "D", "--cut", cut, "--profile-seconds", "0.2", "--sample", "4"])
    }

    /// The digest of a shuffled epoch.
    pub fn digest(&self) -> String {
        self.done(&["stream", "D", "--epoch", "3", "--shuffle", "5", "--digest"])
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
