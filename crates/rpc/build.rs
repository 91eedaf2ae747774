//! Compiles `proto/` without an installed `protoc`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = protox::compile(
        ["holdfast/v1/cell.proto", "holdfast/v1/follower.proto", "holdfast/v1/node.proto"],
        [&root],
    )?;
    // Served and called without generated code: `grpc.rs` says why.
    for service in files.file.iter_mut().flat_map(|file| &mut file.service) {
        service.method.retain(|method| method.name() != "Call");
    }
    tonic_prost_build::configure().bytes(".holdfast.v1").build_transport(false).compile_fds(files)?;
    Ok(())
}
