//! What the serializer asks of JavaScript: which kind an object is, and what only built-in functions can make or show.
//! The functions are taken from the engine before any handler runs, or when the part is loaded.

use rquickjs::function::IntoArgs;
use rquickjs::{Ctx, FromJs, Function, Object, Result, Value};

use crate::prelude;

/// The functions of `clone.js`.
pub(super) struct Kit<'js> {
    pub(super) ctx: Ctx<'js>,
    functions: Object<'js>,
    object_prototype: Value<'js>,
}

impl<'js> Kit<'js> {
    pub(super) fn of(ctx: &Ctx<'js>) -> Result<Self> {
        let functions: Object<'js> = prelude::internals(ctx).get("clone")?;
        let object_prototype = functions.get("objectPrototype")?;
        Ok(Self { ctx: ctx.clone(), functions, object_prototype })
    }

    pub(super) fn call<T: FromJs<'js>>(&self, name: &str, args: impl IntoArgs<'js>) -> Result<T> {
        self.functions.get::<_, Function<'js>>(name)?.call(args)
    }

    /// Whether `object` is made by a literal or `JSON.parse`: most are, and they need no question.
    pub(super) fn is_literal(&self, object: &Object<'js>) -> bool {
        object.get_prototype().is_none_or(|prototype| *prototype.as_value() == self.object_prototype)
    }
}

macro_rules! kinds {
    ($($name:ident = $number:literal,)*) => { $(pub(super) const $name: i32 = $number;)* };
}

// What `inspect` answers, with what follows in its array.
kinds! {
    DATE = 1,          // milliseconds
    REG_EXP = 2,       // source, flags
    MAP = 3,           // keys and values in turn
    SET = 4,           // values
    BOXED = 5,         // primitive
    ARRAY_BUFFER = 6,  // bytes, largest length or -1
    VIEW = 7,          // subtag, buffer, offset, length, flags
    ERROR = 8,         // prototype tag or 0, whether it has a message, message, whether it has a cause, cause, stack
    DOM_EXCEPTION = 9, // name, message, stack
}
