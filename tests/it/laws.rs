//! What every op has to keep to.

use std::collections::BTreeSet;

use parbake::ops::{Args, OPS, Reads};
use parbake::pipeline::parse_value;
use parbake::types::{ColumnType, DType, Dim, TensorType};

#[test]
fn names_are_legal_and_unique_and_everything_is_documented() {
    let mut names = BTreeSet::new();
    for op in OPS {
        let info = op.info();
        assert!(names.insert(info.name), "{} twice", info.name);
        // The words of the language itself have no family.
        let parts: Vec<&str> = info.name.split('.').collect();
        assert!(
            parts.len() <= 2
                && parts
                    .iter()
                    .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        );
        for text in [info.summary, info.details].into_iter().chain(info.params.iter().map(|param| param.doc)) {
            assert!(text.ends_with('.') && text.len() > 10, "{}: {text}", info.name);
        }
        assert!(info.version >= 1 && !info.inputs.is_empty());
    }
}

#[test]
fn defaults_pass_their_own_rule() {
    for op in OPS {
        for param in op.info().params {
            assert!(!(param.required && param.default.is_some()), "{}.{}", op.info().name, param.name);
            if let Some(default) = param.default {
                let value = parse_value(default).and_then(|value| value.argument()).unwrap();
                assert!(param.kind.check(&value).is_ok(), "{}.{}", op.info().name, param.name);
            }
        }
    }
}

/// The example of each op, as the last step of a pipeline that gives it what it reads, has no error.
#[test]
fn examples_work() {
    for op in OPS {
        let decode = "[[step]]\nop = \"image.decode\"\nin = \"bytes\"\n";
        let list = "[[step]]\nop = \"text.bytes\"\nin = \"path\"\n";
        let before = match (op.info().inputs[0].name, op.info().reads) {
            ("image" | "tensor", Reads::Ports) => decode,
            ("list", _) => list,
            _ => "",
        };
        let files = "files = \"../../fixtures/photos/**/*.jpg\"\n";
        let sources = match op.info().name {
            "join" => {
                format!("[source.photos]\n{files}[source.captions]\ncsv = \"../../fixtures/photos/captions.csv\"\n")
            }
            "union" => format!("[source.books]\n{files}[source.news]\n{files}"),
            _ => format!("[source]\n{files}"),
        };
        let text = format!("{sources}{before}{}", op.info().example);
        let source = parbake::diag::SourceText { name: "example.toml".to_owned(), text: text.into() };
        let base = crate::project::root().join("tests/check");
        if let Err(diagnostics) = parbake::pipeline::check(&source, &base) {
            panic!("{}: {}", op.info().name, parbake::report::render_diagnostics(&diagnostics, false, 100));
        }
    }
}

#[test]
fn a_wrong_input_type_is_refused_and_never_a_panic() {
    let tensor = |dtype, rank: usize| ColumnType::Tensor(TensorType { dtype, shape: vec![Dim::ANY; rank] });
    let types = [
        ColumnType::Text,
        ColumnType::Bytes,
        ColumnType::Scalar(DType::F32),
        tensor(DType::F64, 0),
        tensor(DType::I32, 5),
    ];
    for op in OPS {
        for column_type in &types {
            let _ = op.bind(&Args::default(), std::slice::from_ref(column_type));
        }
        assert!(op.bind(&Args::default(), &[]).is_err(), "{}", op.info().name);
    }
}
