//! Which source files there are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use super::pattern::Pattern;
use crate::world::files::modified_ns;

/// One source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Its path relative to the listing's root, with `/` between the parts, byte for byte as it is on disk.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since 1970; 0 where the store doesn't say.
    pub modified_ns: i64,
}

/// The source files that match, sorted bytewise by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The folder that paths are relative to: the deepest one that all patterns share before their first wildcard.
    pub root: PathBuf,
    /// The files.
    pub fragments: Vec<Fragment>,
    /// What matches and can't be a source, such as a pipe or a dangling link, with the reason.
    pub skipped: Vec<(String, String)>,
}

/// Why a pattern can't be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingError {
    /// Which pattern.
    pub pattern: usize,
    /// Why.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Listing {
    /// Lists the files that match at least one of the patterns, which are relative to `base`.
    ///
    /// `*` and `?` don't cross a `/`, `**` does; `{a,b}` and `[a-z]` work. Hidden files and folders are left out unless
    /// the pattern names one. Links are followed; a link that leads back to a folder it lies in is not.
    ///
    /// # Errors
    /// For each pattern that is malformed, or whose folder isn't there.
    pub fn new(base: &Path, patterns: &[String]) -> Result<Self, Vec<ListingError>> {
        let (mut parsed, mut errors) = (Vec::new(), Vec::new());
        for (index, text) in patterns.iter().enumerate() {
            match Pattern::new(index, base, text) {
                Ok(pattern) => parsed.push(pattern),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let root =
            parsed.iter().map(|pattern| pattern.folder.clone()).reduce(|a, b| shared(&a, &b)).unwrap_or_default();
        let mut found = Found { root: &root, fragments: BTreeMap::new(), skipped: BTreeMap::new() };
        for pattern in &parsed {
            found.walk(pattern);
        }
        let Found { fragments, skipped, .. } = found;
        Ok(Self { fragments: fragments.into_values().collect(), skipped: skipped.into_iter().collect(), root })
    }
}

/// Cuts files, in order, into batches of at most that many bytes and files; a larger file is a batch of its own.
#[must_use]
pub fn batches(fragments: &[Fragment], bytes: u64, files: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (at, fragment) in fragments.iter().enumerate() {
        if at > start && (sum + fragment.size > bytes || at - start == files) {
            ranges.push(start..at);
            (start, sum) = (at, 0);
        }
        sum += fragment.size;
    }
    if start < fragments.len() {
        ranges.push(start..fragments.len());
    }
    ranges
}

struct Found<'r> {
    root: &'r Path,
    fragments: BTreeMap<String, Fragment>,
    skipped: BTreeMap<String, String>,
}

impl Found<'_> {
    fn walk(&mut self, pattern: &Pattern) {
        let walk = WalkDir::new(&pattern.folder)
            .follow_links(true)
            .min_depth(1)
            .max_depth(pattern.depth.unwrap_or(usize::MAX))
            .into_iter()
            .filter_entry(|entry| pattern.hidden || entry.depth() == 0 || !is_hidden(entry));
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => {}
                Ok(entry) => {
                    if pattern.matcher.is_match(below(entry.path(), &pattern.folder)) {
                        self.add(&entry);
                    }
                }
                // A link back to where we are: everything behind it is listed already.
                Err(error) if error.loop_ancestor().is_some() => {}
                Err(error) => {
                    let Some(path) = error.path() else { continue };
                    let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                    let is_dangling = path.is_symlink();
                    if !is_dangling || pattern.matcher.is_match(below(path, &pattern.folder)) {
                        let reason = if is_dangling { format!("a dangling link ({reason})") } else { reason };
                        self.skipped.insert(self.relative(path), reason);
                    }
                }
            }
        }
    }

    fn add(&mut self, entry: &DirEntry) {
        let path = self.relative(entry.path());
        if below(entry.path(), self.root).to_str().is_none() {
            self.skipped.insert(path, "its name is not valid UTF-8".to_owned());
            return;
        }
        if !entry.file_type().is_file() {
            self.skipped.insert(path, "not a regular file".to_owned());
            return;
        }
        match entry.metadata() {
            Ok(metadata) => {
                let fragment =
                    Fragment { path: path.clone(), size: metadata.len(), modified_ns: modified_ns(&metadata) };
                self.fragments.insert(path, fragment);
            }
            Err(error) => {
                self.skipped.insert(path, error.to_string());
            }
        }
    }

    fn relative(&self, path: &Path) -> String {
        below(path, self.root).to_string_lossy().into_owned()
    }
}

fn below<'p>(path: &'p Path, folder: &Path) -> &'p Path {
    path.strip_prefix(folder).unwrap_or(path)
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// The deepest folder that both lie in.
fn shared(a: &Path, b: &Path) -> PathBuf {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, name).expect("a file");
        }
        folder
    }

    fn paths(base: &Path, patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Listing::new(base, &patterns).expect("lists").fragments.into_iter().map(|fragment| fragment.path).collect()
    }

    #[test]
    fn globs_match_as_documented_and_hidden_files_do_not() {
        let folder = tree(&["a/1.jpg", "a/2.png", "a/b/3.jpg", "4.jpg", ".x/5.jpg", "a/.6.jpg", "a/B.jpg", "a/ä.jpg"]);
        let base = folder.path();
        assert_eq!(
            paths(base, &["**/*.{jpg,png}"]),
            ["4.jpg", "a/1.jpg", "a/2.png", "a/B.jpg", "a/b/3.jpg", "a/ä.jpg"]
        );
        assert_eq!(paths(base, &["*.jpg"]), ["4.jpg"]);
        assert_eq!(paths(base, &["a/*.jpg"]), ["1.jpg", "B.jpg", "ä.jpg"]);
        assert_eq!(paths(base, &["a"]), ["1.jpg", "2.png", "B.jpg", "b/3.jpg", "ä.jpg"]);
        assert_eq!(paths(base, &["a/1.jpg"]), ["1.jpg"]);
        assert_eq!(
            paths(base, &["a/b/*.jpg", "a/*.png", "a/**/*.jpg"]),
            ["1.jpg", "2.png", "B.jpg", "b/3.jpg", "ä.jpg"]
        );
        assert_eq!(paths(base, &[".x/*.jpg"]), ["5.jpg"]);
        assert_eq!(paths(base, &["a/.*.jpg"]), [".6.jpg"]);
        assert_eq!(paths(base, &["nothing*"]), Vec::<String>::new());
    }

    #[test]
    fn batches_are_bounded_in_bytes_and_files() {
        let sizes = [4, 4, 4, 30, 1, 1, 1, 1];
        let fragments: Vec<Fragment> =
            sizes.iter().map(|size| Fragment { path: String::new(), size: *size, modified_ns: 0 }).collect();
        assert_eq!(batches(&fragments, 10, 3), [0..2, 2..3, 3..4, 4..7, 7..8]);
        assert!(batches(&[], 10, 3).is_empty());
    }

    #[test]
    fn odd_names_come_back_byte_for_byte_even_of_the_root() {
        let names = [
            "[root] #1/ lead.png",
            "[root] #1/a#b.png",
            "[root] #1/back\\slash.png",
            "[root] #1/br{a,b}ce.png",
            "[root] #1/dir [x]/in # side/deep.png",
            "[root] #1/new\nline.png",
            "[root] #1/pct%20.png",
            "[root] #1/pct%2Fslash.png",
            "[root] #1/q?mark.png",
            "[root] #1/star*.png",
            "[root] #1/😀.png",
        ];
        let folder = tree(&names);
        let expected: Vec<&str> = names.iter().map(|name| &name["[root] #1/".len()..]).collect();
        assert_eq!(paths(folder.path(), &["[root] #1/**/*.png"]), expected);
        assert_eq!(paths(folder.path(), &["\\[root\\] #1/**/*.png"]), expected);
    }

    #[test]
    fn links_are_followed_and_loops_and_dangling_ones_survived() {
        let folder = tree(&["a/one.png", "a/two.png", "b/three.png"]);
        let at = |name: &str| folder.path().join(name);
        symlink("..", at("a/loop")).expect("a link");
        symlink("nowhere.png", at("b/dangling.png")).expect("a link");
        symlink("../a/one.png", at("b/link.png")).expect("a link");
        let listing = Listing::new(folder.path(), &["**/*.png".to_owned()]).expect("lists");
        let paths: Vec<&str> = listing.fragments.iter().map(|fragment| fragment.path.as_str()).collect();
        assert_eq!(paths, ["a/one.png", "a/two.png", "b/link.png", "b/three.png"]);
        assert_eq!(listing.skipped.len(), 1);
        assert_eq!(listing.skipped[0].0, "b/dangling.png");
    }

    #[test]
    fn a_missing_folder_names_the_nearest() {
        let folder = tree(&["photos/1.jpg"]);
        let errors =
            Listing::new(folder.path(), &["photo/*.jpg".to_owned(), "**/*.{jpg".to_owned()]).expect_err("is missing");
        assert_eq!(errors.len(), 2);
        assert!(errors[0].message.contains("no folder"), "{errors:?}");
        assert!(errors[0].help.as_ref().is_some_and(|help| help.contains("photos")), "{errors:?}");
        assert!(errors[1].message.contains("malformed"), "{errors:?}");
    }
}
