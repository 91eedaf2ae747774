use super::*;
use crate::identity;

const NOW: u64 = 1_800_000_000;

fn cell(text: &str) -> CellName {
    CellName::parse(text).unwrap()
}

fn token(fleet: &FleetIdentity, cells: &str, access: Access) -> String {
    mint(fleet, CellPattern::parse(cells).unwrap(), access, NOW, NOW + 60).unwrap()
}

#[test]
fn a_token_opens_its_cells_until_it_expires() {
    let fleet = identity::create().unwrap();
    let verifier = TokenVerifier::new(&fleet).unwrap();
    let text = token(&fleet, "db:tenant-*", Access::ReadOnly);
    assert_eq!(verifier.verify(&text, NOW, &cell("db:tenant-1")), Ok(Access::ReadOnly));
    assert_eq!(verifier.verify(&text, NOW + 59, &cell("db:tenant-1")), Ok(Access::ReadOnly));
    let expired = verifier.verify(&text, NOW + 60, &cell("db:tenant-1"));
    assert!(matches!(expired, Err(TokenError::Expired { expires_s, .. }) if expires_s == NOW + 60));
    let other = verifier.verify(&text, NOW, &cell("db:other"));
    assert!(matches!(other, Err(TokenError::NotForThisCell { .. })), "{other:?}");
    let text = token(&fleet, "db:a", Access::ReadWrite);
    assert_eq!(verifier.verify(&text, NOW, &cell("db:a")), Ok(Access::ReadWrite));
}

#[test]
fn no_changed_byte_is_accepted() {
    let fleet = identity::create().unwrap();
    let verifier = TokenVerifier::new(&fleet).unwrap();
    let text = token(&fleet, "db:*", Access::ReadOnly);
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        // The last character of a base64 text has bits that mean nothing; the decoder refuses them set.
        let result = verifier.verify(&changed, NOW, &cell("db:a"));
        assert!(
            matches!(result, Err(TokenError::Malformed(_) | TokenError::BadSignature)),
            "byte {at}: {result:?}"
        );
    }
}

#[test]
fn a_token_of_another_fleet_is_refused() {
    let (ours, theirs) = (identity::create().unwrap(), identity::create().unwrap());
    let verifier = TokenVerifier::new(&ours).unwrap();
    let text = token(&theirs, "db:*", Access::ReadWrite);
    assert_eq!(verifier.verify(&text, NOW, &cell("db:a")), Err(TokenError::BadSignature));
    // Also when it claims a key id of ours.
    let mut forged = theirs.clone();
    forged.token_keys[0].id.clone_from(&ours.token_keys[0].id);
    let text = token(&forged, "db:*", Access::ReadWrite);
    assert_eq!(verifier.verify(&text, NOW, &cell("db:a")), Err(TokenError::BadSignature));
}

#[test]
fn an_old_key_still_verifies_after_a_rotation() {
    let old = identity::create().unwrap();
    let text = token(&old, "db:*", Access::ReadWrite);
    let mut rotated = identity::create().unwrap();
    rotated.token_keys.extend(old.token_keys.clone());
    let verifier = TokenVerifier::new(&rotated).unwrap();
    assert_eq!(verifier.verify(&text, NOW, &cell("db:a")), Ok(Access::ReadWrite));
}

#[test]
fn what_is_no_token_is_called_malformed() {
    let fleet = identity::create().unwrap();
    let verifier = TokenVerifier::new(&fleet).unwrap();
    let long = "x".repeat(TOKEN_LEN_MAX + 1);
    for text in ["", "a", "a.b", "hf1.", "hf1..", "hf2.e30.AA", "hf1.e30.AA", "hf1.!.AA", &long] {
        let result = verifier.verify(text, NOW, &cell("db:a"));
        assert!(matches!(result, Err(TokenError::Malformed(_))), "{text}: {result:?}");
    }
}
