//! `holdfast secret`: strings of the application's `env` that stand in no file of it. A value is never an argument, where
//! every user of the machine could read it, and is never printed.

use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use holdfast_bucket::BucketArgs;
use holdfast_deploy::SECRET_BYTES_MAX;
use serde_json::{Value, json};

use crate::deploy::open;
use crate::output::{Output, Table, span};
use crate::peers;

/// What can be done with secrets.
#[derive(Debug, Subcommand)]
pub enum Secret {
    /// Put a secret, or replace it: `holdfast secret put NAME < FILE`.
    Put {
        /// The property of `env`.
        name: String,
        /// Read the value from this file instead of stdin.
        #[arg(long, value_name = "FILE")]
        value_file: Option<PathBuf>,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// List the secrets' names.
    List {
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Delete a secret.
    Delete {
        /// The property of `env`.
        name: String,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
}

impl Secret {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::Put { name, value_file, bucket } => {
                let deployments = open(&bucket).await?;
                let value = read_value(&name, value_file.as_deref())?;
                deployments.put_secret(&name, &value).await?;
                output.print(&json!({ "secret": name, "state": "put" }), || {
                    format!("the secret `{name}` is put; nodes take it up within seconds")
                })
            }
            Self::List { bucket } => list(&bucket, output).await,
            Self::Delete { name, bucket } => {
                open(&bucket).await?.delete_secret(&name).await?;
                output.print(&json!({ "secret": name, "state": "deleted" }), || {
                    format!("the secret `{name}` is deleted; nodes drop it within seconds")
                })
            }
        }
    }
}

async fn list(bucket: &BucketArgs, output: Output) -> Result<()> {
    let secrets = open(bucket).await?.secrets().await?;
    let rows: Vec<Value> =
        secrets.iter().map(|secret| json!({ "name": secret.name, "put_ms": secret.put.get() })).collect();
    output.print(&json!({ "secrets": rows }), || {
        if secrets.is_empty() {
            return "there are no secrets".into();
        }
        let now = peers::now();
        let mut table = Table::new(["NAME", "AGE"]);
        for secret in &secrets {
            table.row([secret.name.as_str(), &span(now.since(secret.put))]);
        }
        table.to_string()
    })
}

/// The value, without the line break that editors and `echo` put at an end.
fn read_value(name: &str, file: Option<&Path>) -> Result<String> {
    let value = match file {
        Some(file) => {
            let open = std::fs::File::open(file);
            read(open.with_context(|| format!("`{}` cannot be read", file.display()))?)
        }
        None if std::io::stdin().is_terminal() => bail!(
            "the value is read from stdin, and a terminal would show it: `holdfast secret put {name} < FILE`, or \
             --value-file FILE"
        ),
        None => read(std::io::stdin().lock()),
    };
    value.with_context(|| format!("the value of `{name}` cannot be read"))
}

fn read(from: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    // One byte more than a value and a line break may have: what is too long is refused and not cut.
    let limit = u64::try_from(SECRET_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(3);
    from.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > SECRET_BYTES_MAX + 2 {
        bail!("it has more than {} KiB", SECRET_BYTES_MAX >> 10);
    }
    let text = String::from_utf8(bytes).ok().context("it is not UTF-8: encode it, for example as base64")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_loses_its_last_line_break_and_nothing_else() {
        for (bytes, value) in [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), (" a\nb \n", " a\nb "), ("\n", "")] {
            assert_eq!(read(bytes.as_bytes()).unwrap(), value, "{bytes:?}");
        }
        assert!(read(&b"\xff"[..]).unwrap_err().to_string().contains("UTF-8"));
        let long = "x".repeat(SECRET_BYTES_MAX + 10);
        assert!(read(long.as_bytes()).unwrap_err().to_string().contains("64 KiB"));
    }
}
