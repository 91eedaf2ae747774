//! Classes of the application that is deployed: one isolate per resident object, over the cell's own database.

mod alarm;
mod bodies;
mod convert;
mod effects;
mod object;
mod sockets;

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_deploy::Running;
use holdfast_js::{Application, Limits, is_id_of};
use holdfast_outbound::Outbound;
use holdfast_rpc::{Access, Body, CallError, ObjectCall};
use holdfast_types::CellName;
use http::StatusCode;

use self::object::JsObject;
pub(crate) use self::sockets::SocketRoom;
use super::sql::Sql;
use super::{BuiltIn, CellRuntime, Classes, RuntimeContext, SharedEngine};

/// What all objects of a node share.
#[derive(Clone, Debug)]
pub(crate) struct Applications {
    /// The application that runs, as it changes.
    pub(crate) running: Running,
    /// Reaches servers and other objects.
    pub(crate) outbound: Outbound,
    /// Of each isolate.
    pub(crate) limits: Limits,
    /// What all sockets of the node share.
    pub(crate) sockets: SocketRoom,
    /// Silence after which an isolate leaves memory, in milliseconds.
    pub(crate) idle_ms: u64,
}

impl Applications {
    fn current(&self) -> Option<Arc<Application>> {
        self.running.borrow().clone()
    }

    fn defines(&self, cell: &CellName) -> Result<(), CallError> {
        let class = cell.class();
        let refuse = |status, reason| Err(CallError::Rejected { status, reason });
        let Some(application) = self.current() else {
            let reason = format!("unknown cell class `{class}`: no application is deployed");
            return refuse(StatusCode::NOT_FOUND, reason);
        };
        if !application.has_class(class) {
            let reason = format!(
                "unknown cell class `{class}`: version {} of the application binds no such class",
                application.version()
            );
            return refuse(StatusCode::NOT_FOUND, reason);
        }
        if !is_id_of(class, cell.name()) {
            let reason = format!("`{}` is not an id of a Durable Object of class `{class}`", cell.name());
            return refuse(StatusCode::BAD_REQUEST, reason);
        }
        Ok(())
    }
}

impl Classes for Applications {
    fn check(&self, cell: &CellName) -> Result<(), CallError> {
        if BuiltIn::has(cell) { Ok(()) } else { self.defines(cell) }
    }

    fn takes_streams(&self, cell: &CellName, object: &ObjectCall) -> bool {
        // The arguments of a method are one value.
        !BuiltIn::has(cell) && object.method.is_none()
    }

    fn without_cell(&self, cell: &CellName, request: &http::Request<Body>) -> Option<http::Response<Bytes>> {
        if BuiltIn::has(cell) { BuiltIn.without_cell(cell, request) } else { None }
    }

    fn may_create(&self, cell: &CellName, access: Access, method: &http::Method) -> bool {
        // An object is there from its first call on, whatever that asks.
        !BuiltIn::has(cell) || BuiltIn.may_create(cell, access, method)
    }

    fn runtime(
        &self,
        context: RuntimeContext,
        engine: &SharedEngine,
    ) -> Result<Box<dyn CellRuntime>, String> {
        if BuiltIn::has(&context.cell) {
            let outbound = Some(self.outbound.clone());
            return Ok(Box::new(Sql::new(context, Rc::clone(engine), outbound)));
        }
        Ok(Box::new(JsObject::new(self.clone(), context.cell, Rc::clone(engine))))
    }
}
