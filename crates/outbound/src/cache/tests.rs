//! Answers that are put and looked for, and what the bound does to them.

use std::time::Duration;

use super::*;

fn put_of(url: &str, control: &str) -> Put {
    Put {
        name: name(url),
        status: 200,
        status_text: "OK".into(),
        headers: vec![("Cache-Control".into(), control.into())],
        expires_in: None,
        last_modified: None,
    }
}

fn name(url: &str) -> Name {
    Name { cache: None, url: url.to_owned() }
}

fn body(pieces: &[usize]) -> Body {
    body_of(pieces.iter().map(|len| Bytes::from(vec![7; *len])).collect())
}

impl Caches {
    async fn keeps(&self, url: &str, pieces: &[usize]) -> bool {
        self.put(put_of(url, "max-age=60"), body(pieces)).await.unwrap()
    }

    fn has(&self, url: &str) -> bool {
        self.entries.find(&name(url), Instant::now()).is_some()
    }
}

#[tokio::test]
async fn an_answer_is_there_until_its_time_is_over_or_it_is_deleted() {
    let caches = Caches::new(1 << 20);
    assert!(caches.keeps("a", &[3, 20_000, 5]).await);
    let now = Instant::now();
    let (kept, pieces) = caches.entries.find(&name("a"), now).unwrap();
    assert_eq!((kept.status, pieces.iter().map(Bytes::len).sum::<usize>()), (200, 20_008));
    let other = Name { cache: Some("other".into()), url: "a".into() };
    assert!(caches.entries.find(&other, now).is_none(), "caches have their own answers");
    assert!(caches.entries.find(&name("a"), now + Duration::from_secs(61)).is_none());
    assert!(!caches.has("a"), "what is stale is gone");
    assert!(caches.keeps("a", &[1]).await);
    assert!(caches.entries.remove(&name("a"), now) && !caches.entries.remove(&name("a"), now));
    assert!(!caches.put(put_of("a", "no-store"), body(&[1])).await.unwrap());
    assert!(!caches.has("a"));
}

#[tokio::test]
async fn what_was_used_least_recently_makes_room() {
    let caches = Caches::new(40_000);
    for url in ["a", "b", "c"] {
        assert!(caches.keeps(url, &[10_000]).await);
    }
    assert!(caches.has("a"));
    assert!(caches.keeps("d", &[10_000]).await);
    assert_eq!(["a", "b", "c", "d"].map(|url| caches.has(url)), [true, false, true, true]);
    // While it comes, it counts beside the one that it replaces.
    assert!(caches.keeps("d", &[5_000, 5_000]).await);
    assert_eq!(["a", "c", "d"].map(|url| caches.has(url)), [false, true, true]);
    assert!(!caches.keeps("e", &[30_000, 10_000]).await, "more than all of the room");
    let table_is_sound = caches.keeps("f", &[39_000]).await;
    assert!(table_is_sound, "what was given up counts no more");
}

#[tokio::test]
async fn answers_that_are_coming_share_the_bound() {
    let caches = Caches::new(40_000);
    let mut one = caches.entries.begin();
    let mut other = caches.entries.begin();
    assert!(one.add(vec![0; 25_000].into()));
    assert!(!other.add(vec![0; 20_000].into()));
    assert!(other.add(vec![0; 10_000].into()));
    drop(one);
    assert!(other.add(vec![0; 25_000].into()));
}

#[tokio::test]
async fn an_answer_whose_body_breaks_is_not_kept() {
    let caches = Caches::new(40_000);
    let pieces = [Ok(Frame::data(Bytes::from_static(b"x"))), Err("gone".into())];
    let broken = StreamBody::new(stream::iter(pieces)).boxed_unsync();
    let error = caches.put(put_of("a", "max-age=9"), broken).await.unwrap_err();
    assert_eq!(error.message, "the body broke: gone");
    assert!(!caches.has("a"));
}
