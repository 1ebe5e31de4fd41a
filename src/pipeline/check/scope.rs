//! What can be named at each place of the text: relations by name, and the columns of each.

use std::collections::BTreeMap;

use super::keys;
use super::source::Named;
use crate::diag::{Diagnostic, Span, nearest};
use crate::format::{BYTES, PATH, SIZE};
use crate::types::{ColumnType, DType, NamedColumn};

/// Who makes something: a source, or the step at that place of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A source, by its place.
    Source(usize),
    /// A step, by its place.
    Step(usize),
}

/// The relations and columns made so far.
pub struct Scope {
    /// All relations, the sources' first.
    pub relations: Vec<ScopeRelation>,
    /// All columns, the sources' first. A column whose type couldn't be worked out has none, and silences what follows
    /// from it.
    pub columns: Vec<ScopeColumn>,
    /// What each name of rows means now.
    names: BTreeMap<String, usize>,
    /// The column that a column was before a step handed it on.
    handed_on: BTreeMap<usize, usize>,
    /// The relation that the next step works on if it doesn't say.
    pub current: usize,
}

/// A relation of the scope.
#[derive(Debug, Clone)]
pub struct ScopeRelation {
    /// Its name, if it has one.
    pub name: String,
    /// Who makes its rows.
    pub maker: Maker,
    /// Its columns, the later ones shadowing earlier ones of the same name.
    pub visible: Vec<usize>,
    /// Names that two sides of a join have.
    pub ambiguous: Vec<String>,
    /// Names of columns that were random where rows were put together.
    pub barred: Vec<String>,
    /// Whether its columns aren't all known, because of an error.
    pub broken: bool,
    /// Whether which rows it has depends on the epoch.
    pub random: bool,
}

/// A column of the scope.
#[derive(Debug, Clone)]
pub struct ScopeColumn {
    /// Its name.
    pub name: String,
    /// Its type; none after an error.
    pub column_type: Option<ColumnType>,
    /// Who makes it.
    pub maker: Maker,
    /// The relation whose rows have it.
    pub relation: usize,
    /// Whether a step reads it.
    pub read: bool,
    /// Whether it depends on the epoch.
    pub random: bool,
    /// For the content of source files, which is read only where it is needed: the source, and the column of the path.
    pub content_of: Option<(usize, usize)>,
    /// Where its name is given, for steps.
    pub span: Span,
}

impl Scope {
    /// The scope before the first step.
    pub fn new(sources: &[Named]) -> Self {
        let (names, handed_on) = (BTreeMap::new(), BTreeMap::new());
        let mut scope = Self { relations: Vec::new(), columns: Vec::new(), names, handed_on, current: 0 };
        for (at, named) in sources.iter().enumerate() {
            let columns = match &named.source {
                Some(source) => source.columns.clone(),
                None if named.is_files => file_columns(),
                None => Vec::new(),
            };
            let broken = named.source.is_none() && !named.is_files;
            scope.add_source(at, &named.name, &columns, broken);
        }
        if sources.is_empty() {
            scope.add_source(0, "source", &file_columns(), true);
        }
        scope
    }

    fn add_source(&mut self, at: usize, name: &str, columns: &[NamedColumn], broken: bool) {
        let relation = self.relations.len();
        let first = self.columns.len();
        for column in columns {
            self.columns.push(ScopeColumn {
                name: column.name.clone(),
                column_type: Some(column.column_type.clone()),
                maker: Maker::Source(at),
                relation,
                read: false,
                random: false,
                content_of: None,
                span: 0..0,
            });
        }
        let visible: Vec<usize> = (first..self.columns.len()).collect();
        let place = |name: &str| visible.iter().copied().find(|at| self.columns[*at].name == name);
        // Only a file source has both; a table with such columns has no lazy content.
        if columns.iter().map(|column| column.name.as_str()).eq([PATH, BYTES, SIZE])
            && let (Some(path), Some(bytes)) = (place(PATH), place(BYTES))
            && columns[1].column_type == ColumnType::Bytes
        {
            self.columns[bytes].content_of = Some((at, path));
        }
        self.relations.push(ScopeRelation {
            name: name.to_owned(),
            maker: Maker::Source(at),
            visible,
            ambiguous: Vec::new(),
            barred: Vec::new(),
            broken,
            random: false,
        });
        self.names.insert(name.to_owned(), relation);
    }

    /// The relation of that name.
    pub fn relation(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Gives a relation a name, taking it from another if one has it; in place of a name, the one that its step worked
    /// on gets it.
    pub fn name_relation(&mut self, relation: usize, name: Option<&str>, from: usize) {
        match name {
            Some(name) => {
                name.clone_into(&mut self.relations[relation].name);
                self.names.insert(name.to_owned(), relation);
            }
            None => {
                for meant in self.names.values_mut().filter(|meant| **meant == from) {
                    *meant = relation;
                }
            }
        }
    }

    /// What a column was before a step that puts rows together handed it on.
    pub fn handed_on(&self, column: usize) -> Option<usize> {
        self.handed_on.get(&column).copied()
    }

    /// Notes what a column was before.
    pub fn note_handed_on(&mut self, column: usize, before: usize) {
        self.handed_on.insert(column, before);
    }

    /// The last column of that name that the relation has.
    pub fn find(&self, relation: usize, name: &str) -> Option<usize> {
        self.relations[relation].visible.iter().rev().copied().find(|at| self.columns[*at].name == name)
    }

    /// The columns that the relation has, shadowed ones left out, in the order in which they were made.
    pub fn visible(&self, relation: usize) -> Vec<usize> {
        let visible = &self.relations[relation].visible;
        visible.iter().copied().filter(|at| self.find(relation, &self.columns[*at].name) == Some(*at)).collect()
    }

    /// The names that can be used in that relation.
    pub fn names(&self, relation: usize) -> Vec<&str> {
        self.visible(relation).into_iter().map(|at| self.columns[at].name.as_str()).collect()
    }

    /// Reports a column that the relation doesn't have; none when that follows from another error.
    pub fn unknown(&self, relation: usize, name: &str, span: Span) -> Option<Diagnostic> {
        let rows = &self.relations[relation];
        if rows.ambiguous.iter().any(|other| other == name) {
            let message = format!("`{name}` is a column of both sides of the join");
            let error = Diagnostic::error("ambiguous-column", message, span, "which one?");
            return Some(error.help("give the right side's another name: `suffix = \"_right\"` in the join"));
        }
        if rows.barred.iter().any(|other| other == name) {
            let message = format!("`{name}` is random and can't go through a step that puts rows together");
            let error = Diagnostic::error("random-before-rows", message, span, "made anew in each epoch");
            return Some(error.help("move the random step behind that step: rows are put together once, offline"));
        }
        if rows.broken {
            return None;
        }
        let names = self.names(relation);
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the columns here are {}", keys::quoted(&names)),
        };
        let error = Diagnostic::error("unknown-column", format!("there is no column `{name}`"), span, "unknown column");
        Some(error.help(help))
    }

    /// Reports a name that no rows have.
    pub fn unknown_relation(&self, name: &str, span: Span) -> Diagnostic {
        let names: Vec<&str> = self.names.keys().map(String::as_str).collect();
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}; a step names its rows with `rows = \"...\"`", keys::quoted(&names)),
        };
        let message = format!("no source and no step's rows are called `{name}`");
        Diagnostic::error("unknown-rows", message, span, "unknown rows").help(help)
    }
}

fn file_columns() -> Vec<NamedColumn> {
    [(PATH, ColumnType::Text), (BYTES, ColumnType::Bytes), (SIZE, ColumnType::Scalar(DType::I64))]
        .map(|(name, column_type)| NamedColumn { name: name.to_owned(), column_type })
        .into()
}
