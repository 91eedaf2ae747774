//! Listings: complete, in byte order, and never behind.

use bytes::Bytes;

use super::{Bench, list_all, put_all};

async fn write(bench: &Bench, names: &[String]) {
    put_all(bench, names.iter().map(|name| bench.key(name)).collect()).await;
}

pub(super) async fn pages_cover_all_keys_once_in_byte_order(bench: Bench) {
    // Flat names and folders, mixed, so that pages end inside both.
    let mut names: Vec<String> = (0..bench.scope.listed)
        .map(|i| if i % 3 == 0 { format!("d{:02}/{i:05}", i % 17) } else { format!("f{i:05}") })
        .collect();
    write(&bench, &names).await;
    names.sort_unstable();
    for limit in [1000, 137] {
        assert!(
            list_all(&bench, &bench.prefix, limit).await == names,
            "pages of {limit} differ from the keys"
        );
    }
    let first = bench.bucket.list(&bench.prefix, None, names.len() + 1000).await.expect("list");
    assert!(first.objects.len() >= 1000 || first.next.is_none());
    let one = bench.bucket.list(&bench.prefix, None, 1).await.expect("list");
    assert_eq!(one.objects.len(), 1);
    assert!(one.next.is_some());
}

pub(super) async fn a_listing_begins_after_the_key_given(bench: Bench) {
    let names = ["a", "b", "b/1", "b/2", "c", "d/1"].map(str::to_owned);
    write(&bench, &names).await;
    for after in ["", "a", "aa", "b", "b/", "b/1", "b/15", "b/2", "b/3", "b0", "d/1", "e"] {
        let page = bench.bucket.list(&bench.prefix, Some(&bench.key(after)), 100).await.expect("list");
        let listed: Vec<_> = page.objects.iter().map(|row| row.key.clone()).collect();
        let expected: Vec<_> =
            names.iter().filter(|name| name.as_str() > after).map(|name| bench.key(name)).collect();
        assert_eq!(listed, expected, "after {after:?}");
        assert_eq!(page.next, None);
    }
    let narrow = bench.bucket.list(&bench.key("b/"), Some(&bench.key("a")), 100).await.expect("list");
    assert_eq!(narrow.objects.len(), 2);
}

pub(super) async fn a_prefix_is_not_a_folder(bench: Bench) {
    let names = ["ab", "abc/1", "abd", "ac", "b"].map(str::to_owned);
    write(&bench, &names).await;
    assert_eq!(list_all(&bench, &bench.key("ab"), 100).await, ["ab", "abc/1", "abd"]);
    assert_eq!(list_all(&bench, &bench.key("abc"), 100).await, ["abc/1"]);
    assert_eq!(list_all(&bench, &bench.key("abc/"), 100).await, ["abc/1"]);
    assert!(list_all(&bench, &bench.key("abc/2"), 100).await.is_empty());
    assert!(list_all(&bench, &bench.key("x/y/z"), 100).await.is_empty());
}

pub(super) async fn a_listing_sees_the_writes_and_deletes_before_it(bench: Bench) {
    for number in 0..20 {
        let name = format!("e{number:02}/object");
        bench.bucket.put(&bench.key(&name), Bytes::from_static(b"x")).await.expect("put");
        assert_eq!(list_all(&bench, &bench.prefix, 100).await, std::slice::from_ref(&name));
        bench.bucket.delete(&bench.key(&name)).await.expect("delete");
        assert!(list_all(&bench, &bench.prefix, 100).await.is_empty());
    }
}
