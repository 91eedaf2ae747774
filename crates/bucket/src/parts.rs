//! Cuts a streamed body into parts of equal length, for stores that take large bodies in parts.

use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt};

use crate::{BucketError, ByteStream};

/// Bytes of a part: S3's least is 5 MiB, and R2 wants all but the last equal.
pub(crate) const PART_LEN: usize = 8 * 1024 * 1024;

/// Most parts of one upload, as S3 has it: 80 GiB with these parts.
pub(crate) const PARTS_MAX: usize = 10_000;

/// Parts that are sent at once; one more is being filled.
pub(crate) const PARTS_IN_FLIGHT: usize = 2;

const _: () =
    assert!((PARTS_IN_FLIGHT + 1) * PART_LEN <= 24 * 1024 * 1024, "the memory of one upload is bounded");

/// The parts of a body: all but the last have [`PART_LEN`] bytes, none is empty.
pub(crate) fn parts(body: ByteStream) -> impl Stream<Item = Result<Bytes, BucketError>> + Send {
    futures::stream::try_unfold(
        (body, BytesMut::new(), false),
        |(mut body, mut held, mut ended)| async move {
            while held.len() < PART_LEN && !ended {
                match body.try_next().await? {
                    Some(piece) => held.extend_from_slice(&piece),
                    None => ended = true,
                }
            }
            if held.is_empty() {
                return Ok(None);
            }
            let part = held.split_to(held.len().min(PART_LEN)).freeze();
            Ok(Some((part, (body, held, ended))))
        },
    )
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::ErrorKind;

    async fn lengths(pieces: Vec<usize>) -> Vec<usize> {
        let pieces = pieces.into_iter().map(|len| Ok(Bytes::from(vec![7; len])));
        let parts: Vec<Bytes> = parts(futures::stream::iter(pieces).boxed()).try_collect().await.unwrap();
        parts.iter().map(Bytes::len).collect()
    }

    #[tokio::test]
    async fn all_parts_but_the_last_are_equal() {
        assert_eq!(lengths(vec![]).await, Vec::<usize>::new());
        assert_eq!(lengths(vec![0, 3, 0, 4]).await, [7]);
        assert_eq!(lengths(vec![PART_LEN]).await, [PART_LEN]);
        assert_eq!(lengths(vec![1, 2 * PART_LEN]).await, [PART_LEN, PART_LEN, 1]);
        assert_eq!(lengths(vec![PART_LEN - 1, 2]).await, [PART_LEN, 1]);
    }

    #[tokio::test]
    async fn an_error_of_the_body_comes_through() {
        let error = BucketError::new("put_stream", "k", ErrorKind::BadBody, "scripted");
        let body = futures::stream::iter([Ok(Bytes::from_static(b"x")), Err(error)]).boxed();
        let parts: Result<Vec<Bytes>, _> = parts(body).try_collect().await;
        assert_eq!(parts.unwrap_err().kind, ErrorKind::BadBody);
    }
}
