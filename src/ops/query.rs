//! SQL queries over all rows: what they read and make, and whether they give the same each time.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::prelude::SessionContext;

use super::expression::{column_type, plain, session_config};
use crate::types::NamedColumn;

/// The table that a query reads.
pub const INPUT: &str = "input";

/// What is wrong with a query, and what to do about it.
pub type QueryError = (String, Option<String>);

/// The columns that a query reads, by their places among `columns`.
///
/// # Errors
/// When it isn't a query over them, or isn't deterministic.
pub fn query_inputs(text: &str, columns: &[NamedColumn]) -> Result<Vec<usize>, QueryError> {
    let (context, plan) = planned(text, columns)?;
    let plan = context.state().optimize(&plan).map_err(|error| (plain(&error), None))?;
    let mut used = vec![false; columns.len()];
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            match &scan.projection {
                Some(places) => places.iter().for_each(|place| used[*place] = true),
                None => used.fill(true),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(|error| (plain(&error), None))?;
    // A query that counts rows reads none of their columns, and yet needs the rows.
    if let (true, Some(first)) = (used.iter().all(|used| !used), used.first_mut()) {
        *first = true;
    }
    Ok((0..columns.len()).filter(|place| used[*place]).collect())
}

/// The columns that a query over the table `input` with those columns gives.
///
/// # Errors
/// When it isn't a query over them, isn't deterministic, or gives columns without names or of other types.
pub fn query_columns(text: &str, columns: &[NamedColumn]) -> Result<Vec<NamedColumn>, QueryError> {
    let (_, plan) = planned(text, columns)?;
    let mut made: Vec<NamedColumn> = Vec::new();
    for field in plan.schema().fields() {
        let name = field.name().clone();
        if made.iter().any(|column| column.name == name) {
            return Err((format!("it gives two columns called `{name}`"), Some("name one with `as`".to_owned())));
        }
        let Some(column_type) = column_type(field.data_type()) else {
            let help = "cast it to a number or to text (`varchar`)".to_owned();
            return Err((format!("its column `{name}` is {}, which no column can be", field.data_type()), Some(help)));
        };
        made.push(NamedColumn { name, column_type });
    }
    if made.is_empty() {
        return Err(("it gives no column".to_owned(), None));
    }
    Ok(made)
}

fn planned(text: &str, columns: &[NamedColumn]) -> Result<(SessionContext, LogicalPlan), QueryError> {
    let other = |error: DataFusionError| {
        let message = plain(&error).replace("datafusion.public.", "");
        let help = message.contains("table").then(|| format!("the rows so far are the table `{INPUT}`"));
        (message, help)
    };
    let fields: Vec<Field> = columns.iter().map(|column| column.column_type.field(&column.name)).collect();
    let schema = Arc::new(Schema::new(fields));
    let context = SessionContext::new_with_config(session_config());
    let empty = MemTable::try_new(Arc::clone(&schema), vec![vec![RecordBatch::new_empty(schema)]]).map_err(other)?;
    context.register_table(INPUT, Arc::new(empty)).map_err(other)?;
    // Planning waits for nothing: its table is in memory. A runtime of its own could not be started inside another.
    let plan = futures::executor::block_on(context.state().create_logical_plan(text)).map_err(other)?;
    if matches!(plan, LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_)) {
        return Err(("only a query can be a step".to_owned(), Some("begin it with `select`".to_owned())));
    }
    deterministic(&plan)?;
    Ok((context, plan))
}

fn deterministic(plan: &LogicalPlan) -> Result<(), QueryError> {
    let mut found = None;
    let visited = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && call.func.signature().volatility != Volatility::Immutable
                {
                    found = Some(call.func.name().to_owned());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    visited.map_err(|error| (plain(&error), None))?;
    match found {
        None => Ok(()),
        Some(name) => {
            let message = format!("the query is nondeterministic: `{name}()` gives another value each time");
            let help = "what is stored has to be what a later build would store: take it from a column";
            Err((message, Some(help.to_owned())))
        }
    }
}
