//! Which source files a profile looks at.

use crate::format::Fragment;
use crate::types::RowKey;
use crate::types::random::StreamKey;

/// A seeded sample of the files, stratified by size: the files are sorted by size and taken at equal distances from a
/// random start, so that small and large ones are represented as they are in the whole. Its order is random, so that
/// any first part of it is a fair sample too.
#[must_use]
pub fn stratified(fragments: &[Fragment], rows: usize, seed: u64) -> Vec<Fragment> {
    let wanted = rows.min(fragments.len());
    let mut by_size: Vec<&Fragment> = fragments.iter().collect();
    by_size.sort_by(|a, b| a.size.cmp(&b.size).then_with(|| a.path.cmp(&b.path)));
    let stream = StreamKey::new(seed, "__profile");
    let start = f64::from(stream.stream(0, RowKey([0; 16])).unit_f32());
    let step = fragments.len() as f64 / wanted.max(1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list, clamped to it")]
    let mut sample: Vec<(u64, &Fragment)> = (0..wanted)
        .filter_map(|at| by_size.get(((at as f64 + start) * step) as usize))
        .map(|fragment| (stream.stream(1, RowKey::of_fragment(&fragment.path, 0)).next_u64(), *fragment))
        .collect();
    sample.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.path.cmp(&b.1.path)));
    sample.into_iter().map(|(_, fragment)| fragment.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes 1 to 1,000: the mean is 500.5, and one file out of each tenth keeps the sample's mean within 5 % of it.
    #[test]
    fn sizes_are_represented_as_they_are() {
        let fragments: Vec<Fragment> = (1..=1000)
            .map(|size| Fragment { path: format!("{:04}", size * 7919 % 1000), size, modified_ns: 0 })
            .collect();
        let sample = stratified(&fragments, 10, 3);
        assert_eq!(sample.len(), 10);
        let sizes: Vec<u64> = sample.iter().map(|fragment| fragment.size).collect();
        let tenths: std::collections::BTreeSet<u64> = sizes.iter().map(|size| (size - 1) / 100).collect();
        assert_eq!(tenths.len(), 10, "{sizes:?}");
        assert_eq!(stratified(&fragments, 5000, 3).len(), 1000);
        assert_eq!(sample, stratified(&fragments, 10, 3));
    }
}
