//! Patterns for source files: a folder that is there, and a glob below it.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::listing::ListingError;
use crate::diag::nearest;
use crate::world::files;

/// A pattern, taken apart.
pub struct Pattern {
    /// The folder before the first wildcard, absolute.
    pub folder: PathBuf,
    /// Matches paths relative to the folder.
    pub matcher: GlobMatcher,
    /// Whether hidden files and folders may match: the pattern itself names one.
    pub hidden: bool,
    /// How deep below the folder matches can lie; none: anywhere.
    pub depth: Option<usize>,
}

const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

impl Pattern {
    /// Takes a pattern apart. A component that exists by that very name is taken literally, whatever characters it
    /// has; elsewhere a backslash takes the meaning from a wildcard. A folder stands for everything below it.
    pub fn new(index: usize, base: &Path, text: &str) -> Result<Self, ListingError> {
        let fail = |message: String, help: Option<String>| ListingError { pattern: index, message, help };
        if text.is_empty() {
            return Err(fail("the pattern is empty".to_owned(), Some("`**/*.jpg`, for example".to_owned())));
        }
        let mut folder = if text.starts_with('/') { PathBuf::from("/") } else { base.to_owned() };
        let mut rest = text.trim_start_matches('/');
        let glob = loop {
            let (component, after) = rest.split_once('/').map_or((rest, None), |(head, tail)| (head, Some(tail)));
            let literal = folder.join(component);
            let is_wild = has_wildcard(component) && !files::exists(&literal);
            if is_wild {
                break rest.to_owned();
            }
            let name = if files::exists(&literal) { component.to_owned() } else { unescape(component) };
            let path = folder.join(&name);
            match after {
                Some(after) if !after.is_empty() => {
                    if !files::is_folder(&path) {
                        return Err(fail(missing(&path), near(&folder, &name)));
                    }
                    folder = path;
                    rest = after;
                }
                _ if files::is_folder(&path) => {
                    folder = path;
                    break "**/*".to_owned();
                }
                _ => break globset::escape(&name),
            }
        };
        let folder = files::absolute(&folder).map_err(|error| fail(error.to_string(), None))?;
        if !files::is_folder(&folder) {
            return Err(fail(missing(&folder), None));
        }
        let matcher = GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| fail(format!("the pattern is malformed: {}", error.kind()), None))?
            .compile_matcher();
        let hidden = glob.starts_with('.') || glob.contains("/.");
        let depth = (!glob.contains("**") && !glob.contains('{')).then(|| glob.matches('/').count() + 1);
        Ok(Self { folder, matcher, hidden, depth })
    }
}

fn has_wildcard(component: &str) -> bool {
    let mut escaped = false;
    component.chars().any(|c| {
        let wild = !escaped && WILDCARDS.contains(&c);
        escaped = c == '\\' && !escaped;
        wild
    })
}

/// Takes the backslash from before a wildcard or another backslash.
fn unescape(component: &str) -> String {
    let mut out = String::with_capacity(component.len());
    let mut chars = component.chars().peekable();
    while let Some(c) = chars.next() {
        let escapes = c == '\\' && chars.peek().is_some_and(|next| WILDCARDS.contains(next) || "\\]}".contains(*next));
        if !escapes {
            out.push(c);
        } else if let Some(next) = chars.next() {
            out.push(next);
        }
    }
    out
}

fn missing(folder: &Path) -> String {
    format!("there is no folder {}", folder.display())
}

/// The folder that was probably meant.
fn near(parent: &Path, name: &str) -> Option<String> {
    let names = files::names_in(parent).ok()?;
    let folders = names.iter().map(String::as_str).filter(|name| files::is_folder(&parent.join(name)));
    nearest(name, folders).map(|name| format!("did you mean {}?", parent.join(name).display()))
}
