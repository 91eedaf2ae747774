//! Between the messages on the wire and the product's own types. Whatever arrives is checked here, once.

use bytes::Bytes;
use holdfast_types::{
    AlarmId, AlarmSeq, AlarmTime, CellName, Epoch, NodeName, Position, SessionId, Txid, WakeMinute,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, request, response};

use crate::{
    Access, ArmedAlarm, CallError, CallOrder, ObjectCall, OwnerHint, ThrownError, WakeCall, WakeReply, proto,
};

/// What does not make sense in a message of a peer. Disposition: reject; a peer of another version, or a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is not valid: {detail}")]
pub(crate) struct WireError {
    /// The field.
    pub(crate) field: &'static str,
    /// What is wrong.
    pub(crate) detail: String,
}

fn bad(field: &'static str, detail: impl ToString) -> WireError {
    WireError { field, detail: detail.to_string() }
}

pub(crate) fn headers_to_wire(headers: &HeaderMap) -> Vec<proto::Header> {
    let row = |(name, value): (&HeaderName, &HeaderValue)| proto::Header {
        name: name.as_str().to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
    };
    headers.iter().map(row).collect()
}

fn headers_from_wire(rows: Vec<proto::Header>) -> Result<HeaderMap, WireError> {
    let mut headers = HeaderMap::with_capacity(rows.len());
    for proto::Header { name, value } in rows {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| bad("header name", e))?;
        let value = HeaderValue::from_maybe_shared(value).map_err(|e| bad("header value", e))?;
        headers.append(name, value);
    }
    Ok(headers)
}

pub(crate) fn head_to_wire(
    cell: &CellName,
    access: Access,
    object: &ObjectCall,
    parts: &request::Parts,
) -> proto::CallHead {
    let access = match access {
        Access::ReadOnly => proto::Access::ReadOnly,
        Access::ReadWrite => proto::Access::ReadWrite,
    };
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    proto::CallHead {
        cell: cell.as_str().to_owned(),
        access: access.into(),
        method: parts.method.as_str().to_owned(),
        path: path.to_owned(),
        headers: headers_to_wire(&parts.headers),
        object_name: object.name.clone(),
        rpc_method: object.method.clone(),
        socket: object.is_socket && object.session.is_none(),
        order: object.order.map(|CallOrder { stub, place, floor }| proto::CallOrder { stub, place, floor }),
        references: object.takes_references,
        session: object.session.clone(),
    }
}

/// The head of a request: the cell, what the caller may do, what is asked of an object, and the request without its body.
pub(crate) type Head = (CellName, Access, ObjectCall, http::Request<()>);

pub(crate) fn head_from_wire(head: Option<proto::CallHead>) -> Result<Head, WireError> {
    let proto::CallHead {
        cell,
        access,
        method,
        path,
        headers,
        object_name,
        rpc_method,
        socket,
        order,
        references,
        session,
    } = head.ok_or_else(|| bad("head", "it is missing"))?;
    let cell = CellName::parse(&cell).map_err(|e| bad("cell", e))?;
    let access = match proto::Access::try_from(access) {
        Ok(proto::Access::ReadOnly) => Access::ReadOnly,
        Ok(proto::Access::ReadWrite) => Access::ReadWrite,
        Ok(proto::Access::Unspecified) | Err(_) => return Err(bad("access", "it is not specified")),
    };
    let mut request = http::Request::new(());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|e| bad("method", e))?;
    *request.uri_mut() = Uri::try_from(path).map_err(|e| bad("path", e))?;
    *request.headers_mut() = headers_from_wire(headers)?;
    let object = ObjectCall {
        name: object_name,
        method: rpc_method,
        is_socket: socket || session.is_some(),
        takes_references: references,
        session,
        order: order.map(|proto::CallOrder { stub, place, floor }| CallOrder {
            stub,
            place,
            floor: floor.min(place),
        }),
    };
    Ok((cell, access, object, request))
}

pub(crate) fn reply_from_wire(
    status: u32,
    headers: Vec<proto::Header>,
) -> Result<http::Response<()>, WireError> {
    let mut reply = http::Response::new(());
    *reply.status_mut() = status_from_wire(status)?;
    *reply.headers_mut() = headers_from_wire(headers)?;
    Ok(reply)
}

pub(crate) fn reply_to_wire(
    parts: &response::Parts,
    thrown: Option<ThrownError>,
    position: holdfast_types::Position,
) -> proto::ReplyHead {
    proto::ReplyHead {
        thrown: thrown.map(thrown_to_wire),
        status: u32::from(parts.status.as_u16()),
        headers: headers_to_wire(&parts.headers),
        epoch: position.epoch.get(),
        txid: position.txid.get(),
    }
}

fn thrown_to_wire(error: ThrownError) -> proto::ThrownError {
    let ThrownError { name, message, stack, is_retryable, is_overloaded } = error;
    proto::ThrownError { name, message, stack, retryable: is_retryable, overloaded: is_overloaded }
}

pub(crate) fn thrown_from_wire(error: proto::ThrownError) -> ThrownError {
    let proto::ThrownError { name, message, stack, retryable, overloaded } = error;
    ThrownError { name, message, stack, is_retryable: retryable, is_overloaded: overloaded }
}

fn status_from_wire(status: u32) -> Result<StatusCode, WireError> {
    let short = u16::try_from(status).map_err(|e| bad("status", e))?;
    StatusCode::from_u16(short).map_err(|e| bad("status", e))
}

pub(crate) fn position_to_wire(position: Position) -> proto::CellPosition {
    proto::CellPosition { epoch: position.epoch.get(), txid: position.txid.get() }
}

pub(crate) fn position_from_wire(position: proto::CellPosition) -> Position {
    let proto::CellPosition { epoch, txid } = position;
    Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) }
}

pub(crate) fn refusal_to_wire(error: CallError) -> proto::Refusal {
    use proto::refusal::Kind;
    let kind = match error {
        CallError::NotOwner(hint) => {
            let hint = hint.map(|hint| (hint.node.to_string(), hint.session.to_string()));
            let (node, session) = hint.unwrap_or_default();
            Kind::NotOwner(proto::NotOwner { node, session })
        }
        CallError::Draining => Kind::Draining(proto::Draining {}),
        CallError::Overloaded { reason, retry_after_ms } => {
            Kind::Overloaded(proto::Overloaded { reason, retry_after_ms })
        }
        CallError::Unavailable { reason } => Kind::Unavailable(proto::Unavailable { reason }),
        CallError::Rejected { status, reason } => {
            Kind::Rejected(proto::Rejected { status: u32::from(status.as_u16()), reason })
        }
        CallError::OutcomeUnknown { reason } => Kind::OutcomeUnknown(proto::OutcomeUnknown { reason }),
    };
    proto::Refusal { kind: Some(kind) }
}

pub(crate) fn refusal_from_wire(refusal: proto::Refusal) -> CallError {
    use proto::refusal::Kind;
    match refusal.kind {
        Some(Kind::NotOwner(proto::NotOwner { node, session })) => {
            let hint = NodeName::parse(&node).ok().zip(SessionId::parse(&session).ok());
            CallError::NotOwner(hint.map(|(node, session)| OwnerHint { node, session }))
        }
        Some(Kind::Draining(proto::Draining {})) => CallError::Draining,
        Some(Kind::Overloaded(proto::Overloaded { reason, retry_after_ms })) => {
            CallError::Overloaded { reason, retry_after_ms }
        }
        Some(Kind::Unavailable(proto::Unavailable { reason })) => CallError::Unavailable { reason },
        Some(Kind::Rejected(proto::Rejected { status, reason })) => CallError::Rejected {
            status: status_from_wire(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            reason,
        },
        Some(Kind::OutcomeUnknown(proto::OutcomeUnknown { reason })) => CallError::OutcomeUnknown { reason },
        // A kind that this version does not know: nothing is promised, so nothing is assumed.
        None => CallError::OutcomeUnknown { reason: "the node answered with an unknown refusal".into() },
    }
}

pub(crate) fn wake_to_wire(call: &WakeCall) -> proto::WakeRequest {
    let WakeCall { cell, minute, id: AlarmId { epoch, seq }, deadline: _ } = call;
    proto::WakeRequest {
        cell: cell.as_str().to_owned(),
        epoch: epoch.get(),
        seq: seq.get(),
        minute: minute.get(),
    }
}

pub(crate) fn wake_from_wire(
    request: proto::WakeRequest,
    deadline: tokio::time::Instant,
) -> Result<WakeCall, WireError> {
    let proto::WakeRequest { cell, epoch, seq, minute } = request;
    let cell = CellName::parse(&cell).map_err(|e| bad("cell", e))?;
    Ok(WakeCall { cell, minute: WakeMinute::new(minute), id: alarm_id(epoch, seq), deadline })
}

pub(crate) fn wake_answer_to_wire(answer: Result<WakeReply, CallError>) -> proto::WakeReply {
    match answer {
        Ok(WakeReply { epoch, armed }) => {
            let armed = armed.map(|ArmedAlarm { id: AlarmId { epoch, seq }, deadline_ms }| {
                proto::ArmedAlarm { epoch: epoch.get(), seq: seq.get(), deadline_ms: deadline_ms.get() }
            });
            proto::WakeReply { refusal: None, epoch: epoch.get(), armed }
        }
        Err(error) => proto::WakeReply { refusal: Some(refusal_to_wire(error)), epoch: 0, armed: None },
    }
}

pub(crate) fn wake_answer_from_wire(reply: proto::WakeReply) -> Result<WakeReply, CallError> {
    let proto::WakeReply { refusal, epoch, armed } = reply;
    if let Some(refusal) = refusal {
        return Err(refusal_from_wire(refusal));
    }
    let armed = armed.map(|proto::ArmedAlarm { epoch, seq, deadline_ms }| ArmedAlarm {
        id: alarm_id(epoch, seq),
        deadline_ms: AlarmTime::new(deadline_ms),
    });
    Ok(WakeReply { epoch: Epoch::new(epoch), armed })
}

fn alarm_id(epoch: u64, seq: u64) -> AlarmId {
    AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_survives_the_wire() {
        let hint = OwnerHint { node: NodeName::parse("n1").unwrap(), session: SessionId::from_bits(7) };
        let all = [
            CallError::NotOwner(None),
            CallError::NotOwner(Some(hint)),
            CallError::Draining,
            CallError::Overloaded { reason: "a".into(), retry_after_ms: 5 },
            CallError::Unavailable { reason: "b".into() },
            CallError::Rejected { status: StatusCode::PAYLOAD_TOO_LARGE, reason: "c".into() },
            CallError::OutcomeUnknown { reason: "d".into() },
        ];
        for error in all {
            assert_eq!(refusal_from_wire(refusal_to_wire(error.clone())), error);
        }
        assert!(matches!(refusal_from_wire(proto::Refusal { kind: None }), CallError::OutcomeUnknown { .. }));
    }

    #[test]
    fn a_hint_and_its_answers_survive_the_wire() {
        let (cell, deadline) = (CellName::parse("Room:ü").unwrap(), tokio::time::Instant::now());
        let call = WakeCall { cell, minute: WakeMinute::new(28_000_000), id: alarm_id(3, 4), deadline };
        assert_eq!(wake_from_wire(wake_to_wire(&call), deadline), Ok(call));
        let armed = ArmedAlarm { id: alarm_id(1, 2), deadline_ms: AlarmTime::new(-5) };
        let epoch = Epoch::new(9);
        for answer in [
            Ok(WakeReply { epoch, armed: Some(armed) }),
            Ok(WakeReply { epoch, armed: None }),
            Err(CallError::Draining),
        ] {
            assert_eq!(wake_answer_from_wire(wake_answer_to_wire(answer.clone())), answer);
        }
        let bad = proto::WakeRequest { cell: "x".into(), epoch: 0, seq: 0, minute: 0 };
        assert_eq!(wake_from_wire(bad, deadline).unwrap_err().field, "cell");
    }

    #[test]
    fn a_thrown_error_survives_the_wire() {
        let thrown = ThrownError {
            name: "TypeError".into(),
            message: "no".into(),
            stack: "at x".into(),
            is_retryable: true,
            is_overloaded: false,
        };
        assert_eq!(thrown_from_wire(thrown_to_wire(thrown.clone())), thrown);
    }

    #[test]
    fn a_head_survives_the_wire_byte_for_byte() {
        let cell = CellName::parse("db:a/ü").unwrap();
        let mut request = http::Request::post("/query?a=%2F&b=..//x").body(()).unwrap();
        request.headers_mut().append("x-a", HeaderValue::from_bytes(b"\xff\x80").unwrap());
        request.headers_mut().append("x-a", HeaderValue::from_static("2"));
        let (parts, ()) = request.into_parts();
        let object = ObjectCall {
            name: Some("ü".into()),
            method: Some(String::new()),
            is_socket: true,
            takes_references: true,
            session: None,
            order: Some(CallOrder { stub: 7, place: 5, floor: 3 }),
        };
        let wire = head_to_wire(&cell, Access::ReadOnly, &object, &parts);
        let (cell_back, access, object_back, request) = head_from_wire(Some(wire)).unwrap();
        assert_eq!((cell_back, access, object_back), (cell.clone(), Access::ReadOnly, object));
        let session = ObjectCall {
            is_socket: true,
            session: Some(Bytes::from_static(b"first")),
            ..ObjectCall::default()
        };
        let wire = head_to_wire(&cell, Access::ReadOnly, &session, &parts);
        // A release that knows no sessions must not take it for a socket.
        assert!(!wire.socket);
        assert_eq!(head_from_wire(Some(wire)).unwrap().2, session);
        assert_eq!(request.uri(), "/query?a=%2F&b=..//x");
        assert_eq!(request.method(), Method::POST);
        assert_eq!(request.headers(), &parts.headers);
    }

    #[test]
    fn a_head_that_makes_no_sense_is_refused_by_field() {
        let good = proto::CallHead {
            cell: "db:a".into(),
            access: 2,
            method: "GET".into(),
            path: "/".into(),
            headers: vec![],
            object_name: None,
            rpc_method: None,
            socket: false,
            order: None,
            references: false,
            session: None,
        };
        assert!(head_from_wire(Some(good.clone())).is_ok());
        let field = |head| head_from_wire(head).unwrap_err().field;
        assert_eq!(field(None), "head");
        assert_eq!(field(Some(proto::CallHead { cell: "db".into(), ..good.clone() })), "cell");
        assert_eq!(field(Some(proto::CallHead { access: 0, ..good.clone() })), "access");
        assert_eq!(field(Some(proto::CallHead { method: "G T".into(), ..good.clone() })), "method");
        assert_eq!(field(Some(proto::CallHead { path: "a b".into(), ..good })), "path");
    }
}
