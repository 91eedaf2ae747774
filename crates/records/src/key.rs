//! Every object that Holdfast writes into the bucket, by name (design 3.3). Applications never write below these
//! prefixes. Numbers are 16 digits of lower-case hex; cell names are percent-encoded into one segment.

use std::fmt;

use holdfast_types::{
    AlarmId, CellName, ContentHash, Epoch, FollowerName, LogOffset, NodeName, R2BodyId, R2BucketName,
    SessionId, Txid, VersionId, WakeMinute,
};

use crate::{escape_r2_key, unescape_r2_key};

/// Level of an LTX object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// An aligned block of transactions an object: 1, 2, 4 … 1,024; which keys can hold the next one is known in advance.
    Zero,
    /// Compactions of level 0. Additive.
    One,
    /// Whole-database snapshots, from txid 1.
    Snapshot,
}

impl Level {
    /// The level's number: 0, 1 or 9, as Litestream numbers them.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Snapshot => 9,
        }
    }

    /// Reads [`Level::number`].
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Zero),
            1 => Some(Self::One),
            9 => Some(Self::Snapshot),
            _ => None,
        }
    }
}

/// A key of the bucket. `Display` spells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// `probe/<name>`: debris of start-up probes; never read by anyone else.
    Probe(String),
    /// `fleet/identity.json`: fleet id, CA, token keys. Created once.
    FleetIdentity,
    /// `fleet/secret-keys.json`: what the application's secrets are encrypted with. Created by the first of them.
    FleetSecretKeys,
    /// `fleet/drain.json`: which session gives its cells up now. Advisory.
    DrainLease,
    /// `fleet/rebalance.json`: whether cells may be moved to even nodes out. Written by operators.
    RebalanceSwitch,
    /// `nodes/<node>.json`: the node's lease.
    NodeLease(NodeName),
    /// `followers/<follower>.json`: the follower's lease.
    FollowerLease(FollowerName),
    /// `log/<node>/<session>.json`: the node-log record.
    NodeLog(NodeName, SessionId),
    /// `log/<node>/<session>.loss.json`: a loss that a person declared.
    LogLoss(NodeName, SessionId),
    /// `log/<node>/<session>/bundle/<first>.bundle`: frames of the session's log, from this one on.
    Bundle(NodeName, SessionId, LogOffset),
    /// `log/sweep.json`: who looks after dead sessions. Advisory.
    SweepLease,
    /// `cells/<cell>/own.json`: the owner record.
    Owner(CellName),
    /// `cells/<cell>/ltx/e<epoch>/opener.json`: where the epoch continues from.
    Opener(CellName, Epoch),
    /// `cells/<cell>/ltx/e<epoch>/<level>/<min>-<max>.ltx`.
    Ltx {
        /// The cell.
        cell: CellName,
        /// The epoch that wrote it.
        epoch: Epoch,
        /// The level.
        level: Level,
        /// First transaction.
        min: Txid,
        /// Last transaction.
        max: Txid,
    },
    /// `cells/<cell>/ltx/retired.json`: what of the cell's history no restore reads any more.
    Retired(CellName),
    /// `wake/format.json`: the format of the alarm index, and its shards.
    WakeFormat,
    /// `wake/waker-<shard>.json`: which waker looks after this part of the alarm index. Advisory.
    WakerLease(u16),
    /// `wake/entries/<minute>/<cell>/<epoch>-<seq>`: an alarm that may be due from this minute on. A hint: the cell's own
    /// database knows.
    WakeEntry {
        /// The minute of the deadline.
        minute: WakeMinute,
        /// The cell.
        cell: CellName,
        /// Which installation of its alarm.
        id: AlarmId,
    },
    /// `wake/retired/<cell>.json`: which entries of the cell mean nothing any more.
    WakeRetired(CellName),
    /// `deploy/current.json`: which version of the application runs.
    CurrentVersion,
    /// `deploy/versions/<id>.json`: one version.
    Version(VersionId),
    /// `deploy/secrets.json`: the application's secrets, encrypted.
    Secrets,
    /// `deploy-blobs/sha256/<hash>`: bytes of versions.
    Blob(ContentHash),
    /// `r2/<bucket>/o/<key>`: the record of an object of an R2 bucket; the key is escaped, in an order that is its own.
    R2Object(R2BucketName, String),
    /// `r2/<bucket>/b/<key>/<id>`: a body of such an object, written before the record that names it.
    R2Body(R2BucketName, String, R2BodyId),
    /// `r2/<bucket>/u/<key>/<upload>`: a multipart upload of such an object, until it is completed or aborted.
    R2Upload(R2BucketName, String, R2BodyId),
    /// `r2/<bucket>/m/<key>/<upload>/<id>`: a part of one, which stays where it is once the upload is the object.
    R2Part(R2BucketName, String, R2BodyId, R2BodyId),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probe(name) => write!(f, "probe/{name}"),
            Self::FleetIdentity => f.write_str("fleet/identity.json"),
            Self::FleetSecretKeys => f.write_str("fleet/secret-keys.json"),
            Self::DrainLease => f.write_str("fleet/drain.json"),
            Self::RebalanceSwitch => f.write_str("fleet/rebalance.json"),
            Self::NodeLease(node) => write!(f, "nodes/{node}.json"),
            Self::FollowerLease(follower) => write!(f, "followers/{follower}.json"),
            Self::NodeLog(node, session) => write!(f, "{}{session}.json", log_prefix(node)),
            Self::LogLoss(node, session) => write!(f, "{}{session}.loss.json", log_prefix(node)),
            Self::Bundle(node, session, first) => {
                write!(f, "{}{}.bundle", bundle_prefix(node, *session), first.to_hex())
            }
            Self::SweepLease => f.write_str("log/sweep.json"),
            Self::Owner(cell) => write!(f, "{}own.json", cell_prefix(cell)),
            Self::Opener(cell, epoch) => write!(f, "{}opener.json", epoch_prefix(cell, *epoch)),
            Self::Ltx { cell, epoch, level, min, max } => {
                write!(f, "{}{}-{}.ltx", level_prefix(cell, *epoch, *level), min.to_hex(), max.to_hex())
            }
            Self::Retired(cell) => write!(f, "{}ltx/retired.json", cell_prefix(cell)),
            Self::WakeFormat => f.write_str("wake/format.json"),
            Self::WakerLease(shard) => write!(f, "{WAKER_LEASES_PREFIX}{shard:04x}.json"),
            Self::WakeEntry { minute, cell, id } => {
                write!(f, "{}{}/{}", wake_minute_prefix(*minute), cell.to_key_segment(), id.to_hex())
            }
            Self::WakeRetired(cell) => write!(f, "wake/retired/{}.json", cell.to_key_segment()),
            Self::CurrentVersion => f.write_str("deploy/current.json"),
            Self::Version(id) => write!(f, "{VERSIONS_PREFIX}{id}.json"),
            Self::Secrets => f.write_str("deploy/secrets.json"),
            Self::Blob(hash) => write!(f, "{BLOBS_PREFIX}{hash}"),
            Self::R2Object(bucket, key) => write!(f, "{}{}", r2_objects_prefix(bucket), escape_r2_key(key)),
            Self::R2Body(bucket, key, body) => {
                write!(f, "{}{}/{body}", r2_bodies_prefix(bucket), escape_r2_key(key))
            }
            Self::R2Upload(bucket, key, upload) => {
                write!(f, "{}{}/{upload}", r2_uploads_prefix(bucket), escape_r2_key(key))
            }
            Self::R2Part(bucket, key, upload, part) => {
                write!(f, "{}{part}", r2_upload_prefix(bucket, key, *upload))
            }
        }
    }
}

/// Below it are the versions of the application.
pub const VERSIONS_PREFIX: &str = "deploy/versions/";

/// Below it are the bytes of versions.
pub const BLOBS_PREFIX: &str = "deploy-blobs/sha256/";

/// Below it are the wake entries, in the order of their minutes.
pub const WAKE_ENTRIES_PREFIX: &str = "wake/entries/";

/// The leases of wakers begin with it.
pub const WAKER_LEASES_PREFIX: &str = "wake/waker-";

/// `r2/<bucket>/o/`: the records of the objects of an R2 bucket.
#[must_use]
pub fn r2_objects_prefix(bucket: &R2BucketName) -> String {
    format!("r2/{bucket}/o/")
}

/// `r2/<bucket>/b/`: the bodies of the objects of an R2 bucket.
#[must_use]
pub fn r2_bodies_prefix(bucket: &R2BucketName) -> String {
    format!("r2/{bucket}/b/")
}

/// `r2/<bucket>/u/`: the multipart uploads of an R2 bucket that are not over.
#[must_use]
pub fn r2_uploads_prefix(bucket: &R2BucketName) -> String {
    format!("r2/{bucket}/u/")
}

/// `r2/<bucket>/m/`: the parts of the multipart uploads of an R2 bucket.
#[must_use]
pub fn r2_parts_prefix(bucket: &R2BucketName) -> String {
    format!("r2/{bucket}/m/")
}

/// `r2/<bucket>/m/<key>/<upload>/`: the parts of one multipart upload.
#[must_use]
pub fn r2_upload_prefix(bucket: &R2BucketName, key: &str, upload: R2BodyId) -> String {
    format!("{}{}/{upload}/", r2_parts_prefix(bucket), escape_r2_key(key))
}

/// `wake/entries/<minute>/`: the alarms that may be due from one minute on.
#[must_use]
pub fn wake_minute_prefix(minute: WakeMinute) -> String {
    format!("{WAKE_ENTRIES_PREFIX}{}/", minute.to_hex())
}

/// `log/<node>/`: the logs of one node's sessions.
#[must_use]
pub fn log_prefix(node: &NodeName) -> String {
    format!("log/{node}/")
}

/// `log/<node>/<session>/bundle/`: the bundles of one session.
#[must_use]
pub fn bundle_prefix(node: &NodeName, session: SessionId) -> String {
    format!("{}{session}/bundle/", log_prefix(node))
}

/// `cells/<cell>/`: everything of one cell.
#[must_use]
pub fn cell_prefix(cell: &CellName) -> String {
    format!("cells/{}/", cell.to_key_segment())
}

/// The epoch under which an object of a cell's history lies, whatever the object is.
#[must_use]
pub fn epoch_of(cell: &CellName, key: &str) -> Option<Epoch> {
    let epoch = key.strip_prefix(&cell_prefix(cell))?.strip_prefix("ltx/e")?.split('/').next()?;
    u64::from_str_radix(epoch, 16).ok().map(Epoch::new)
}

/// `cells/<cell>/ltx/e<epoch>/`: everything of one epoch.
#[must_use]
pub fn epoch_prefix(cell: &CellName, epoch: Epoch) -> String {
    format!("{}ltx/e{}/", cell_prefix(cell), epoch.to_hex())
}

/// `cells/<cell>/ltx/e<epoch>/<level>/`: one level of one epoch.
#[must_use]
pub fn level_prefix(cell: &CellName, epoch: Epoch, level: Level) -> String {
    format!("{}{}/", epoch_prefix(cell, epoch), level.number())
}

/// A key is not one of ours. Disposition: ignore in listings, reject elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a key of this format")]
pub struct KeyError(pub String);

impl Key {
    /// Reads a key back. Only the canonical spelling is a key.
    ///
    /// # Errors
    /// [`KeyError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let key = Self::read(text).ok_or_else(|| KeyError(text.into()))?;
        if key.to_string() == text { Ok(key) } else { Err(KeyError(text.into())) }
    }

    fn read(text: &str) -> Option<Self> {
        let segments: Vec<&str> = text.split('/').collect();
        match segments.as_slice() {
            ["probe", name] => Some(Self::Probe((*name).into())),
            ["fleet", "identity.json"] => Some(Self::FleetIdentity),
            ["fleet", "secret-keys.json"] => Some(Self::FleetSecretKeys),
            ["fleet", "drain.json"] => Some(Self::DrainLease),
            ["fleet", "rebalance.json"] => Some(Self::RebalanceSwitch),
            ["deploy", "current.json"] => Some(Self::CurrentVersion),
            ["deploy", "secrets.json"] => Some(Self::Secrets),
            ["deploy", "versions", file] => {
                Some(Self::Version(VersionId::parse(file.strip_suffix(".json")?).ok()?))
            }
            ["deploy-blobs", "sha256", hash] => Some(Self::Blob(ContentHash::parse(hash).ok()?)),
            ["r2", bucket, "o", key @ ..] => {
                Some(Self::R2Object(R2BucketName::parse(bucket).ok()?, unescape_r2_key(&key.join("/"))?))
            }
            ["r2", bucket, "b", key @ .., body] => Some(Self::R2Body(
                R2BucketName::parse(bucket).ok()?,
                unescape_r2_key(&key.join("/"))?,
                R2BodyId::parse(body).ok()?,
            )),
            ["r2", bucket, "u", key @ .., upload] => Some(Self::R2Upload(
                R2BucketName::parse(bucket).ok()?,
                unescape_r2_key(&key.join("/"))?,
                R2BodyId::parse(upload).ok()?,
            )),
            ["r2", bucket, "m", key @ .., upload, part] => Some(Self::R2Part(
                R2BucketName::parse(bucket).ok()?,
                unescape_r2_key(&key.join("/"))?,
                R2BodyId::parse(upload).ok()?,
                R2BodyId::parse(part).ok()?,
            )),
            ["wake", "format.json"] => Some(Self::WakeFormat),
            ["wake", file] => {
                let shard = file.strip_prefix("waker-")?.strip_suffix(".json")?;
                Some(Self::WakerLease(u16::from_str_radix(shard, 16).ok()?))
            }
            ["wake", "entries", minute, cell, id] => Some(Self::WakeEntry {
                minute: WakeMinute::from_hex(minute).ok()?,
                cell: CellName::from_key_segment(cell).ok()?,
                id: AlarmId::from_hex(id).ok()?,
            }),
            ["wake", "retired", file] => {
                Some(Self::WakeRetired(CellName::from_key_segment(file.strip_suffix(".json")?).ok()?))
            }
            ["nodes", file] => {
                let node = file.strip_suffix(".json")?;
                Some(Self::NodeLease(NodeName::parse(node).ok()?))
            }
            ["followers", file] => {
                let follower = file.strip_suffix(".json")?;
                Some(Self::FollowerLease(FollowerName::parse(follower).ok()?))
            }
            ["log", "sweep.json"] => Some(Self::SweepLease),
            ["log", node, file] => {
                let node = NodeName::parse(node).ok()?;
                let name = file.strip_suffix(".json")?;
                match name.strip_suffix(".loss") {
                    Some(session) => Some(Self::LogLoss(node, SessionId::parse(session).ok()?)),
                    None => Some(Self::NodeLog(node, SessionId::parse(name).ok()?)),
                }
            }
            ["log", node, session, "bundle", file] => {
                let (node, session) = (NodeName::parse(node).ok()?, SessionId::parse(session).ok()?);
                let first = LogOffset::from_hex(file.strip_suffix(".bundle")?).ok()?;
                Some(Self::Bundle(node, session, first))
            }
            ["cells", cell, "own.json"] => Some(Self::Owner(CellName::from_key_segment(cell).ok()?)),
            ["cells", cell, "ltx", "retired.json"] => {
                Some(Self::Retired(CellName::from_key_segment(cell).ok()?))
            }
            ["cells", cell, "ltx", epoch, "opener.json"] => {
                Some(Self::Opener(CellName::from_key_segment(cell).ok()?, read_epoch(epoch)?))
            }
            ["cells", cell, "ltx", epoch, level, file] => {
                let (min, max) = file.strip_suffix(".ltx")?.split_once('-')?;
                Some(Self::Ltx {
                    cell: CellName::from_key_segment(cell).ok()?,
                    epoch: read_epoch(epoch)?,
                    level: Level::from_number(level.parse().ok()?)?,
                    min: Txid::from_hex(min).ok()?,
                    max: Txid::from_hex(max).ok()?,
                })
            }
            _ => None,
        }
    }
}

fn read_epoch(segment: &str) -> Option<Epoch> {
    Epoch::from_hex(segment.strip_prefix('e')?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{AlarmSeq, AlarmTime};

    #[test]
    fn every_key_reads_back() {
        let cell = CellName::parse("db:a/../b ü").expect("valid");
        let id = AlarmId { epoch: Epoch::new(7), seq: AlarmSeq::new(300) };
        let r2 = R2BucketName::parse("my-photos").expect("valid");
        let keys = [
            Key::Probe("x".into()),
            Key::FleetIdentity,
            Key::FleetSecretKeys,
            Key::DrainLease,
            Key::RebalanceSwitch,
            Key::CurrentVersion,
            Key::Version(VersionId::from_bits(7)),
            Key::Secrets,
            Key::Blob(ContentHash::from_digest([7; 32])),
            Key::NodeLease(NodeName::parse("n.1").expect("valid")),
            Key::FollowerLease(FollowerName::parse("f.json").expect("valid")),
            Key::NodeLog(NodeName::parse("n.1").expect("valid"), SessionId::from_bits(7)),
            Key::LogLoss(NodeName::parse("n.1").expect("valid"), SessionId::from_bits(7)),
            Key::Bundle(NodeName::parse("n.1").expect("valid"), SessionId::from_bits(7), LogOffset::new(300)),
            Key::R2Object(r2.clone(), "a//b/../c d~\u{7f}é/".into()),
            Key::R2Object(r2.clone(), String::new()),
            Key::R2Body(r2.clone(), "/a/".into(), R2BodyId::new(1_700_000_000_000, 7)),
            Key::R2Upload(r2.clone(), "/a/".into(), R2BodyId::new(1_700_000_000_000, 7)),
            Key::R2Part(
                r2,
                "/a/".into(),
                R2BodyId::new(1_700_000_000_000, 7),
                R2BodyId::new(1_700_000_000_001, 8),
            ),
            Key::SweepLease,
            Key::WakeFormat,
            Key::WakerLease(0x1f),
            Key::WakeEntry { minute: WakeMinute::new(28_000_000), cell: cell.clone(), id },
            Key::WakeRetired(cell.clone()),
            Key::WakeRetired(CellName::parse("db:x.json").expect("valid")),
            Key::Owner(cell.clone()),
            Key::Opener(cell.clone(), Epoch::new(7)),
            Key::Retired(cell.clone()),
            Key::Ltx {
                cell,
                epoch: Epoch::new(7),
                level: Level::One,
                min: Txid::new(1),
                max: Txid::new(256),
            },
        ];
        for key in keys {
            assert_eq!(Key::parse(&key.to_string()).as_ref(), Ok(&key));
        }
    }

    #[test]
    fn the_layout_is_as_documented() {
        let cell = CellName::parse("db:users").expect("valid");
        let key = Key::Ltx {
            cell,
            epoch: Epoch::new(2),
            level: Level::Snapshot,
            min: Txid::new(1),
            max: Txid::new(255),
        };
        assert_eq!(
            key.to_string(),
            "cells/db:users/ltx/e0000000000000002/9/0000000000000001-00000000000000ff.ltx"
        );
        let key = Key::WakeEntry {
            minute: AlarmTime::new(1_700_000_000_000).minute(),
            cell: CellName::parse("db:users").expect("valid"),
            id: AlarmId { epoch: Epoch::new(2), seq: AlarmSeq::new(3) },
        };
        assert_eq!(
            key.to_string(),
            "wake/entries/0000000001b05515/db:users/0000000000000002-0000000000000003"
        );
        assert_eq!(Key::WakerLease(10).to_string(), "wake/waker-000a.json");
        let bucket = R2BucketName::parse("photos").expect("valid");
        assert_eq!(
            Key::R2Object(bucket.clone(), "2026/a b.jpg".into()).to_string(),
            "r2/photos/o/=2026/=a!20b.jpg"
        );
        assert_eq!(
            Key::R2Body(bucket.clone(), "x".into(), R2BodyId::new(0x18b_cfe5_6800, 3)).to_string(),
            "r2/photos/b/=x/018bcfe5680000000000000000000003"
        );
        let (upload, part) = (R2BodyId::new(0x18b_cfe5_6800, 3), R2BodyId::new(0x18b_cfe5_6801, 4));
        assert_eq!(
            Key::R2Upload(bucket.clone(), "x".into(), upload).to_string(),
            "r2/photos/u/=x/018bcfe5680000000000000000000003"
        );
        let key = Key::R2Part(bucket.clone(), "x".into(), upload, part).to_string();
        assert_eq!(key, "r2/photos/m/=x/018bcfe5680000000000000000000003/018bcfe5680100000000000000000004");
        assert!(key.starts_with(&r2_upload_prefix(&bucket, "x", upload)));
    }

    #[test]
    fn another_spelling_of_a_key_is_refused() {
        for bad in [
            "",
            "cells",
            "nodes/../x.json",
            "cells/db:x/ltx/e1/opener.json",
            "cells/db:%61/own.json",
            "wake/waker-1.json",
            "r2/photos/o/x",
            "r2/photos/o/=%61!7a",
            "r2/photos/b/=x",
            "r2/photos/b/=x/=y",
            "r2/photos/u/=x",
            "r2/photos/m/=x/018bcfe5680000000000000000000003",
        ] {
            assert!(Key::parse(bad).is_err(), "{bad}");
        }
    }
}
