//! Predicted beside measured.

use serde_json::{Value, json};

use super::plan::table;
use crate::cost::Estimate;
use crate::types::units::{show_bytes, show_rate, show_seconds};

/// What was predicted and measured of one candidate.
#[derive(Debug, Clone)]
pub struct BenchRow {
    /// The cut's word.
    pub cut: String,
    /// The codec's word.
    pub codec: String,
    /// What was predicted, if it was.
    pub predicted: Option<Estimate>,
    /// Bytes of all shards.
    pub stored_bytes: f64,
    /// Seconds of the build; none when shards were taken over from an earlier one.
    pub offline_seconds: Option<f64>,
    /// Rows a second of the stream.
    pub online_rows_per_second: f64,
}

fn error(measured: f64, predicted: f64) -> String {
    if measured == 0.0 && predicted == 0.0 {
        return "exact".to_owned();
    }
    format!("{:+.1} %", 100.0 * (predicted / measured - 1.0))
}

/// A table: for each figure predicted, measured and how far the prediction is off.
#[must_use]
pub fn bench_text(rows: &[BenchRow]) -> String {
    let heads = ["cut", "codec", "figure", "predicted", "low", "high", "measured", "error"];
    let mut lines = vec![heads.map(ToOwned::to_owned).to_vec()];
    for row in rows {
        let figures = [
            ("stored", row.predicted.map(|p| p.stored_bytes), Some(row.stored_bytes), show_bytes as fn(f64) -> String),
            ("build", row.predicted.map(|p| p.offline_seconds), row.offline_seconds, show_seconds),
            ("rows/s", row.predicted.map(|p| p.online_rows_per_second), Some(row.online_rows_per_second), show_rate),
        ];
        for (name, predicted, measured, show) in figures {
            let part = |value: Option<f64>| value.map_or("-".to_owned(), show);
            lines.push(vec![
                row.cut.clone(),
                row.codec.clone(),
                name.to_owned(),
                part(predicted.map(|p| p.estimate)),
                part(predicted.map(|p| p.low)),
                part(predicted.map(|p| p.high)),
                part(measured),
                predicted.zip(measured).map_or("-".to_owned(), |(p, m)| error(m, p.estimate)),
            ]);
        }
    }
    table(&lines, &[3, 4, 5, 6, 7])
}

/// The same as JSON.
#[must_use]
pub fn bench_json(rows: &[BenchRow]) -> Value {
    let rows = rows.iter().map(|row| {
        json!({
            "cut": row.cut,
            "codec": row.codec,
            "predicted": row.predicted,
            "measured": {
                "stored_bytes": row.stored_bytes,
                "offline_seconds": row.offline_seconds,
                "online_rows_per_second": row.online_rows_per_second,
            },
        })
    });
    Value::Array(rows.collect())
}
