//! What a recovery needs of a follower.

use async_trait::async_trait;
use futures::stream::BoxStream;
use holdfast_core::log_record::MemberId;
use holdfast_core::recovery::Holdings;
use holdfast_rpc::follower::{LogFrame, LogName};
use holdfast_types::LogOffset;

/// Frames in order, in pieces. An error ends the stream; a stream that ends without one may still be short.
pub type Frames = BoxStream<'static, Result<Vec<LogFrame>, String>>;

/// Followers, found by the names of an ensemble's members. An error says nothing about what a follower holds.
#[async_trait]
pub trait LogWitness: Send + Sync + std::fmt::Debug + 'static {
    /// Has the follower under the member's name refuse appends for ever, and says what it holds.
    async fn seal(&self, member: &MemberId, log: &LogName) -> Result<Holdings, String>;

    /// What it holds from `start` to `last`, both included.
    async fn tail(
        &self,
        member: &MemberId,
        log: &LogName,
        start: LogOffset,
        last: LogOffset,
    ) -> Result<Frames, String>;

    /// Has it forget a log whose record says `sealed`.
    async fn release(&self, member: &MemberId, log: &LogName) -> Result<(), String>;
}
