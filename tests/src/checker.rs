//! The end of a run: what the ledger's file says against what the databases hold, read through another node.
//! Keeps INV-ACK-1 (acknowledged rows are there, once), INV-OWN-1 (no position was acknowledged twice), and that
//! refused operations left nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::client::SqlClient;
use crate::ledger::{Ending, Entry};
use crate::wait;

/// Rows asked for at a time.
const PAGE_LEN: i64 = 2_000;
/// How long one page may take, activation of the cell included.
const PAGE_WAIT: Duration = Duration::from_secs(60);

/// What one database holds.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The `op_id` of each row.
    pub ops: Vec<String>,
    /// The counter.
    pub counter: u64,
}

/// Reads one database through an ingress.
///
/// # Errors
/// When it cannot be read within a minute.
pub async fn read_contents(client: &SqlClient, ingress: SocketAddr, db: &str) -> Result<Contents> {
    let mut contents = Contents::default();
    let mut after = Value::from(0);
    loop {
        let sql = "SELECT rowid, op_id FROM ledger WHERE rowid > ? ORDER BY rowid LIMIT ?";
        let args = [after.clone(), Value::from(PAGE_LEN)];
        let page = read(client, ingress, db, sql, &args).await?;
        let Some(last) = page.last() else { break };
        after = last[0].clone();
        for row in page {
            contents.ops.push(row[1].as_str().context("an op_id is no text")?.to_owned());
        }
    }
    let counter = read(client, ingress, db, "SELECT n FROM counter WHERE id = 1", &[]).await?;
    contents.counter = counter.first().and_then(|row| row[0].as_u64()).context("no counter")?;
    Ok(contents)
}

async fn read(
    client: &SqlClient,
    ingress: SocketAddr,
    db: &str,
    sql: &str,
    args: &[Value],
) -> Result<Vec<Vec<Value>>> {
    let what = format!("the rows of `{db}`");
    wait::until(&what, PAGE_WAIT, || async { client.query(ingress, db, sql, args).await.into_result() }).await
}

/// Every broken promise, one line each.
#[must_use]
pub fn check(entries: &[Entry], contents: &BTreeMap<String, Contents>) -> Vec<String> {
    let mut violations = Vec::new();
    let mut by_db: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by_db.entry(&entry.db).or_default().push(entry);
    }
    for (db, entries) in by_db {
        check_positions(db, &entries, &mut violations);
        match contents.get(db) {
            Some(contents) => check_rows(db, &entries, contents, &mut violations),
            None if entries.iter().all(|entry| entry.ending != Ending::Acked) => {}
            None => violations.push(format!("`{db}`: acknowledged writes, and the database was not read")),
        }
    }
    violations
}

fn check_rows(db: &str, entries: &[&Entry], contents: &Contents, violations: &mut Vec<String>) {
    let mut present: BTreeMap<&str, u64> = BTreeMap::new();
    for op in &contents.ops {
        *present.entry(op).or_default() += 1;
    }
    if contents.counter != contents.ops.len() as u64 {
        violations.push(format!(
            "`{db}`: the counter is {} with {} rows",
            contents.counter,
            contents.ops.len()
        ));
    }
    for (op, count) in &present {
        if *count > 1 {
            violations.push(format!("`{db}`: operation {op} is there {count} times"));
        }
    }
    let known: BTreeSet<&str> = entries.iter().map(|entry| entry.op.as_str()).collect();
    for op in present.keys().filter(|op| !known.contains(*op)) {
        violations.push(format!("`{db}`: operation {op} was never ended by a client"));
    }
    for Entry { op, ending, position, note, .. } in entries {
        match (ending, present.contains_key(op.as_str())) {
            (Ending::Acked, false) => {
                violations.push(format!("`{db}`: operation {op}, acknowledged at {position:?}, is lost"));
            }
            (Ending::Refused, true) => {
                violations.push(format!("`{db}`: operation {op} ran though it was refused: {note}"));
            }
            (Ending::Acked, true) | (Ending::Refused, false) | (Ending::Unknown, _) => {}
        }
    }
}

/// Two acknowledgements with one counter value, or one txid at two epochs, are two writers. Commits of one epoch may share a txid when they were captured together.
fn check_positions(db: &str, entries: &[&Entry], violations: &mut Vec<String>) {
    let mut by_n: BTreeMap<u64, &str> = BTreeMap::new();
    let mut epoch_of: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.ending == Ending::Acked) {
        if let Some(n) = entry.n
            && let Some(other) = by_n.insert(n, &entry.op)
        {
            let op = &entry.op;
            violations
                .push(format!("`{db}`: operations {other} and {op} were both acknowledged with counter {n}"));
        }
        if let Some((epoch, txid)) = entry.position
            && let Some(other) = epoch_of.insert(txid, epoch)
            && other != epoch
        {
            violations.push(format!("`{db}`: txid {txid} was acknowledged at epochs {other} and {epoch}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(op: &str, ending: Ending, n: Option<u64>, position: Option<(u64, u64)>) -> Entry {
        Entry { db: "d".into(), op: op.into(), ending, n, position, note: String::new() }
    }

    fn found(entries: &[Entry], ops: &[&str], counter: u64) -> Vec<String> {
        let ops = ops.iter().map(|op| (*op).to_owned()).collect();
        check(entries, &BTreeMap::from([("d".to_owned(), Contents { ops, counter })]))
    }

    #[test]
    fn an_honest_history_passes_with_and_without_the_unknown_operation() {
        let history = [
            entry("a", Ending::Acked, Some(1), Some((1, 1))),
            entry("b", Ending::Refused, None, None),
            entry("c", Ending::Unknown, None, None),
            entry("d", Ending::Acked, Some(3), Some((2, 3))),
        ];
        assert_eq!(found(&history, &["a", "c", "d"], 3), Vec::<String>::new());
        assert_eq!(found(&history, &["a", "d"], 2), Vec::<String>::new());
    }

    #[test]
    fn each_broken_promise_is_named() {
        let acked = entry("a", Ending::Acked, Some(1), Some((1, 1)));
        let cases: [(&[Entry], &[&str], u64, &str); 7] = [
            (std::slice::from_ref(&acked), &[], 0, "is lost"),
            (std::slice::from_ref(&acked), &["a", "a"], 2, "2 times"),
            (std::slice::from_ref(&acked), &["a"], 2, "counter is 2 with 1 rows"),
            (std::slice::from_ref(&acked), &["a", "x"], 2, "never ended"),
            (&[entry("b", Ending::Refused, None, None)], &["b"], 1, "though it was refused"),
            (
                &[acked.clone(), entry("b", Ending::Acked, Some(1), Some((2, 2)))],
                &["a", "b"],
                2,
                "both acknowledged with counter 1",
            ),
            (
                &[acked.clone(), entry("b", Ending::Acked, Some(2), Some((2, 1)))],
                &["a", "b"],
                2,
                "at epochs 1 and 2",
            ),
        ];
        for (history, ops, counter, expected) in cases {
            let violations = found(history, ops, counter);
            assert!(violations.len() == 1 && violations[0].contains(expected), "{expected}: {violations:?}");
        }
    }

    #[test]
    fn a_database_that_was_not_read_is_a_violation_only_when_something_was_acknowledged() {
        let lost = check(&[entry("a", Ending::Acked, Some(1), None)], &BTreeMap::new());
        assert_eq!(lost.len(), 1);
        assert!(check(&[entry("a", Ending::Refused, None, None)], &BTreeMap::new()).is_empty());
    }
}
