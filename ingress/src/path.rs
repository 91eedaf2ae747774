//! What a path asks for. `/-/` is reserved; everything else belongs to the deployed application.

use holdfast_types::{CellName, CellNameError};
use http::Method;
use http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;

/// The class behind `/-/db/`.
const DB_CLASS: &str = "db";

/// What a path asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/-/health`.
    Health,
    /// `/-/ready`.
    Ready,
    /// A database, and the path and query that it sees.
    Cell(CellName, PathAndQuery),
    /// An object of a class of the application, by its name or its id, and the path and query that it sees.
    Object(String, String, PathAndQuery),
    /// Outside of `/-/`.
    Application,
}

/// Why a path asks for nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// Outside of `/-/`, and nothing is deployed.
    #[error("no application is deployed here; the SQL API is at `/-/db/<name>/`")]
    NoApplication,
    /// Below `/-/`, and not one of ours.
    #[error(
        "there is nothing at this path; a database is at `/-/db/<name>`, and below it `/query`, `/alarm`, `/v2/pipeline`, \
         `/v3/pipeline`, `/v3/cursor`, `/v1/execute` and `/v1/batch`"
    )]
    NotFound,
    /// `/-/cells/<Class>/…` of a class that nothing defines.
    #[error("unknown cell class `{0}`: no application that defines it is deployed")]
    UnknownClass(String),
    /// The path is there for another method.
    #[error("this path takes {allowed} only")]
    WrongMethod {
        /// For the `Allow` header.
        allowed: &'static str,
    },
    /// The name decodes to no UTF-8.
    #[error("the cell's name is not valid UTF-8 after percent-decoding")]
    NotUtf8,
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] CellNameError),
}

impl Target {
    pub(crate) fn parse(method: &Method, path: &PathAndQuery) -> Result<Self, PathError> {
        let Some(reserved) = path.path().strip_prefix("/-/") else { return Ok(Self::Application) };
        if let Some(rest) = reserved.strip_prefix("db/") {
            return Self::parse_db(method, rest, path.query());
        }
        if let Some(rest) = reserved.strip_prefix("cells/") {
            return Self::parse_object(rest, path.query());
        }
        match reserved {
            "health" => reads(method).map(|()| Self::Health),
            "ready" => reads(method).map(|()| Self::Ready),
            _ => Err(PathError::NotFound),
        }
    }

    fn parse_db(method: &Method, rest: &str, query: Option<&str>) -> Result<Self, PathError> {
        let (name, inner) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let inner = match inner {
            "" | "/" => reads(method).map(|()| "/"),
            "/v2" | "/v3" => reads(method).map(|()| inner),
            "/query" | "/v2/pipeline" | "/v3/pipeline" | "/v3/cursor" | "/v1/execute" | "/v1/batch" => {
                writes(method).map(|()| inner)
            }
            "/alarm" => alarms(method).map(|()| inner),
            _ => Err(PathError::NotFound),
        };
        let cell = CellName::new(DB_CLASS, &decode(name)?)?;
        Ok(Self::Cell(cell, join(inner?, query)))
    }

    fn parse_object(rest: &str, query: Option<&str>) -> Result<Self, PathError> {
        let (class, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, inner) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (class, name) = (decode(class)?, decode(name)?);
        if class == DB_CLASS || class.is_empty() || name.is_empty() {
            return Err(PathError::unknown_class(&class));
        }
        Ok(Self::Object(class, name, join(inner, query)))
    }
}

impl PathError {
    pub(crate) fn unknown_class(class: &str) -> Self {
        Self::UnknownClass(class.chars().take(80).collect())
    }
}

/// Decoded once: `%252F` is a name with `%2F` in it. A slash in a name must be sent as `%2F`.
fn decode(name: &str) -> Result<String, PathError> {
    Ok(percent_decode_str(name).decode_utf8().map_err(|_| PathError::NotUtf8)?.into_owned())
}

fn join(path: &str, query: Option<&str>) -> PathAndQuery {
    let path = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    PathAndQuery::try_from(path).expect("a part of a path and a query that were that before")
}

fn reads(method: &Method) -> Result<(), PathError> {
    if matches!(*method, Method::GET | Method::HEAD) {
        Ok(())
    } else {
        Err(PathError::WrongMethod { allowed: "GET, HEAD" })
    }
}

fn writes(method: &Method) -> Result<(), PathError> {
    if *method == Method::POST { Ok(()) } else { Err(PathError::WrongMethod { allowed: "POST" }) }
}

fn alarms(method: &Method) -> Result<(), PathError> {
    if matches!(*method, Method::GET | Method::HEAD | Method::POST | Method::DELETE) {
        Ok(())
    } else {
        Err(PathError::WrongMethod { allowed: "GET, HEAD, POST, DELETE" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: Method, path: &str) -> Result<Target, PathError> {
        Target::parse(&method, &PathAndQuery::try_from(path).unwrap())
    }

    fn cell(name: &str, path: &str) -> Result<Target, PathError> {
        let path = PathAndQuery::try_from(path).unwrap();
        Ok(Target::Cell(CellName::new("db", name).unwrap(), path))
    }

    #[test]
    fn a_database_is_found_with_its_own_path_and_query() {
        assert_eq!(parse(Method::POST, "/-/db/users/v2/pipeline"), cell("users", "/v2/pipeline"));
        assert_eq!(parse(Method::POST, "/-/db/users/query?a=%2F&b=//"), cell("users", "/query?a=%2F&b=//"));
        assert_eq!(parse(Method::GET, "/-/db/users"), cell("users", "/"));
        for method in [Method::GET, Method::HEAD, Method::POST, Method::DELETE] {
            assert_eq!(parse(method, "/-/db/users/alarm"), cell("users", "/alarm"));
        }
        assert!(matches!(parse(Method::PUT, "/-/db/users/alarm"), Err(PathError::WrongMethod { .. })));
        assert_eq!(parse(Method::HEAD, "/-/db/users/"), cell("users", "/"));
        assert_eq!(parse(Method::GET, "/-/db/users/v3"), cell("users", "/v3"));
    }

    #[test]
    fn each_path_that_an_error_names_is_there() {
        let told = PathError::NotFound.to_string();
        let named: Vec<&str> = told.split('`').filter(|part| part.starts_with('/')).collect();
        assert!(named.contains(&"/v1/batch"), "{named:?}");
        for path in named.into_iter().filter(|path| !path.starts_with("/-/")) {
            let whole = format!("/-/db/users{path}");
            assert_eq!(parse(Method::POST, &whole), cell("users", path), "{path}");
        }
    }

    #[test]
    fn a_name_is_decoded_once() {
        assert_eq!(parse(Method::GET, "/-/db/a%2Fb"), cell("a/b", "/"));
        assert_eq!(parse(Method::GET, "/-/db/a%252Fb"), cell("a%2Fb", "/"));
        assert_eq!(parse(Method::GET, "/-/db/%C3%BC"), cell("ü", "/"));
        assert_eq!(parse(Method::GET, "/-/db/.."), cell("..", "/"));
    }

    #[test]
    fn an_object_sees_what_follows_its_name_byte_for_byte() {
        let object = |name: &str, path| {
            Ok(Target::Object("Room".into(), name.into(), PathAndQuery::from_static(path)))
        };
        assert_eq!(parse(Method::POST, "/-/cells/Room/a/b%2F//c?d=%20"), object("a", "/b%2F//c?d=%20"));
        assert_eq!(parse(Method::GET, "/-/cells/Room/a%2Fb"), object("a/b", "/"));
        assert_eq!(parse(Method::GET, "/-/cells/Room/a?x"), object("a", "/?x"));
    }

    #[test]
    fn a_bad_name_is_refused_with_its_reason() {
        assert!(matches!(parse(Method::GET, "/-/db/"), Err(PathError::Name(CellNameError::EmptyName(_)))));
        assert!(matches!(parse(Method::GET, "/-/db/a%00b"), Err(PathError::Name(CellNameError::Control(0)))));
        assert_eq!(parse(Method::GET, "/-/db/%FF"), Err(PathError::NotUtf8));
        let long = format!("/-/db/{}", "x".repeat(300));
        assert!(matches!(parse(Method::GET, &long), Err(PathError::Name(CellNameError::TooLong(303)))));
    }

    #[test]
    fn what_is_not_there_is_said_to_be_so() {
        assert_eq!(parse(Method::PUT, "/"), Ok(Target::Application));
        assert_eq!(parse(Method::GET, "/-x"), Ok(Target::Application));
        assert_eq!(parse(Method::GET, "/-/"), Err(PathError::NotFound));
        assert_eq!(parse(Method::POST, "/-/db/users/../other/query"), Err(PathError::NotFound));
        assert_eq!(parse(Method::GET, "/-/db/users/v3-protobuf"), Err(PathError::NotFound));
        for (path, class) in
            [("db/a", "db"), ("%64b/a/b", "db"), ("Room", "Room"), ("Room/", "Room"), ("", "")]
        {
            let path = format!("/-/cells/{path}");
            assert_eq!(parse(Method::POST, &path), Err(PathError::UnknownClass(class.into())), "{path}");
        }
        let wrong = Err(PathError::WrongMethod { allowed: "POST" });
        assert_eq!(parse(Method::GET, "/-/db/users/query"), wrong);
        let wrong = Err(PathError::WrongMethod { allowed: "GET, HEAD" });
        assert_eq!(parse(Method::POST, "/-/health"), wrong);
    }
}
