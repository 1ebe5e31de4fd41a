//! The order of an epoch: a function of seed, epoch and row keys alone.

use crate::types::RowKey;
use crate::types::random::StreamKey;

/// The order in which an epoch goes through the rows: places in `keys`.
///
/// Without a seed it is the order of the keys as they are given, which is that of the row keys. With a seed each row
/// draws 64 bits from its own stream (seed, epoch, row key) and rows are sorted by what they drew, ties by key: a
/// uniformly random permutation that doesn't depend on the cut, the shards or which other rows there are.
#[must_use]
pub fn epoch_order(keys: &[RowKey], shuffle: Option<u64>, epoch: u64) -> Vec<usize> {
    let Some(seed) = shuffle else { return (0..keys.len()).collect() };
    let stream = StreamKey::new(seed, "__shuffle");
    let mut drawn: Vec<(u64, RowKey, usize)> =
        keys.iter().enumerate().map(|(at, key)| (stream.stream(epoch, *key).next_u64(), *key, at)).collect();
    drawn.sort_unstable();
    drawn.into_iter().map(|(_, _, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u64) -> Vec<RowKey> {
        (0..count).map(|at| RowKey::of_fragment(&format!("file {at}"), 0)).collect()
    }

    #[test]
    fn a_shuffled_epoch_has_every_row_once_and_another_order_each_time() {
        let keys = keys(100);
        let first = epoch_order(&keys, Some(5), 0);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_ne!(first, epoch_order(&keys, Some(5), 1));
        assert_ne!(first, epoch_order(&keys, Some(6), 0));
        assert_eq!(epoch_order(&keys, None, 3), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn removing_a_row_leaves_the_order_of_the_others() {
        let keys = keys(50);
        let all: Vec<RowKey> = epoch_order(&keys, Some(1), 2).into_iter().map(|at| keys[at]).collect();
        let fewer: Vec<RowKey> = epoch_order(&keys[1..], Some(1), 2).into_iter().map(|at| keys[1..][at]).collect();
        let expected: Vec<RowKey> = all.into_iter().filter(|key| *key != keys[0]).collect();
        assert_eq!(fewer, expected);
    }
}
