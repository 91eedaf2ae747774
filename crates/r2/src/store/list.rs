//! Listings: keys in order from the bucket's own, and what is shown of each object from its record.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use holdfast_records::{R2Record, escape_r2_key, r2_objects_prefix, unescape_r2_key};
use holdfast_types::R2BucketName;
use serde_json::{Value, json};

use super::{LANES, R2, ROWS_MAX};
use crate::answer::{Shown, object_json};
use crate::list::{Page, Place};
use crate::request::List;
use crate::{Answer, R2Error};

/// Listings of the store for one page: behind many deleted keys a page may end early, even with nothing in it.
const LISTINGS_MAX: usize = 32;
/// Most objects of a page that shows metadata.
const WITH_METADATA_MAX: i64 = 100;

impl R2 {
    pub(super) async fn list(&self, name: &R2BucketName, list: &List) -> Result<Answer, R2Error> {
        let shown = Shown { http: list.http_metadata, custom: list.custom_metadata };
        let mut list = list.clone();
        if (shown.http || shown.custom) && list.limit.is_none_or(|limit| limit > WITH_METADATA_MAX) {
            // What is too much stays so.
            list.limit = list.limit.filter(|limit| *limit > 1_000).or(Some(WITH_METADATA_MAX));
        }
        let (mut page, after) = Page::new(&list)?;
        let objects = r2_objects_prefix(name);
        let (keys, is_truncated) = self.walk(&objects, &list.prefix, after, &mut page).await?;
        let shows =
            stream::iter(keys).map(|key| self.show(format!("{objects}{}", escape_r2_key(&key)), shown));
        let shows: Vec<Option<Value>> = shows.buffered(LANES).try_collect().await?;
        let (prefixes, cursor) = page.finish(is_truncated);
        let objects: Vec<Value> = shows.into_iter().flatten().collect();
        let mut answer = json!({
            "objects": objects, "truncated": cursor.is_some(), "delimitedPrefixes": prefixes,
        });
        if let Some(cursor) = cursor {
            answer["cursor"] = cursor.into();
        }
        Ok(Answer::of(&answer))
    }

    /// The keys of the objects of a page, and whether there may be more.
    async fn walk(
        &self,
        objects: &str,
        prefix: &str,
        after: Option<String>,
        page: &mut Page,
    ) -> Result<(Vec<String>, bool), R2Error> {
        let place = |key: &str| format!("{objects}{}", escape_r2_key(key));
        let prefix = place(prefix);
        let mut after = after.map(|key| place(&key));
        let mut keys = Vec::new();
        for _ in 0..LISTINGS_MAX {
            let listing = self.bucket.list(&prefix, after.as_deref(), ROWS_MAX).await?;
            for row in &listing.objects {
                let key = row.key.strip_prefix(objects).and_then(unescape_r2_key);
                let Some(key) = key else {
                    tracing::warn!(key = row.key, "a foreign object lies among those of an R2 bucket");
                    continue;
                };
                if row.len == R2Record::DELETED_LEN {
                    page.pass(&key);
                    continue;
                }
                match page.take(&key) {
                    Place::Object => keys.push(key),
                    Place::Prefix => {}
                    Place::Beyond => return Ok((keys, true)),
                }
            }
            let Some(next) = listing.next else { return Ok((keys, false)) };
            after = Some(page.skip_to().map(|key| place(&key)).filter(|key| *key > next).unwrap_or(next));
        }
        Ok((keys, true))
    }

    /// An object as a listing shows it; none where it was deleted meanwhile.
    async fn show(&self, key: String, shown: Shown) -> Result<Option<Value>, R2Error> {
        let seen = self.look(&key).await?;
        Ok(seen.object().map(|head| object_json(head, None, shown)))
    }
}
