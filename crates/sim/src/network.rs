//! Links between nodes and followers: a stream in each direction, in order. A link that breaks loses what was not read yet
//! from some point on; nobody learns which.

use std::collections::VecDeque;
use std::rc::Rc;

use holdfast_core::follower::Refusal;
use holdfast_types::{LogEpoch, LogOffset, NodeName, SessionId};

use crate::event::Event;
use crate::frame::Frame;
use crate::violation::Violation;
use crate::world::World;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToFollower,
    ToNode,
}

/// A message on a link.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// The session asks for an adoption.
    Adopt { node: NodeName, session: SessionId, log_epoch: LogEpoch, start: LogOffset },
    /// Frames.
    Frames { log_epoch: LogEpoch, frames: Vec<Rc<Frame>> },
    /// Everything below is in the bucket.
    Release { start: LogOffset },
    /// The epoch is adopted.
    Adopted { log_epoch: LogEpoch, next: LogOffset },
    /// Everything up to this is fsynced.
    Durable { offset: LogOffset },
    /// The stream is over.
    Refused(Refusal),
    /// The link is gone.
    Broken,
}

/// A link.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) node: usize,
    pub(crate) session: SessionId,
    pub(crate) follower: usize,
    /// The follower's process.
    pub(crate) life: u64,
    to_follower: VecDeque<Message>,
    to_node: VecDeque<Message>,
    is_open: bool,
}

impl World {
    /// Links a node's process with whatever process has the follower's name.
    pub(crate) fn connect(&mut self, node: usize, follower: usize) -> u64 {
        let id = self.name();
        let session = self.nodes[node].session().expect("a process connects");
        let life = self.followers[follower].life();
        let connection = Connection {
            node,
            session,
            follower,
            life: life.unwrap_or_default(),
            to_follower: VecDeque::new(),
            to_node: VecDeque::new(),
            is_open: true,
        };
        self.connections.insert(id, connection);
        if life.is_none() {
            self.break_connection(id);
        }
        id
    }

    pub(crate) fn say(&mut self, id: u64, way: Way, message: Message) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.is_open) else {
            return;
        };
        connection.queue(way).push_back(message);
        let is_slow = self.rng.chance(self.plan.link_slow);
        let delay = if is_slow { self.rng.within(20, 1_500) } else { self.rng.within(1, 4) };
        self.after(delay, Event::Deliver(id, way));
    }

    pub(crate) fn break_connection(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.is_open) else {
            return;
        };
        self.trace.line(self.now, format_args!("link {id} breaks"));
        connection.is_open = false;
        for way in [Way::ToFollower, Way::ToNode] {
            let queue = self.connections.get_mut(&id).expect("just seen").queue(way);
            let kept = self.rng.index(queue.len() + 1);
            queue.truncate(kept);
            queue.push_back(Message::Broken);
            let delay = self.rng.within(1, 60);
            self.after(delay, Event::Deliver(id, way));
        }
    }

    /// Breaks every link for which this holds.
    pub(crate) fn break_connections(&mut self, is_hit: impl Fn(&Connection) -> bool) {
        let hit = self.connections.iter().filter(|(_, connection)| is_hit(connection));
        let hit: Vec<u64> = hit.map(|(id, _)| *id).collect();
        for id in hit {
            self.break_connection(id);
        }
    }

    pub(crate) fn on_deliver(&mut self, id: u64, way: Way) -> Result<(), Violation> {
        let Some(connection) = self.connections.get(&id) else { return Ok(()) };
        let (node, session) = (connection.node, connection.session);
        let (follower, life) = (connection.follower, connection.life);
        let deferred = match way {
            Way::ToNode if self.nodes[node].is_paused => Some(&mut self.nodes[node].deferred),
            Way::ToFollower if self.followers[follower].is_paused => {
                Some(&mut self.followers[follower].deferred)
            }
            _ => None,
        };
        if let Some(deferred) = deferred {
            deferred.push(Event::Deliver(id, way));
            return Ok(());
        }
        let connection = self.connections.get_mut(&id).expect("just seen");
        let Some(message) = connection.queue(way).pop_front() else { return Ok(()) };
        self.trace.line(self.now, format_args!("link {id} {way:?}: {message:?}"));
        match way {
            Way::ToNode if self.nodes[node].session() == Some(session) => {
                self.on_link_message(node, id, message)
            }
            Way::ToFollower if self.followers[follower].life() == Some(life) => {
                self.on_stream_message(follower, id, message)
            }
            _ => Ok(()),
        }
    }
}

impl Connection {
    fn queue(&mut self, way: Way) -> &mut VecDeque<Message> {
        match way {
            Way::ToFollower => &mut self.to_follower,
            Way::ToNode => &mut self.to_node,
        }
    }
}
