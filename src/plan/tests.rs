//! Choices that can be worked out by hand, and by brute force.

use proptest::prelude::*;

use super::*;
use crate::profile::{CutFacts, Machine, Measured, Representation, StorageFacts};
use crate::types::Fingerprint;

/// 1,000 rows, one thread; each cut as (offline s/row, online s/row, stored bytes/row).
fn profile(cuts: &[(&str, f64, f64, f64)]) -> Profile {
    let exact = Measured::exact;
    Profile {
        version: 1,
        definition: Fingerprint([0; 16]),
        data: Fingerprint([0; 16]),
        machine: Machine { cores: 1, available_memory_bytes: None },
        threads: 1,
        rows_total: 1000,
        source_bytes_total: 1_000_000,
        shards: 1,
        rows_sampled: 10,
        seconds: 1.0,
        bad_rows: 0,
        read_source: exact(0.0),
        steps: Vec::new(),
        cuts: cuts
            .iter()
            .map(|(cut, offline, online, bytes)| CutFacts {
                cut: (*cut).to_owned(),
                offline: exact(*offline),
                online: exact(*online),
                raw_bytes: exact(*bytes),
                stored_rows: exact(1.0),
                stream_rows: exact(1.0),
                refers: *cut == "source",
                representations: vec![Representation {
                    codec: Codec::None,
                    stored_bytes: exact(*bytes),
                    shard_bytes: exact(0.0),
                    encode: exact(0.0),
                    decode: exact(0.0),
                }],
            })
            .collect(),
        storage: StorageFacts {
            write_bytes_per_second: exact(1e9),
            commit_seconds: 0.0,
            read_bytes_per_second: exact(1e9),
        },
    }
}

/// By hand, 1,000 rows: `source` costs 10 s an epoch and nothing before; `resize` 1 s an epoch and before that 20 s of
/// work and 0.2 s of writing 200 MB at 1 GB/s. After two epochs 20 s < 22.2 s, after three 30 s > 23.2 s.
#[test]
fn more_epochs_make_materializing_pay() {
    let facts = profile(&[("source", 0.0, 0.010, 0.0), ("resize", 0.020, 0.001, 200_000.0)]);
    let choice = |epochs| {
        plan(&facts, &PlanSettings { epochs: Some(epochs), ..PlanSettings::default() }, None, None).expect("fits")
    };
    assert_eq!(choice(1).choice().cut, "source");
    assert_eq!(choice(2).choice().cut, "source");
    assert_eq!(choice(3).choice().cut, "resize");
    let ten = choice(10);
    assert!((ten.choice().estimate.total_seconds.estimate - 30.2).abs() < 1e-9);
    assert!(ten.reason.contains("`resize`") && ten.reason.contains("3.31 times"), "{}", ten.reason);
}

#[test]
fn a_budget_excludes_and_an_impossible_one_names_the_least() {
    let facts = profile(&[("bytes", 0.0, 0.010, 50_000.0), ("resize", 0.020, 0.001, 200_000.0)]);
    let with =
        |budget| plan(&facts, &PlanSettings { storage_budget: Some(budget), ..PlanSettings::default() }, None, None);
    assert_eq!(with(300_000_000).expect("fits").choice().cut, "resize");
    assert_eq!(with(100_000_000).expect("fits").choice().cut, "bytes");
    let error = with(1000).expect_err("nothing fits");
    assert!(error.help().is_some_and(|help| help.contains("50.0 MB")), "{error:?}");
}

#[test]
fn a_forced_cut_is_taken() {
    let facts = profile(&[("bytes", 0.0, 0.010, 50_000.0), ("resize", 0.020, 0.001, 200_000.0)]);
    let with =
        |cut: &str| plan(&facts, &PlanSettings { cut: Some(cut.to_owned()), ..PlanSettings::default() }, None, None);
    assert_eq!(with("bytes").expect("is there").choice().cut, "bytes");
    assert!(with("resise").expect_err("wasn't measured").to_string().contains("resise"));
}

proptest! {
    /// Against brute force: nobody feasible is better by more than the tie; a larger budget never makes it worse.
    #[test]
    fn the_choice_is_the_best_and_budgets_are_monotone(
        cuts in proptest::collection::vec((0.0..0.1_f64, 0.0001..0.1_f64, 0.0..1e6_f64), 1..7),
        epochs in 1_u64..200,
        budget in 0_u64..1_000_000_000,
    ) {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let cuts: Vec<_> = cuts.iter().zip(names).map(|((off, on, bytes), name)| (name, *off, *on, *bytes)).collect();
        let facts = profile(&cuts);
        let with = |budget| plan(&facts, &PlanSettings { epochs: Some(epochs), storage_budget: Some(budget), ..PlanSettings::default() }, None, None);
        let total = |(_, off, on, bytes): &(&str, f64, f64, f64)| off * 1000.0 + bytes * 1000.0 / 1e9 + on * 1000.0 * epochs as f64;
        let best = cuts.iter().filter(|cut| cut.3 * 1000.0 <= budget as f64).map(total).min_by(f64::total_cmp);
        match (with(budget), best) {
            (Ok(plan), Some(best)) => {
                let got = plan.choice().estimate.total_seconds.estimate;
                prop_assert!(got <= best * (1.0 + TIE) + 1e-9, "{got} {best}");
                let larger = with(budget * 2).expect("fits too").choice().estimate.total_seconds.estimate;
                prop_assert!(larger <= got * (1.0 + TIE) + 1e-9);
            }
            (Err(_), None) => {}
            (plan, best) => prop_assert!(false, "{plan:?} {best:?}"),
        }
    }
}

/// By hand: `resize` takes 20.2 + 10 s for ten epochs. `other` would take 18.2 + 9 s, 27.2 in all; what is built takes
/// only its 10 s. `fast` would take 2.2 + 1 s: that pays although it has to be built.
#[test]
fn what_is_built_is_kept_unless_another_is_clearly_better() {
    let resize = ("resize", 0.020, 0.001, 200_000.0);
    let settings = PlanSettings { epochs: Some(10), ..PlanSettings::default() };
    let choice = |other, built| {
        let facts = profile(&[resize, other]);
        plan(&facts, &settings, None, built).expect("fits").choice().cut.clone()
    };
    let other = ("other", 0.018, 0.0009, 200_000.0);
    assert_eq!(choice(other, None), "other");
    assert_eq!(choice(other, Some(("resize", Codec::None))), "resize");
    assert_eq!(choice(("fast", 0.002, 0.0001, 200_000.0), Some(("resize", Codec::None))), "fast");
}
