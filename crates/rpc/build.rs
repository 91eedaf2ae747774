//! Compiles `proto/` without an installed `protoc`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files = protox::compile(["holdfast/v1/cell.proto", "holdfast/v1/node.proto"], [&root])?;
    tonic_prost_build::configure().bytes(".holdfast.v1").build_transport(false).compile_fds(files)?;
    Ok(())
}
