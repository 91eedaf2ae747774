//! What can go wrong with a deployment, by what the caller must do.

use holdfast_bucket::BucketError;
use holdfast_records::{PackageError, RecordError};
use holdfast_types::{ContentHash, VersionId};

/// What the caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The same call may succeed later.
    Retry,
    /// Look at what is there now, and decide again.
    Reread,
    /// Change what is asked for.
    Reject,
    /// The bucket holds something that nobody wrote.
    Corrupt,
}

/// Why an operation failed. Whatever ran before still runs.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The bucket did not do it.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// A record is not one of ours.
    #[error("`{key}`: {source}")]
    Record {
        /// Its key.
        key: String,
        /// What is wrong.
        source: RecordError,
    },
    /// Somebody else deployed, rolled back or pruned meanwhile.
    #[error("somebody else changed the deployment meanwhile{}: look at `holdfast deploy list` and decide again", now_runs(.current))]
    Changed {
        /// What runs now, where it is known.
        current: Option<VersionId>,
    },
    /// Whether the change took place is not known.
    #[error("it is not known whether the deployment changed ({0}): look at `holdfast deploy list`")]
    Unknown(BucketError),
    /// A prune is under way.
    #[error("a prune is under way, for {seconds} more seconds at most: try again then")]
    Pruning {
        /// How long it may take.
        seconds: u64,
    },
    /// There is no such version.
    #[error("there is no version `{0}`; `holdfast deploy list` shows those there are")]
    NoVersion(String),
    /// Several versions begin with the digits given.
    #[error("several versions begin with `{0}`: give more digits")]
    Ambiguous(String),
    /// Nothing was deployed yet.
    #[error("nothing is deployed yet")]
    NothingDeployed,
    /// There is nothing to go back to.
    #[error("no version ran before the one that runs: name one")]
    NoPrevious,
    /// A record is under the name of other content.
    #[error("version `{key}` holds the manifest of version `{found}`: it is damaged")]
    WrongManifest {
        /// The version asked for.
        key: VersionId,
        /// What its manifest is.
        found: VersionId,
    },
    /// A version's bytes are not there.
    #[error("blob {0} is missing: the version cannot run; deploy it again")]
    MissingBlob(ContentHash),
    /// A version's bytes are others.
    #[error(
        "blob {0} is damaged: it has other bytes than its name says; delete `deploy-blobs/sha256/{0}` and deploy again"
    )]
    DamagedBlob(ContentHash),
    /// A static file cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A static file changed between packaging and uploading.
    #[error("`{0}` changed while it was deployed: deploy again")]
    FileChanged(String),
    /// The parts of a version do not fit together.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// This release cannot run it, or nothing could: its code has an error.
    #[error("the version cannot run: {0}")]
    NotRunnable(String),
    /// A secret has the name of a binding, or the reverse.
    #[error("`{0}` is both a secret and a binding of the application: rename one of them")]
    NameTaken(String),
    /// A secret that cannot be kept.
    #[error("the secret `{name}` {problem}")]
    BadSecret {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// There is no such secret.
    #[error("there is no secret `{0}`")]
    NoSecret(String),
    /// A secret cannot be decrypted.
    #[error(
        "the secret `{0}` cannot be decrypted: its key is gone from `fleet/secret-keys.json`, or it is damaged; put it again"
    )]
    SealedSecret(String),
    /// The machine has no randomness.
    #[error("the machine has no randomness: {0}")]
    Randomness(String),
}

fn now_runs(current: &Option<VersionId>) -> String {
    current.map_or_else(String::new, |id| format!("; version `{id}` runs now"))
}

impl DeployError {
    /// What the caller must do.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Bucket(error) if !error.kind.is_transient() => Disposition::Reject,
            Self::Bucket(_) | Self::Pruning { .. } | Self::Randomness(_) | Self::FileChanged(_) => {
                Disposition::Retry
            }
            Self::Changed { .. } | Self::Unknown(_) => Disposition::Reread,
            Self::NoVersion(_)
            | Self::Ambiguous(_)
            | Self::NothingDeployed
            | Self::NoPrevious
            | Self::NotRunnable(_)
            | Self::File { .. }
            | Self::NameTaken(_)
            | Self::BadSecret { .. }
            | Self::NoSecret(_) => Disposition::Reject,
            Self::Record { .. }
            | Self::WrongManifest { .. }
            | Self::MissingBlob(_)
            | Self::DamagedBlob(_)
            | Self::Package(_)
            | Self::SealedSecret(_) => Disposition::Corrupt,
        }
    }
}
