//! Real followers: found by their leases, called by gRPC.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use holdfast_bucket::Bucket;
use holdfast_core::log_record::MemberId;
use holdfast_core::recovery::Holdings;
use holdfast_records::{FollowerLease, Key, Record};
use holdfast_rpc::follower::{HeldLog, LogName};
use holdfast_rpc::{FollowerClient, FollowerLink, FollowerPeer};
use holdfast_types::LogOffset;

use super::witness::{Frames, LogWitness};

/// Followers as their leases name them. The lease's end does not matter: a process that answers under the session that it
/// names is there.
#[derive(Clone, Debug)]
pub struct Followers {
    leases: Arc<dyn Bucket>,
    client: FollowerClient,
}

impl Followers {
    /// Over the bucket that holds leases.
    #[must_use]
    pub fn new(leases: Arc<dyn Bucket>, client: FollowerClient) -> Self {
        Self { leases, client }
    }

    async fn link(&self, member: &MemberId) -> Result<FollowerLink, String> {
        let key = Key::FollowerLease(member.follower.clone()).to_string();
        let object = self.leases.get(&key).await.map_err(|error| error.to_string())?;
        let object = object.ok_or_else(|| format!("there is no `{key}`"))?;
        let lease = FollowerLease::decode(&object.body).map_err(|error| format!("`{key}`: {error}"))?;
        let peer = FollowerPeer { follower: lease.follower, session: lease.session, address: lease.address };
        self.client.connect(&peer).await.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl LogWitness for Followers {
    async fn seal(&self, member: &MemberId, log: &LogName) -> Result<Holdings, String> {
        let link = self.link(member).await?;
        let held = link.seal(log).await.map_err(|error| error.to_string())?;
        let HeldLog { incarnation, log_epoch, start, end, complete, sealed, bytes: _ } = held;
        Ok(Holdings { incarnation, log_epoch, start, end, is_complete: complete, is_sealed: sealed })
    }

    async fn tail(
        &self,
        member: &MemberId,
        log: &LogName,
        start: LogOffset,
        last: LogOffset,
    ) -> Result<Frames, String> {
        let link = self.link(member).await?;
        let frames = link.tail(log, start, Some(last)).await.map_err(|error| error.to_string())?;
        // The link goes with its stream.
        let frames = frames.map(move |frames| {
            let _link = &link;
            frames.map_err(|error| error.to_string())
        });
        Ok(frames.boxed())
    }

    async fn release(&self, member: &MemberId, log: &LogName) -> Result<(), String> {
        let link = self.link(member).await?;
        link.release(log).await.map_err(|error| error.to_string())
    }
}
