//! Steps that make other rows: which columns they hand on, and what random rows and columns may not go through.

use super::scope::{Maker, Scope, ScopeColumn, ScopeRelation};
use super::steps::{CheckedStep, StepChecker};
use crate::diag::Diagnostic;
use crate::ops::expression::is_sql_type;
use crate::ops::{ArgValue, Args, BindError, COLUMNS, ErasedOp, RowsClass, query_inputs};
use crate::types::NamedColumn;

/// A step's rows being checked.
pub struct Rows<'s, 'a> {
    /// The step.
    pub step: &'s StepChecker<'a>,
    /// The relation that it works on.
    pub from: usize,
}

/// A column that a step hands on, by places in the scope.
pub struct HandedOn {
    /// Where it comes from: one column, or one of each branch of a union.
    pub from: Vec<usize>,
    /// What it is afterwards.
    pub to: usize,
    /// Of a join: 0 for the left side's columns, 1 for the right side's.
    pub side: usize,
}

type Carried = Vec<HandedOn>;

impl Rows<'_, '_> {
    /// The relation that a step with one input relation makes, or works on, and what it hands on.
    pub fn made(
        &self,
        class: RowsClass,
        random: bool,
        scope: &mut Scope,
        list: &mut Vec<Diagnostic>,
    ) -> (usize, Carried) {
        if class == RowsClass::Map {
            if let Some(entry) = self.step.table.get("rows") {
                let message = "`rows` names rows that a step makes, and this one makes columns";
                let error = Diagnostic::error("unknown-key", message, entry.key_span.clone(), "it makes no rows");
                list.push(error.help("name its column with `out`"));
            }
            return (self.from, Vec::new());
        }
        let before = scope.relations[self.from].clone();
        let made = ScopeRelation {
            name: before.name.clone(),
            maker: Maker::Step(self.step.at),
            random: before.random || (random && class != RowsClass::Pack),
            ..before
        };
        match class {
            RowsClass::Filter | RowsClass::Expand => (self.add(made, scope, list), Vec::new()),
            RowsClass::Pack => {
                let made = ScopeRelation { visible: Vec::new(), ambiguous: Vec::new(), barred: Vec::new(), ..made };
                (self.add(made, scope, list), Vec::new())
            }
            RowsClass::Map | RowsClass::Relational => {
                let columns = scope.visible(self.from);
                let relation = self.add(ScopeRelation { visible: Vec::new(), ..made }, scope, list);
                let mut carried = Carried::new();
                for column in columns {
                    carried.extend(hand_on(&[column], 0, &carried, relation, self, scope));
                }
                (relation, carried)
            }
        }
    }

    fn add(&self, relation: ScopeRelation, scope: &mut Scope, list: &mut Vec<Diagnostic>) -> usize {
        let name = crate::pipeline::check::keys::text(self.step.table, "rows", list);
        scope.relations.push(relation);
        let at = scope.relations.len() - 1;
        scope.name_relation(at, name.as_deref(), self.from);
        scope.current = at;
        at
    }

    /// Reports that a step can't have random rows or columns before it.
    pub fn refuse_random(&self, op: &str, list: &mut Vec<Diagnostic>) {
        let message = format!("`{op}` can't come after a random step");
        let error = Diagnostic::error("random-before-rows", message, self.step.head(), "needs all rows, once, offline");
        list.push(error.help("move the random step behind it: what it reads is other in each epoch"));
    }

    /// Checks a `join`, `union` or `sql`.
    pub fn relational(
        &self,
        op: &'static dyn ErasedOp,
        args: &Args,
        scope: &mut Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<CheckedStep> {
        match op.info().name {
            "join" => self.join(op, args, scope, list),
            "union" => self.union(op, args, scope, list),
            _ => self.sql(op, args, scope, list),
        }
    }

    fn join(
        &self,
        op: &'static dyn ErasedOp,
        args: &Args,
        scope: &mut Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<CheckedStep> {
        let with = args.text("join")?;
        let right = scope.relation(with);
        if right.is_none() {
            list.push(scope.unknown_relation(with, self.step.key_span("join")));
        }
        let pairs: Vec<(String, String)> = args
            .words("on")
            .unwrap_or_default()
            .iter()
            .map(|on| match on.split_once('=') {
                Some((left, right)) => (left.trim().to_owned(), right.trim().to_owned()),
                None => (on.trim().to_owned(), on.trim().to_owned()),
            })
            .collect();
        let span = self.step.key_span("on");
        let mut keys = [Vec::new(), Vec::new()];
        for (left_name, right_name) in &pairs {
            for (side, (relation, name)) in [(Some(self.from), left_name), (right, right_name)].into_iter().enumerate()
            {
                let Some(relation) = relation else { continue };
                match scope.find(relation, name) {
                    Some(at) => keys[side].push(at),
                    None => list.extend(self.step.unknown(name, span.clone(), relation, scope)),
                }
            }
        }
        let Some(right) = right else { return self.broken(scope, list) };
        let inputs = keys.concat();
        for input in &inputs {
            scope.columns[*input].read = true;
        }
        let random = [self.from, right].iter().any(|side| scope.relations[*side].random)
            || inputs.iter().any(|input| scope.columns[*input].random);
        if random {
            self.refuse_random("join", list);
        }
        let types: Option<Vec<_>> = inputs.iter().map(|input| scope.columns[*input].column_type.clone()).collect();
        if keys[0].len() == pairs.len()
            && keys[1].len() == pairs.len()
            && let Some(types) = types
            && let Err(error) = op.bind(args, &types)
        {
            self.step.report(error, &[], list);
        }
        let (left_visible, right_visible) = (scope.visible(self.from), scope.visible(right));
        let left_names: Vec<String> = scope.names(self.from).into_iter().map(ToOwned::to_owned).collect();
        let suffix = args.text("suffix").map(ToOwned::to_owned);
        let before = scope.relations[self.from].clone();
        let broken = before.broken || scope.relations[right].broken;
        let barred = [before.barred.clone(), scope.relations[right].barred.clone()].concat();
        let made = ScopeRelation {
            maker: Maker::Step(self.step.at),
            visible: Vec::new(),
            ambiguous: before.ambiguous.clone(),
            barred,
            broken,
            ..before
        };
        let relation = self.add(made, scope, list);
        let mut carried: Carried = Vec::new();
        for column in left_visible {
            carried.extend(hand_on(&[column], 0, &carried, relation, self, scope));
        }
        for column in right_visible {
            let name = scope.columns[column].name.clone();
            let same_key = pairs.iter().any(|(left, right)| left == right && *left == name);
            if same_key {
                continue;
            }
            let clash = left_names.contains(&name);
            let Some(handed) = hand_on(&[column], 1, &carried, relation, self, scope) else { continue };
            if clash && let Some(suffix) = &suffix {
                scope.columns[handed.to].name.push_str(suffix);
            } else if clash {
                // Neither side's can be meant.
                scope.relations[relation].visible.retain(|at| scope.columns[*at].name != name);
                scope.relations[relation].ambiguous.push(name);
            }
            carried.push(handed);
        }
        Some(self.checked(op, args.clone(), inputs, Vec::new(), carried, vec![self.from, right], relation))
    }

    fn union(
        &self,
        op: &'static dyn ErasedOp,
        args: &Args,
        scope: &mut Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<CheckedStep> {
        if let Err(error) = op.bind(args, &[]) {
            self.step.report(error, &[], list);
        }
        let mut branches = Vec::new();
        for name in args.words("union").unwrap_or_default() {
            match scope.relation(&name) {
                Some(relation) => branches.push(relation),
                None => list.push(scope.unknown_relation(&name, self.step.key_span("union"))),
            }
        }
        if branches.len() < args.words("union").map_or(0, |names| names.len()) || branches.is_empty() {
            return self.broken(scope, list);
        }
        if branches.iter().any(|branch| scope.relations[*branch].random) {
            self.refuse_random("union", list);
        }
        let first = scope.relations[branches[0]].clone();
        let made = ScopeRelation {
            maker: Maker::Step(self.step.at),
            visible: Vec::new(),
            broken: branches.iter().any(|branch| scope.relations[*branch].broken),
            ..first
        };
        let columns = scope.visible(branches[0]);
        let relation = self.add(made, scope, list);
        let mut carried = Carried::new();
        for column in columns {
            let name = scope.columns[column].name.clone();
            let parts: Option<Vec<usize>> = branches.iter().map(|branch| scope.find(*branch, &name)).collect();
            let Some(parts) = parts else { continue };
            let column_type = scope.columns[column].column_type.clone();
            for (part, branch) in parts.iter().zip(&branches) {
                let other = scope.columns[*part].column_type.clone();
                if let (Some(one), Some(other)) = (&column_type, &other)
                    && one != other
                {
                    let rows = &scope.relations[*branch].name;
                    let message = format!("`{name}` is {one} in one part of the union and {other} in `{rows}`");
                    let span = self.step.key_span("union");
                    let error = Diagnostic::error("wrong-column-type", message, span, "these don't fit together");
                    list.push(error.help("bring them into one type before, or give one of them another name"));
                }
            }
            carried.extend(hand_on(&parts, 0, &carried, relation, self, scope));
        }
        if carried.is_empty() && !scope.relations[relation].broken {
            let span = self.step.key_span("union");
            let message = "the parts of the union have no column in common";
            list.push(Diagnostic::error("wrong-inputs", message, span, "nothing comes out"));
        }
        Some(self.checked(op, args.clone(), Vec::new(), Vec::new(), carried, branches, relation))
    }

    fn sql(
        &self,
        op: &'static dyn ErasedOp,
        args: &Args,
        scope: &mut Scope,
        list: &mut Vec<Diagnostic>,
    ) -> Option<CheckedStep> {
        // A column of unknown type is in error already; one of tensors can't be seen by SQL.
        let fit = |at: &usize| scope.columns[*at].column_type.as_ref().is_some_and(is_sql_type);
        let visible: Vec<usize> = scope.visible(self.from).into_iter().filter(fit).collect();
        let named = |at: &usize| {
            let column = &scope.columns[*at];
            column.column_type.clone().map(|column_type| NamedColumn { name: column.name.clone(), column_type })
        };
        let known: Vec<NamedColumn> = visible.iter().filter_map(named).collect();
        if scope.relations[self.from].broken {
            return self.broken(scope, list);
        }
        let used = match query_inputs(args.text("sql").unwrap_or_default(), &known) {
            Ok(used) => used,
            Err((message, help)) => {
                self.step.report(BindError { param: Some("sql"), message, help }, &[], list);
                return self.broken(scope, list);
            }
        };
        let inputs: Vec<usize> = used.iter().map(|place| visible[*place]).collect();
        let random = scope.relations[self.from].random || inputs.iter().any(|input| scope.columns[*input].random);
        if random {
            self.refuse_random("sql", list);
        }
        let mut args = args.clone();
        let read = inputs.iter().map(|at| ArgValue::Text(scope.columns[*at].name.clone())).collect();
        args.0.insert(COLUMNS.to_owned(), ArgValue::List(read));
        let types: Vec<_> = inputs.iter().filter_map(|input| scope.columns[*input].column_type.clone()).collect();
        for input in &inputs {
            scope.columns[*input].read = true;
        }
        let bound = match op.bind(&args, &types) {
            Ok(bound) => bound,
            Err(error) => {
                self.step.report(error, &[], list);
                return self.broken(scope, list);
            }
        };
        let before = scope.relations[self.from].clone();
        let made = ScopeRelation {
            maker: Maker::Step(self.step.at),
            visible: Vec::new(),
            ambiguous: Vec::new(),
            barred: Vec::new(),
            ..before
        };
        let relation = self.add(made, scope, list);
        let span = self.step.key_span("sql");
        let mut outputs = Vec::new();
        for (name, column_type) in bound.names.into_iter().zip(bound.outputs) {
            scope.columns.push(ScopeColumn {
                name,
                column_type: Some(column_type),
                maker: Maker::Step(self.step.at),
                relation,
                read: false,
                random: false,
                content_of: None,
                span: span.clone(),
            });
            outputs.push(scope.columns.len() - 1);
        }
        scope.relations[relation].visible.clone_from(&outputs);
        Some(self.checked(op, args, inputs, outputs, Vec::new(), vec![self.from], relation))
    }

    /// After an error: rows of which nothing is known.
    fn broken(&self, scope: &mut Scope, list: &mut Vec<Diagnostic>) -> Option<CheckedStep> {
        let before = scope.relations[self.from].clone();
        self.add(ScopeRelation { maker: Maker::Step(self.step.at), broken: true, ..before }, scope, list);
        None
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a step")]
    fn checked(
        &self,
        op: &'static dyn ErasedOp,
        args: Args,
        inputs: Vec<usize>,
        outputs: Vec<usize>,
        carried: Carried,
        reads: Vec<usize>,
        relation: usize,
    ) -> CheckedStep {
        CheckedStep {
            at: self.step.at,
            name: String::new(),
            op,
            args,
            inputs,
            outputs,
            carried,
            reads,
            relation,
            variants: None,
            span: self.step.span.clone(),
        }
    }
}

/// Hands a column on into a relation that a step makes of several rows; none where it is random. The content of source
/// files isn't handed on: its path is, and the file is read behind the step, where it is needed. `carried` is what has
/// been handed on so far.
fn hand_on(
    parts: &[usize],
    side: usize,
    carried: &[HandedOn],
    relation: usize,
    rows: &Rows<'_, '_>,
    scope: &mut Scope,
) -> Option<HandedOn> {
    let column = scope.columns[parts[0]].clone();
    if parts.iter().any(|part| scope.columns[*part].random) {
        scope.relations[relation].barred.push(column.name);
        return None;
    }
    let content_of = match (parts, column.content_of) {
        ([_], Some((source, path))) => {
            // The path was made before the content, so it has been handed on already; of the same side, as both sides
            // of a join may be the same rows.
            let handed = |other: &&HandedOn| other.side == side && other.from == [path];
            carried.iter().find(handed).map(|path| (source, path.to))
        }
        _ => None,
    };
    scope.columns.push(ScopeColumn { maker: Maker::Step(rows.step.at), relation, read: false, content_of, ..column });
    let to = scope.columns.len() - 1;
    scope.relations[relation].visible.push(to);
    scope.note_handed_on(to, parts[0]);
    Some(HandedOn { from: parts.to_vec(), to, side })
}
