//! `URL` and `URLSearchParams` over the crate `url`, which implements the URL Standard. An object of JavaScript holds
//! the serialized URL and where its components begin; a setter parses it again.

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};
use url::{Position, Url, form_urlencoded, quirks};

use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part =
    Part { name: "url", source: include_str!("url.js"), natives, globals: &["URL", "URLSearchParams"] };

pub(super) fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("parse", Func::from(parse))?;
    native.set("set", Func::from(set))?;
    native.set("origin", Func::from(origin))?;
    native.set("parseQuery", Func::from(parse_query))?;
    native.set("serializeQuery", Func::from(serialize_query))?;
    Ok(native)
}

/// A serialized URL (ASCII) and the offsets of its parts: scheme end, username end, host start, host end, port (-1:
/// none), path start, query start (-1: none), fragment start (-1: none).
type Parts = (String, Vec<i32>);

fn parts(url: &Url) -> Parts {
    let offset = |position: Position| i32::try_from(url[..position].len()).expect("URL_LEN_MAX fits");
    let maybe = |is_there: bool, position: Position| if is_there { offset(position) } else { -1 };
    let offsets = vec![
        offset(Position::AfterScheme),
        offset(Position::AfterUsername),
        offset(Position::BeforeHost),
        offset(Position::AfterHost),
        url.port().map_or(-1, i32::from),
        offset(Position::BeforePath),
        maybe(url.query().is_some(), Position::AfterPath),
        maybe(url.fragment().is_some(), Position::AfterQuery),
    ];
    (url.as_str().to_owned(), offsets)
}

/// A URL longer than this is refused: offsets are 32 bits, and no server takes one.
///
/// Percent-encoding makes at most nine bytes of one.
const URL_LEN_MAX: usize = 8 * 1024 * 1024;

/// Parses `input`, relative to `base` if it is given. Nothing where it is not a URL.
fn parse(input: String, base: Option<String>) -> Option<rquickjs::convert::List<Parts>> {
    if input.len() > URL_LEN_MAX {
        return None;
    }
    let base = match base {
        Some(base) => Some(Url::parse(&base).ok()?),
        None => None,
    };
    let url = Url::options().base_url(base.as_ref()).parse(&input).ok()?;
    Some(rquickjs::convert::List(parts(&url)))
}

/// `href` after its attribute `name` was set to `value`; unchanged where the standard ignores the value.
fn set(href: String, name: String, value: String) -> Option<rquickjs::convert::List<Parts>> {
    let mut url = Url::parse(&href).ok()?;
    if href.len() + value.len() > URL_LEN_MAX {
        return None;
    }
    // What a setter refuses leaves the URL as it is: that is the standard's answer as well.
    let _ = match name.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    Some(rquickjs::convert::List(parts(&url)))
}

fn origin(href: String) -> Option<String> {
    let url = Url::parse(&href).ok()?;
    if url.scheme() != "blob" {
        return Some(quirks::origin(&url));
    }
    // That of the URL in its path, where that is one of these (URL Standard, 4.7).
    let inner =
        Url::parse(url.path()).ok().filter(|inner| ["http", "https", "file"].contains(&inner.scheme()));
    Some(inner.map_or_else(|| "null".to_owned(), |inner| quirks::origin(&inner)))
}

/// Names and values in turn.
fn parse_query(query: String) -> Vec<String> {
    form_urlencoded::parse(query.as_bytes())
        .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
        .collect()
}

/// The reverse of [`parse_query`].
fn serialize_query(flat: Vec<String>) -> String {
    let mut serializer = form_urlencoded::Serializer::new(String::new());
    for pair in flat.chunks_exact(2) {
        serializer.append_pair(&pair[0], &pair[1]);
    }
    serializer.finish()
}
