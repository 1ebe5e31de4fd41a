//! Verification: nothing differs after a build; what was tampered with is found and named.

use std::fs;

use crate::project::{PHOTO_STEPS, Project, SMALL};

#[test]
fn a_fresh_build_is_what_its_sources_give() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    project.build("resize");
    let said = project.done(&["verify", "p.toml", "--out", "D", "--all"]);
    assert!(said.contains("1 computed again") && said.contains("nothing differs"), "{said}");
}

#[test]
fn a_damaged_shard_is_found_by_its_checksum_and_the_first_difference_is_named() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    project.build("resize");
    let shard = fs::read_dir(project.path("D/shards")).unwrap();
    let shard = shard.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "parquet").unwrap();
    let mut bytes = fs::read(&shard).unwrap();
    // In the middle of the pixels.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let ran = project.run(&["verify", "p.toml", "--out", "D", "--all"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.out.contains("aren't those that were built"), "{}", ran.out);
    assert!(ran.out.contains("column `image`, made by step `resize`, differs"), "{}", ran.out);
    fs::remove_file(&shard).unwrap();
    let ran = project.run(&["verify", "p.toml", "--out", "D"]);
    assert!(ran.code == Some(1) && ran.out.contains("its file is missing"), "{}", ran.out);
}

#[test]
fn rows_that_were_put_together_are_computed_again_too() {
    let project = Project::new(&SMALL, "", PHOTO_STEPS);
    fs::write(project.path("names.csv"), "path,word\nplant/p08.gif,one\nthing/t06.png,two\nplant/p08.gif,three\n")
        .unwrap();
    let text = "[source.photos]\nfiles = \"photos/**/*.{jpg,png,gif}\"\n[source.names]\ncsv = \"names.csv\"\n[[step]]\nfrom = \
                \"photos\"\njoin = \"names\"\non = \"path\"\n[[step]]\nop = \"image.decode\"\nin = \"bytes\"\n[[step]]\nop = \
                \"image.resize\"\nsize = 8\n[output]\ncolumns = [\"image\", \"word\"]\n";
    fs::write(project.path("p.toml"), text).unwrap();
    project.build("resize");
    let said = project.done(&["verify", "p.toml", "--out", "D", "--all"]);
    assert!(said.contains("nothing differs"), "{said}");
    let said = project.done(&["build", "p.toml", "--out", "D", "--cut", "resize"]);
    assert!(said.contains("up to date: 3 rows"), "{said}");
    // A word changes: rows are put together again, and the shard with it is rebuilt.
    fs::write(project.path("names.csv"), "path,word\nplant/p08.gif,one\nthing/t06.png,other\nplant/p08.gif,three\n")
        .unwrap();
    let said = project.done(&["status", "p.toml", "--out", "D"]);
    assert!(said.contains("names.csv has changed"), "{said}");
    let said = project.done(&["build", "p.toml", "--out", "D", "--cut", "resize"]);
    assert!(said.contains("3 rows"), "{said}");
}
