//! Plans as tables.

use crate::plan::Plan;
use crate::types::units::{show_bytes, show_rate, show_seconds};

/// The table of candidates, then the choice and the reason.
#[must_use]
pub fn plan_text(plan: &Plan) -> String {
    let total = format!("with {} epochs", plan.epochs);
    let heads = ["", "cut", "codec", "stored", "build", "rows/s", "limit", total.as_str()];
    let mut rows = vec![heads.map(ToOwned::to_owned).to_vec()];
    for (at, candidate) in plan.candidates.iter().enumerate() {
        let figures = &candidate.estimate;
        let mark = match (at == plan.chosen, &candidate.obstacle) {
            (true, _) => ">",
            (false, Some(_)) => "x",
            (false, None) => "",
        };
        let codec = candidate.codec.word();
        rows.push(vec![
            mark.to_owned(),
            candidate.cut.clone(),
            codec.to_owned(),
            show_bytes(figures.stored_bytes.estimate),
            show_seconds(figures.offline_seconds.estimate),
            show_rate(figures.online_rows_per_second.estimate),
            figures.limited_by.word().to_owned(),
            show_seconds(figures.total_seconds.estimate),
        ]);
    }
    let mut text = table(&rows, &[3, 4, 5, 7]);
    let choice = plan.choice();
    let codec = choice.codec.word();
    text.push_str(&format!("\nchosen: cut {}, codec {codec}\nbecause {}\n", choice.cut, plan.reason));
    text
}

/// Rows in columns as wide as need be; the columns of `right` are set to the right.
#[must_use]
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if right.contains(&column) {
                line.push_str(&pad);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&pad);
            }
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
