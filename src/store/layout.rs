//! Which source files make a shard together.

use std::ops::Range;

use crate::format::{Fragment, Listing};

/// Source bytes that a shard holds, about.
const SHARD_BYTES: u64 = 32 << 20;
/// The most files that a shard holds on average.
const MAX_FILES: u32 = 128;

/// How many files a shard holds on average: a power of two, so that a shard has about 32 MiB of source bytes and at
/// most 128 files. A value that was used before is kept unless it is off by more than a factor of four, so that a
/// growing data set isn't dealt anew; one that is asked for is taken.
#[must_use]
pub fn files_per_shard(listing: &Listing, previous: Option<u32>, asked: Option<u32>) -> u32 {
    if let Some(asked) = asked {
        return asked.max(1);
    }
    let files = listing.fragments.len() as u64;
    let bytes: u64 = listing.fragments.iter().map(|fragment| fragment.size).sum();
    let mean = (bytes / files.max(1)).max(1);
    let wanted = u32::try_from(SHARD_BYTES / mean).unwrap_or(u32::MAX).clamp(1, MAX_FILES);
    let wanted = 1 << wanted.ilog2();
    match previous {
        Some(previous) if previous.is_power_of_two() && previous <= wanted * 4 && wanted <= previous * 4 => previous,
        _ => wanted,
    }
}

/// Deals the files, in order, to shards: a range of places for each.
///
/// A shard begins at every file whose name's hash is 0 modulo `files_per_shard`: boundaries belong to files, so that
/// adding or removing one changes the shard that it is in, and splits or joins two when it is a boundary itself. A
/// run without a boundary that is longer than four times the average is cut where the hash is 0 modulo a quarter of
/// it, and so on: each of these cuts too depends on nothing but the names between two boundaries.
#[must_use]
pub fn assign(listing: &Listing, files_per_shard: u32) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let hashes: Vec<u64> = listing.fragments.iter().map(name_hash).collect();
    cut(&hashes, 0..hashes.len(), files_per_shard, 4 * files_per_shard as usize, &mut ranges);
    ranges
}

fn cut(hashes: &[u64], run: Range<usize>, modulus: u32, limit: usize, ranges: &mut Vec<Range<usize>>) {
    if run.is_empty() {
        return;
    }
    let mut start = run.start;
    let boundaries = (run.start + 1..run.end).filter(|at| hashes[*at].is_multiple_of(u64::from(modulus)));
    for end in boundaries.chain([run.end]) {
        if end - start > limit && modulus > 1 {
            cut(hashes, start..end, (modulus / 4).max(1), limit, ranges);
        } else {
            ranges.push(start..end);
        }
        start = end;
    }
}

fn name_hash(fragment: &Fragment) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("parbake shard boundary v1");
    hasher.update(fragment.path.as_bytes());
    let mut hash = [0; 8];
    hasher.finalize_xof().fill(&mut hash);
    u64::from_le_bytes(hash)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn listing(names: &BTreeSet<u32>) -> Listing {
        let fragment = |name: &u32| Fragment { path: format!("{name:08}.jpg"), size: 1 << 18, modified_ns: 0 };
        Listing { fragments: names.iter().map(fragment).collect(), ..Listing::default() }
    }

    fn contents(listing: &Listing, files: u32) -> BTreeSet<Vec<String>> {
        let paths = |range: Range<usize>| listing.fragments[range].iter().map(|f| f.path.clone()).collect();
        assign(listing, files).into_iter().map(paths).collect()
    }

    #[test]
    fn files_per_shard_follows_the_size_and_stays() {
        // 32 MiB / 256 KiB = 128.
        let names: BTreeSet<u32> = (0..1000).collect();
        assert_eq!(files_per_shard(&listing(&names), None, None), 128);
        assert_eq!(files_per_shard(&listing(&names), Some(32), None), 32);
        assert_eq!(files_per_shard(&listing(&names), Some(16), None), 128);
    }

    proptest! {
        #[test]
        fn shards_cover_all_files_in_order(names in proptest::collection::btree_set(0_u32..5000, 0..600), power in 0_u32..6) {
            let listing = listing(&names);
            let ranges = assign(&listing, 1 << power);
            let mut next = 0;
            for range in ranges {
                prop_assert_eq!(range.start, next);
                prop_assert!(!range.is_empty() && range.len() <= 4 << power);
                next = range.end;
            }
            prop_assert_eq!(next, names.len());
        }

        #[test]
        fn one_more_or_one_fewer_file_changes_its_own_run_only(names in proptest::collection::btree_set(0_u32..100_000, 200..600), extra in 0_u32..100_000) {
            let mut more = names.clone();
            prop_assume!(more.insert(extra));
            let before = contents(&listing(&names), 16);
            let after = contents(&listing(&more), 16);
            // The shard that the file is in, or the run of at most 4 * 16 files that is cut or joined because of it.
            let files = |shards: std::collections::btree_set::Difference<'_, Vec<String>>| shards.map(Vec::len).sum::<usize>();
            prop_assert!(files(before.difference(&after)) <= 2 * 64, "gone {}", files(before.difference(&after)));
            prop_assert!(files(after.difference(&before)) <= 2 * 64 + 1, "new {}", files(after.difference(&before)));
        }
    }
}
