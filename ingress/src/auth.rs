//! Who may use a cell: verified offline, with the fleet's public keys.

use std::net::SocketAddr;
use std::time::SystemTime;

use holdfast_rpc::Access;
use holdfast_rpc::tokens::{TokenError, TokenVerifier};
use holdfast_types::CellName;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::watch;

/// Who may use the SQL API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AuthMode {
    /// Holders of a bearer token of this fleet.
    Token,
    /// Anyone. On loopback listeners only.
    None,
}

/// Why a request is not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthError {
    /// There is no bearer token.
    #[error(
        "this needs a bearer token: `Authorization: Bearer hf1.…`; make one with `holdfast token create`"
    )]
    Missing,
    /// There is one, and it does not open this cell.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Checks requests.
#[derive(Clone, Debug)]
pub(crate) enum Auth {
    Open,
    /// By the fleet's keys as they are rotated.
    Tokens(watch::Receiver<TokenVerifier>),
}

/// `--auth none` would let the whole network in.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "`--auth none` is for loopback only, and this listener is on {0}: use `--auth token`, or listen on 127.0.0.1"
)]
pub(crate) struct NotLoopback(SocketAddr);

/// Refuses an open listener that other machines can reach.
pub(crate) fn check_listener(mode: AuthMode, address: SocketAddr) -> Result<(), NotLoopback> {
    match mode {
        AuthMode::None if !address.ip().to_canonical().is_loopback() => Err(NotLoopback(address)),
        AuthMode::None | AuthMode::Token => Ok(()),
    }
}

impl Auth {
    pub(crate) fn check(&self, headers: &HeaderMap, cell: &CellName) -> Result<Access, AuthError> {
        let Self::Tokens(verifier) = self else { return Ok(Access::ReadWrite) };
        let token = bearer(headers).ok_or(AuthError::Missing)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_s = since.expect("the clock is past 1970").as_secs();
        Ok(verifier.borrow().verify(token, now_s, cell)?)
    }
}

/// The token of `Authorization: Bearer <token>`; the scheme's case does not matter (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_listener_is_on_loopback() {
        for (address, is_ok) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(check_listener(AuthMode::None, address).is_ok(), is_ok, "{address}");
            assert!(check_listener(AuthMode::Token, address).is_ok());
        }
    }

    #[test]
    fn only_a_bearer_token_is_one() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).map(ToOwned::to_owned)
        };
        assert_eq!(with("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(with("bearer  abc ").as_deref(), Some("abc"));
        assert_eq!(with("Basic abc"), None);
        assert_eq!(with("Bearer"), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
