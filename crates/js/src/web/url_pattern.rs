//! `URLPattern` over the crate `urlpattern`, which turns a pattern into one regular expression for each component of a
//! URL. The expressions run in the engine, as the standard asks, under the budget of the event.

use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object, Result};
use serde::Serialize;
use urlpattern::UrlPatternOptions;
use urlpattern::quirks::{self, EcmaRegexp, StringOrInit};

use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part =
    Part { name: "url-pattern", source: include_str!("url_pattern.js"), natives, globals: &["URLPattern"] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("parse", Func::from(parse))?;
    native.set("input", Func::from(input))?;
    Ok(native)
}

fn type_error(ctx: &Ctx<'_>, error: impl std::fmt::Display) -> rquickjs::Error {
    Exception::throw_type(ctx, &format!("Failed to parse a URLPattern: {error}"))
}

fn to_json(ctx: &Ctx<'_>, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| type_error(ctx, error))
}

/// The components of a pattern as JSON, from a string or an init dictionary as JSON.
fn parse(ctx: Ctx<'_>, pattern: String, base: Option<String>, ignores_case: bool) -> Result<String> {
    let pattern: StringOrInit<'_> =
        serde_json::from_str(&pattern).map_err(|error| type_error(&ctx, error))?;
    let options = UrlPatternOptions { ignore_case: ignores_case, ..UrlPatternOptions::default() };
    let init = quirks::process_construct_pattern_input(pattern, base.as_deref())
        .map_err(|error| type_error(&ctx, error))?;
    let pattern =
        quirks::parse_pattern::<EcmaRegexp>(init, options).map_err(|error| type_error(&ctx, error))?;
    to_json(&ctx, &pattern)
}

/// The components of what is to be matched as JSON; nothing where it is no URL.
fn input(ctx: Ctx<'_>, input: String, base: Option<String>) -> Result<Option<String>> {
    let input: StringOrInit<'_> = serde_json::from_str(&input).map_err(|error| type_error(&ctx, error))?;
    let processed =
        quirks::process_match_input(input, base.as_deref()).map_err(|error| type_error(&ctx, error))?;
    let Some(components) = processed.and_then(|(input, _)| quirks::parse_match_input(input)) else {
        return Ok(None);
    };
    to_json(&ctx, &components).map(Some)
}
