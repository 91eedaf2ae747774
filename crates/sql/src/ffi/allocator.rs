//! The C library's allocator, from which SQLite, the JavaScript engine and Rust's own collections all take their memory.

/// Has the allocator give pages that it keeps for later back to the kernel. It walks over all that is free: some milliseconds for
/// each GiB. Where the C library has no such call nothing happens.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: glibc's documented signature; it may be called at any time from any thread.
        unsafe { malloc_trim(0) };
    }
}
