//! `cell sql`: one query through an ingress, as a table or as JSON.

use std::io::Read as _;

use anyhow::{Context as _, Result, bail};
use holdfast_types::CellName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::output::{Output, Table, count};

/// Everything but RFC 3986's unreserved characters.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Options of `cell sql`.
#[derive(Debug, clap::Args)]
pub struct Sql {
    /// The cell, for example `db:users`.
    cell: CellName,
    /// The statements, or `-` to read them from stdin. The last one's result is shown.
    sql: String,
    /// Values for the statement's `?`: JSON, or else text.
    #[arg(long = "arg", value_name = "VALUE", allow_hyphen_values = true)]
    args: Vec<String>,
    /// An ingress of the fleet.
    #[arg(long, env = "HOLDFAST_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
    /// A bearer token, where the ingress asks for one. Prefer the environment: others see a command line.
    #[arg(long, env = "HOLDFAST_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
}

impl Sql {
    /// Runs it.
    pub async fn run(self, output: Output) -> Result<()> {
        let url = query_url(&self.url, &self.cell)?;
        let sql = if self.sql == "-" { read_stdin()? } else { self.sql };
        let args: Vec<Value> = self.args.iter().map(|text| argument(text)).collect();
        let body = json!({ "sql": sql, "args": args }).to_string();
        let mut request = reqwest::Client::builder().build()?.post(&url).body(body);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.with_context(|| {
            format!(
                "the ingress at `{}` cannot be reached; name one with --url, or start `holdfast dev`",
                self.url
            )
        })?;
        let status = response.status();
        let unknown = response.headers().get("holdfast-outcome").is_some_and(|outcome| outcome == "unknown");
        let text =
            response.text().await.context("the answer broke off; whether the statements ran is unknown")?;
        if !status.is_success() {
            let note = if unknown { "; whether the statements ran is unknown" } else { "" };
            bail!("{}{note}", failure(status.as_u16(), &text));
        }
        let answer: Value =
            serde_json::from_str(&text).context("the answer is no JSON: is this an ingress?")?;
        // As it came: another encoder might write its numbers differently.
        if output.is_json() { output.line(text.trim_end()) } else { output.line(table(&answer)) }
    }
}

fn read_stdin() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("stdin cannot be read as text")?;
    Ok(text)
}

fn query_url(base: &str, cell: &CellName) -> Result<String> {
    if cell.class() != "db" {
        bail!("`{cell}` has no SQL API: cells of class `db` have one");
    }
    if matches!(cell.name(), "." | "..") {
        bail!("`{cell}` cannot be reached by a URL: clients read its name as a folder");
    }
    let name = utf8_percent_encode(cell.name(), IN_PATH);
    Ok(format!("{}/-/db/{name}/query", base.trim_end_matches('/')))
}

/// A value of the command line: JSON where it is a value that SQL has, text otherwise.
fn argument(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_))) => value,
        Ok(Value::Object(blob)) if blob.len() == 1 && blob.contains_key("base64") => Value::Object(blob),
        _ => Value::String(text.to_owned()),
    }
}

fn failure(status: u16, text: &str) -> String {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let error = &body["error"];
    match (error["message"].as_str(), error["code"].as_str()) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message.to_owned(),
        _ => format!("the ingress answered {status}: {}", text.chars().take(500).collect::<String>()),
    }
}

fn table(answer: &Value) -> String {
    let empty = Vec::new();
    let columns = answer["columns"].as_array().unwrap_or(&empty);
    let rows = answer["rows"].as_array().unwrap_or(&empty);
    let written = answer["rows_written"].as_u64().unwrap_or(0);
    if columns.is_empty() {
        let rowid = answer["last_insert_rowid"].as_i64().filter(|_| written > 0);
        let rowid = rowid.map(|rowid| format!(", last row id {rowid}")).unwrap_or_default();
        return format!("{} written{rowid}", count(written, "row"));
    }
    let mut table = Table::new(columns.iter().map(|column| column.as_str().unwrap_or("")));
    for row in rows {
        table.row(row.as_array().unwrap_or(&empty).iter().map(value));
    }
    format!("{table}({})", count(u64::try_from(rows.len()).unwrap_or(u64::MAX), "row"))
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::String(text) => text.clone(),
        Value::Object(blob) => blob
            .get("base64")
            .and_then(Value::as_str)
            .map_or_else(|| value.to_string(), |text| format!("blob:{text}")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_the_url() {
        let url = |cell: &str| query_url("http://h:1/", &CellName::parse(cell).unwrap());
        assert_eq!(url("db:users").unwrap(), "http://h:1/-/db/users/query");
        assert_eq!(url("db:a/b?c d").unwrap(), "http://h:1/-/db/a%2Fb%3Fc%20d/query");
        assert!(url("Room:a").is_err() && url("db:..").is_err());
    }

    #[test]
    fn arguments_are_json_or_text() {
        assert_eq!(argument("1"), json!(1));
        assert_eq!(argument("null"), Value::Null);
        assert_eq!(argument("\"1\""), json!("1"));
        assert_eq!(argument("hello world"), json!("hello world"));
        assert_eq!(argument("[1]"), json!("[1]"));
        assert_eq!(argument(r#"{"base64":"AA=="}"#), json!({ "base64": "AA==" }));
    }

    #[test]
    fn rows_are_a_table_and_writes_a_line() {
        let answer = json!({
            "columns": ["id", "text"], "rows": [[1, "a"], [20, null]], "rows_written": 0, "last_insert_rowid": null
        });
        assert_eq!(table(&answer), "id  text\n 1  a\n20  NULL\n(2 rows)");
        let answer = json!({ "columns": [], "rows": [], "rows_written": 1, "last_insert_rowid": 7 });
        assert_eq!(table(&answer), "1 row written, last row id 7");
    }

    #[test]
    fn a_failure_says_what_the_cell_said() {
        let text = r#"{"error":{"message":"no such table: t","code":"SQLITE_ERROR"}}"#;
        assert_eq!(failure(400, text), "no such table: t (SQLITE_ERROR)");
        assert_eq!(failure(502, "bad gateway"), "the ingress answered 502: bad gateway");
    }
}
