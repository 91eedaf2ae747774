//! The whole way: the real SDK, the protocol, this server, a store; under the suite that every store must pass.

mod memory {
    use std::sync::Arc;

    use holdfast_bucket::conformance::Scope;
    use holdfast_bucket::{Bucket, MemoryBucket};

    use crate::server::{self, Server};

    async fn open() -> (Arc<dyn Bucket>, Server) {
        let server = server::start(Arc::new(MemoryBucket::new())).await;
        (server.bucket("//served").await, server)
    }

    holdfast_bucket::conformance_tests!(open, Scope::full());
}

mod local {
    use std::sync::Arc;

    use holdfast_bucket::conformance::Scope;
    use holdfast_bucket::{Bucket, LocalBucket};

    use crate::server::{self, Server};

    /// Below a prefix, so that prefixes are under test too.
    async fn open() -> (Arc<dyn Bucket>, (Server, tempfile::TempDir)) {
        let folder = tempfile::tempdir().unwrap();
        let bucket = LocalBucket::open(folder.path()).await.unwrap();
        let server = server::start(Arc::new(bucket)).await;
        (server.bucket("//served/some/prefix").await, (server, folder))
    }

    holdfast_bucket::conformance_tests!(open, Scope::full());
}
