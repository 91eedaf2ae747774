//! The order of calls. A stub numbers its calls, and they begin at its object in this order although they travel beside one
//! another: a call waits for those before it that are on their way, within a bound of time, and never for the answer of one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_rpc::CallOrder;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Longest wait for a call that was made before: it may never come, because its caller gave it up.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Stubs that are remembered: most make one call, and are forgotten unasked.
const STUBS_MAX: usize = 16_384;

/// The stubs that call objects of this node.
#[derive(Debug, Default)]
pub(crate) struct CallOrders(Mutex<Stubs>);

#[derive(Debug, Default)]
struct Stubs {
    by_number: HashMap<u64, Stub>,
    /// Oldest first; each once.
    ages: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Stub {
    /// All calls below have begun, or are not waited for.
    begun: u64,
    /// Calls above that have.
    early: BTreeSet<u64>,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
    /// Calls that have arrived and are not answered.
    arrived: usize,
}

impl Stub {
    fn begin(&mut self, place: u64) {
        if place >= self.begun {
            self.early.insert(place);
        }
        self.advance(self.begun);
    }

    /// Nothing below `floor` is waited for.
    fn advance(&mut self, floor: u64) {
        if floor > self.begun {
            self.begun = floor;
            self.early = self.early.split_off(&floor);
        }
        while self.early.remove(&self.begun) {
            self.begun += 1;
        }
        let begun = self.begun;
        for (_, ready) in self.waiting.extract_if(.., |(place, _)| *place <= begun) {
            // Who waited may have gone.
            let _ = ready.send(());
        }
    }
}

impl CallOrders {
    fn lock(&self) -> MutexGuard<'_, Stubs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has arrived. It holds those behind it up until it begins, or what this gives is dropped. Until then its stub is
    /// remembered.
    pub(crate) fn arrive(self: &Arc<Self>, CallOrder { stub: number, place, floor }: CallOrder) -> Place {
        let mut stubs = self.lock();
        stubs.make_room(number);
        let stub = stubs.by_number.entry(number).or_default();
        stub.arrived += 1;
        stub.advance(floor.min(place));
        let ready = (stub.begun < place).then(|| {
            let (sender, ready) = oneshot::channel();
            stub.waiting.push((place, sender));
            ready
        });
        Place { orders: Arc::clone(self), stub: number, place, ready, has_begun: false }
    }
}

impl Stubs {
    /// Forgets the oldest stub of which nothing is on its way, where there are too many.
    fn make_room(&mut self, number: u64) {
        if self.by_number.contains_key(&number) {
            return;
        }
        self.ages.push_back(number);
        for _ in 0..self.ages.len() {
            if self.ages.len() <= STUBS_MAX {
                return;
            }
            let Some(oldest) = self.ages.pop_front() else { return };
            if self.by_number.get(&oldest).is_some_and(|stub| stub.arrived > 0) {
                self.ages.push_back(oldest);
            } else {
                self.by_number.remove(&oldest);
            }
        }
    }
}

/// The place of a call that has arrived. Dropped once the call is answered, or has failed.
#[derive(Debug)]
pub(crate) struct Place {
    orders: Arc<CallOrders>,
    stub: u64,
    place: u64,
    ready: Option<oneshot::Receiver<()>>,
    has_begun: bool,
}

impl Place {
    /// The call is in its object's queue: those behind it may follow.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true)
            && let Some(stub) = self.orders.lock().by_number.get_mut(&self.stub)
        {
            stub.begin(self.place);
        }
    }

    /// Waits until those before it have begun; not for ever, and not beyond `patience`.
    pub(crate) async fn come(&mut self, patience: Instant) {
        let Some(ready) = self.ready.take() else { return };
        let until = patience.min(Instant::now() + WAIT_MAX);
        if tokio::time::timeout_at(until, ready).await.is_err() {
            tracing::debug!(place = self.place, "a call does not wait any longer for those before it");
            // Nor do those behind it: what is missing is waited for once.
            if let Some(stub) = self.orders.lock().by_number.get_mut(&self.stub) {
                stub.advance(self.place);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.begin();
        if let Some(stub) = self.orders.lock().by_number.get_mut(&self.stub) {
            stub.arrived -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn order(stub: u64, place: u64, floor: u64) -> CallOrder {
        CallOrder { stub, place, floor }
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_those_before_it_and_for_none_that_is_answered() {
        let orders = Arc::new(CallOrders::default());
        let mut third = orders.arrive(order(1, 2, 0));
        let mut second = orders.arrive(order(1, 1, 0));
        assert!(third.come(far()).now_or_never().is_none());
        let mut third = orders.arrive(order(1, 2, 0));
        let mut first = orders.arrive(order(1, 0, 0));
        assert!(first.come(far()).now_or_never().is_some());
        let mut wait = std::pin::pin!(third.come(far()));
        assert!(wait.as_mut().now_or_never().is_none());
        drop(first);
        assert!(wait.as_mut().now_or_never().is_none());
        second.come(far()).await;
        drop(second);
        assert!(wait.now_or_never().is_some());
        // Another stub has its own order; a floor says what is over.
        assert!(orders.arrive(order(2, 7, 7)).come(far()).now_or_never().is_some());
        assert!(orders.arrive(order(1, 9, 9)).come(far()).now_or_never().is_some());
        assert!(orders.arrive(order(1, 11, 9)).come(far()).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_waited_for_within_the_bound() {
        let orders = Arc::new(CallOrders::default());
        let began = Instant::now();
        orders.arrive(order(1, 1, 0)).come(far()).await;
        assert_eq!(began.elapsed(), WAIT_MAX);
        orders.arrive(order(1, 3, 0)).come(Instant::now() + Duration::from_millis(5)).await;
        assert!(began.elapsed() < WAIT_MAX + Duration::from_millis(20));
        // One that comes late holds nobody up, and is not held up.
        assert!(orders.arrive(order(1, 0, 0)).come(far()).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_waited_for_once() {
        let orders = Arc::new(CallOrders::default());
        let began = Instant::now();
        let mut second = orders.arrive(order(1, 1, 0));
        second.come(far()).await;
        second.begin();
        let mut third = orders.arrive(order(1, 2, 0));
        assert!(third.come(far()).now_or_never().is_some());
        assert_eq!(began.elapsed(), WAIT_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_has_begun_holds_nobody_up_and_its_stub_is_remembered_until_its_answer() {
        let orders = Arc::new(CallOrders::default());
        let mut first = orders.arrive(order(0, 0, 0));
        let mut second = orders.arrive(order(0, 1, 0));
        assert!(second.come(far()).now_or_never().is_none());
        first.begin();
        for stub in 1..=2 * STUBS_MAX as u64 {
            drop(orders.arrive(order(stub, 0, 0)));
        }
        // One that was forgotten would wait for the first anew.
        assert!(orders.arrive(order(0, 1, 0)).come(far()).now_or_never().is_some());
        drop((first, second));
    }

    #[test]
    fn stubs_are_forgotten_but_not_those_that_wait() {
        let orders = Arc::new(CallOrders::default());
        let waits = orders.arrive(order(0, 1, 0));
        for stub in 1..=2 * STUBS_MAX as u64 {
            drop(orders.arrive(order(stub, 0, 0)));
        }
        let stubs = orders.lock();
        assert_eq!((stubs.by_number.len(), stubs.ages.len()), (STUBS_MAX, STUBS_MAX));
        assert!(stubs.by_number.contains_key(&0));
        drop(stubs);
        drop(waits);
    }
}
