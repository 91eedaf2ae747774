//! What the bucket says of the fleet, read past every proxy.

use anyhow::{Context as _, Result};
use holdfast_records::{
    FleetIdentity, FollowerLease, Key, NodeLease, NodeLogRecord, NodeLogState, OwnerRecord, Record,
};
use holdfast_types::{CellName, SessionId};

use super::Cluster;

impl Cluster {
    /// The owner record of a database's cell.
    ///
    /// # Errors
    /// When the store fails, or the record does not decode.
    pub async fn owner(&self, db: &str) -> Result<Option<OwnerRecord>> {
        self.owner_of(&CellName::new("db", db)?).await
    }

    /// The owner record of a cell.
    ///
    /// # Errors
    /// When the store fails, or the record does not decode.
    pub async fn owner_of(&self, cell: &CellName) -> Result<Option<OwnerRecord>> {
        self.record(&Key::Owner(cell.clone()).to_string()).await
    }

    /// The lease of a node.
    ///
    /// # Errors
    /// When the store fails, or the record does not decode.
    pub async fn lease(&self, node: &str) -> Result<Option<NodeLease>> {
        self.record(&format!("nodes/{node}.json")).await
    }

    /// The lease of a follower.
    ///
    /// # Errors
    /// When the store fails, or the record does not decode.
    pub async fn follower_lease(&self, follower: &str) -> Result<Option<FollowerLease>> {
        self.record(&format!("followers/{follower}.json")).await
    }

    /// The log of one session of a node.
    ///
    /// # Errors
    /// When the store fails, or the record does not decode.
    pub async fn node_log(&self, node: &str, session: SessionId) -> Result<Option<NodeLogRecord>> {
        self.record(&format!("log/{node}/{session}.json")).await
    }

    /// The log of the session that holds a node's lease.
    ///
    /// # Errors
    /// When there is no lease or no log yet, the store fails, or a record does not decode.
    pub async fn present_log(&self, node: &str) -> Result<NodeLogRecord> {
        let lease = self.lease(node).await?.with_context(|| format!("`{node}` has no lease"))?;
        let log = self.node_log(node, lease.session).await?;
        log.with_context(|| format!("`{node}` has no log yet"))
    }

    /// The logs that are not sealed.
    ///
    /// # Errors
    /// When the store fails, or a record does not decode.
    pub async fn open_logs(&self) -> Result<Vec<NodeLogRecord>> {
        let mut logs = Vec::new();
        for key in self.raw_store().list("log/").await? {
            if !matches!(Key::parse(&key), Ok(Key::NodeLog(..))) {
                continue;
            }
            let log: Option<NodeLogRecord> = self.record(&key).await?;
            logs.extend(log.filter(|log| log.state != NodeLogState::Sealed));
        }
        Ok(logs)
    }

    /// The fleet's identity: with it a test can be any process of the fleet.
    ///
    /// # Errors
    /// When there is none yet, the store fails, or it does not decode.
    pub async fn fleet_identity(&self) -> Result<FleetIdentity> {
        self.record(&Key::FleetIdentity.to_string()).await?.context("there is no fleet yet")
    }

    async fn record<R: Record>(&self, key: &str) -> Result<Option<R>> {
        let bytes = self.raw_store().get(key).await?;
        bytes.map(|bytes| R::decode(&bytes)).transpose().with_context(|| format!("reading `{key}`"))
    }
}
