//! Whether what random steps draw has the distribution that their documentation says: 10,000 rows, fixed seeds.
//!
//! Each test rejects at the 0.1 % level; with these seeds it passes or fails for ever.

use arrow::array::{ArrayRef, Int64Array};

use crate::ops::image::ColorJitter;
use crate::ops::image::jitter::Change;
use crate::ops::{self, ArgValue, Args, Kernel, Op, RowContext, Window};
use crate::types::random::StreamKey;
use crate::types::{ColumnType, DType, Dim, RowKey, TensorType};

const ROWS: u64 = 10_000;

fn contexts(seed: u64, step: &str, epoch: u64) -> Vec<RowContext> {
    let stream = StreamKey::new(seed, step);
    let context = |row| {
        let key = RowKey::of_fragment(&format!("photos/{row}.jpg"), 0);
        RowContext { key, random: Some(stream.stream(epoch, key)) }
    };
    (0..ROWS).map(context).collect()
}

fn windows(op: &str, args: &[(&str, ArgValue)], height: usize, width: usize, epoch: u64) -> Vec<Window> {
    let op = ops::find(op).expect("an op");
    let args = Args(args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
    let image = ColumnType::Tensor(TensorType { dtype: DType::U8, shape: vec![Dim::ANY, Dim::ANY, Dim::Fixed(3)] });
    let Ok(Kernel::Select(selection)) = op.bind(&args, &[image]).map(|bound| bound.kernel) else { panic!("binds") };
    contexts(17, "step", epoch).iter_mut().map(|row| selection.window(row, height, width).expect("fits")).collect()
}

/// Pearson's statistic of counts that are expected to be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
}

fn crops(epoch: u64) -> Vec<(usize, usize)> {
    let size = ArgValue::List(vec![ArgValue::Int(24), ArgValue::Int(32)]);
    let windows = windows("image.random_crop", &[("size", size)], 33, 38, epoch);
    windows.into_iter().map(|window| (window.top, window.left)).collect()
}

/// A crop of 24 x 32 fits into 33 x 38 at 10 x 7 = 70 places. Chi-square with 69 degrees of freedom is above 111.1 in
/// 0.1 % of cases (tables; Wilson and Hilferty 1931 give the same).
#[test]
fn crops_are_equally_likely_at_every_place() {
    let mut counts = vec![0; 70];
    for (top, left) in crops(0) {
        counts[top * 7 + left] += 1;
    }
    let found = chi_square(&counts);
    assert!(found < 111.1, "{found}: {counts:?}");
}

/// Places of two epochs are independent: of 10 x 10 pairs of top edges each is as likely. Chi-square with 99 degrees of
/// freedom is above 148.2 in 0.1 % of cases.
#[test]
fn epochs_draw_independently() {
    let mut counts = vec![0; 100];
    for ((before, _), (after, _)) in crops(3).into_iter().zip(crops(4)) {
        counts[before * 10 + after] += 1;
    }
    let found = chi_square(&counts);
    assert!(found < 148.2, "{found}: {counts:?}");
}

/// Of 10,000 flips with probability p, the number is np with a deviation of sqrt(np(1 - p)); 3.29 deviations are
/// exceeded in 0.1 % of cases.
#[test]
fn flips_come_at_their_rate() {
    for probability in [0.5, 0.1] {
        let args = [("direction", ArgValue::Text("horizontal".to_owned())), ("p", ArgValue::Float(probability))];
        let flipped = windows("image.random_flip", &args, 8, 8, 0).iter().filter(|window| window.mirrored).count();
        let (expected, deviation) = (1e4 * probability, (1e4 * probability * (1.0 - probability)).sqrt());
        let found = flipped as f64;
        assert!((found - expected).abs() < 3.29 * deviation, "{found} flips for {expected}");
    }
}

/// As flips: rows that stay.
#[test]
fn samples_keep_their_rate() {
    let op = ops::find("rows.sample").expect("an op");
    let args = Args([("keep".to_owned(), ArgValue::Float(0.3))].into());
    let bound = op.bind(&args, &[ColumnType::Scalar(DType::I64)]).expect("binds");
    let Kernel::Filter(filter) = bound.kernel else { panic!("a filter") };
    let column: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![0; 10_000]));
    let kept = filter.run(&mut contexts(5, "sample", 2), &[column]).expect("runs").mask.true_count() as f64;
    assert!((kept - 3000.0).abs() < 3.29 * (1e4_f64 * 0.3 * 0.7).sqrt(), "{kept} rows of 10,000 for 3,000");
}

/// Factors and shifts are uniform in their documented ranges: 20 cells each, chi-square with 19 degrees of freedom is
/// above 43.8 in 0.1 % of cases; each of the 24 orders is as likely, with 23 degrees above 49.7.
#[test]
fn jitter_is_uniform_in_its_ranges_and_orders() {
    let amounts = [("brightness", 0.4), ("contrast", 1.5), ("saturation", 0.2), ("hue", 0.1)];
    let args = Args(amounts.map(|(name, amount)| (name.to_owned(), ArgValue::Float(amount))).into());
    let params = ColorJitter::params(&args).expect("parameters");
    let ranges = [(0.6, 1.4), (0.0, 2.5), (0.8, 1.2), (-0.1, 0.1)];
    let mut cells = [[0; 20]; 4];
    let mut orders = std::collections::BTreeMap::<Vec<usize>, u64>::new();
    for mut row in contexts(11, "jitter", 1) {
        let changes = params.draw(row.random.as_mut().expect("a stream"));
        let told = changes.iter().map(|change| match *change {
            Change::Brightness(factor) => (0, f64::from(factor)),
            Change::Contrast(factor) => (1, f64::from(factor)),
            Change::Saturation(factor) => (2, f64::from(factor)),
            Change::Hue(shift) => (3, shift),
        });
        let told: Vec<(usize, f64)> = told.collect();
        for (which, value) in &told {
            let (low, high) = ranges[*which];
            assert!(*value >= low - 1e-6 && *value <= high + 1e-6, "{value} outside of {low} to {high}");
            #[expect(clippy::cast_sign_loss, reason = "in the range")]
            let cell = ((value - low) / (high - low) * 20.0).max(0.0) as usize;
            cells[*which][cell.min(19)] += 1;
        }
        *orders.entry(told.iter().map(|(which, _)| *which).collect()).or_default() += 1;
    }
    for counts in &cells {
        assert!(chi_square(counts) < 43.8, "{counts:?}");
    }
    let counts: Vec<u64> = orders.into_values().collect();
    assert!(counts.len() == 24 && chi_square(&counts) < 49.7, "{counts:?}");
}
