//! What an error of the file system means to a caller of the bucket. Every text names the path.

use std::io;
use std::path::Path;

use crate::{BucketError, ErrorKind};

/// Which call on which key an error belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// The operation's name.
    pub operation: &'static str,
    /// The key or prefix.
    pub key: &'a str,
}

impl Call<'_> {
    /// An error of the file system while doing `what` at `path`.
    pub(super) fn io(&self, what: &str, path: &Path, error: &io::Error) -> BucketError {
        self.fail(kind_of(error), format!("cannot {what} `{}`: {error}", path.display()))
    }

    /// Any other error.
    pub(super) fn fail(&self, kind: ErrorKind, detail: impl Into<String>) -> BucketError {
        BucketError::new(self.operation, self.key, kind, detail)
    }
}

fn kind_of(error: &io::Error) -> ErrorKind {
    /// Too many open files, in this process and in the system: others close theirs.
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ErrorKind::NoSpace
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted => ErrorKind::Unavailable,
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => ErrorKind::Unavailable,
        _ => ErrorKind::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disks_and_missing_rights_are_named() {
        let call = Call { operation: "put", key: "k" };
        let kind = |errno| {
            let error = call.io("write", Path::new("/b/x"), &io::Error::from_raw_os_error(errno));
            assert!(error.to_string().contains("`/b/x`"), "{error}");
            error.kind
        };
        assert_eq!(kind(28), ErrorKind::NoSpace);
        assert_eq!(kind(122), ErrorKind::NoSpace);
        assert_eq!(kind(13), ErrorKind::Denied);
        assert_eq!(kind(30), ErrorKind::Denied);
        assert_eq!(kind(24), ErrorKind::Unavailable);
        assert_eq!(kind(5), ErrorKind::Local);
    }
}
