//! One attempt to recover one log: drives the core's machine, with a gathering and seals under way beside it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use holdfast_bucket::{Bucket, BucketError, Commit, Version};
use holdfast_core::log_record::{LogRecord, MemberId};
use holdfast_core::recovery::{
    GatherFault, MissingMember, Recoverer, Recovery, RecoveryEffect, RecoveryEvent, RecoveryOutcome, Standing,
};
use holdfast_core::store::{Answer, Guard};
use holdfast_records::{Key, NodeLease, NodeLogRecord, Record};
use holdfast_rpc::follower::LogName;
use holdfast_types::{LogOffset, NodeName, SessionId};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::gather::{Gather, gather, gather_bundles};
use super::witness::LogWitness;
use crate::backoff::Backoff;
use crate::owners::lease_view;
use crate::{clock, log_records, random};

/// How long one conditional write of the record may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Reads of the record before the machine is told that it cannot be read.
const READ_ATTEMPTS: u32 = 4;
/// How long one read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a follower's answer to a seal.
const SEAL_TIMEOUT: Duration = Duration::from_secs(15);
/// Between reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Between reads: 100 ms doubling to 400 ms.
const PAUSES: Backoff = Backoff::new(100, 2);

/// What an attempt works with.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub(super) claimant: SessionId,
    pub(super) claimant_node: Option<NodeName>,
    pub(super) clock_skew_max_ms: u64,
    pub(super) records: Arc<dyn Bucket>,
    pub(super) leases: Arc<dyn Bucket>,
    pub(super) bulk: Arc<dyn Bucket>,
    pub(super) witness: Arc<dyn LogWitness>,
    /// Bounds the gatherings at once.
    pub(super) gatherings: Arc<Semaphore>,
}

/// A gathering under way; ended when dropped.
struct Gathering {
    task: JoinHandle<Result<(), GatherFault>>,
    done_below: watch::Receiver<LogOffset>,
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Attempt<'a> {
    tools: &'a Tools,
    log: &'a LogName,
    seals: FuturesUnordered<BoxFuture<'static, RecoveryEvent<Version>>>,
    gathering: Option<Gathering>,
}

/// Runs one recovery to its end, which another attempt may have to follow.
pub(super) async fn attempt(tools: &Tools, log: &LogName) -> RecoveryOutcome {
    let LogName { node, session } = log.clone();
    let Tools { claimant, ref claimant_node, clock_skew_max_ms, .. } = *tools;
    let me = Recoverer { claimant, claimant_node: claimant_node.clone(), node, session, clock_skew_max_ms };
    let (mut machine, first) = Recovery::start(me, random::write_id());
    let mut attempt = Attempt { tools, log, seals: FuturesUnordered::new(), gathering: None };
    let mut effect = Some(first);
    loop {
        // Before the event began: what is long on its way must make nobody look silent.
        let before = clock::wall();
        let event = match effect {
            Some(RecoveryEffect::Finish(outcome)) => return outcome,
            Some(RecoveryEffect::ReadRecord) => tools.read(log).await,
            Some(RecoveryEffect::WriteRecord { record, guard, missing }) => {
                RecoveryEvent::RecordAnswered(tools.write(&record, guard, &missing).await)
            }
            Some(RecoveryEffect::LookForLoss) => tools.look_for_loss(log).await,
            Some(RecoveryEffect::ReadClaimantLease { node }) => tools.read_lease(&node).await,
            Some(RecoveryEffect::SealMembers { members }) => {
                members.into_iter().for_each(|member| attempt.seal(member));
                attempt.wait().await
            }
            Some(RecoveryEffect::Gather { member, start, end, is_whole }) => {
                attempt.gather(member, (start, end), is_whole);
                attempt.wait().await
            }
            Some(RecoveryEffect::GatherBundles { from, is_whole }) => {
                attempt.gather_bundles(from, is_whole);
                attempt.wait().await
            }
            None => attempt.wait().await,
        };
        effect = machine.on(event, before);
    }
}

impl Attempt<'_> {
    /// The next event of what is under way.
    async fn wait(&mut self) -> RecoveryEvent<Version> {
        let Some(gathering) = &mut self.gathering else {
            return self.seals.next().await.expect("a recovery waits only for what it asked for");
        };
        tokio::select! {
            biased;
            ended = &mut gathering.task => {
                self.gathering = None;
                match ended {
                    Ok(Ok(())) => RecoveryEvent::Gathered,
                    Ok(Err(fault)) => RecoveryEvent::GatherFailed(fault),
                    Err(error) => RecoveryEvent::GatherFailed(GatherFault::Here(format!("a bug: {error}"))),
                }
            }
            Some(event) = self.seals.next(), if !self.seals.is_empty() => event,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                RecoveryEvent::Progress { done_below: *gathering.done_below.borrow() }
            }
        }
    }

    fn seal(&self, member: MemberId) {
        let (witness, log) = (Arc::clone(&self.tools.witness), self.log.clone());
        self.seals.push(Box::pin(async move {
            match tokio::time::timeout(SEAL_TIMEOUT, witness.seal(&member, &log)).await {
                Ok(Ok(holdings)) => RecoveryEvent::MemberSealed { member, holdings },
                Ok(Err(reason)) => RecoveryEvent::MemberUnreachable { member, reason },
                Err(_) => {
                    let reason = format!("no answer within {SEAL_TIMEOUT:?}");
                    RecoveryEvent::MemberUnreachable { member, reason }
                }
            }
        }));
    }

    fn gather(&mut self, member: MemberId, (start, end): (LogOffset, LogOffset), is_whole: bool) {
        let Tools { bulk, witness, gatherings, .. } = self.tools;
        tracing::info!(
            log = %self.log, follower = %member.follower, %start, %end, is_whole,
            "what only followers hold of a dead session goes to the bucket"
        );
        let (sender, done_below) = watch::channel(start);
        let what = Gather { log: self.log.clone(), member, start, end, is_whole };
        let gathering = gather(Arc::clone(witness), Arc::clone(bulk), what, sender);
        self.gathering = Some(Gathering { task: spawn(gatherings, gathering), done_below });
    }

    fn gather_bundles(&mut self, from: LogOffset, is_whole: bool) {
        let Tools { bulk, gatherings, .. } = self.tools;
        tracing::info!(log = %self.log, %from, is_whole, "what is in bundles goes to its cells");
        let gathering = gather_bundles(Arc::clone(bulk), self.log.clone(), (from, is_whole));
        let (_, done_below) = watch::channel(LogOffset::ZERO);
        self.gathering = Some(Gathering { task: spawn(gatherings, gathering), done_below });
    }
}

/// Runs a gathering once there is room for it.
fn spawn(
    gatherings: &Arc<Semaphore>,
    gathering: impl Future<Output = Result<(), GatherFault>> + Send + 'static,
) -> JoinHandle<Result<(), GatherFault>> {
    let gatherings = Arc::clone(gatherings);
    tokio::spawn(async move {
        let _permit = gatherings.acquire().await.expect("the semaphore is never closed");
        gathering.await
    })
}

impl Tools {
    async fn read(&self, log: &LogName) -> RecoveryEvent<Version> {
        let key = Key::NodeLog(log.node.clone(), log.session).to_string();
        match patiently(&*self.records, &key).await {
            Some(None) => RecoveryEvent::RecordRead { record: None },
            Some(Some(object)) => match NodeLogRecord::decode(&object.body) {
                Ok(record) => {
                    RecoveryEvent::RecordRead { record: Some((log_records::view(record), object.version)) }
                }
                Err(error) => {
                    tracing::error!(key, %error, "a log record cannot be used");
                    RecoveryEvent::ReadFailed
                }
            },
            None => RecoveryEvent::ReadFailed,
        }
    }

    /// Where the recovery of a log stands; none where that cannot be told.
    pub(super) async fn standing(&self, log: &LogName) -> Option<Standing> {
        match self.read(log).await {
            RecoveryEvent::RecordRead { record } => {
                Some(Standing::of(record.as_ref().map(|(record, _)| record)))
            }
            _ => None,
        }
    }

    async fn look_for_loss(&self, log: &LogName) -> RecoveryEvent<Version> {
        let key = Key::LogLoss(log.node.clone(), log.session).to_string();
        match patiently(&*self.records, &key).await {
            Some(object) => RecoveryEvent::LossLookedFor { is_declared: object.is_some() },
            None => RecoveryEvent::ReadFailed,
        }
    }

    async fn read_lease(&self, node: &NodeName) -> RecoveryEvent<Version> {
        let key = Key::NodeLease(node.clone()).to_string();
        match patiently(&*self.leases, &key).await {
            Some(None) => RecoveryEvent::ClaimantLeaseRead { lease: None },
            Some(Some(object)) => match NodeLease::decode(&object.body) {
                Ok(lease) => RecoveryEvent::ClaimantLeaseRead { lease: Some(lease_view(&lease)) },
                Err(error) => {
                    tracing::warn!(key, %error, "the lease of a recoverer's node cannot be used");
                    RecoveryEvent::ReadFailed
                }
            },
            None => RecoveryEvent::ReadFailed,
        }
    }

    async fn write(
        &self,
        record: &LogRecord,
        guard: Guard<Version>,
        missing: &[MissingMember],
    ) -> Answer<Version> {
        let key = Key::NodeLog(record.node.clone(), record.session).to_string();
        let body = Bytes::from(log_records::record(record, &blocked_text(missing)).encode());
        match self.records.put_if(&key, body, guard.into(), WRITE_DEADLINE_MS).await {
            Commit::Applied(version) => Answer::Applied(version),
            Commit::Rejected => Answer::Rejected,
            Commit::Unknown(error) => {
                tracing::debug!(key, %error, "the outcome of a log record's write is unknown");
                Answer::Unknown
            }
        }
    }
}

/// Which members are missing, in words.
pub(super) fn blocked_text(missing: &[MissingMember]) -> String {
    let members: Vec<String> = missing.iter().map(ToString::to_string).collect();
    format!("one of these followers is needed: {}", members.join("; "))
}

/// The object, or none where there is none; none at all where the store does not say.
async fn patiently(bucket: &dyn Bucket, key: &str) -> Option<Option<holdfast_bucket::Object>> {
    for attempt in 0..READ_ATTEMPTS {
        let error: Option<BucketError> = match tokio::time::timeout(READ_TIMEOUT, bucket.get(key)).await {
            Ok(Ok(object)) => return Some(object),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        tracing::debug!(key, attempt, ?error, "a record could not be read");
        if attempt + 1 < READ_ATTEMPTS {
            PAUSES.pause(attempt).await;
        }
    }
    None
}
