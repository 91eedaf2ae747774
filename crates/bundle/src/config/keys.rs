//! Which keys of Wrangler's configuration mean something here, which are ignored, and which stop a deploy.

/// Keys that are read.
pub const SUPPORTED_KEYS: &[&str] = &[
    "assets",
    "compatibility_date",
    "compatibility_flags",
    "d1_databases",
    "define",
    "durable_objects",
    "main",
    "migrations",
    "name",
    "r2_buckets",
    "rules",
    "services",
    "triggers",
    "tsconfig",
    "vars",
];

/// Keys that change nothing here, each with why. Those with a text are noted when they are met.
pub const IGNORED_KEYS: &[(&str, &str)] = &[
    ("$schema", ""),
    ("account_id", "a fleet has no account"),
    ("compliance_region", "the fleet's bucket is where you put it"),
    ("dev", "it is for Wrangler's own server"),
    ("find_additional_modules", "modules are found by following imports"),
    ("keep_names", "names are never changed"),
    ("legacy_env", ""),
    ("logpush", "logs go where the fleet's logs go"),
    ("minify", "modules are shipped as they are"),
    ("no_bundle", "modules are always shipped one by one"),
    ("observability", "the fleet has its own logs, metrics and traces"),
    ("placement", "cells are placed by the fleet"),
    ("preserve_file_names", "names are never changed"),
    ("preview_urls", "there are no preview URLs"),
    ("send_metrics", ""),
    ("upload_source_maps", "source maps are always kept"),
    ("usage_model", ""),
    ("workers_dev", "the fleet's ingresses answer every host name"),
];

/// Keys of Wrangler that stop a deploy, because the application would not be what it says.
pub const LATER_KEYS: &[&str] = &[
    "ai",
    "ai_search",
    "ai_search_namespaces",
    "alias",
    "analytics_engine_datasets",
    "base_dir",
    "browser",
    "build",
    "cloudchamber",
    "containers",
    "data_blobs",
    "dispatch_namespaces",
    "env",
    "first_party_worker",
    "hyperdrive",
    "images",
    "jsx_factory",
    "jsx_fragment",
    "keep_vars",
    "kv_namespaces",
    "limits",
    "logfwdr",
    "media",
    "mtls_certificates",
    "node_compat",
    "pages_build_output_dir",
    "pipelines",
    "python_modules",
    "queues",
    "ratelimits",
    "route",
    "routes",
    "secrets",
    "secrets_store_secrets",
    "send_email",
    "site",
    "streaming_tail_consumers",
    "tail_consumers",
    "text_blobs",
    "unsafe",
    "unsafe_hello_world",
    "vectorize",
    "version_metadata",
    "vpc_services",
    "wasm_modules",
    "worker_loaders",
    "workflows",
    "zone_id",
];

/// The name among `known` that a person most likely meant, if any is near.
pub(super) fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known.map(|name| (distance(key, name), name)).min_by_key(|(distance, _)| *distance);
    // A third of the letters wrong is a typing error; more is another word.
    near.filter(|(distance, name)| *distance * 3 <= name.len().max(3)).map(|(_, name)| name.to_owned())
}

/// Edits between two texts (Levenshtein), by one row of the matrix at a time. A swap of neighbours is two edits.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_one_list() {
        let mut all: Vec<&str> = SUPPORTED_KEYS.to_vec();
        all.extend(IGNORED_KEYS.iter().map(|(key, _)| *key));
        all.extend(LATER_KEYS);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for list in [SUPPORTED_KEYS, LATER_KEYS] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn the_nearest_key_is_what_was_meant() {
        let nearest = |key| nearest(key, SUPPORTED_KEYS.iter().copied());
        assert_eq!(nearest("durable_object").as_deref(), Some("durable_objects"));
        assert_eq!(nearest("compatability_date").as_deref(), Some("compatibility_date"));
        assert_eq!(nearest("mian").as_deref(), None, "a swap is two edits of four letters");
        assert_eq!(nearest("var").as_deref(), Some("vars"));
        assert_eq!(nearest("zebra"), None);
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("kitten", "sitting")), (3, 0, 3));
    }
}
