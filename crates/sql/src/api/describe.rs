//! `GET /`: what a cell is.

use holdfast_types::{Epoch, Txid};

use super::json::JsonOut;
use super::{Outcome, SqlCall, SqlReply, SqlRuntime};
use crate::engine::Engine;
use crate::error::SqlFailure;

/// Counts the user's tables.
const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                      AND name NOT LIKE '\\_hf\\_%' ESCAPE '\\'";

pub(super) fn run(runtime: &SqlRuntime, engine: &Engine, call: &SqlCall<'_>) -> Outcome {
    if runtime.has_transaction() {
        return Outcome::Blocked;
    }
    let read = |sql: &str| engine.read_number(sql);
    let numbers = read("PRAGMA page_count").and_then(|pages| Ok((pages, read(TABLES)?)));
    let (pages, tables) = match numbers {
        Ok(numbers) => numbers,
        Err(error) => {
            let failure = SqlFailure::new("SQLITE_INTERNAL", format!("cannot read the schema: {error}"));
            return Outcome::Reply(SqlReply::failure(500, &failure));
        }
    };
    let mut out = JsonOut::unbounded();
    out.raw("{\"class\":");
    out.string(call.cell.class());
    out.raw(",\"name\":");
    out.string(call.cell.name());
    out.raw(",\"position\":");
    write_position(&mut out, call.epoch, engine.ticket());
    let page_size = u64::from(engine.page_size());
    let size_bytes = u64::try_from(pages).unwrap_or(0) * page_size;
    out.display(format_args!(
        ",\"size_bytes\":{size_bytes},\"page_size\":{page_size},\"tables\":{tables},\"streams\":{}}}",
        runtime.stream_count()
    ));
    Outcome::Reply(SqlReply::json(200, out.into_bytes()))
}

/// Appends a position.
pub(super) fn write_position(out: &mut JsonOut, epoch: Epoch, txid: Txid) {
    out.display(format_args!("{{\"epoch\":{epoch},\"txid\":{txid}}}"));
}
