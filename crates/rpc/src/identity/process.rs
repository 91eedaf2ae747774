//! A process's own certificate and the TLS configurations made from it. A leaf lives 24 hours and is re-issued at half
//! of that by the next connection; nothing has to be scheduled.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use holdfast_records::{CaCertificate, FleetIdentity};
use holdfast_types::SessionId;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{IdentityError, Role, fleet, server_name};

/// A leaf's lifetime: short, because there is no revocation.
const LEAF_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Clocks of a fleet differ by less than this.
const LEAF_BACKDATE: Duration = Duration::from_secs(5 * 60);
/// When the next connection makes a new leaf.
const LEAF_RENEWAL: Duration = Duration::from_secs(12 * 3600);
/// HTTP/2, as every program speaks it.
pub(crate) const ALPN_H2: &[u8] = b"h2";
/// HTTP/2 on a connection for WebSockets alone, whose windows are others.
pub(crate) const ALPN_SOCKETS: &[u8] = b"holdfast-sockets/1";

/// The identity of one process life: what it shows, and whom it trusts. Cheap to clone.
#[derive(Clone)]
pub struct ProcessIdentity {
    inner: Arc<Inner>,
}

struct Inner {
    role: Role,
    name: String,
    session: SessionId,
    current: RwLock<Current>,
}

struct Current {
    fleet: Arc<FleetIdentity>,
    issued: SystemTime,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl std::fmt::Debug for ProcessIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { role, name, session, current: _ } = &*self.inner;
        write!(f, "{}/{name}/{session}", role.as_str())
    }
}

impl ProcessIdentity {
    /// Makes a certificate for `role/name/session`, signed by the fleet's signing authority.
    ///
    /// # Errors
    /// [`IdentityError::Certificate`] when the record's keys are unusable.
    pub fn new(
        fleet: FleetIdentity,
        role: Role,
        name: &str,
        session: SessionId,
    ) -> Result<Self, IdentityError> {
        let current = Current::issue(Arc::new(fleet), role, name, session, SystemTime::now())?;
        let inner = Inner { role, name: name.to_owned(), session, current: RwLock::new(current) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The session that the certificate is for.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.inner.session
    }

    /// The fleet.
    #[must_use]
    pub fn fleet(&self) -> Arc<FleetIdentity> {
        Arc::clone(&self.inner.current.read().unwrap_or_else(PoisonError::into_inner).fleet)
    }

    /// Takes a rotated fleet identity: new connections show a leaf of its signing authority and trust all of them.
    ///
    /// # Errors
    /// [`IdentityError::Certificate`]; the old identity then stays.
    pub fn replace_fleet(&self, fleet: FleetIdentity) -> Result<(), IdentityError> {
        self.reissue(Arc::new(fleet), SystemTime::now())
    }

    /// For the next incoming connection.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        self.fresh(SystemTime::now(), |current| Arc::clone(&current.server))
    }

    /// For the next outgoing connection.
    pub(crate) fn client_config(&self) -> Arc<ClientConfig> {
        self.fresh(SystemTime::now(), |current| Arc::clone(&current.client))
    }

    fn fresh<T>(&self, now: SystemTime, take: impl Fn(&Current) -> T) -> T {
        let (due, fleet) = {
            let current = self.inner.current.read().unwrap_or_else(PoisonError::into_inner);
            if !current.is_due(now) {
                return take(&current);
            }
            (current.issued, Arc::clone(&current.fleet))
        };
        if let Err(error) = self.reissue(fleet, now) {
            tracing::error!(%error, issued = ?due, "cannot re-issue this process's certificate; the old one stays");
        }
        take(&self.inner.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn reissue(&self, fleet: Arc<FleetIdentity>, now: SystemTime) -> Result<(), IdentityError> {
        let Inner { role, name, session, current } = &*self.inner;
        let fresh = Current::issue(fleet, *role, name, *session, now)?;
        *current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

impl Current {
    fn issue(
        fleet: Arc<FleetIdentity>,
        role: Role,
        name: &str,
        session: SessionId,
        now: SystemTime,
    ) -> Result<Self, IdentityError> {
        let signer = fleet.signing_authority().ok_or_else(|| {
            IdentityError::certificate("reading the fleet's authorities", "the record has none")
        })?;
        let roots = Arc::new(trusted(&fleet.cas)?);
        let (chain, key) = leaf(&fleet, signer, role, name, session, now)?;
        let server = server_config(Arc::clone(&roots), chain.clone(), key.clone_key())?;
        let client = client_config(&roots, chain, key)?;
        Ok(Self { fleet, issued: now, server: Arc::new(server), client: Arc::new(client) })
    }

    /// Also due when the clock was set back to before the leaf's begin.
    fn is_due(&self, now: SystemTime) -> bool {
        now.duration_since(self.issued + LEAF_RENEWAL).is_ok()
            || self.issued.duration_since(now).is_ok_and(|ahead| ahead >= LEAF_BACKDATE)
    }
}

type Chain = Vec<CertificateDer<'static>>;

fn leaf(
    fleet: &FleetIdentity,
    signer: &CaCertificate,
    role: Role,
    name: &str,
    session: SessionId,
    now: SystemTime,
) -> Result<(Chain, PrivateKeyDer<'static>), IdentityError> {
    let failed = |e| IdentityError::certificate("making this process's certificate", e);
    let authority_key = KeyPair::from_pem(&signer.key_pem)
        .map_err(|e| IdentityError::certificate("reading the authority's key", e))?;
    let issuer = Issuer::new(fleet::authority_params(&fleet.fleet), authority_key);
    let mut params = CertificateParams::new([server_name(role, session)]).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, format!("{}/{name}", role.as_str()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = (now - LEAF_BACKDATE).into();
    params.not_after = (now + LEAF_LIFETIME).into();
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok((vec![certificate.der().clone()], key))
}

/// The SHA-256 of a certificate, in pairs of hex digits.
///
/// # Errors
/// It is no certificate.
pub fn fingerprint(certificate_pem: &str) -> Result<String, IdentityError> {
    let der = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
        .map_err(|e| IdentityError::certificate("reading a certificate", e))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &der);
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"))
}

fn trusted(cas: &[CaCertificate]) -> Result<RootCertStore, IdentityError> {
    let failed = "reading the fleet's authorities";
    let mut roots = RootCertStore::empty();
    for ca in cas {
        let der = CertificateDer::from_pem_slice(ca.certificate_pem.as_bytes())
            .map_err(|e| IdentityError::certificate(failed, e))?;
        roots.add(der).map_err(|e| IdentityError::certificate(failed, e))?;
    }
    Ok(roots)
}

fn server_config(
    roots: Arc<RootCertStore>,
    chain: Chain,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, IdentityError> {
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(|e| IdentityError::certificate("trusting the fleet's authorities", e))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| builder.with_client_cert_verifier(verifier).with_single_cert(chain, key))
        .map_err(|e| IdentityError::certificate("configuring the internal listener", e))?;
    config.alpn_protocols = vec![ALPN_SOCKETS.to_vec(), ALPN_H2.to_vec()];
    // Connections live long; a ticket would let a peer skip showing its certificate again.
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client_config(
    roots: &Arc<RootCertStore>,
    chain: Chain,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, IdentityError> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| {
            builder.with_root_certificates(Arc::clone(roots)).with_client_auth_cert(chain, key)
        })
        .map_err(|e| IdentityError::certificate("configuring internal calls", e))?;
    config.alpn_protocols = vec![ALPN_H2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> ProcessIdentity {
        let fleet = fleet::create().unwrap();
        ProcessIdentity::new(fleet, Role::Cellnode, "n1", SessionId::from_bits(1)).unwrap()
    }

    #[test]
    fn a_leaf_is_issued_again_at_half_of_its_life_and_after_a_clock_set_back() {
        let identity = identity();
        let first = identity.server_config();
        assert!(Arc::ptr_eq(&first, &identity.server_config()), "not before it is due");
        let later = SystemTime::now() + LEAF_RENEWAL;
        let second = identity.fresh(later, |current| Arc::clone(&current.server));
        assert!(!Arc::ptr_eq(&first, &second), "due after half of its life");
        let third = identity.server_config();
        assert!(!Arc::ptr_eq(&second, &third), "the second is from the future now");
    }

    #[test]
    fn a_record_without_a_usable_authority_is_refused() {
        let mut fleet = fleet::create().unwrap();
        fleet.cas[0].key_pem = "nonsense".into();
        let error =
            ProcessIdentity::new(fleet.clone(), Role::Tools, "t", SessionId::from_bits(1)).unwrap_err();
        assert!(error.to_string().contains("authority's key"), "{error}");
        fleet.cas.clear();
        let error = ProcessIdentity::new(fleet, Role::Tools, "t", SessionId::from_bits(1)).unwrap_err();
        assert!(error.to_string().contains("has none"), "{error}");
    }

    #[test]
    fn debug_output_names_the_process_and_no_secret() {
        let text = format!("{:?}", identity());
        assert_eq!(text, "cellnode/n1/00000000000000000000000000000001");
    }
}
