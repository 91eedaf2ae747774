//! The authorizer: what a statement of a cell's user may name. It keeps the replication whole (nothing may change the
//! journal, the checkpoints or the set of files), the system tables private, and gives every refusal its reason.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization, TransactionOperation};

use super::pragma::{Verdict, judge, judge_of_object};
use super::shared::Shared;

/// Tables with this prefix belong to the engine.
pub const RESERVED_PREFIX: &str = "_hf_";

/// What Cloudflare answers to a Durable Object that begins or ends a transaction by SQL.
const OBJECT_TRANSACTION: &str = "To execute a transaction, please use the state.storage.transaction() or \
    state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API \
    is safer because it will automatically roll back on exceptions, and because it interacts correctly with Durable \
    Objects' automatic atomic write coalescing.";

/// Judges one action of a statement under preparation.
pub(crate) fn authorize(shared: &Shared, context: &AuthContext<'_>) -> Authorization {
    if shared.is_system() {
        return Authorization::Allow;
    }
    if is_plain(&context.action) {
        shared.set_plain(true);
    } else {
        shared.set_other(true);
    }
    // An ANALYZE of everything leaves out what is not the caller's.
    if let AuthAction::Analyze { table_name } = context.action
        && is_reserved(table_name)
        && !shared.is_reserved_named()
    {
        return Authorization::Ignore;
    }
    match refusal(shared, context) {
        None => Authorization::Allow,
        Some(reason) => {
            shared.deny(reason);
            Authorization::Deny
        }
    }
}

/// Whether a statement of nothing but such actions leaves nothing behind but what it writes into tables.
fn is_plain(action: &AuthAction<'_>) -> bool {
    matches!(
        action,
        AuthAction::Select
            | AuthAction::Read { .. }
            | AuthAction::Insert { .. }
            | AuthAction::Update { .. }
            | AuthAction::Delete { .. }
            | AuthAction::Function { .. }
            | AuthAction::Recursive
    )
}

/// Whether a name is the engine's.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.len() >= RESERVED_PREFIX.len()
        && name.as_bytes()[..RESERVED_PREFIX.len()].eq_ignore_ascii_case(RESERVED_PREFIX.as_bytes())
}

/// Whether the prefix occurs anywhere in a text.
pub(crate) fn names_reserved(sql: &str) -> bool {
    sql.as_bytes()
        .windows(RESERVED_PREFIX.len())
        .any(|window| window.eq_ignore_ascii_case(RESERVED_PREFIX.as_bytes()))
}

fn refusal(shared: &Shared, context: &AuthContext<'_>) -> Option<String> {
    match context.action {
        AuthAction::Attach { filename } => attach(shared, filename),
        AuthAction::Detach { .. } if !shared.is_vacuuming() => {
            Some("DETACH is not allowed: a cell has the one database `main`".into())
        }
        AuthAction::Pragma { pragma_name, pragma_value } => pragma(shared, pragma_name, pragma_value),
        AuthAction::Function { function_name } => function(function_name),
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. } => Some(
            "temporary tables, views and triggers are not allowed: a cell has one connection for all clients and \
             replicates only `main`; use a CTE or an ordinary table"
                .into(),
        ),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } if shared.is_object() => {
            Some(OBJECT_TRANSACTION.into())
        }
        AuthAction::Transaction { operation } => {
            // rusqlite knows BEGIN and ROLLBACK by name; what is left is COMMIT.
            shared.set_begin(operation == TransactionOperation::Begin);
            shared.set_commit(operation == TransactionOperation::Unknown);
            None
        }
        AuthAction::Savepoint { operation, .. } => {
            shared.set_release(operation == TransactionOperation::Release);
            None
        }
        action => tables(shared, action),
    }
}

/// A VACUUM attaches a nameless temporary database while it runs; nothing else may attach.
fn attach(shared: &Shared, filename: &str) -> Option<String> {
    if shared.is_stepping() && filename.is_empty() {
        shared.set_vacuuming(true);
        return None;
    }
    Some(if shared.is_stepping() {
        "VACUUM INTO is not allowed: use the export command for a copy of a cell".into()
    } else {
        "ATTACH is not allowed: a cell is one database and replicates only `main`".into()
    })
}

fn pragma(shared: &Shared, name: &str, value: Option<&str>) -> Option<String> {
    let verdict =
        if shared.is_object() { judge_of_object(name, value) } else { judge(name, value, shared.is_fresh()) };
    match verdict {
        Verdict::Allow => None,
        Verdict::AllowSession(index) => {
            shared.touch_pragma(index);
            None
        }
        Verdict::PageSize => match value.and_then(|value| value.parse::<u32>().ok()) {
            Some(bytes) if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) => {
                shared.request_page_size(bytes);
                None
            }
            _ => Some("PRAGMA page_size takes a power of two from 512 to 65536".into()),
        },
        Verdict::Deny(reason) => {
            let setting = if value.is_some() { "setting " } else { "" };
            Some(format!("{setting}PRAGMA {name} is not allowed: {reason}"))
        }
    }
}

fn function(name: &str) -> Option<String> {
    let is_refused =
        name.eq_ignore_ascii_case("load_extension") || name.eq_ignore_ascii_case("fts3_tokenizer");
    is_refused.then(|| format!("the function {name}() is not allowed: it loads code into the server"))
}

/// Reserved names, and writes of callers that may only read.
fn tables(shared: &Shared, action: AuthAction<'_>) -> Option<String> {
    let (names, writes): ([&str; 2], bool) = match action {
        AuthAction::Read { table_name, .. } => ([table_name, ""], false),
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::CreateTable { table_name }
        | AuthAction::DropTable { table_name }
        | AuthAction::Analyze { table_name }
        | AuthAction::AlterTable { table_name, .. } => ([table_name, ""], true),
        AuthAction::CreateIndex { index_name, table_name }
        | AuthAction::DropIndex { index_name, table_name } => ([index_name, table_name], true),
        AuthAction::CreateTrigger { trigger_name, table_name }
        | AuthAction::DropTrigger { trigger_name, table_name } => ([trigger_name, table_name], true),
        AuthAction::CreateView { view_name } | AuthAction::DropView { view_name } => ([view_name, ""], true),
        AuthAction::CreateVtable { table_name, .. } | AuthAction::DropVtable { table_name, .. } => {
            ([table_name, ""], true)
        }
        AuthAction::Reindex { index_name } => ([index_name, ""], true),
        _ => return None,
    };
    if shared.is_vacuuming() {
        return None;
    }
    let renames = matches!(action, AuthAction::AlterTable { .. }) && shared.is_reserved_named();
    if let Some(name) = names.iter().find(|name| is_reserved(name)) {
        return Some(format!(
            "`{name}` is not accessible: names that start with `{RESERVED_PREFIX}` belong to the system"
        ));
    }
    if renames {
        return Some(format!(
            "names that start with `{RESERVED_PREFIX}` belong to the system and may not stand in ALTER TABLE"
        ));
    }
    // A statement that writes by itself is refused by its caller, with a better text. What is prepared while another
    // runs (PRAGMA optimize) would slip through there.
    (writes && shared.is_read_only() && shared.is_stepping())
        .then(|| "the caller may only read, and the statement writes".into())
}

/// Whether a BEGIN asks for a transaction that only reads, as libSQL spells it: `BEGIN TRANSACTION READONLY`. To SQLite the
/// last word is a name without a meaning.
pub(crate) fn begins_read_only(sql: &str) -> bool {
    let text = without_comments(sql);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    matches!(words[..], [.., keyword, name]
        if keyword.eq_ignore_ascii_case("TRANSACTION")
            && name.trim_end_matches(';').trim_matches(['"', '`', '[', ']', '\'']).eq_ignore_ascii_case("READONLY"))
}

/// A BEGIN holds no text in which a comment could begin.
fn without_comments(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find("--").into_iter().chain(rest.find("/*")).min() {
        text.push_str(&rest[..at]);
        text.push(' ');
        let (comment, end) = (&rest[at..], if rest[at..].starts_with("--") { "\n" } else { "*/" });
        rest = comment[2..].find(end).map_or("", |len| &comment[2 + len + end.len()..]);
    }
    text.push_str(rest);
    // A semicolon may stand alone.
    text.replace(';', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_only_reads_is_told_by_its_begin() {
        for sql in [
            "BEGIN TRANSACTION READONLY",
            "begin transaction readonly;",
            "BEGIN DEFERRED TRANSACTION \"READONLY\" ;",
            "/* x */BEGIN--y\nTRANSACTION/**/READONLY -- end",
            "BEGIN TRANSACTION READONLY/* open",
        ] {
            assert!(begins_read_only(sql), "{sql}");
        }
        for sql in ["BEGIN", "BEGIN TRANSACTION", "BEGIN TRANSACTION mine", "BEGIN --TRANSACTION READONLY"] {
            assert!(!begins_read_only(sql), "{sql}");
        }
    }

    #[test]
    fn the_reserved_prefix_is_found_in_any_case() {
        assert!(
            is_reserved("_hf_meta") && is_reserved("_HF_x") && !is_reserved("hf_x") && !is_reserved("_h")
        );
        assert!(names_reserved("ALTER TABLE t RENAME TO \"_Hf_x\"") && !names_reserved("SELECT hf"));
    }
}
