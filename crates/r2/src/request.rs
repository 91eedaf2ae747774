//! Requests as an isolate sends them: JSON, apart from bodies. Texts are the handler's; everything is checked here again.

use holdfast_records::R2HttpMetadata;
use serde::Deserialize;

use crate::condition::Condition;
use crate::digest::Given;
use crate::range::WantedRange;

/// What is asked of a bucket.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
pub(crate) enum Request {
    /// All of an object but its bytes.
    Head {
        /// Its key.
        key: String,
    },
    /// An object.
    Get(Get),
    /// Puts an object; its bytes come beside.
    Put(Put),
    /// Deletes objects.
    Delete {
        /// Their keys.
        keys: Vec<String>,
    },
    /// A page of the objects.
    List(List),
    /// Begins a multipart upload.
    CreateMultipartUpload(CreateUpload),
    /// Puts a part of one; its bytes come beside.
    UploadPart(UploadPart),
    /// Makes parts the object.
    CompleteMultipartUpload(CompleteUpload),
    /// Gives one up.
    AbortMultipartUpload(AbortUpload),
}

impl Request {
    /// The method, as errors and metrics name it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Head { .. } => "head",
            Self::Get(_) => "get",
            Self::Put(_) => "put",
            Self::Delete { .. } => "delete",
            Self::List(_) => "list",
            Self::CreateMultipartUpload(_) => "createMultipartUpload",
            Self::UploadPart(_) => "uploadPart",
            Self::CompleteMultipartUpload(_) => "completeMultipartUpload",
            Self::AbortMultipartUpload(_) => "abortMultipartUpload",
        }
    }
}

/// A read of an object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Get {
    /// Its key.
    pub(crate) key: String,
    /// Where it does not hold, the bytes are not given.
    #[serde(default)]
    pub(crate) only_if: Condition,
    /// Which bytes.
    #[serde(default)]
    pub(crate) range: Option<WantedRange>,
    /// Which bytes, as a field of HTTP; instead of the other.
    #[serde(default)]
    pub(crate) range_header: Option<String>,
}

/// A write of an object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Put {
    /// Its key.
    pub(crate) key: String,
    /// How many bytes come.
    pub(crate) length: u64,
    /// Where it does not hold, nothing is put.
    #[serde(default)]
    pub(crate) only_if: Condition,
    /// What HTTP is to be told.
    #[serde(default)]
    pub(crate) http_metadata: R2HttpMetadata,
    /// Names and values of the application.
    #[serde(default)]
    pub(crate) custom_metadata: Vec<(String, String)>,
    /// What the bytes must come to.
    #[serde(default)]
    pub(crate) checksum: Option<Given>,
    /// `Standard` or `InfrequentAccess`.
    #[serde(default)]
    pub(crate) storage_class: Option<String>,
}

/// The beginning of a multipart upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateUpload {
    /// The object's key.
    pub(crate) key: String,
    /// What HTTP is to be told.
    #[serde(default)]
    pub(crate) http_metadata: R2HttpMetadata,
    /// Names and values of the application.
    #[serde(default)]
    pub(crate) custom_metadata: Vec<(String, String)>,
    /// `Standard` or `InfrequentAccess`.
    #[serde(default)]
    pub(crate) storage_class: Option<String>,
}

/// A part of a multipart upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UploadPart {
    /// The object's key.
    pub(crate) key: String,
    /// As creating it answered.
    pub(crate) upload_id: String,
    /// Its place among the parts.
    pub(crate) part_number: u32,
    /// How many bytes come.
    pub(crate) length: u64,
}

/// The end of a multipart upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompleteUpload {
    /// The object's key.
    pub(crate) key: String,
    /// As creating it answered.
    pub(crate) upload_id: String,
    /// The parts, in any order.
    pub(crate) parts: Vec<UploadedPart>,
}

/// A part that was uploaded.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UploadedPart {
    /// Its place among the parts.
    pub(crate) part_number: u32,
    /// As uploading it answered.
    pub(crate) etag: String,
}

/// A multipart upload that is given up.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AbortUpload {
    /// The object's key.
    pub(crate) key: String,
    /// As creating it answered.
    pub(crate) upload_id: String,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct List {
    /// Only keys that begin with it.
    pub(crate) prefix: String,
    /// Where the page before ended.
    pub(crate) cursor: Option<String>,
    /// Most objects and prefixes.
    pub(crate) limit: Option<i64>,
    /// Keys that have it behind the prefix are told by what stands before it.
    pub(crate) delimiter: Option<String>,
    /// Only keys after it.
    pub(crate) start_after: Option<String>,
    /// Whether the metadata for HTTP are wanted.
    pub(crate) http_metadata: bool,
    /// Whether the custom metadata are wanted.
    pub(crate) custom_metadata: bool,
}
