//! The commands against a bucket whose one dead session has followers that nobody can reach.

use std::path::Path;

use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_records::{
    EnsembleRecord, Key, MemberRecord, NodeLogRecord, NodeLogState, Record, RecordVersion,
};
use holdfast_rpc::identity;
use holdfast_types::{FollowerName, Incarnation, LogEpoch, NodeName, SessionId, WriteId};

use super::declare::DeclareLoss;
use super::list::List;
use super::recover::Recover;
use super::show::Show;
use super::{Which, losses};
use crate::args::file_url;
use crate::output::Output;

const SESSION: SessionId = SessionId::from_bits(0xabc << 116);

fn args(folder: &Path) -> BucketArgs {
    BucketArgs::at(&file_url(folder).unwrap())
}

fn which(session: &str) -> Which {
    Which { node: NodeName::parse("n").unwrap(), session: session.into() }
}

/// A fleet whose node `n` died with an active ensemble of `f1`.
async fn fleet(folder: &Path) -> Buckets {
    let buckets = args(folder).open().await.unwrap();
    identity::load_or_create(&*buckets.records).await.unwrap();
    let record = NodeLogRecord {
        version: RecordVersion { major: 1, minor: 0 },
        write_id: WriteId::from_bits(1),
        node: NodeName::parse("n").unwrap(),
        session: SESSION,
        state: NodeLogState::Open,
        ensemble: EnsembleRecord {
            log_epoch: LogEpoch::new(1),
            members: vec![MemberRecord {
                follower: FollowerName::parse("f1").unwrap(),
                incarnation: Incarnation::from_bits(7),
            }],
        },
        active: true,
        prior: None,
        recovery: None,
        loss_declared: false,
        bundles_from: None,
    };
    let key = Key::NodeLog(record.node.clone(), SESSION).to_string();
    buckets.records.put(&key, record.encode().into()).await.unwrap();
    buckets
}

async fn record(buckets: &Buckets) -> NodeLogRecord {
    let key = Key::NodeLog(NodeName::parse("n").unwrap(), SESSION).to_string();
    NodeLogRecord::decode(&buckets.records.get(&key).await.unwrap().unwrap().body).unwrap()
}

fn declare(folder: &Path, yes: bool) -> DeclareLoss {
    DeclareLoss::new(which("abc"), "both disks burnt", yes, args(folder))
}

#[tokio::test]
async fn only_a_person_ends_a_blocked_recovery_and_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let buckets = fleet(folder.path()).await;
    let output = Output::new(true);
    let recover = || Recover { which: which("abc"), bucket: args(folder.path()) };
    let error = format!("{:#}", recover().run(output).await.unwrap_err());
    assert!(error.contains("`f1`") && error.contains("declare-loss"), "{error}");
    assert!(record(&buckets).await.recovery.unwrap().blocked.contains("`f1`"));

    let error = format!("{:#}", declare(folder.path(), false).run(output).await.unwrap_err());
    assert!(error.contains("--yes") && error.contains("`f1`"), "{error}");
    assert!(losses(&buckets).await.unwrap().is_empty());

    declare(folder.path(), true).run(output).await.unwrap();
    let sealed = record(&buckets).await;
    assert_eq!((sealed.state, sealed.loss_declared), (NodeLogState::Sealed, true));
    let declared = losses(&buckets).await.unwrap();
    assert_eq!(declared.len(), 1);
    assert_eq!(declared[0].1.as_ref().unwrap().reason, "both disks burnt");

    recover().run(output).await.unwrap();
    List { all: true, bucket: args(folder.path()) }.run(output).await.unwrap();
    Show { which: which("abc"), bucket: args(folder.path()) }.run(output).await.unwrap();
}

#[tokio::test]
async fn a_session_is_named_by_its_first_digits_when_they_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let buckets = fleet(folder.path()).await;
    assert_eq!(which("ab").find(&buckets).await.unwrap().session, SESSION);
    assert_eq!(which(&SESSION.to_string()).find(&buckets).await.unwrap().session, SESSION);
    let error = which("abd").find(&buckets).await.unwrap_err().to_string();
    assert!(error.contains("log list"), "{error}");
}
