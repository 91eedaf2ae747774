//! What a person does who looks after the fleet: declares the loss of a dead session's frames, where a recovery is blocked.
//! Nobody else does (INV-REC-3).

use holdfast_core::log_record::LogRecord;
use holdfast_core::recovery::Standing;
use holdfast_core::store::Guard;
use holdfast_types::SessionId;

use crate::bucket::{Body, Key, Operation};
use crate::world::World;

impl World {
    /// Declares one, if there is any.
    pub(crate) fn declare_a_loss(&mut self) {
        let blocked = self.blocked_logs(|_| true);
        if !blocked.is_empty() {
            let which = self.rng.index(blocked.len());
            self.declare_loss(blocked[which]);
        }
    }

    /// Declares all those that nothing else can end.
    pub(crate) fn declare_losses_for_good(&mut self) {
        for session in self.blocked_logs(|record| self.is_blocked_for_good(record)) {
            self.declare_loss(session);
        }
    }

    /// Dead sessions whose record says that their recovery is blocked, as `holdfast log list` shows them.
    fn blocked_logs(&self, is_meant: impl Fn(&LogRecord) -> bool) -> Vec<SessionId> {
        let logs = self.unsealed_logs().filter(|record| Standing::of(Some(record)) == Standing::Blocked);
        let undeclared = logs.filter(|record| self.bucket.peek(&Key::Loss(record.session)).is_none());
        undeclared.filter(|record| is_meant(record)).map(|record| record.session).collect()
    }

    /// Not by a call: no program's request.
    fn declare_loss(&mut self, session: SessionId) {
        self.trace.line(self.now, format_args!("a person declares the loss of {session}"));
        let create = Operation::PutIf(Key::Loss(session), Body::Loss, Guard::Absent);
        self.bucket.apply(&create, self.now, 0);
    }
}
