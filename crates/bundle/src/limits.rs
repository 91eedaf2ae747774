//! How large an application may be. The bounds are far above what people ship by hand and far below what would hurt a
//! node, which keeps a deployed application in memory.

/// Bounds of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Modules, generated ones included.
    pub modules_max: usize,
    /// Bytes of one file.
    pub file_bytes_max: u64,
    /// Bytes of all modules together, source maps aside.
    pub total_bytes_max: u64,
    /// Static files.
    pub asset_files_max: usize,
    /// Bytes of one static file.
    pub asset_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // Cloudflare takes 64 MiB before compression; its count of modules has no published bound.
        // Static files as on Cloudflare.
        Self {
            modules_max: 4096,
            file_bytes_max: 32 << 20,
            total_bytes_max: 64 << 20,
            asset_files_max: 20_000,
            asset_bytes_max: 25 << 20,
        }
    }
}
