//! Who is at the other end of an internal connection, as its certificate says. The handshake has verified the
//! certificate; here only its name is read.

use holdfast_types::SessionId;
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::{DOMAIN, Role};

/// A process of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// What it is.
    pub role: Role,
    /// Its session.
    pub session: SessionId,
}

impl Caller {
    /// Reads a verified certificate; none when it is not one that a process of this product shows.
    pub(crate) fn of(chain: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        let certificate = EndEntityCert::try_from(chain?.first()?).ok()?;
        let mut names = certificate.valid_dns_names();
        let caller = Self::parse(names.next()?)?;
        names.next().is_none().then_some(caller)
    }

    fn parse(name: &str) -> Option<Self> {
        let (session, rest) = name.split_once('.')?;
        let role = rest.strip_suffix(DOMAIN)?;
        let role = Role::ALL.into_iter().find(|known| known.as_str() == role)?;
        Some(Self { role, session: SessionId::parse(session).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::server_name;

    #[test]
    fn the_name_of_every_role_reads_back() {
        for role in Role::ALL {
            let session = SessionId::from_bits(7);
            assert_eq!(Caller::parse(&server_name(role, session)), Some(Caller { role, session }));
        }
    }

    #[test]
    fn another_name_is_nobody() {
        let session = SessionId::from_bits(7);
        for bad in [
            "localhost".to_owned(),
            format!("{session}.cellnode"),
            format!("{session}.owner{DOMAIN}"),
            format!("x.cellnode{DOMAIN}"),
            format!("{session}.cellnode{DOMAIN}.example"),
        ] {
            assert_eq!(Caller::parse(&bad), None, "{bad}");
        }
    }
}
