//! Routes that answered, bounded. Two generations: what is used moves to the young one; when that is full it becomes the
//! old one and the previous old one is dropped. Close to least-recently-used, at the cost of two look-ups.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_core::routing::Route;
use holdfast_rpc::Peer;
use holdfast_types::{CellName, SessionId};

pub(crate) type PeerRoute = Route<Arc<Peer>>;

pub(crate) struct Routes {
    generation_len_max: usize,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<CellName, PeerRoute>,
    old: HashMap<CellName, PeerRoute>,
}

impl Routes {
    /// Remembers at most `len_max` routes, and at least half of that many of the last used.
    pub(crate) fn new(len_max: usize) -> Self {
        Self { generation_len_max: (len_max / 2).max(1), generations: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, cell: &CellName) -> Option<PeerRoute> {
        let mut generations = self.lock();
        if let Some(route) = generations.young.get(cell) {
            return Some(route.clone());
        }
        let route = generations.old.remove(cell)?;
        self.insert(&mut generations, cell, route.clone());
        Some(route)
    }

    /// Remembers a route. One of an older epoch does not replace a newer one: answers may overtake each other.
    pub(crate) fn put(&self, cell: &CellName, route: PeerRoute) {
        let mut generations = self.lock();
        let known = generations.young.get(cell).or_else(|| generations.old.get(cell));
        match known {
            Some(known) if known.epoch > route.epoch => {}
            Some(known) if *known == route => {}
            Some(_) | None => {
                generations.old.remove(cell);
                self.insert(&mut generations, cell, route);
            }
        }
    }

    /// Forgets a route that led to this session.
    pub(crate) fn forget(&self, cell: &CellName, session: SessionId) {
        let mut generations = self.lock();
        let Generations { young, old } = &mut *generations;
        for generation in [young, old] {
            if generation.get(cell).is_some_and(|route| route.session == session) {
                generation.remove(cell);
            }
        }
    }

    fn insert(&self, generations: &mut Generations, cell: &CellName, route: PeerRoute) {
        if generations.young.len() >= self.generation_len_max && !generations.young.contains_key(cell) {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(cell.clone(), route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Epoch, Millis, NodeName};

    fn cell(index: usize) -> CellName {
        CellName::parse(&format!("db:{index}")).unwrap()
    }

    fn route(session: u128, epoch: u64) -> PeerRoute {
        let node = NodeName::parse("n").unwrap();
        let session = SessionId::from_bits(session);
        let address = Arc::new(Peer { node: node.clone(), session, address: "a:1".into() });
        Route { node, session, epoch: Epoch::new(epoch), address, expires_ms: Millis::new(9) }
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let routes = Routes::new(100);
        routes.put(&cell(0), route(1, 1));
        for index in 1..10_000 {
            routes.put(&cell(index), route(1, 1));
            assert!(routes.get(&cell(0)).is_some(), "used all the time, dropped at {index}");
            let generations = routes.lock();
            assert!(generations.young.len() + generations.old.len() <= 100);
        }
        assert!(routes.get(&cell(5)).is_none());
        assert!(routes.get(&cell(9_970)).is_some());
    }

    #[test]
    fn an_older_epoch_does_not_replace_a_newer_one() {
        let routes = Routes::new(10);
        routes.put(&cell(0), route(2, 5));
        routes.put(&cell(0), route(1, 4));
        assert_eq!(routes.get(&cell(0)).unwrap().epoch, Epoch::new(5));
        routes.put(&cell(0), route(3, 6));
        assert_eq!(routes.get(&cell(0)).unwrap().session, SessionId::from_bits(3));
    }

    #[test]
    fn only_the_session_that_failed_is_forgotten() {
        let routes = Routes::new(10);
        routes.put(&cell(0), route(2, 5));
        routes.forget(&cell(0), SessionId::from_bits(1));
        assert!(routes.get(&cell(0)).is_some());
        routes.forget(&cell(0), SessionId::from_bits(2));
        assert!(routes.get(&cell(0)).is_none());
    }
}
