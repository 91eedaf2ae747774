//! Which pragmas a cell's user may run. Everything not listed is refused: a pragma of a later SQLite must not become
//! a way around the capture.

/// What the policy says of one pragma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Run it.
    Allow,
    /// Run it, and remember that this connection setting (an index into [`SESSION_PRAGMAS`]) was set.
    AllowSession(usize),
    /// Allow it once the engine has set the page size itself.
    PageSize,
    /// Refuse, because of this.
    Deny(&'static str),
}

/// Settings of the connection that a caller may change for its own stream, each with the value that a new stream
/// finds. The engine has one connection for all callers and restores these between them.
pub(crate) const SESSION_PRAGMAS: [(&str, i64); 6] = [
    ("foreign_keys", 1),
    ("defer_foreign_keys", 0),
    ("ignore_check_constraints", 0),
    ("legacy_alter_table", 0),
    ("recursive_triggers", 0),
    ("reverse_unordered_selects", 0),
];

/// The index of `defer_foreign_keys` in [`SESSION_PRAGMAS`].
pub(crate) const DEFER_FOREIGN_KEYS: usize = 1;

/// What Cloudflare allows to Durable Objects beside [`SESSION_PRAGMAS`].
const OF_OBJECTS: [&str; 12] = [
    "case_sensitive_like",
    "data_version",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "optimize",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Read anything about the schema or the file; an argument only selects what to read.
const INSPECT: [&str; 22] = [
    "application_id",
    "auto_vacuum",
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "module_list",
    "page_count",
    "pragma_list",
    "quick_check",
    "schema_version",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Harmless with a value: part of the database, captured like any other write, or without effect here.
const WITH_VALUE: [&str; 17] = [
    "analysis_limit",
    "application_id",
    "auto_vacuum",
    "busy_timeout",
    "foreign_key_check",
    "foreign_key_list",
    "incremental_vacuum",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Readable without a value; with one they are the engine's.
const READ_ONLY: [(&str, &str); 15] = [
    ("cache_size", "the engine bounds the memory of a cell"),
    ("cache_spill", "the engine bounds the memory of a cell"),
    ("encoding", "the encoding of a cell is UTF-8"),
    ("journal_mode", "the engine replicates from the write-ahead log"),
    ("journal_size_limit", "the engine checkpoints by itself"),
    ("locking_mode", "the engine is the only user of the file"),
    ("max_page_count", "the size of a cell is bounded by the node's configuration"),
    ("mmap_size", "the engine bounds the memory of a cell"),
    ("query_only", "the connection is shared; use a read-only token"),
    ("schema_version", "changing it may corrupt the database"),
    ("secure_delete", "the engine decides"),
    ("synchronous", "durability comes from replication, not from the local disk"),
    ("temp_store", "the engine bounds the memory of a cell"),
    ("trusted_schema", "the engine keeps it off"),
    ("wal_autocheckpoint", "the engine checkpoints by itself"),
];

/// Judges a pragma of a Durable Object: the list is Cloudflare's, and shorter than that of other callers.
pub(crate) fn judge_of_object(name: &str, value: Option<&str>) -> Verdict {
    let name = name.to_ascii_lowercase();
    if let Some(index) = SESSION_PRAGMAS.iter().position(|(session, _)| *session == name) {
        return if value.is_some() { Verdict::AllowSession(index) } else { Verdict::Allow };
    }
    if OF_OBJECTS.contains(&name.as_str()) {
        return Verdict::Allow;
    }
    Verdict::Deny("it is not in the list of pragmas that Durable Objects have")
}

/// Judges a pragma by its name and value.
pub(crate) fn judge(name: &str, value: Option<&str>, is_fresh: bool) -> Verdict {
    let name = name.to_ascii_lowercase();
    let name = name.as_str();
    if let Some(index) = SESSION_PRAGMAS.iter().position(|(session, _)| *session == name) {
        return if value.is_some() { Verdict::AllowSession(index) } else { Verdict::Allow };
    }
    match (name, value) {
        ("page_size", None) => Verdict::Allow,
        ("page_size", Some(_)) if is_fresh => Verdict::PageSize,
        ("page_size", Some(_)) => {
            Verdict::Deny("the page size can only be chosen before the first write to a cell")
        }
        ("wal_checkpoint", _) => Verdict::Deny("the engine checkpoints by itself, after replication"),
        ("writable_schema", _) => Verdict::Deny("writing the schema table directly may corrupt the database"),
        ("database_list", _) => {
            Verdict::Deny("it shows paths of the server; a cell has the one database `main`")
        }
        ("incremental_vacuum" | "optimize" | "busy_timeout" | "analysis_limit" | "user_version", None) => {
            Verdict::Allow
        }
        (name, None) if INSPECT.contains(&name) => Verdict::Allow,
        (name, Some(_)) if WITH_VALUE.contains(&name) => Verdict::Allow,
        (name, value) => match READ_ONLY.iter().find(|(listed, _)| *listed == name) {
            Some(_) if value.is_none() => Verdict::Allow,
            Some((_, reason)) => Verdict::Deny(reason),
            None => Verdict::Deny("it is not in the list of pragmas that cells allow"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_replication_rests_on_is_refused_with_a_value() {
        for (name, value) in [
            ("journal_mode", "DELETE"),
            ("JOURNAL_MODE", "wal"),
            ("locking_mode", "NORMAL"),
            ("synchronous", "FULL"),
            ("wal_autocheckpoint", "1"),
            ("mmap_size", "1"),
            ("writable_schema", "ON"),
            ("temp_store_directory", "/tmp"),
            ("max_page_count", "1"),
            ("key", "x"),
        ] {
            assert!(matches!(judge(name, Some(value), true), Verdict::Deny(_)), "{name}");
        }
        assert!(matches!(judge("wal_checkpoint", None, true), Verdict::Deny(_)));
        assert!(matches!(judge("temp_store_directory", None, true), Verdict::Deny(_)));
        assert_eq!(judge("journal_mode", None, false), Verdict::Allow);
    }

    #[test]
    fn inspection_and_session_settings_are_allowed() {
        assert_eq!(judge("table_info", Some("t"), false), Verdict::Allow);
        assert_eq!(judge("foreign_keys", None, false), Verdict::Allow);
        assert_eq!(judge("Foreign_Keys", Some("off"), false), Verdict::AllowSession(0));
        assert_eq!(judge("page_size", Some("512"), true), Verdict::PageSize);
        assert!(matches!(judge("page_size", Some("512"), false), Verdict::Deny(_)));
    }
}
