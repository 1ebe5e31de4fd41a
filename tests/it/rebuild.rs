//! What a change makes stale: its shard and no other.

use std::fs;

use crate::project::{PHOTO_STEPS, Project, root};

/// 300 small pictures: 128 or fewer files make a shard on average, so there are several.
fn many() -> Project {
    let project = Project::new(&[], "", "");
    let picture = fs::read(root().join("fixtures/photos/thing/t08_16bit.png")).unwrap();
    for at in 0..300 {
        let path = project.path(&format!("photos/c{}/{at:03}.png", at % 2));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &picture).unwrap();
    }
    let steps = PHOTO_STEPS.replace("[64, 48]", "[40, 36]");
    project.pipeline("", &steps);
    project
}

fn built(project: &Project) -> (u64, u64, bool) {
    let out = project.done(&[
        "build",
        "p.toml",
        "--out",
        "D",
        "--cut",
        "resize",
        "--codec",
        "none",
        "--sample",
        "4",
        "--profile-seconds",
        "0.1",
        "--json",
    ]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    let figure = |name: &str| value["built"][name].as_u64().unwrap();
    (figure("shards_built"), figure("shards_kept"), value["changed"].as_bool().unwrap())
}

#[test]
fn only_what_changed_is_built_again() {
    let project = many();
    let (first, _, _) = built(&project);
    assert!(first >= 2, "{first}");
    let whole = project.digest();
    assert!(!built(&project).2, "a second build has nothing to do");
    // Changed.
    let other = fs::read(root().join("fixtures/photos/thing/t06.png")).unwrap();
    let path = project.path("photos/c0/100.png");
    let picture = fs::read(&path).unwrap();
    fs::write(&path, &other).unwrap();
    let status = project.done(&["status", "p.toml", "--out", "D"]);
    assert!(status.contains("c0/100.png has changed") && status.contains("1 of"), "{status}");
    assert_eq!(built(&project), (1, first - 1, true));
    assert_ne!(project.digest(), whole);
    // Put back: the time differs, the content is that of the generation before, whose shard file is still there.
    fs::write(&path, &picture).unwrap();
    assert_eq!(built(&project).0, 1);
    assert_eq!(project.digest(), whole);
    // Touched: nothing is built, and the next status is clean.
    fs::File::options().append(true).open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(built(&project), (0, first, true));
    assert!(project.done(&["status", "p.toml", "--out", "D"]).contains("up to date"));
    // Removed, then added again.
    fs::remove_file(&path).unwrap();
    let (gone, kept, _) = built(&project);
    assert!(gone <= 2 && kept + gone >= first - 1, "{gone} {kept}");
    assert_ne!(project.digest(), whole);
    fs::write(&path, &picture).unwrap();
    assert!(built(&project).0 <= 2);
    assert_eq!(project.digest(), whole);
}

#[test]
fn a_changed_step_is_named_and_an_online_one_builds_nothing() {
    let project = many();
    built(&project);
    let steps = PHOTO_STEPS.replace("[64, 48]", "[40, 36]");
    project.pipeline("", &steps.replace("size = 32", "size = 30"));
    assert_eq!(built(&project).0, 0, "the crop runs online");
    project.pipeline("", &steps.replace("[40, 36]", "[41, 36]"));
    let status = project.done(&["status", "p.toml", "--out", "D"]);
    assert!(status.contains("step `resize`: `size` was [40, 36] and is [41, 36]"), "{status}");
    // What changes no byte: comments, order of keys, the name of a step that isn't random.
    project.pipeline("# a comment", &steps.replace("size = [40, 36]", "name = \"smaller\"\nsize = [ 40, 36 ]"));
    let out = project
        .done(&["build", "p.toml", "--out", "D", "--cut", "smaller", "--codec", "none", "--sample", "4", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["built"]["shards_built"], 0, "{out}");
}

/// Pictures and their masks, in two folders, with the same paths below them: what a mask is made of changes, and the
/// shards with it, though the joined rows hold the same paths as before.
#[test]
fn a_changed_file_is_seen_though_another_source_has_a_file_of_the_same_path() {
    let steps = "[source.pictures]\nfiles = \"pictures/*.jpg\"\n[source.masks]\nfiles = \"masks/*.jpg\"\n\
        [[step]]\nfrom = \"pictures\"\njoin = \"masks\"\non = \"path\"\nsuffix = \"_mask\"\n\
        [[step]]\nop = \"image.decode\"\nin = \"bytes\"\nout = \"picture\"\n\
        [[step]]\nop = \"image.decode\"\nin = \"bytes_mask\"\nout = \"mask\"\n\
        [output]\ncolumns = [\"picture\", \"mask\"]\n";
    let project = Project::new(&[], "", "");
    fs::write(project.path("p.toml"), steps).unwrap();
    let copy = |fixture: &str, to: &str| {
        let to = project.path(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join("fixtures/photos").join(fixture), to).unwrap();
    };
    for folder in ["pictures", "masks"] {
        for (fixture, name) in [("thing/t01.jpg", "one.jpg"), ("thing/t02.jpg", "two.jpg")] {
            copy(fixture, &format!("{folder}/{name}"));
        }
    }
    for (cut, fixtures) in
        [("source", ["thing/t03.jpg", "thing/t04.jpg"]), ("decode+decode2", ["plant/p01.jpg", "plant/p02.jpg"])]
    {
        let build = |out: &str| {
            project.done(&["build", "p.toml", "--out", out, "--cut", cut, "--profile-seconds", "0", "--sample", "2"]);
            project.done(&["stream", out, "--digest"])
        };
        let mut before = build(cut);
        for (folder, fixture) in ["pictures", "masks"].into_iter().zip(fixtures) {
            copy(fixture, &format!("{folder}/two.jpg"));
            let (after, anew) = (build(cut), build(&format!("{cut} anew, {folder}")));
            assert!(after == anew && after != before, "{cut}, {folder}");
            before = after;
        }
    }
}
