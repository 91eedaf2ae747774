//! Who may talk to whom: nothing but the fleet's own certificates, and nobody but the session that was meant.

use holdfast_bucket::faults::{Fault, FaultBucket, Operation, Rule};
use holdfast_bucket::{Bucket as _, ErrorKind, MemoryBucket};
use holdfast_records::Record as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::*;
use crate::identity::Rotated;
use crate::{CellClient, CellReply, ForwardError, Peer, ProcessIdentity, Role, identity};
use holdfast_types::SessionId;

async fn echo() -> Fleet {
    fleet(|call| async move { Ok(reply(call.request.into_body())) }).await
}

fn never_sent(answer: Result<CellReply, ForwardError>) -> String {
    match answer {
        Err(ForwardError::NeverSent { reason, call: Some(_) }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn another_session_at_the_same_address_gets_nothing() {
    let fleet = echo().await;
    let stale = Peer { session: SessionId::from_bits(0xdef), ..fleet.peer.clone() };
    let reason = never_sent(fleet.client.call(&stale, call(whole("x"))).await);
    assert!(reason.contains("TLS"), "{reason}");
    fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap();
}

#[tokio::test]
async fn a_certificate_of_another_role_is_not_a_cellnode() {
    let fleet = echo().await;
    let ingress = ProcessIdentity::new(fleet.identity.clone(), Role::Ingress, "n1", SESSION).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = peer_at(listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let _ = tokio_rustls::TlsAcceptor::from(ingress.server_config()).accept(tcp).await;
    });
    never_sent(fleet.client.call(&peer, call(whole("x"))).await);
}

#[tokio::test]
async fn another_fleet_is_refused_by_both_sides() {
    let fleet = echo().await;
    let stranger = process(&identity::create().unwrap(), Role::Ingress, 1);
    let client = CellClient::new(stranger.clone());
    never_sent(client.call(&fleet.peer, call(whole("x"))).await);
    // A stranger that trusts this fleet, but has no certificate of it: it must not get an answer either.
    let mut mixed = fleet.identity.clone();
    mixed.cas.insert(0, identity::create().unwrap().cas[0].clone());
    let client = CellClient::new(process(&mixed, Role::Ingress, 1));
    let answer = client.call(&fleet.peer, call(whole("x"))).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let fleet = echo().await;
    let mut roots = RootCertStore::empty();
    let ca = &fleet.identity.cas[0].certificate_pem;
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(&fleet.peer.address).await.unwrap();
    let name = ServerName::try_from(identity::server_name(Role::Cellnode, SESSION)).unwrap();
    // In TLS 1.3 the client hears of it with its first read.
    let mut tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    let error = tls.read_u8().await.unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");
}

#[tokio::test]
async fn plaintext_is_refused() {
    let fleet = echo().await;
    for hello in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let mut tcp = TcpStream::connect(&fleet.peer.address).await.unwrap();
        tcp.write_all(hello).await.unwrap();
        let mut answer = Vec::new();
        // Closed, by an alert or a reset, with no answer in plain text.
        let _ = tcp.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP") && answer.len() < 16, "{answer:?}");
    }
}

#[tokio::test]
async fn a_rotation_by_overlap_cuts_nobody_off() {
    let old = echo().await;
    let mut rotated = old.identity.clone();
    let fresh = identity::create().unwrap().cas[0].clone();
    rotated.cas.push(fresh);
    // Processes that know both authorities and still sign with the old one talk to those that know the old one only.
    let client = CellClient::new(process(&rotated, Role::Ingress, 2));
    client.call(&old.peer, call(whole("x"))).await.unwrap();
}

#[tokio::test]
async fn the_first_processes_of_a_fleet_agree_on_one_identity() {
    let bucket = MemoryBucket::new();
    assert!(matches!(identity::load(&bucket).await, Err(identity::IdentityError::NoFleet)));
    let (a, b) = tokio::join!(identity::load_or_create(&bucket), identity::load_or_create(&bucket));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(a == b, "two identities");
    assert!(identity::load(&bucket).await.unwrap() == a);
    assert!(identity::load_or_create(&bucket).await.unwrap() == a);
}

#[tokio::test]
async fn a_store_that_is_away_for_a_moment_does_not_keep_a_process_from_starting() {
    let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
    let made = identity::load_or_create(&bucket).await.unwrap();
    let away = |times| Rule::new(Fault::Fail(ErrorKind::NoAnswer)).on(Operation::Get).times(times);
    bucket.add(away(4));
    assert!(identity::load_or_create(&bucket).await.unwrap() == made);
    bucket.add(away(4));
    assert!(identity::load(&bucket).await.unwrap() == made);
    bucket.add(away(5));
    let error = identity::load_or_create(&bucket).await.unwrap_err();
    assert!(matches!(error, identity::IdentityError::Bucket(_)), "{error}");
    // What waiting does not change is told at once.
    bucket.clear();
    bucket.reset_counts();
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Denied)).on(Operation::Get));
    identity::load(&bucket).await.unwrap_err();
    assert_eq!(bucket.count(Operation::Get, ""), 1);
}

#[tokio::test]
async fn two_processes_at_neighbouring_steps_of_a_rotation_trust_each_other_and_a_retired_key_opens_nothing()
{
    let steps = {
        let mut steps = vec![identity::create().unwrap()];
        for _ in 0..3 {
            steps.push(identity::advanced(steps.last().unwrap(), Rotated::Authority).unwrap());
        }
        steps
    };
    for (at_node, node) in steps.iter().enumerate() {
        for (at_client, client) in steps.iter().enumerate() {
            let fleet =
                fleet_of(node.clone(), |call| async move { Ok(reply(call.request.into_body())) }).await;
            let client = CellClient::new(process(client, Role::Ingress, 1));
            let answer = client.call(&fleet.peer, call(whole("x"))).await;
            let places = format!("a client at step {at_client}, a node at step {at_node}: {answer:?}");
            match at_node.abs_diff(at_client) {
                0 | 1 => assert!(answer.is_ok(), "{places}"),
                3 => assert!(answer.is_err(), "{places}"),
                // One has missed a step: it depends on which.
                _ => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_takes_a_rotated_identity_up_without_a_restart() {
    let bucket = Arc::new(MemoryBucket::new());
    let first = identity::load_or_create(&*bucket).await.unwrap();
    let me = process(&first, Role::Ingress, 1);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let following = tokio::spawn(identity::follow(bucket.clone(), me.clone(), move |fleet| {
        tell.send(fleet.write_id).unwrap();
    }));
    let before = me.client_config();
    let next = identity::advanced(&first, Rotated::Authority).unwrap();
    assert!(identity::store(&*bucket, &first, &next).await.unwrap());
    assert_eq!(told.recv().await, Some(next.write_id));
    assert_eq!(*me.fleet(), next);
    assert!(!Arc::ptr_eq(&before, &me.client_config()), "it shows another certificate");
    // Another fleet's record is somebody's mistake, and no rotation.
    let stranger = identity::create().unwrap();
    bucket.put("fleet/identity.json", stranger.encode().into()).await.unwrap();
    tokio::time::sleep(identity::FOLLOW_INTERVAL * 3).await;
    assert_eq!(*me.fleet(), next);
    following.abort();
}
