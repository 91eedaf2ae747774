//! The checksums that a client sends with a body, in a header or a trailer: all are verified before the object appears.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use s3s::crypto::{Checksum, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::{S3Error, S3Result, TrailingHeaders, s3_error};

/// A checksum in the making.
enum Hasher {
    Crc32(Crc32),
    Crc32c(Crc32c),
    Crc64Nvme(Crc64Nvme),
    Md5(Box<Md5>),
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

const NAMES: [&str; 6] = [
    "content-md5",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
];

impl Hasher {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "content-md5" => Self::Md5(Box::new(Md5::new())),
            "x-amz-checksum-crc32" => Self::Crc32(Crc32::new()),
            "x-amz-checksum-crc32c" => Self::Crc32c(Crc32c::new()),
            "x-amz-checksum-crc64nvme" => Self::Crc64Nvme(Crc64Nvme::new()),
            "x-amz-checksum-sha1" => Self::Sha1(Box::new(Sha1::new())),
            "x-amz-checksum-sha256" => Self::Sha256(Box::new(Sha256::new())),
            _ => return None,
        })
    }

    fn update(&mut self, piece: &[u8]) {
        match self {
            Self::Crc32(hasher) => hasher.update(piece),
            Self::Crc32c(hasher) => hasher.update(piece),
            Self::Crc64Nvme(hasher) => hasher.update(piece),
            Self::Md5(hasher) => hasher.update(piece),
            Self::Sha1(hasher) => hasher.update(piece),
            Self::Sha256(hasher) => hasher.update(piece),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Crc32(hasher) => BASE64.encode(hasher.finalize()),
            Self::Crc32c(hasher) => BASE64.encode(hasher.finalize()),
            Self::Crc64Nvme(hasher) => BASE64.encode(hasher.finalize()),
            Self::Md5(hasher) => BASE64.encode(hasher.finalize()),
            Self::Sha1(hasher) => BASE64.encode(hasher.finalize()),
            Self::Sha256(hasher) => BASE64.encode(hasher.finalize()),
        }
    }
}

/// The checksums of one body.
pub(crate) struct Checks {
    checks: Vec<(&'static str, Option<String>, Hasher)>,
    trailers: Option<TrailingHeaders>,
}

impl Checks {
    /// Reads from a request's head what is to be checked.
    pub(crate) fn new(headers: &HeaderMap, trailers: Option<TrailingHeaders>) -> Self {
        let announced: Vec<String> = headers
            .get_all("x-amz-trailer")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        let mut checks = Vec::new();
        for name in NAMES {
            let value = headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            if (value.is_some() || announced.iter().any(|other| other == name))
                && let Some(hasher) = Hasher::named(name)
            {
                checks.push((name, value, hasher));
            }
        }
        Self { checks, trailers }
    }

    /// Takes in the next piece of the body.
    pub(crate) fn update(&mut self, piece: &[u8]) {
        for (_, _, hasher) in &mut self.checks {
            hasher.update(piece);
        }
    }

    /// Compares, once the body has been read to its end.
    ///
    /// # Errors
    /// `BadDigest` names the checksum that differs or never came.
    pub(crate) fn finish(&mut self) -> S3Result<()> {
        for (name, header, hasher) in self.checks.drain(..) {
            let trailer = || {
                let read = |map: &HeaderMap| map.get(name)?.to_str().ok().map(str::to_owned);
                self.trailers.as_ref()?.read(read).flatten()
            };
            if header.or_else(trailer).as_deref() != Some(hasher.finish().as_str()) {
                return Err(bad_digest(name));
            }
        }
        Ok(())
    }
}

fn bad_digest(name: &str) -> S3Error {
    s3_error!(BadDigest, "the `{name}` you specified did not match what was received")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        let mut checks = Checks::new(&headers, None);
        checks.update(b"12345");
        checks.update(b"6789");
        checks.finish().is_ok()
    }

    #[test]
    fn the_published_check_values_are_met() {
        // The check values of the CRC catalogue for "123456789", and the RFCs' digests of it.
        for (name, value) in [
            ("content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
            ("x-amz-checksum-crc32", "y/Q5Jg=="),
            ("x-amz-checksum-crc32c", "4waSgw=="),
            ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
            ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
            ("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ] {
            let right = check(name, value);
            assert!(!check(name, "AAAAAA=="), "{name}");
            assert!(right, "{name}");
        }
    }

    #[test]
    fn a_trailer_that_never_comes_is_a_mismatch() {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-trailer", "x-amz-checksum-crc32".parse().unwrap());
        assert!(Checks::new(&headers, None).finish().is_err());
        assert!(Checks::new(&HeaderMap::new(), None).finish().is_ok());
    }
}
