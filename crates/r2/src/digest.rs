//! Checksums of a body as it passes.

use holdfast_records::R2Checksums;
use md5::{Digest as _, Md5};
use serde::Deserialize;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use crate::R2Error;

/// A checksum that a writer gives with a body.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    algorithm: Algorithm,
    /// In lower-case hex.
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        }
    }
}

enum Other {
    Sha1(Sha1),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

/// The checksums of a body so far: its MD5, and the one that was given.
pub(crate) struct Digests {
    md5: Md5,
    other: Option<Other>,
}

impl Digests {
    pub(crate) fn new(given: Option<&Given>) -> Self {
        let other = given.and_then(|given| match given.algorithm {
            Algorithm::Md5 => None,
            Algorithm::Sha1 => Some(Other::Sha1(Sha1::new())),
            Algorithm::Sha256 => Some(Other::Sha256(Sha256::new())),
            Algorithm::Sha384 => Some(Other::Sha384(Sha384::new())),
            Algorithm::Sha512 => Some(Other::Sha512(Sha512::new())),
        });
        Self { md5: Md5::new(), other }
    }

    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.md5.update(piece);
        match &mut self.other {
            None => {}
            Some(Other::Sha1(hash)) => hash.update(piece),
            Some(Other::Sha256(hash)) => hash.update(piece),
            Some(Other::Sha384(hash)) => hash.update(piece),
            Some(Other::Sha512(hash)) => hash.update(piece),
        }
    }

    /// The MD5 alone.
    pub(crate) fn md5(self) -> [u8; 16] {
        self.md5.finalize().into()
    }

    /// The etag, and the checksums to keep.
    ///
    /// # Errors
    /// The one that was given is not that of the body.
    pub(crate) fn finish(self, given: Option<&Given>) -> Result<(String, R2Checksums), R2Error> {
        let etag = hex(&self.md5.finalize());
        let mut checksums = R2Checksums::default();
        let actual: &String = match self.other {
            None => &etag,
            Some(Other::Sha1(hash)) => checksums.sha1.insert(hex(&hash.finalize())),
            Some(Other::Sha256(hash)) => checksums.sha256.insert(hex(&hash.finalize())),
            Some(Other::Sha384(hash)) => checksums.sha384.insert(hex(&hash.finalize())),
            Some(Other::Sha512(hash)) => checksums.sha512.insert(hex(&hash.finalize())),
        };
        match given {
            Some(given) if given.value != *actual => {
                Err(R2Error::bad_digest(given.algorithm.name(), &given.value, actual))
            }
            Some(_) | None => Ok((etag, checksums)),
        }
    }
}

/// The etag of a multipart upload, by the MD5s of its parts.
pub(crate) fn multipart_etag<'m>(md5s: impl ExactSizeIterator<Item = &'m [u8; 16]>) -> String {
    let (count, mut md5) = (md5s.len(), Md5::new());
    md5s.for_each(|part| md5.update(part));
    format!("{}-{count}", hex(&md5.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(given: Option<&str>, body: &[u8]) -> Result<(String, R2Checksums), R2Error> {
        let given = given.map(|json| serde_json::from_str::<Given>(json).unwrap());
        let mut digests = Digests::new(given.as_ref());
        for piece in body.chunks(2) {
            digests.update(piece);
        }
        digests.finish(given.as_ref())
    }

    #[test]
    fn the_checksums_of_abc_are_those_of_the_standards() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        assert_eq!(finish(None, b"abc").unwrap(), (md5.to_owned(), R2Checksums::default()));
        let given = format!(r#"{{"algorithm":"md5","value":"{md5}"}}"#);
        assert_eq!(finish(Some(&given), b"abc").unwrap().0, md5);
        for (algorithm, value) in [
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "sha384",
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            ),
            (
                "sha512",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
        ] {
            let given = format!(r#"{{"algorithm":"{algorithm}","value":"{value}"}}"#);
            let (etag, checksums) = finish(Some(&given), b"abc").unwrap();
            assert_eq!(etag, md5);
            assert_eq!(serde_json::to_value(&checksums).unwrap()[algorithm], value);
            let error = finish(Some(&given), b"abcd").unwrap_err();
            assert_eq!(error.code(), 10_037);
            assert!(error.to_string().contains(value), "{error}");
        }
    }

    #[test]
    fn the_etag_of_parts_is_that_of_their_md5s_and_their_number() {
        // `printf abc | md5sum`, twice, as bytes, through `md5sum`.
        let md5 =
            [0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0, 0xd6, 0x96, 0x3f, 0x7d, 0x28, 0xe1, 0x7f, 0x72];
        let mut digests = Digests::new(None);
        digests.update(b"abc");
        assert_eq!(digests.md5(), md5);
        assert_eq!(multipart_etag([md5, md5].iter()), "043a916d6cfeecedf5e04f0312ba762d-2");
    }

    #[test]
    fn an_md5_that_is_wrong_says_both() {
        let given = r#"{"algorithm":"md5","value":"00000000000000000000000000000000"}"#;
        assert_eq!(
            finish(Some(given), b"abc").unwrap_err().to_string(),
            "The MD5 checksum you specified did not match what we received.\n\
             You provided a MD5 checksum with value: 00000000000000000000000000000000\n\
             Actual MD5 was: 900150983cd24fb0d6963f7d28e17f72 (10037)"
        );
    }
}
