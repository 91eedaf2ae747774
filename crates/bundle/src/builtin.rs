//! Modules that the runtime brings: `cloudflare:…` and those of Node. They stay imports, spelled with their prefix.

use crate::ImportFault;

/// `cloudflare:` modules of the runtime.
const CLOUDFLARE: &[&str] = &["cloudflare:sockets", "cloudflare:workers"];

/// Modules of Node that the runtime (`crates/js/src/node.rs`) brings with `nodejs_compat`, without their prefix.
pub const NODE: &[&str] = &[
    "assert",
    "assert/strict",
    "async_hooks",
    "buffer",
    "crypto",
    "diagnostics_channel",
    "events",
    "path",
    "path/posix",
    "process",
    "querystring",
    "stream",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "string_decoder",
    "timers",
    "timers/promises",
    "url",
    "util",
    "util/types",
];

/// Modules of Node that nothing here brings.
const NODE_ABSENT: &[&str] = &[
    "child_process",
    "cluster",
    "console",
    "constants",
    "dgram",
    "dns",
    "dns/promises",
    "domain",
    "fs",
    "fs/promises",
    "http",
    "http2",
    "https",
    "inspector",
    "inspector/promises",
    "module",
    "net",
    "os",
    "path/win32",
    "perf_hooks",
    "punycode",
    "readline",
    "readline/promises",
    "repl",
    "sea",
    "sqlite",
    "sys",
    "test",
    "tls",
    "trace_events",
    "tty",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

/// What a specifier is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// A module of the runtime, under this name.
    Name(String),
    /// A name that is a module of Node, and may be a package of the project's own: no prefix, and no `nodejs_compat`.
    Ambiguous,
    /// Something to resolve.
    No,
}

/// Judges a specifier.
///
/// # Errors
/// A module of the runtime that is not there; the fault lacks nothing.
pub(crate) fn judge(specifier: &str, importer: &str, has_node_compat: bool) -> Result<Builtin, ImportFault> {
    let (specifier_text, importer) = (specifier.to_owned(), importer.to_owned());
    if specifier.starts_with("cloudflare:") {
        return if CLOUDFLARE.contains(&specifier) {
            Ok(Builtin::Name(specifier_text))
        } else {
            Err(ImportFault::NoSuchCloudflare { specifier: specifier_text, importer })
        };
    }
    let has_prefix = specifier.starts_with("node:");
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let is_there = NODE.contains(&bare);
    if is_there && has_node_compat {
        return Ok(Builtin::Name(format!("node:{bare}")));
    }
    match (has_prefix, is_there, NODE_ABSENT.contains(&bare)) {
        (true, true, _) => Err(ImportFault::NeedsNodeCompat { specifier: specifier_text, importer }),
        (true, false, _) => Err(ImportFault::NoSuchBuiltin { specifier: specifier_text, importer }),
        (false, true, _) | (false, _, true) => Ok(Builtin::Ambiguous),
        (false, false, false) => Ok(Builtin::No),
    }
}

/// The name of a module of Node that nothing here brings, with its prefix.
pub(crate) fn absent(specifier: &str) -> Option<String> {
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    NODE_ABSENT.contains(&bare).then(|| format!("node:{bare}"))
}

/// What to say when an ambiguous name is no package of the project.
pub(crate) fn refusal(specifier: &str, importer: &str) -> ImportFault {
    let (specifier_text, importer) = (specifier.to_owned(), importer.to_owned());
    if NODE.contains(&specifier) {
        ImportFault::NeedsNodeCompat { specifier: specifier_text, importer }
    } else {
        ImportFault::NoSuchBuiltin { specifier: specifier_text, importer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_node_is_the_same_with_and_without_its_prefix() {
        for specifier in ["path", "node:path"] {
            assert_eq!(judge(specifier, "a.js", true).unwrap(), Builtin::Name("node:path".into()));
        }
        assert_eq!(judge("path", "a.js", false).unwrap(), Builtin::Ambiguous);
        assert!(refusal("path", "a.js").to_string().contains("nodejs_compat"));
        assert!(judge("node:path", "a.js", false).unwrap_err().to_string().contains("nodejs_compat"));
        let absent = judge("node:fs", "a.js", true).unwrap_err().to_string();
        assert_eq!(absent, refusal("fs", "a.js").to_string().replace("`fs`", "`node:fs`"));
        assert_eq!(judge("hono", "a.js", true).unwrap(), Builtin::No);
        assert_eq!(judge("buffer/", "a.js", true).unwrap(), Builtin::No, "the package, as Node has it");
    }

    #[test]
    fn a_cloudflare_module_is_there_or_named() {
        let name = "cloudflare:workers".to_owned();
        assert_eq!(judge(&name, "a.js", false).unwrap(), Builtin::Name(name));
        let fault = judge("cloudflare:email", "a.js", false).unwrap_err().to_string();
        assert!(fault.contains("`cloudflare:email`") && fault.contains("a.js"), "{fault}");
    }
}
