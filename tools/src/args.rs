//! Parsers and options that several commands share.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use holdfast_bucket::{BucketArgs, Buckets};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What a path in a `file://` URL may not hold as it is.
const IN_FILE_URL: &AsciiSet = &CONTROLS.add(b'%').add(b' ').add(b'?').add(b'#');

/// The URL of the embedded bucket in a directory.
pub fn file_url(directory: &Path) -> Result<String> {
    let directory = std::path::absolute(directory)
        .with_context(|| format!("`{}` has no absolute path", directory.display()))?;
    let path = directory.to_str().with_context(|| {
        format!("`{}` is not UTF-8: use a directory with another name", directory.display())
    })?;
    Ok(format!("file://{}", utf8_percent_encode(path, IN_FILE_URL)))
}

/// Opens a bucket that must be there already: looking at one must not make one.
pub async fn open_existing(bucket: &BucketArgs) -> Result<Buckets> {
    for url in [Some(&bucket.url), bucket.lease_bucket.as_ref()].into_iter().flatten() {
        if let Some(directory) = file_directory(url)
            && !directory.is_dir()
        {
            bail!("there is no bucket at `{url}`: the directory `{}` does not exist", directory.display());
        }
    }
    Ok(bucket.open().await?)
}

fn file_directory(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("file://").filter(|path| path.starts_with('/'))?;
    Some(PathBuf::from(percent_decode_str(path).decode_utf8().ok()?.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_url_leads_back_to_its_directory() {
        for path in ["/var/lib/holdfast", "/a b/100%/c#d?e", "/ü"] {
            let url = file_url(Path::new(path)).unwrap();
            assert_eq!(file_directory(&url), Some(PathBuf::from(path)), "{url}");
        }
        assert_eq!(file_url(Path::new("/a b/%")).unwrap(), "file:///a%20b/%25");
        assert_eq!(file_directory("s3://bucket"), None);
    }

    #[tokio::test]
    async fn looking_at_a_bucket_does_not_make_one() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("absent");
        let error =
            open_existing(&BucketArgs::at(&file_url(&absent).unwrap())).await.unwrap_err().to_string();
        assert!(error.contains("there is no bucket") && error.contains("absent"), "{error}");
        assert!(!absent.exists());
    }
}
