//! Counter-based random streams: a value depends on its address alone, never on what was drawn before elsewhere.
//!
//! The generator is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3"
//! (SC 2011). Its 64-bit key comes from (pipeline seed, step name, high half of the row key), its 128-bit counter
//! from (block number, epoch, low half of the row key): any row of any epoch can be drawn alone, on any thread.

use super::row_key::RowKey;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// One block of Philox4x32-10: four 32-bit words from a 128-bit counter and a 64-bit key.
#[must_use]
pub fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key[0] = key[0].wrapping_add(WEYL[0]);
            key[1] = key[1].wrapping_add(WEYL[1]);
        }
        let (high0, low0) = multiply(MULTIPLIERS[0], counter[0]);
        let (high1, low1) = multiply(MULTIPLIERS[1], counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
    }
    counter
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a 64-bit product")]
fn multiply(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a 64-bit word")]
const fn words(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// The part of a stream's address that a step shares over all rows: (pipeline seed, step name), hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey(u64);

impl StreamKey {
    /// The key of the step called `step` in a pipeline with this seed.
    #[must_use]
    pub fn new(seed: u64, step: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("parbake random stream v1");
        hasher.update(&seed.to_le_bytes());
        hasher.update(step.as_bytes());
        let mut key = [0; 8];
        hasher.finalize_xof().fill(&mut key);
        Self(u64::from_le_bytes(key))
    }

    /// The stream of one row in one epoch.
    #[must_use]
    pub fn stream(self, epoch: u64, row: RowKey) -> RandomStream {
        let (low, high) = row.halves();
        let [row0, row1] = words(low);
        // 2^32 epochs are told apart; the block number takes the first counter word.
        RandomStream { key: words(self.0 ^ high), counter: [0, words(epoch)[0], row0, row1], block: [0; 4], used: 4 }
    }
}

/// The random numbers of one step for one row in one epoch.
#[derive(Debug, Clone)]
pub struct RandomStream {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl RandomStream {
    /// The next 32 uniform bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.block = philox4x32_10(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        let word = self.block[self.used];
        self.used += 1;
        word
    }

    /// The next 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let low = u64::from(self.next_u32());
        low | (u64::from(self.next_u32()) << 32)
    }

    /// A uniform integer in `0..bound` (`bound` > 0), without bias: Lemire, "Fast Random Integer Generation in an
    /// Interval" (2019).
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0, "an empty range has no member");
        let (mut high, mut low) = multiply(self.next_u32(), bound);
        if low < bound {
            let threshold = bound.wrapping_neg() % bound;
            while low < threshold {
                (high, low) = multiply(self.next_u32(), bound);
            }
        }
        high
    }

    /// A uniform float in `[0, 1)` with 24 random bits.
    pub fn unit_f32(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// True with that probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        let unit = (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
        unit < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution, file `kat_vectors`, lines `philox4x32 10`.
    #[test]
    fn philox_gives_the_published_known_answers() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32_10([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32_10([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn streams_depend_on_every_part_of_their_address() {
        let row = RowKey::of_fragment("a", 0);
        let base = StreamKey::new(1, "crop").stream(0, row).next_u64();
        assert_eq!(base, StreamKey::new(1, "crop").stream(0, row).next_u64());
        assert_ne!(base, StreamKey::new(2, "crop").stream(0, row).next_u64());
        assert_ne!(base, StreamKey::new(1, "flip").stream(0, row).next_u64());
        assert_ne!(base, StreamKey::new(1, "crop").stream(1, row).next_u64());
        assert_ne!(base, StreamKey::new(1, "crop").stream(0, RowKey::of_fragment("a", 1)).next_u64());
        assert_ne!(base, StreamKey::new(1, "crop").stream(0, RowKey::of_fragment("b", 0)).next_u64());
    }

    /// Each of 5 values is expected 20,000 times with a standard deviation of 126: 5 deviations are allowed.
    #[test]
    fn below_is_uniform() {
        let mut stream = StreamKey::new(7, "uniform").stream(0, RowKey::of_fragment("x", 0));
        let mut counts = [0_i32; 5];
        for _ in 0..100_000 {
            counts[stream.below(5) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (count - 20_000).abs() < 632), "{counts:?}");
    }
}
