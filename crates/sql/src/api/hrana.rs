//! Requests of Hrana 2 and 3 over HTTP, as JSON. Specification: `HRANA_3_SPEC.md` of the libSQL project. Both versions
//! are read alike; version 3 only adds requests.

use std::borrow::Cow;

use serde::Deserialize;

use super::args::Args;
use super::value::HranaValue;

/// Body of `pipeline`.
#[derive(Debug, Deserialize)]
pub(super) struct PipelineBody<'a> {
    #[serde(borrow, default)]
    pub(super) baton: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) requests: Vec<StreamRequest<'a>>,
}

/// Body of `cursor`.
#[derive(Debug, Deserialize)]
pub(super) struct CursorBody<'a> {
    #[serde(borrow, default)]
    pub(super) baton: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) batch: Batch<'a>,
}

/// One request on a stream.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StreamRequest<'a> {
    Close,
    Execute {
        #[serde(borrow)]
        stmt: Stmt<'a>,
    },
    Batch {
        #[serde(borrow)]
        batch: Batch<'a>,
    },
    Sequence {
        #[serde(borrow, flatten)]
        text: SqlText<'a>,
    },
    Describe {
        #[serde(borrow, flatten)]
        text: SqlText<'a>,
    },
    StoreSql {
        sql_id: i32,
        #[serde(borrow)]
        sql: Cow<'a, str>,
    },
    CloseSql {
        sql_id: i32,
    },
    GetAutocommit,
}

/// An SQL text, or the id of a stored one.
#[derive(Debug, Deserialize)]
pub(super) struct SqlText<'a> {
    #[serde(borrow, default)]
    pub(super) sql: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) sql_id: Option<i32>,
}

/// A statement with its arguments.
#[derive(Debug)]
pub(super) struct Stmt<'a> {
    pub(super) text: SqlText<'a>,
    pub(super) args: Args<'a>,
    pub(super) wants_rows: bool,
}

#[derive(Deserialize)]
struct RawStmt<'a> {
    #[serde(borrow, default)]
    sql: Option<Cow<'a, str>>,
    #[serde(default)]
    sql_id: Option<i32>,
    #[serde(borrow, default)]
    args: Option<Vec<HranaValue<'a>>>,
    #[serde(borrow, default)]
    named_args: Option<Vec<NamedArg<'a>>>,
    #[serde(default)]
    want_rows: Option<bool>,
}

#[derive(Deserialize)]
struct NamedArg<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    value: HranaValue<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Stmt<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawStmt::deserialize(deserializer).map(Self::from)
    }
}

impl<'a> From<RawStmt<'a>> for Stmt<'a> {
    fn from(raw: RawStmt<'a>) -> Self {
        let RawStmt { sql, sql_id, args, named_args, want_rows } = raw;
        let positional = args.unwrap_or_default().into_iter().map(|value| value.0).collect();
        let named = named_args.unwrap_or_default().into_iter().map(|arg| (arg.name, arg.value.0)).collect();
        Self {
            text: SqlText { sql, sql_id },
            args: Args { positional, named },
            wants_rows: want_rows.unwrap_or(true),
        }
    }
}

/// Steps with conditions.
#[derive(Debug, Deserialize)]
pub(super) struct Batch<'a> {
    #[serde(borrow)]
    pub(super) steps: Vec<BatchStep<'a>>,
}

/// One of them.
#[derive(Debug, Deserialize)]
pub(super) struct BatchStep<'a> {
    #[serde(default)]
    pub(super) condition: Option<BatchCond>,
    #[serde(borrow)]
    pub(super) stmt: Stmt<'a>,
}

/// When a step runs. Its depth is bounded by that of the JSON parser, 128.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BatchCond {
    Ok { step: usize },
    Error { step: usize },
    Not { cond: Box<BatchCond> },
    And { conds: Vec<BatchCond> },
    Or { conds: Vec<BatchCond> },
    IsAutocommit,
}
