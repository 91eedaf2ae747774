//! Limits of requests, as Cloudflare documents them, and of what the store can hold.

use holdfast_bucket::KEY_LEN_MAX as STORE_KEY_LEN_MAX;
use holdfast_records::{R2HttpMetadata, escape_r2_key};
use holdfast_types::R2BucketName;

use crate::R2Error;

/// Longest key, in bytes.
const KEY_LEN_MAX: usize = 1_024;
/// What stands around an escaped key in the longest key of the store: `r2/`, `/b/`, `/` and an id.
const KEY_AROUND: usize = 3 + R2BucketName::LEN_MAX + 3 + 1 + 32;
/// Longest escaped key: the store's own keys have a limit, too.
const ESCAPED_LEN_MAX: usize = STORE_KEY_LEN_MAX - KEY_AROUND;
/// Most bytes of custom metadata, as R2 counts them.
const CUSTOM_LEN_MAX: usize = 2_048;
/// Most bytes of the metadata for HTTP.
const HTTP_LEN_MAX: usize = 8_192;
/// Largest object of one put: 5 GiB less 5 MiB.
const OBJECT_LEN_MAX: u64 = (5 << 30) - (5 << 20);
/// Smallest part of a multipart upload, the last aside.
const PART_LEN_MIN: u64 = 5 << 20;
/// Largest object of a multipart upload: 5 TiB less 5 GiB.
const MULTIPART_LEN_MAX: u64 = (5 << 40) - (5 << 30);
/// Most parts of a multipart upload, and the highest number of one.
pub(crate) const PARTS_MAX: u32 = 10_000;
/// What another id takes in a key of the store.
const ID_AROUND: usize = 1 + 32;
/// Most keys of one delete.
pub(crate) const DELETE_MAX: usize = 1_000;
/// Most objects of one page of a listing.
pub(crate) const LIST_MAX: usize = 1_000;

/// Refuses a key that no object can have.
pub(crate) fn check_key(key: &str) -> Result<(), R2Error> {
    if key.len() > KEY_LEN_MAX {
        return Err(R2Error::invalid_name());
    }
    let escaped = escape_r2_key(key).len();
    if escaped > ESCAPED_LEN_MAX { Err(R2Error::long_name(escaped, ESCAPED_LEN_MAX)) } else { Ok(()) }
}

/// Refuses a key that no multipart upload can have: the keys of parts have an id more.
pub(crate) fn check_upload_key(key: &str) -> Result<(), R2Error> {
    check_key(key)?;
    let (escaped, max) = (escape_r2_key(key).len(), ESCAPED_LEN_MAX - ID_AROUND);
    if escaped > max { Err(R2Error::long_name(escaped, max)) } else { Ok(()) }
}

/// Refuses a storage class that R2 does not have.
pub(crate) fn check_storage_class(class: Option<&str>) -> Result<(), R2Error> {
    match class {
        None | Some("Standard" | "InfrequentAccess") => Ok(()),
        Some(class) => Err(R2Error::invalid_argument(format!("The storage class {class} is not valid."))),
    }
}

/// The bytes of the parts of an upload, in order, together.
///
/// # Errors
/// What R2 does not take: no part, lengths that differ before the last, a last part that is longer, small ones.
pub(crate) fn check_parts(lens: &[u64]) -> Result<u64, R2Error> {
    let (last, others) = lens.split_last().ok_or_else(R2Error::bad_upload)?;
    if let Some(len) = others.first() {
        if others.iter().any(|other| *other < PART_LEN_MIN) {
            return Err(R2Error::too_small());
        }
        if others.iter().any(|other| other != len) || last > len {
            return Err(R2Error::bad_upload());
        }
    }
    let total = lens.iter().sum();
    if total > MULTIPART_LEN_MAX { Err(R2Error::too_large()) } else { Ok(total) }
}

/// Refuses an object that is too large.
pub(crate) fn check_size(len: u64) -> Result<(), R2Error> {
    if len > OBJECT_LEN_MAX { Err(R2Error::too_large()) } else { Ok(()) }
}

/// Refuses metadata that are too large.
pub(crate) fn check_metadata(custom: &[(String, String)], http: &R2HttpMetadata) -> Result<(), R2Error> {
    let custom: usize = custom.iter().map(|(name, value)| counted(name) + counted(value)).sum();
    let R2HttpMetadata {
        content_type,
        content_language,
        content_disposition,
        content_encoding,
        cache_control,
        cache_expiry: _,
    } = http;
    let texts = [content_type, content_language, content_disposition, content_encoding, cache_control];
    let http: usize = texts.into_iter().flatten().map(String::len).sum();
    if custom > CUSTOM_LEN_MAX || http > HTTP_LEN_MAX { Err(R2Error::large_metadata()) } else { Ok(()) }
}

/// Bytes of a text, as R2 counts them: two for each UTF-16 unit where any is beyond Latin-1, one otherwise.
fn counted(text: &str) -> usize {
    let units = text.encode_utf16().count();
    if text.chars().all(|c| u32::from(c) < 256) { units } else { units * 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_exact() {
        assert!(check_key(&"k".repeat(900)).is_ok());
        assert_eq!(check_key(&"k".repeat(1_025)).unwrap_err().code(), 10_020);
        assert!(check_key(&"k".repeat(ESCAPED_LEN_MAX - 1)).is_ok());
        let error = check_key(&"k".repeat(ESCAPED_LEN_MAX)).unwrap_err();
        assert_eq!(error.code(), 10_020);
        assert!(error.to_string().contains("922"), "{error}");
        assert!(check_size(OBJECT_LEN_MAX).is_ok());
        assert_eq!(check_size(OBJECT_LEN_MAX + 1).unwrap_err().code(), 100_100);
    }

    #[test]
    fn parts_are_of_one_length_but_for_a_shorter_last_one() {
        const MIN: u64 = PART_LEN_MIN;
        let code = |lens: &[u64]| check_parts(lens).map_err(|error| error.code());
        assert_eq!(code(&[0]), Ok(0));
        assert_eq!(code(&[1]), Ok(1));
        assert_eq!(code(&[MIN, 1]), Ok(MIN + 1));
        assert_eq!(code(&[MIN, MIN]), Ok(2 * MIN));
        assert_eq!(code(&[MIN + 1, MIN + 1, 0]), Ok(2 * MIN + 2));
        assert_eq!(code(&[]), Err(10_048));
        assert_eq!(code(&[MIN - 1, MIN - 1]), Err(10_011));
        assert_eq!(code(&[MIN, MIN + 1]), Err(10_048));
        assert_eq!(code(&[MIN, MIN + 1, 1]), Err(10_048));
        assert_eq!(code(&[1 << 40; 5]), Err(100_100));
    }

    #[test]
    fn the_key_of_an_upload_leaves_room_for_an_id_more() {
        assert!(check_upload_key(&"k".repeat(ESCAPED_LEN_MAX - ID_AROUND - 1)).is_ok());
        let error = check_upload_key(&"k".repeat(ESCAPED_LEN_MAX - ID_AROUND)).unwrap_err();
        assert_eq!(error.code(), 10_020);
        assert!(error.to_string().contains("889"), "{error}");
    }

    #[test]
    fn metadata_is_counted_as_r2_does() {
        let none = R2HttpMetadata::default();
        let custom = |name: &str, value: String| [(name.to_owned(), value)];
        assert!(check_metadata(&custom("name", "v".repeat(2_044)), &none).is_ok());
        assert_eq!(check_metadata(&custom("name", "v".repeat(2_045)), &none).unwrap_err().code(), 10_012);
        assert!(check_metadata(&custom("name", "é".repeat(2_044)), &none).is_ok());
        assert!(check_metadata(&custom("name", "é".repeat(1_021) + "€"), &none).is_ok());
        assert!(check_metadata(&custom("name", "é".repeat(1_022) + "€"), &none).is_err());
        let http = R2HttpMetadata { content_type: Some("t".repeat(8_193)), ..none };
        assert_eq!(check_metadata(&[], &http).unwrap_err().code(), 10_012);
    }
}
