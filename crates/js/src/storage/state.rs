//! The transaction of an object: what is open, who ends it, and what must break the isolate. The engine is borrowed only
//! within a call of this module, never while JavaScript runs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use holdfast_sql::{Engine, SqlFailure};
use rquickjs::{Ctx, Exception, Result};

use super::text;
use crate::effect::BrokenCause;
use crate::foreign::Shared;
use crate::isolate::host::{Host, TurnStorage, host};

/// Bytes of rows that all cursors of an object hold together.
pub(super) const RESULT_BYTES_MAX: usize = 32 << 20;

/// What a turn is told that lost more than a statement.
const LOST: &str = "Durable Object was reset because the database rolled back the writes of the turn: a statement that \
    wrote was interrupted, the database or the disk is full, or a conflict was resolved by ROLLBACK";

/// The storage of one object.
pub(super) struct Storage {
    engine: Rc<RefCell<Engine>>,
    /// Savepoints within the transaction.
    depth: Cell<u32>,
    /// `transaction()` holds the transaction: the end of a turn does not commit it.
    is_held: Cell<bool>,
    /// `deleteAll()` left pages to free.
    must_shrink: Cell<bool>,
    /// Bytes of rows in cursors.
    pub(super) buffered: Rc<Cell<usize>>,
}

/// Gives an isolate its storage.
pub(super) fn install(ctx: &Ctx<'_>, host: &Host, engine: &Rc<RefCell<Engine>>) -> Result<()> {
    let storage = Rc::new(Storage {
        engine: Rc::clone(engine),
        depth: Cell::default(),
        is_held: Cell::default(),
        must_shrink: Cell::default(),
        buffered: Rc::default(),
    });
    ctx.store_userdata(Shared(Rc::clone(&storage)))
        .map_err(|_| Exception::throw_internal(ctx, "user data is borrowed"))?;
    host.set_storage(storage);
    Ok(())
}

/// The storage of a context.
pub(super) fn storage(ctx: &Ctx<'_>) -> Rc<Storage> {
    let shared =
        ctx.userdata::<Shared<Storage>>().expect("only objects have the part, which installs it first");
    Rc::clone(&shared.0)
}

impl Storage {
    /// Works on the engine; a failure is thrown.
    pub(super) fn run<T>(
        &self,
        ctx: &Ctx<'_>,
        work: impl FnOnce(&mut Engine) -> std::result::Result<T, SqlFailure>,
    ) -> Result<T> {
        let done = work(&mut self.engine.borrow_mut());
        done.map_err(|failure| text::throw(ctx, &failure))
    }

    /// Opens a savepoint.
    pub(super) fn savepoint(&self, ctx: &Ctx<'_>) -> Result<()> {
        let depth = self.depth.get() + 1;
        self.run(ctx, |engine| engine.object_savepoint(depth))?;
        self.depth.set(depth);
        Ok(())
    }

    /// Ends the innermost savepoint, with its changes or without them.
    pub(super) fn end_savepoint(&self, ctx: &Ctx<'_>, keep: bool) -> Result<()> {
        let depth = self.depth.get();
        let Some(outer) = depth.checked_sub(1) else {
            return Err(Exception::throw_internal(ctx, "there is no savepoint to end"));
        };
        self.depth.set(outer);
        if self.engine.borrow().is_object_transaction_lost() {
            return if keep { Err(text::throw_text(ctx, LOST)) } else { Ok(()) };
        }
        self.run(ctx, |engine| engine.object_end_savepoint(depth, keep))
    }

    /// Begins the transaction of an outermost `transaction()`, or a savepoint in it. What the turn wrote before is
    /// committed first: it is not part of it.
    pub(super) fn begin_held(&self, ctx: &Ctx<'_>) -> Result<()> {
        if self.is_held.get() {
            return self.savepoint(ctx);
        }
        if let Err(reason) = self.commit() {
            host(ctx).break_with(BrokenCause::StorageFailed(reason.clone()));
            return Err(text::throw_text(ctx, &reason));
        }
        self.run(ctx, |engine| engine.object_begin())?;
        self.is_held.set(true);
        Ok(())
    }

    /// Ends what [`Storage::begin_held`] began last.
    pub(super) fn end_held(&self, ctx: &Ctx<'_>, keep: bool) -> Result<()> {
        if self.depth.get() > 0 {
            return self.end_savepoint(ctx, keep);
        }
        self.is_held.set(false);
        if self.engine.borrow().is_object_transaction_lost() {
            host(ctx).break_with(BrokenCause::StorageFailed(LOST.to_owned()));
            return Err(text::throw_text(ctx, LOST));
        }
        if keep {
            return self.run(ctx, Engine::object_commit);
        }
        self.engine.borrow_mut().object_roll_back();
        Ok(())
    }

    /// Whether what is written now is committed only with a `transaction()`.
    pub(super) fn is_within_transaction(&self) -> bool {
        self.is_held.get()
    }

    /// A `transaction()` has waited for too long while it held up all other events.
    pub(super) fn break_waiting(&self, ctx: &Ctx<'_>) {
        let reason = "A call to transaction() in a Durable Object waited for too long. The call was canceled and the \
            Durable Object was reset.";
        host(ctx).break_with(BrokenCause::StorageFailed(reason.to_owned()));
    }

    /// Removes everything of the handler.
    pub(super) fn delete_all(&self, ctx: &Ctx<'_>) -> Result<()> {
        if self.is_held.get() || self.depth.get() > 0 {
            return Err(text::throw_text(ctx, "Cannot call deleteAll() within a transaction"));
        }
        self.run(ctx, Engine::object_delete_all)?;
        self.must_shrink.set(true);
        Ok(())
    }

    fn commit(&self) -> std::result::Result<(), String> {
        let mut engine = self.engine.borrow_mut();
        if engine.is_object_transaction_lost() {
            engine.object_roll_back();
            return Err(LOST.to_owned());
        }
        engine.object_commit().map_err(|failure| text::of_commit(&failure))?;
        if self.must_shrink.take()
            && let Err(failure) = engine.object_shrink()
        {
            // The space comes back with the next `deleteAll`; what was deleted is gone.
            tracing::warn!(%failure, "cannot free the space of a Durable Object that deleted everything");
        }
        Ok(())
    }
}

impl TurnStorage for Storage {
    fn commit_turn(&self) -> std::result::Result<(), String> {
        if self.is_held.get() {
            let is_lost = self.engine.borrow().is_object_transaction_lost();
            return if is_lost { Err(LOST.to_owned()) } else { Ok(()) };
        }
        self.depth.set(0);
        self.commit()
    }

    fn abandon_turn(&self) {
        self.is_held.set(false);
        self.depth.set(0);
        self.must_shrink.set(false);
        self.engine.borrow_mut().object_roll_back();
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // An isolate that goes while `transaction()` waits leaves nothing of it.
        if self.is_held.get()
            && let Ok(mut engine) = self.engine.try_borrow_mut()
        {
            engine.object_roll_back();
        }
    }
}
