//! What an isolate is for: the Worker, or one Durable Object.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use holdfast_sql::Engine;

use crate::web::sockets::KeptSockets;

/// What an isolate is for.
#[derive(Clone, Debug)]
pub enum IsolateKind {
    /// The stateless Worker; it may serve several events at a time.
    Worker,
    /// A Durable Object.
    Object(Object),
}

/// A Durable Object.
#[derive(Clone)]
pub struct Object {
    /// Its class: an export of the application's entry.
    pub class: String,
    /// Its id: 64 hex digits.
    pub id: String,
    /// The name that its id was made from, where it is known.
    pub name: Option<String>,
    /// Its database. Borrowed only while a turn runs.
    pub storage: Rc<RefCell<Engine>>,
    /// Its hibernatable sockets. Borrowed only while a turn runs.
    pub sockets: Rc<RefCell<KeptSockets>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, id, name, storage: _, sockets: _ } = self;
        f.debug_struct("Object")
            .field("class", class)
            .field("id", id)
            .field("name", name)
            .finish_non_exhaustive()
    }
}
