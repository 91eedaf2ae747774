//! Clones keep what the HTML Standard says; bytes are V8's; hostile bytes are errors.

mod bytes;
mod hostile;
mod node;
mod values;

use rquickjs::{CatchResultExt, Value};

use crate::testing::within;

/// The bytes of the value of an expression.
fn serialized(expression: &str) -> Vec<u8> {
    within(|ctx| {
        let value: Value<'_> = ctx.eval(format!("({expression})")).catch(ctx).unwrap();
        super::serialize(ctx, &value).catch(ctx).unwrap()
    })
}

/// What `check`, a function of JavaScript, answers for the value of `bytes`.
fn checked(bytes: &[u8], check: &str) -> bool {
    within(|ctx| {
        let value = super::deserialize(ctx, bytes).catch(ctx).unwrap();
        let check: rquickjs::Function<'_> = ctx.eval(format!("({check})")).catch(ctx).unwrap();
        check.call((value,)).catch(ctx).unwrap()
    })
}

/// The error for `bytes`.
fn refused(bytes: &[u8]) -> String {
    within(|ctx| match super::deserialize(ctx, bytes) {
        Ok(value) => panic!("{bytes:?} are a {}", value.type_name()),
        Err(_) => {
            let error = ctx.catch().into_object().unwrap();
            format!(
                "{}: {}",
                error.get::<_, String>("name").unwrap(),
                error.get::<_, String>("message").unwrap()
            )
        }
    })
}
