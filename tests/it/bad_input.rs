//! Samples that can't be processed: named when they stop the build, counted when they don't.

use std::fs;

use crate::project::{PHOTO_STEPS, Project, SMALL};

/// A cut JPEG, text under a picture's name, and an empty file, each with what the message has to say.
fn spoil(project: &Project) -> [(&'static str, &'static str); 3] {
    let whole = fs::read(project.path("photos/plant/p04_odd.jpg")).unwrap();
    fs::write(project.path("photos/plant/cut.jpg"), &whole[..whole.len() / 2]).unwrap();
    fs::write(project.path("photos/plant/text.jpg"), "hello, I am no picture").unwrap();
    fs::write(project.path("photos/plant/zero.jpg"), "").unwrap();
    [("plant/cut.jpg", "JPEG"), ("plant/text.jpg", "not a JPEG"), ("plant/zero.jpg", "empty")]
}

#[test]
fn each_bad_file_stops_the_build_by_name_and_publishes_nothing() {
    for (keep, word) in [(0, "JPEG"), (1, "not a JPEG"), (2, "empty")] {
        let project = Project::new(&SMALL, "", PHOTO_STEPS);
        let bad = spoil(&project);
        for (at, (path, _)) in bad.iter().enumerate() {
            if at != keep {
                fs::remove_file(project.path("photos").join(path)).unwrap();
            }
        }
        // Also when the sample of the profile misses it: the build itself has to say so.
        for sample in ["100", "1"] {
            let ran = project.run(&["build", "p.toml", "--out", "D", "--cut", "resize", "--sample", sample]);
            assert_eq!(ran.code, Some(1), "{}", ran.err);
            for part in [bad[keep].0, "step `decode`", word, "on_error"] {
                assert!(ran.err.contains(part), "no `{part}` in {}", ran.err);
            }
            assert!(!ran.err.contains("panicked"));
            assert!(!project.path("D/manifest.json").exists());
        }
    }
}

#[test]
fn skipped_rows_are_in_quarantine_and_the_stream_is_the_same_at_every_cut() {
    let clean = Project::new(&SMALL, "on_error = \"skip\"", PHOTO_STEPS);
    clean.build("resize");
    let expected = clean.digest();
    let project = Project::new(&SMALL, "on_error = \"skip\"", PHOTO_STEPS);
    let bad = spoil(&project);
    for cut in ["source", "bytes", "decode", "resize"] {
        let said = project.build(cut);
        assert_eq!(project.digest(), expected, "{cut}");
        if cut == "decode" || cut == "resize" {
            assert!(said.contains("6 rows") && said.contains("3 rows are in quarantine"), "{said}");
            let table = fs::read_to_string(project.path("D/quarantine.json")).unwrap();
            for (path, word) in bad {
                assert!(table.contains(path) && table.contains(word), "{table}");
            }
        }
    }
    // The policy becomes strict: the shard with the bad rows has to be looked at again.
    project.pipeline("on_error = \"fail\"", PHOTO_STEPS);
    let ran = project.run(&["build", "p.toml", "--out", "D", "--cut", "resize"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(project.digest(), expected);
}

#[test]
fn a_source_that_changes_under_a_data_set_by_reference_is_noticed() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    project.build("source");
    fs::copy(project.path("photos/thing/t06.png"), project.path("photos/thing/t08_16bit.png")).unwrap();
    let ran = project.run(&["stream", "D", "--digest"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("t08_16bit.png") && ran.err.contains("changed"), "{}", ran.err);
}

#[test]
fn wrong_arguments_end_with_two_and_a_missing_data_set_with_one() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    let ran = project.run(&["build", "p.toml", "--cut", "resise", "--sample", "2"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `resize`"), "{}", ran.err);
    let ran = project.run(&["status", "p.toml", "--cut", "resise"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `resize`"), "{}", ran.err);
    let ran = project.run(&["plan", "p.toml", "--cut", "random_crop", "--sample", "2"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("random"), "{}", ran.err);
    assert_eq!(project.run(&["plan", "nothing.toml"]).code, Some(2));
    let ran = project.run(&["stream", "nowhere"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("parbake build"), "{}", ran.err);
}
