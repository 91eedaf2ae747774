//! Keys: any legal spelling names one object and no other.

use bytes::Bytes;

use super::{Bench, list_all};
use crate::ErrorKind;

/// Spellings that servers, proxies and file systems like to change. Every pair differs.
const UNUSUAL: &[&str] = &[
    "a b",
    "a+b",
    "a%20b",
    "a%2Fb",
    "a%252Fb",
    "A b",
    "ü",
    "u\u{308}",
    "日本語/キー",
    "emoji-🦀",
    "quote'\"&<>`",
    "semi;colon=x&y?z#f",
    "back\\slash",
    "star*[x]{y}|^~$!()@,:",
    "db:user%2F..%2F.json",
    ".hidden",
    "...",
    "trailing.",
    "x~",
    "x%",
    "x%-",
    "x%+",
    "%",
];

/// Legal, but some servers refuse or rewrite them.
const ODD: &[&str] = &[
    "..",
    ".",
    "../x",
    "x/../y",
    "x/./y",
    "x//y",
    "x/",
    "/",
    "//",
    "\u{1}\u{7f}",
    "tab\tline\n",
    "\u{0}",
    " ",
];

pub(super) async fn unusual_keys_are_kept_apart(bench: Bench) {
    let long_segment = "s".repeat(260);
    let long_encoded = "ü".repeat(120);
    let mut names = UNUSUAL.to_vec();
    names.extend([long_segment.as_str(), long_encoded.as_str()]);
    if bench.scope.has_odd_keys {
        names.extend(ODD);
    }
    // A folder, a name that goes on and a key that ends with a slash, around a segment that is long on disk.
    let long_family: Vec<String> =
        ["", "-", "/x", "0", "0/y"].iter().map(|end| format!("{}{end}", "t".repeat(230))).collect();
    names.extend(long_family.iter().map(String::as_str));
    for name in &names {
        let version = bench.bucket.put(&bench.key(name), Bytes::from((*name).to_owned())).await;
        version.unwrap_or_else(|error| panic!("cannot write the key {name:?}: {error}"));
    }
    for name in &names {
        let object = bench.bucket.get(&bench.key(name)).await.expect("get");
        let object = object.unwrap_or_else(|| panic!("the key {name:?} does not read back"));
        assert_eq!(object.body, *name);
    }
    names.sort_unstable();
    assert_eq!(list_all(&bench, &bench.prefix, 1000).await, names);
    assert_eq!(list_all(&bench, &bench.prefix, 3).await, names);
    for name in &names {
        bench.bucket.delete(&bench.key(name)).await.expect("delete");
    }
    assert!(list_all(&bench, &bench.prefix, 1000).await.is_empty());
}

pub(super) async fn a_key_and_a_key_below_it_coexist(bench: Bench) {
    let names = ["a", "a-b", "a/b", "a/b/c", "a0"];
    for name in names.iter().rev() {
        bench.bucket.put(&bench.key(name), Bytes::from_static(name.as_bytes())).await.expect("put");
    }
    assert_eq!(list_all(&bench, &bench.prefix, 1000).await, names);
    bench.bucket.delete(&bench.key("a")).await.expect("delete");
    bench.bucket.delete(&bench.key("a/b")).await.expect("delete");
    assert_eq!(list_all(&bench, &bench.prefix, 1000).await, ["a-b", "a/b/c", "a0"]);
    assert_eq!(bench.bucket.get(&bench.key("a/b/c")).await.expect("get").expect("the object").body, "a/b/c");
}

pub(super) async fn an_invalid_key_is_an_error(bench: Bench) {
    for key in [String::new(), "k".repeat(1025)] {
        let body = Bytes::from_static(b"x");
        assert_eq!(
            bench.bucket.put(&key, body).await.expect_err("put of an invalid key").kind,
            ErrorKind::Invalid
        );
        assert_eq!(bench.bucket.get(&key).await.expect_err("get of an invalid key").kind, ErrorKind::Invalid);
    }
}
