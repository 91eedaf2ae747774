//! `holdfast token`: bearer tokens of the SQL API, signed with the fleet's key.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use holdfast_bucket::BucketArgs;
use holdfast_rpc::tokens::{CellPattern, Claims, TokenVerifier, mint};
use holdfast_rpc::{Access, identity};
use holdfast_types::CellName;
use humantime::parse_duration;
use serde_json::json;

use crate::args::open_existing;
use crate::output::{Output, span};

/// Longest lifetime: a token cannot be revoked, except together with all others of its key.
const LIFETIME_MAX: Duration = Duration::from_secs(10 * 366 * 86_400);

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token. It alone goes to stdout.
    Create {
        /// The cells it opens; `*` stands for any text, for example `db:tenant-*`.
        #[arg(long, value_name = "PATTERN")]
        cell: CellPattern,
        /// Refuse statements that write.
        #[arg(long)]
        read_only: bool,
        /// How long it is valid: `90s`, `12h`, `30d`.
        #[arg(long, default_value = "30d", value_parser = parse_duration, value_name = "TIME")]
        expires: Duration,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Check a token's signature and time, and say what it allows.
    Verify {
        /// The token, or `-` to read it from stdin, where other users of the machine cannot see it.
        token: String,
        /// Also check that it opens this cell.
        #[arg(long, value_name = "CELL")]
        cell: Option<CellName>,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
}

impl Token {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        let (Self::Create { bucket, .. } | Self::Verify { bucket, .. }) = &self;
        let buckets = open_existing(bucket).await?;
        let fleet = identity::load(&*buckets.records).await?;
        let now_s = now_s()?;
        match self {
            Self::Create { cell, read_only, expires, bucket: _ } => {
                if expires.is_zero() || expires > LIFETIME_MAX {
                    bail!("`--expires` must be more than nothing and at most ten years");
                }
                let access = if read_only { Access::ReadOnly } else { Access::ReadWrite };
                let token = mint(&fleet, cell, access, now_s, now_s + expires.as_secs().max(1))?;
                let claims = TokenVerifier::new(&fleet)?.read(&token)?;
                let mut shown = claims_json(&claims);
                shown["token"] = token.as_str().into();
                output.print(&shown, || token)
            }
            Self::Verify { token, cell, bucket: _ } => {
                let verifier = TokenVerifier::new(&fleet)?;
                let token = if token == "-" { read_stdin()? } else { token };
                let claims = verifier.read(token.trim())?;
                if claims.expires_s <= now_s {
                    let when = match now_s - claims.expires_s {
                        0 => "has just expired".to_owned(),
                        seconds => format!("expired {} ago", span(seconds.saturating_mul(1_000))),
                    };
                    bail!("the token `{}` {when}: make a new one", claims.id);
                }
                if let Some(cell) = cell {
                    verifier.verify(token.trim(), now_s, &cell)?;
                }
                output.print(&claims_json(&claims), || claims_text(&claims, now_s))
            }
        }
    }
}

fn now_s() -> Result<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Ok(since.context("this machine's clock is before 1970; set it")?.as_secs())
}

fn read_stdin() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().take(16 << 10).read_to_string(&mut text).context("stdin holds no token")?;
    Ok(text)
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "read-only",
        Access::ReadWrite => "read-write",
    }
}

fn claims_json(claims: &Claims) -> serde_json::Value {
    let Claims { key_id, cells, access, expires_s, issued_s, id } = claims;
    json!({
        "id": id, "cells": cells.to_string(), "access": access_name(*access),
        "issued_s": issued_s, "expires_s": expires_s, "key": key_id,
    })
}

fn claims_text(claims: &Claims, now_s: u64) -> String {
    let Claims { key_id, cells, access, expires_s, issued_s: _, id } = claims;
    let left = span(expires_s.saturating_sub(now_s).saturating_mul(1_000));
    format!(
        "token `{id}` is good: {} on `{cells}`, for another {left}; signed by key `{key_id}`",
        access_name(*access)
    )
}
