//! A build that is killed: readers see the old data set, and the next build ends as if nothing had been.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::project::{PHOTO_STEPS, Project, SMALL, root};

#[test]
fn a_killed_build_loses_nothing_and_leaves_nothing_wrong() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    project.build("resize");
    let old = project.digest();
    // Enough new files for a build that takes a moment.
    let picture = fs::read(root().join("fixtures/photos/thing/t08_16bit.png")).unwrap();
    for at in 0..200 {
        fs::write(project.path(&format!("photos/thing/n{at:03}.png")), &picture).unwrap();
    }
    let arguments = ["build", "p.toml", "--out", "D", "--cut", "resize", "--sample", "2", "--profile-seconds", "0.1"];
    // The instants grow by a fixed list, from before the first read to about the end.
    for milliseconds in [0, 5, 10, 20, 40, 60, 80, 120, 160, 240, 320, 500, 700] {
        let mut child = project.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().unwrap();
        let seen = project.digest();
        if seen != old {
            break; // It had finished before it was killed.
        }
    }
    project.done(&arguments);
    let killed = project.digest();
    let names: Vec<String> = fs::read_dir(project.path("D/shards"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.starts_with(".tmp")), "{names:?}");
    fs::remove_dir_all(project.path("D")).unwrap();
    project.build("resize");
    assert_eq!(project.digest(), killed);
    assert_ne!(killed, old);
}

#[test]
fn a_second_build_at_the_same_time_is_refused() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    project.build("bytes");
    let lock = fs::File::options().write(true).open(project.path("D/.lock")).unwrap();
    lock.try_lock().unwrap();
    let ran = project.run(&["build", "p.toml", "--out", "D", "--cut", "bytes"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("another build"), "{}", ran.err);
}
