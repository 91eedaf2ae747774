//! What an operator can look at: a program's metrics, and the `holdfast` command.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use serde_json::Value;

use super::{BUCKET, Cluster, binary, process};
use crate::client::{Outcome, SqlClient};

/// How a command of the tool ended.
#[derive(Clone, Debug)]
pub struct ToolAnswer {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl ToolAnswer {
    /// What it printed for programs.
    ///
    /// # Errors
    /// When that is no JSON.
    pub fn json(&self) -> Result<Value> {
        let Self { code, stdout, stderr } = self;
        serde_json::from_str(stdout).with_context(|| format!("code {code}, `{stdout}`, `{stderr}`"))
    }
}

impl Cluster {
    /// Runs `holdfast <args> --bucket …`, past every proxy.
    ///
    /// # Errors
    /// When the binary is missing.
    pub async fn tool(&self, args: &[&str]) -> Result<ToolAnswer> {
        let mut command = Command::new(binary("holdfast")?);
        let (bucket, endpoint) = (format!("s3://{BUCKET}"), format!("http://{}", self.store_address));
        command.args(args).args(["--bucket", &bucket, "--endpoint", &endpoint, "--region", "us-east-1"]);
        process::set_environment(&mut command);
        let output =
            tokio::task::spawn_blocking(move || command.output()).await?.context("running `holdfast`")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Ok(ToolAnswer { code: output.status.code().context("it was killed")?, stdout, stderr })
    }

    /// Starts `holdfast <args> --bucket …` through a proxy of its own, which the name is for. What it prints goes into a file
    /// of that name.
    ///
    /// # Errors
    /// When the binary is missing or no port is free.
    pub async fn spawn_tool(&mut self, name: &str, args: &[&str]) -> Result<Child> {
        let bucket = self.bucket_args(name).await?;
        let printed = File::create(self.dir().join(format!("{name}.out")))?;
        let mut command = Command::new(binary("holdfast")?);
        process::set_environment(&mut command);
        command.args(args).args(bucket).stdin(Stdio::null());
        command.stdout(printed.try_clone()?).stderr(printed);
        command.spawn().context("running `holdfast`")
    }

    /// What a tool of this name has printed.
    #[must_use]
    pub fn printed(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir().join(format!("{name}.out"))).unwrap_or_default()
    }

    /// The sum of a metric's series whose labels contain a text; 0 where there is none yet.
    ///
    /// # Errors
    /// When the program does not answer.
    pub async fn metric(&self, program: &str, name: &str, labels: &str) -> Result<f64> {
        let admin = self.process(program)?.address("admin")?;
        let client = SqlClient::new(Duration::from_secs(5));
        let text = match client.send(Method::GET, admin, "/metrics", Default::default()).await {
            Outcome::Acked(answer, _) if answer.status == 200 => answer.text(),
            Outcome::Acked(answer, _) => bail!("the metrics of `{program}`: {}", answer.status),
            Outcome::Refused(reason) | Outcome::Unknown(reason) => {
                bail!("the metrics of `{program}`: {reason}")
            }
        };
        sum(&text, name, labels)
    }
}

fn sum(text: &str, name: &str, labels: &str) -> Result<f64> {
    let mut sum = 0.0;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(name) else { continue };
        if rest.starts_with(['{', ' ']) && rest.contains(labels) {
            let value = rest.rsplit(' ').next().context("a line has a value")?;
            sum += value.parse::<f64>().with_context(|| format!("`{line}`"))?;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_one_metric_are_summed_and_told_from_others() {
        let text =
            "# TYPE a_count gauge\na_count 1\na_counted 5\nb{x=\"1\",y=\"2\"} 2\nb{x=\"2\",y=\"2\"} 4\n";
        assert_eq!(sum(text, "a_count", "").unwrap(), 1.0);
        assert_eq!(sum(text, "b", "").unwrap(), 6.0);
        assert_eq!(sum(text, "b", "x=\"2\"").unwrap(), 4.0);
        assert_eq!(sum(text, "c", "").unwrap(), 0.0);
    }
}
