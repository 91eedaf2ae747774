//! Deployments on a bucket in memory.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_bucket::{Bucket as _, MemoryBucket};
use holdfast_records::{
    AssetFile, Assets, Binding, BindingEntry, Blobs, CurrentRecord, HtmlHandling, Key, Manifest, ModuleEntry,
    ModuleKind, NotFoundHandling, Package, PruneMark, Record,
};
use holdfast_types::{Millis, VersionId, WriteId};

use super::*;

pub(crate) fn bucket() -> (Arc<MemoryBucket>, Deployments) {
    let bucket = Arc::new(MemoryBucket::new());
    (Arc::clone(&bucket), Deployments::new(bucket.clone(), bucket))
}

fn package(source: &str) -> Package {
    make(source, &[("shared.js", ModuleKind::Esm, "export {}")])
}

/// An application with one module more.
pub(crate) fn package_with(source: &str, kind: ModuleKind) -> Package {
    make("export default {}", &[("extra.bin", kind, source)])
}

fn make(source: &str, more: &[(&str, ModuleKind, &str)]) -> Package {
    let mut blobs = Blobs::default();
    let mut entry = |name: &str, kind, source: &str| ModuleEntry {
        name: name.into(),
        kind,
        content: blobs.add(source.to_owned()),
        source_map: None,
    };
    let mut modules = vec![entry("index.js", ModuleKind::Esm, source)];
    modules.extend(more.iter().map(|(name, kind, source)| entry(name, *kind, source)));
    modules.sort_by(|one, other| one.name.cmp(&other.name));
    let binding = BindingEntry { name: "MODE".into(), binding: Binding::Text { value: "live".into() } };
    let manifest = Manifest {
        name: "app".into(),
        entry: "index.js".into(),
        compatibility_date: "2026-11-01".into(),
        compatibility_flags: vec![],
        modules,
        bindings: vec![binding],
        classes: vec![],
        migrations: vec![],
        crons: vec![],
        assets: None,
    };
    Package::new(manifest, blobs).unwrap()
}

async fn publish(deployments: &Deployments, source: &str) -> VersionId {
    deployments.publish(&package(source), "").await.unwrap().id
}

fn name(id: VersionId) -> VersionName {
    id.to_string()[..8].parse().unwrap()
}

#[tokio::test]
async fn a_version_is_published_loaded_and_rolled_back() {
    let (_, deployments) = bucket();
    assert_eq!(deployments.current().await.unwrap(), None);
    assert!(matches!(deployments.roll_back(None).await, Err(DeployError::NothingDeployed)));
    let first = deployments.publish(&package("1"), "one").await.unwrap();
    assert_eq!((first.previous, first.new_blobs), (None, 2));
    assert!(matches!(deployments.roll_back(None).await, Err(DeployError::NoPrevious)));
    let second = deployments.publish(&package("2"), "two").await.unwrap();
    assert_eq!((second.previous, second.new_blobs), (Some(first.id), 1));
    let again = deployments.publish(&package("2"), "two again").await.unwrap();
    assert_eq!((again.id, again.previous, again.new_blobs), (second.id, Some(first.id), 0));
    assert_eq!((first.changed, second.changed, again.changed), (true, true, false));
    assert_eq!(deployments.load(second.id).await.unwrap().package, package("2"));

    let back = deployments.roll_back(None).await.unwrap();
    assert_eq!((back.id, back.previous), (first.id, Some(second.id)));
    assert_eq!(deployments.roll_back(Some(&name(second.id))).await.unwrap().id, second.id);
    let messages: Vec<String> =
        deployments.versions().await.unwrap().into_iter().map(|info| info.message).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages.contains(&"one".into()) && messages.contains(&"two".into()), "{messages:?}");
    let absent: VersionName = "ffffffff".parse().unwrap();
    let error = deployments.roll_back(Some(&absent)).await.unwrap_err();
    assert!(error.to_string().contains("there is no version `ffffffff`"), "{error}");
    assert!("xyz".parse::<VersionName>().is_err());
}

#[tokio::test]
async fn of_two_publishers_one_wins_and_the_other_is_told_what_runs() {
    let (_, deployments) = bucket();
    let base = publish(&deployments, "base").await;
    let read = deployments.read_unpruned().await.unwrap();
    let slow = package("slow");
    deployments.upload(&slow).await.unwrap();
    let fast = publish(&deployments, "fast").await;
    let error = deployments.switch(read, slow.manifest().id()).await.unwrap_err();
    assert!(error.to_string().contains(&format!("version `{fast}` runs now")), "{error}");
    assert_eq!(error.disposition(), Disposition::Reread);
    let current = deployments.current().await.unwrap().unwrap();
    assert_eq!((current.id, current.previous), (fast, Some(base)));
}

#[tokio::test]
async fn a_rollback_loses_to_a_publish_that_came_between() {
    let (_, deployments) = bucket();
    let first = publish(&deployments, "1").await;
    publish(&deployments, "2").await;
    let read = deployments.read_unpruned().await.unwrap();
    let third = publish(&deployments, "3").await;
    assert!(
        matches!(deployments.switch(read, first).await, Err(DeployError::Changed { current }) if current == Some(third))
    );
}

#[tokio::test]
async fn a_damaged_or_missing_blob_is_named_and_does_not_run() {
    let (bucket, deployments) = bucket();
    let first = publish(&deployments, "first").await;
    let second = publish(&deployments, "other").await;
    let entry = package("first").manifest().modules[0].content;
    let key = Key::Blob(entry.sha256).to_string();
    bucket.put(&key, Bytes::from_static(b"fIrst")).await.unwrap();
    assert!(
        matches!(deployments.load(first).await, Err(DeployError::DamagedBlob(hash)) if hash == entry.sha256)
    );
    bucket.put(&key, Bytes::from_static(b"longer than first")).await.unwrap();
    assert!(matches!(deployments.publish(&package("first"), "").await, Err(DeployError::DamagedBlob(_))));
    bucket.delete(&key).await.unwrap();
    let error = deployments.roll_back(Some(&name(first))).await.unwrap_err();
    assert!(error.to_string().contains(&entry.sha256.to_string()), "{error}");
    assert_eq!(deployments.current().await.unwrap().unwrap().id, second, "what ran still runs");
    assert_eq!(publish(&deployments, "first").await, first, "a deploy repairs it");
    deployments.load(first).await.unwrap();
}

#[tokio::test]
async fn a_record_under_another_versions_name_is_damage() {
    let (bucket, deployments) = bucket();
    let (first, second) = (publish(&deployments, "1").await, publish(&deployments, "2").await);
    let body = bucket.get(&Key::Version(second).to_string()).await.unwrap().unwrap().body;
    bucket.put(&Key::Version(first).to_string(), body).await.unwrap();
    let error = deployments.load(first).await.unwrap_err();
    assert!(
        matches!(&error, DeployError::WrongManifest { key, found } if *key == first && *found == second),
        "{error}"
    );
    assert_eq!(error.disposition(), Disposition::Corrupt);
}

#[tokio::test]
async fn a_prune_keeps_what_runs_and_what_ran_before() {
    let (_, deployments) = bucket();
    let mut ids = Vec::new();
    for source in ["1", "2", "3", "4"] {
        ids.push(publish(&deployments, source).await);
    }
    deployments.roll_back(Some(&name(ids[0]))).await.unwrap();
    let mut pruned = deployments.prune(0).await.unwrap();
    pruned.versions.sort();
    let mut expected = vec![ids[1], ids[2]];
    expected.sort();
    assert_eq!((pruned.versions, pruned.blobs, pruned.is_partial), (expected, 2, false));
    for kept in [ids[0], ids[3]] {
        deployments.load(kept).await.unwrap();
    }
    assert!(matches!(deployments.load(ids[1]).await, Err(DeployError::NoVersion(_))));
    assert_eq!(deployments.prune(0).await.unwrap(), Pruned::default());
    publish(&deployments, "2").await;
}

#[tokio::test]
async fn nothing_is_published_during_a_prune_and_a_dead_one_ends() {
    let (bucket, deployments) = bucket();
    let id = publish(&deployments, "1").await;
    let mark = |ends_ms| {
        let prune = Some(PruneMark { by: WriteId::from_bits(1), ends_ms });
        let version = CurrentRecord::VERSION;
        let since_ms = Millis::ZERO;
        let record = CurrentRecord {
            version,
            write_id: WriteId::from_bits(1),
            current: Some(id),
            previous: None,
            since_ms,
            prune,
        };
        bucket.put("deploy/current.json", Bytes::from(record.encode()))
    };
    mark(now().plus(60_000)).await.unwrap();
    let error = deployments.publish(&package("2"), "").await.unwrap_err();
    assert!(matches!(error, DeployError::Pruning { seconds: 60..=90 }), "{error}");
    assert!(matches!(deployments.prune(1).await, Err(DeployError::Pruning { .. })));
    mark(Millis::new(1)).await.unwrap();
    publish(&deployments, "2").await;
}

#[tokio::test]
async fn a_publisher_that_began_before_a_prune_does_not_switch() {
    let (_, deployments) = bucket();
    publish(&deployments, "1").await;
    let read = deployments.read_unpruned().await.unwrap();
    deployments.prune(1).await.unwrap();
    let id = package("2").manifest().id();
    assert!(matches!(deployments.switch(read, id).await, Err(DeployError::Changed { .. })));
}

#[tokio::test]
async fn secrets_are_encrypted_bound_to_their_names_and_never_shown() {
    let (bucket, deployments) = bucket();
    let id = publish(&deployments, "1").await;
    deployments.put_secret("TOKEN", "very-secret").await.unwrap();
    deployments.put_secret("OTHER", "other").await.unwrap();
    deployments.put_secret("TOKEN", "very-secret-2").await.unwrap();
    let loaded = deployments.load(id).await.unwrap();
    assert_eq!(loaded.secrets["TOKEN"], "very-secret-2");
    assert!(!format!("{loaded:?}").contains("very-secret"), "{loaded:?}");
    for object in bucket.list("", None, 1000).await.unwrap().objects {
        let body = bucket.get(&object.key).await.unwrap().unwrap().body;
        assert!(!String::from_utf8_lossy(&body).contains("very-secret"), "{}", object.key);
    }
    let error = deployments.put_secret("MODE", "x").await.unwrap_err();
    assert!(matches!(error, DeployError::NameTaken(_)), "{error}");
    for (name, value) in [("a-b", "x"), ("", "x"), ("A", ""), ("A", &"x".repeat(SECRET_BYTES_MAX + 1))] {
        assert!(
            matches!(deployments.put_secret(name, value).await, Err(DeployError::BadSecret { .. })),
            "{name}"
        );
    }

    // One secret's bytes under another's name do not open.
    let object = bucket.get("deploy/secrets.json").await.unwrap().unwrap();
    let swapped = String::from_utf8(object.body.to_vec()).unwrap().replace("\"OTHER\"", "\"THIRD\"");
    bucket.put("deploy/secrets.json", Bytes::from(swapped)).await.unwrap();
    assert!(matches!(deployments.load(id).await, Err(DeployError::SealedSecret(name)) if name == "THIRD"));
    deployments.delete_secret("THIRD").await.unwrap();
    assert!(matches!(deployments.delete_secret("THIRD").await, Err(DeployError::NoSecret(_))));
    let names: Vec<String> = deployments.secrets().await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["TOKEN"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_each_new_version_and_passes_over_a_broken_one() {
    let (bucket, deployments) = bucket();
    let mut watch = Watch::new(deployments.clone(), WatchOptions::default());
    assert!(watch.look().await.is_none());
    let first = publish(&deployments, "1").await;
    assert_eq!(watch.next().await.id, first);
    assert!(watch.look().await.is_none(), "told once");

    let second = publish(&deployments, "2").await;
    let key = Key::Blob(package("2").manifest().modules[0].content.sha256).to_string();
    let body = bucket.get(&key).await.unwrap().unwrap().body;
    bucket.delete(&key).await.unwrap();
    assert!(watch.look().await.is_none(), "the first goes on");
    bucket.put(&key, body).await.unwrap();
    assert_eq!(watch.next().await.id, second, "what was missing has come");
    publish(&deployments, "2").await;
    assert!(watch.look().await.is_none(), "the same again is nothing new");

    deployments.put_secret("TOKEN", "t").await.unwrap();
    let same = watch.next().await;
    assert_eq!((same.id, same.secrets["TOKEN"].as_str()), (second, "t"));
    assert!(watch.look().await.is_none());
}

/// An application with static files that are on the disk.
fn with_files(dir: &std::path::Path, files: &[(&str, &str)]) -> Package {
    let mut blobs = Blobs::default();
    let mut places = std::collections::BTreeMap::new();
    let files = files.iter().map(|(path, text)| {
        let place = dir.join(path.trim_start_matches('/'));
        std::fs::write(&place, text).unwrap();
        let content = Blobs::default().add(text.as_bytes().to_vec());
        places.insert(content.sha256, place);
        AssetFile { path: (*path).to_owned(), content }
    });
    let assets = Assets {
        files: files.collect(),
        html_handling: HtmlHandling::default(),
        not_found_handling: NotFoundHandling::default(),
        run_worker_first: vec![],
        is_alone: false,
        headers: Some(blobs.add("/*\n  X-Site: yes\n")),
        redirects: None,
    };
    let plain = package("export default {}");
    for (_, bytes) in plain.blobs().iter() {
        blobs.add(bytes.clone());
    }
    let manifest = Manifest { assets: Some(assets), ..plain.manifest().clone() };
    Package::new(manifest, blobs).unwrap().with_files(places)
}

fn ask(path: &str) -> http::Request<()> {
    http::Request::builder().uri(path).body(()).unwrap()
}

#[tokio::test]
async fn static_files_are_uploaded_once_and_read_when_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (bucket, deployments) = bucket();
    let first = with_files(dir.path(), &[("/a.txt", "a"), ("/b.txt", "b")]);
    let published = deployments.publish(&first, "").await.unwrap();
    assert_eq!(published.new_blobs, 5, "two modules, two files and their rules");
    let second = with_files(dir.path(), &[("/a.txt", "a"), ("/c.txt", "c")]);
    assert_eq!(deployments.publish(&second, "").await.unwrap().new_blobs, 1);

    let application = deployments.load(published.id).await.unwrap().application().unwrap();
    let server = application.assets().unwrap();
    let answer = server.answer(ask("https://h/b.txt")).await;
    assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, &b"b"[..]));
    assert_eq!(answer.headers()["x-site"], "yes");
    assert_eq!(server.answer(ask("https://h/c.txt")).await.status(), 404);
    assert!(server.is_for_worker(&"/c.txt".parse().unwrap(), &http::HeaderMap::new()));
    assert!(!server.is_for_worker(&"/a.txt".parse().unwrap(), &http::HeaderMap::new()));

    let lost = Blobs::default().add("b").sha256;
    bucket.delete(&Key::Blob(lost).to_string()).await.unwrap();
    let error = deployments.roll_back(Some(&name(published.id))).await.unwrap_err();
    assert!(matches!(error, DeployError::MissingBlob(hash) if hash == lost), "{error}");
    deployments.publish(&first, "").await.unwrap();
    deployments.prune(1).await.unwrap();
    let application = deployments.load(published.id).await.unwrap().application().unwrap();
    let answer = application.assets().unwrap().answer(ask("/b.txt")).await;
    assert_eq!(answer.status(), 200, "a prune keeps what a version's paths lead to");
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_deployed_stops_the_deploy() {
    let dir = tempfile::tempdir().unwrap();
    let (_, deployments) = bucket();
    let package = with_files(dir.path(), &[("/a.txt", "a")]);
    std::fs::write(dir.path().join("a.txt"), "b").unwrap();
    let error = deployments.publish(&package, "").await.unwrap_err();
    assert!(error.to_string().contains("changed while it was deployed: deploy again"), "{error}");
    std::fs::remove_file(dir.path().join("a.txt")).unwrap();
    let error = deployments.publish(&package, "").await.unwrap_err();
    assert!(error.to_string().contains("a.txt` cannot be read"), "{error}");
    assert_eq!(deployments.current().await.unwrap(), None);
}
