//! Between `follower.proto` and the types of both ends. Whatever arrives is checked here, once; a frame's crc is the
//! receiver's to check, since a wrong one has an answer of its own.

use holdfast_types::{
    CellName, Epoch, FollowerName, Incarnation, LogEpoch, LogOffset, NodeName, SessionId, Txid,
};

use super::{AppendAnswer, AppendMessage, AppendRefusal, FollowerDescription, HeldLog, LogFrame, LogName};
use crate::proto;

/// What does not make sense in a message of a peer. Disposition: reject; a peer of another version, or a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is not valid: {detail}")]
pub struct WireFault {
    field: &'static str,
    detail: String,
}

fn bad(field: &'static str, detail: impl ToString) -> WireFault {
    WireFault { field, detail: detail.to_string() }
}

impl LogName {
    pub(crate) fn from_wire(node: &str, session: &str) -> Result<Self, WireFault> {
        let node = NodeName::parse(node).map_err(|e| bad("node", e))?;
        let session = SessionId::parse(session).map_err(|e| bad("session", e))?;
        Ok(Self { node, session })
    }
}

fn offset(field: &'static str, number: u64) -> Result<LogOffset, WireFault> {
    if number == 0 { Err(bad(field, "offsets start at 1")) } else { Ok(LogOffset::new(number)) }
}

impl From<LogFrame> for proto::Frame {
    fn from(frame: LogFrame) -> Self {
        let LogFrame { offset, cell, epoch, txid, body, crc } = frame;
        let cell = cell.as_str().to_owned();
        Self { offset: offset.get(), cell, epoch: epoch.get(), txid: txid.get(), body, crc }
    }
}

impl TryFrom<proto::Frame> for LogFrame {
    type Error = WireFault;

    fn try_from(frame: proto::Frame) -> Result<Self, WireFault> {
        let proto::Frame { offset: number, cell, epoch, txid, body, crc } = frame;
        let cell = CellName::parse(&cell).map_err(|e| bad("cell", e))?;
        let offset = offset("offset", number)?;
        Ok(Self { offset, cell, epoch: Epoch::new(epoch), txid: Txid::new(txid), body, crc })
    }
}

pub(crate) fn frames_to_wire(frames: Vec<LogFrame>) -> Vec<proto::Frame> {
    frames.into_iter().map(proto::Frame::from).collect()
}

pub(crate) fn frames_from_wire(frames: Vec<proto::Frame>) -> Result<Vec<LogFrame>, WireFault> {
    frames.into_iter().map(LogFrame::try_from).collect()
}

impl From<AppendMessage> for proto::AppendRequest {
    fn from(message: AppendMessage) -> Self {
        use proto::append_request::Kind;
        let kind = match message {
            AppendMessage::Adopt { log: LogName { node, session }, log_epoch, start } => {
                Kind::Adopt(proto::AdoptLogEpoch {
                    node: node.to_string(),
                    session: session.to_string(),
                    log_epoch: log_epoch.get(),
                    start: start.get(),
                })
            }
            AppendMessage::Frames { log_epoch, frames } => Kind::Frames(proto::AppendFrames {
                log_epoch: log_epoch.get(),
                frames: frames_to_wire(frames),
            }),
            AppendMessage::Release { start } => Kind::Release(proto::ReleaseFrames { start: start.get() }),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<proto::AppendRequest> for AppendMessage {
    type Error = WireFault;

    fn try_from(request: proto::AppendRequest) -> Result<Self, WireFault> {
        use proto::append_request::Kind;
        match request.kind {
            Some(Kind::Adopt(proto::AdoptLogEpoch { node, session, log_epoch, start })) => Ok(Self::Adopt {
                log: LogName::from_wire(&node, &session)?,
                log_epoch: LogEpoch::new(log_epoch),
                start: offset("start", start)?,
            }),
            Some(Kind::Frames(proto::AppendFrames { log_epoch, frames })) => {
                if frames.is_empty() {
                    return Err(bad("frames", "there are none"));
                }
                let frames = frames_from_wire(frames)?;
                Ok(Self::Frames { log_epoch: LogEpoch::new(log_epoch), frames })
            }
            Some(Kind::Release(proto::ReleaseFrames { start })) => {
                Ok(Self::Release { start: offset("start", start)? })
            }
            None => Err(bad("kind", "it is unknown to this release")),
        }
    }
}

impl AppendRefusal {
    /// Those that say it all.
    const PLAIN: [(Self, proto::RefusalReason); 8] = [
        (Self::Sealed, proto::RefusalReason::Sealed),
        (Self::NotAMember, proto::RefusalReason::NotAMember),
        (Self::RecordUnreadable, proto::RefusalReason::RecordUnreadable),
        (Self::Gap, proto::RefusalReason::Gap),
        (Self::Corrupt, proto::RefusalReason::Corrupt),
        (Self::Full, proto::RefusalReason::Full),
        (Self::Draining, proto::RefusalReason::Draining),
        (Self::Damaged, proto::RefusalReason::Damaged),
    ];

    /// The reason, and the log epoch that belongs to it; 0 for none.
    fn to_wire(self) -> (i32, u64) {
        if let Self::StaleEpoch { found } = self {
            return (proto::RefusalReason::StaleEpoch.into(), found.get());
        }
        let plain = Self::PLAIN.iter().find(|(reason, _)| *reason == self);
        (plain.map_or(proto::RefusalReason::Unspecified, |(_, wire)| *wire).into(), 0)
    }

    fn from_wire(reason: i32, log_epoch: u64) -> Self {
        if reason == i32::from(proto::RefusalReason::StaleEpoch) {
            return Self::StaleEpoch { found: LogEpoch::new(log_epoch) };
        }
        let plain = Self::PLAIN.iter().find(|(_, wire)| i32::from(*wire) == reason);
        plain.map_or(Self::Other, |(reason, _)| *reason)
    }
}

impl From<AppendAnswer> for proto::AppendResponse {
    fn from(answer: AppendAnswer) -> Self {
        use proto::append_response::Kind;
        let kind = match answer {
            AppendAnswer::Adopted { log_epoch, next } => {
                Kind::Adopted(proto::LogEpochAdopted { log_epoch: log_epoch.get(), next: next.get() })
            }
            AppendAnswer::Durable { log_epoch, offset } => {
                Kind::Durable(proto::FramesDurable { log_epoch: log_epoch.get(), offset: offset.get() })
            }
            AppendAnswer::Refused { reason, detail } => {
                let (reason, log_epoch) = reason.to_wire();
                Kind::Refused(proto::AppendRefused { reason, detail, log_epoch })
            }
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<proto::AppendResponse> for AppendAnswer {
    type Error = WireFault;

    fn try_from(response: proto::AppendResponse) -> Result<Self, WireFault> {
        use proto::append_response::Kind;
        match response.kind {
            Some(Kind::Adopted(proto::LogEpochAdopted { log_epoch, next })) => {
                Ok(Self::Adopted { log_epoch: LogEpoch::new(log_epoch), next: offset("next", next)? })
            }
            Some(Kind::Durable(proto::FramesDurable { log_epoch, offset: number })) => {
                Ok(Self::Durable { log_epoch: LogEpoch::new(log_epoch), offset: offset("offset", number)? })
            }
            Some(Kind::Refused(proto::AppendRefused { reason, detail, log_epoch })) => {
                Ok(Self::Refused { reason: AppendRefusal::from_wire(reason, log_epoch), detail })
            }
            None => Err(bad("kind", "it is unknown to this release")),
        }
    }
}

impl From<HeldLog> for proto::LogState {
    fn from(held: HeldLog) -> Self {
        let HeldLog { incarnation, log_epoch, start, end, complete, sealed, bytes } = held;
        let incarnation = incarnation.to_string();
        let (log_epoch, start, end) = (log_epoch.get(), start.get(), end.get());
        Self { incarnation, log_epoch, start, end, complete, sealed, bytes }
    }
}

impl HeldLog {
    pub(crate) fn from_wire(state: Option<proto::LogState>) -> Result<Self, WireFault> {
        let proto::LogState { incarnation, log_epoch, start, end, complete, sealed, bytes } =
            state.ok_or_else(|| bad("state", "it is missing"))?;
        let (start, end) = (offset("start", start)?, offset("end", end)?);
        if start > end {
            return Err(bad("end", "it is before the start"));
        }
        let incarnation = Incarnation::parse(&incarnation).map_err(|e| bad("incarnation", e))?;
        Ok(Self { incarnation, log_epoch: LogEpoch::new(log_epoch), start, end, complete, sealed, bytes })
    }
}

impl From<FollowerDescription> for proto::DescribeFollowerResponse {
    fn from(description: FollowerDescription) -> Self {
        let FollowerDescription {
            follower,
            session,
            incarnation,
            version,
            free_bytes,
            retained_bytes,
            draining,
            logs,
        } = description;
        let row = |(LogName { node, session }, held): (LogName, HeldLog)| proto::SessionRow {
            node: node.to_string(),
            session: session.to_string(),
            state: Some(held.into()),
        };
        Self {
            follower: follower.to_string(),
            session: session.to_string(),
            incarnation: incarnation.to_string(),
            version,
            free_bytes,
            retained_bytes,
            draining,
            sessions: logs.into_iter().map(row).collect(),
        }
    }
}

impl TryFrom<proto::DescribeFollowerResponse> for FollowerDescription {
    type Error = WireFault;

    fn try_from(response: proto::DescribeFollowerResponse) -> Result<Self, WireFault> {
        let proto::DescribeFollowerResponse {
            follower,
            session,
            incarnation,
            version,
            free_bytes,
            retained_bytes,
            draining,
            sessions,
        } = response;
        let row = |proto::SessionRow { node, session, state }| {
            Ok((LogName::from_wire(&node, &session)?, HeldLog::from_wire(state)?))
        };
        Ok(Self {
            follower: FollowerName::parse(&follower).map_err(|e| bad("follower", e))?,
            session: SessionId::parse(&session).map_err(|e| bad("session", e))?,
            incarnation: Incarnation::parse(&incarnation).map_err(|e| bad("incarnation", e))?,
            version,
            free_bytes,
            retained_bytes,
            draining,
            logs: sessions.into_iter().map(row).collect::<Result<_, WireFault>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> LogName {
        LogName { node: NodeName::parse("n").unwrap(), session: SessionId::from_bits(7) }
    }

    fn held() -> HeldLog {
        HeldLog {
            incarnation: Incarnation::from_bits(9),
            log_epoch: LogEpoch::new(2),
            start: LogOffset::new(3),
            end: LogOffset::new(5),
            complete: true,
            sealed: true,
            bytes: 77,
        }
    }

    #[test]
    fn every_message_survives_the_wire() {
        let cell = CellName::parse("db:ü").unwrap();
        let frame = LogFrame::new(
            SessionId::from_bits(7),
            LogOffset::new(4),
            cell,
            Epoch::new(1),
            Txid::new(2),
            bytes::Bytes::from_static(b"x"),
        );
        let (log_epoch, start) = (LogEpoch::new(3), LogOffset::new(4));
        for message in [
            AppendMessage::Adopt { log: log(), log_epoch, start },
            AppendMessage::Frames { log_epoch, frames: vec![frame] },
            AppendMessage::Release { start },
        ] {
            let wire = proto::AppendRequest::from(message.clone());
            assert_eq!(AppendMessage::try_from(wire), Ok(message));
        }
    }

    #[test]
    fn every_answer_survives_the_wire() {
        let (log_epoch, offset) = (LogEpoch::new(3), LogOffset::new(4));
        let mut answers = vec![
            AppendAnswer::Adopted { log_epoch, next: offset },
            AppendAnswer::Durable { log_epoch, offset },
        ];
        let stale = AppendRefusal::StaleEpoch { found: LogEpoch::new(5) };
        let plain = AppendRefusal::PLAIN.iter().map(|(reason, _)| *reason);
        let refusals = plain.chain([stale, AppendRefusal::Other]);
        answers.extend(refusals.map(|reason| AppendAnswer::Refused { reason, detail: "why".into() }));
        for answer in answers {
            let wire = proto::AppendResponse::from(answer.clone());
            assert_eq!(AppendAnswer::try_from(wire), Ok(answer));
        }
    }

    #[test]
    fn a_description_survives_the_wire() {
        let description = FollowerDescription {
            follower: FollowerName::parse("f").unwrap(),
            session: SessionId::from_bits(1),
            incarnation: Incarnation::from_bits(2),
            version: "1".into(),
            free_bytes: 3,
            retained_bytes: 4,
            draining: true,
            logs: vec![(log(), held())],
        };
        let wire = proto::DescribeFollowerResponse::from(description.clone());
        assert_eq!(FollowerDescription::try_from(wire), Ok(description));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_field() {
        let field = |kind| AppendMessage::try_from(proto::AppendRequest { kind }).unwrap_err().field;
        use proto::append_request::Kind;
        assert_eq!(field(None), "kind");
        assert_eq!(field(Some(Kind::Release(proto::ReleaseFrames { start: 0 }))), "start");
        assert_eq!(field(Some(Kind::Frames(proto::AppendFrames { log_epoch: 1, frames: vec![] }))), "frames");
        let backwards = proto::LogState { start: 6, ..held().into() };
        assert_eq!(HeldLog::from_wire(Some(backwards)).unwrap_err().field, "end");
    }
}
