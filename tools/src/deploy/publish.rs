//! `deploy [DIR]`: a project becomes the version that runs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdfast_bucket::BucketArgs;
use holdfast_deploy::Published;

use super::open;
use crate::output::{Output, bytes, count};
use crate::progress;
use crate::project::{bundled_text, prepare, published_json};

/// Bundles, checks, publishes.
pub async fn publish(
    dir: &Path,
    config: Option<PathBuf>,
    message: &str,
    bucket: &BucketArgs,
    output: Output,
) -> Result<()> {
    let bundled = prepare(dir, config).await??;
    let deployments = open(bucket).await?;
    let spinner = progress::spinner("uploading");
    let published = deployments.publish(&bundled.package, message).await;
    spinner.finish_and_clear();
    let published = published?;
    output.print(&published_json(&bundled, &published), || {
        format!("{}\n{}", bundled_text(&bundled), outcome(&published))
    })
}

/// What runs now, and what ran before.
pub fn outcome(published: &Published) -> String {
    let Published { id, previous, changed, new_blobs, new_bytes } = published;
    let before = match previous {
        Some(previous) => format!("; before it: {previous}"),
        None => "; it is the first".into(),
    };
    if !changed {
        return format!("version {id} runs already: nothing changed{before}");
    }
    let uploaded = match new_blobs {
        0 => String::new(),
        _ => format!(" ({} uploaded, {})", count(*new_blobs, "file"), bytes(*new_bytes)),
    };
    format!("version {id} is the one that runs{uploaded}{before}\nNodes take it up within seconds.")
}
