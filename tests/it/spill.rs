//! Rows are put together in bounded memory: what doesn't fit goes to disk, and comes back the same.

use std::fmt::Write as _;
use std::sync::Arc;

use parbake::diag::SourceText;
use parbake::exec::{SpoolPlace, gather};
use parbake::materialize;
use parbake::pipeline::{self, CompileOptions, Graph};
use parbake::types::Fingerprint;

/// 40,000 rows of 600 bytes, 24 MB on each side, joined and sorted in less memory than they and their copies take.
fn lay_out(folder: &std::path::Path) -> Graph {
    for (name, key) in [("a", 7_u64), ("b", 11)] {
        let mut text = String::new();
        for row in 0..40_000_u64 {
            let filler = format!("{:016x}", row.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ key).repeat(36);
            let _ = writeln!(text, "{{\"k\": {}, \"{name}\": \"{filler}\"}}", row * key % 40_000);
        }
        std::fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
    }
    let text = "[source.a]\njsonl = \"a.jsonl\"\n[source.b]\njsonl = \"b.jsonl\"\n[[step]]\nfrom = \"a\"\njoin = \"b\"\non = \"k\"\n";
    let source =
        SourceText { name: "p.toml".to_owned(), text: format!("{text}[output]\ncolumns = [\"a\", \"b\"]\n").into() };
    pipeline::check(&source, folder).unwrap_or_else(|_| panic!("checks")).graph
}

#[test]
fn a_join_in_little_memory_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let graph = lay_out(folder.path());
    let options = CompileOptions { fused: true };
    let base = graph.base(graph.output_relation);
    let columns = pipeline::relation_program(&graph, graph.output_relation, &graph.outputs, options).inputs;
    let files = Arc::new(materialize::files(&graph).unwrap());
    let rows = |memory_limit: usize| -> Vec<(Fingerprint, u64)> {
        let mut relations = materialize::relations(&graph, &files, options, 2);
        relations.memory_limit = memory_limit;
        let place = SpoolPlace { path: folder.path().join("spool"), rows_per_part: 1000 };
        let gathered =
            gather(&relations, base, &columns, &place).unwrap_or_else(|error| panic!("{memory_limit}: {error}"));
        gathered.spool.parts().iter().map(|part| (part.digest, part.rows)).collect()
    };
    let plenty = rows(1 << 30);
    assert_eq!(plenty.iter().map(|(_, rows)| rows).sum::<u64>(), 40_000);
    assert_eq!(rows(64 << 20), plenty);
}
