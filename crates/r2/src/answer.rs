//! Answers as an isolate takes them: JSON, and a body beside it.

use std::ops::Range;

use bytes::Bytes;
use holdfast_bucket::ByteStream;
use holdfast_records::R2ObjectHead;
use serde_json::{Value, json};

/// What an operation came to.
#[derive(Debug)]
pub struct Answer {
    /// JSON.
    pub head: Bytes,
    /// The bytes of an object.
    pub body: AnswerBody,
}

/// The bytes of an object.
pub enum AnswerBody {
    /// There are none to give.
    None,
    /// All of them.
    Whole(Bytes),
    /// They come in pieces. A stream that is shorter ends with an error.
    Stream {
        /// How many bytes.
        len: u64,
        /// The pieces.
        stream: ByteStream,
    },
}

impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Stream { len, .. } => write!(f, "Stream({len} bytes)"),
        }
    }
}

impl AnswerBody {
    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Stream { len, .. } => *len,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Answer {
    /// JSON alone.
    pub(crate) fn of(value: &Value) -> Self {
        Self { head: value.to_string().into(), body: AnswerBody::None }
    }

    /// An object or none, without bytes.
    pub(crate) fn object(object: Option<Value>) -> Self {
        Self::of(&json!({ "object": object }))
    }

    /// An object with bytes, of which there may be none.
    pub(crate) fn with_body(object: &Value, body: AnswerBody) -> Self {
        Self { body, ..Self::of(&json!({ "object": object, "hasBody": true })) }
    }
}

/// Which of an object's metadata are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) http: bool,
    pub(crate) custom: bool,
}

impl Shown {
    pub(crate) const ALL: Self = Self { http: true, custom: true };
}

/// An object as the API shows it.
pub(crate) fn object_json(head: &R2ObjectHead, range: Option<&Range<u64>>, shown: Shown) -> Value {
    let R2ObjectHead { key, uploaded_ms, size, revision, etag, checksums, http, custom, storage_class, body } =
        head;
    let mut object = json!({
        "key": key, "version": revision.to_string(), "size": size, "etag": etag, "uploaded": uploaded_ms.get(),
        "checksums": checksums, "storageClass": storage_class.as_deref().unwrap_or("Standard"),
    });
    // The etag of a multipart upload is no MD5 of the object.
    if body.upload().is_none() {
        object["checksums"]["md5"] = json!(etag);
    }
    if shown.http {
        object["httpMetadata"] = json!(http);
    }
    if shown.custom {
        // In pairs, so that they keep their order.
        object["customMetadata"] = json!(custom);
    }
    if let Some(range) = range {
        object["range"] = json!({ "offset": range.start, "length": range.end - range.start });
    }
    object
}
