//! Deletes. What is deleted leaves a record that says so: a late delete then finds another record than the one that it saw,
//! and does nothing.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use holdfast_records::R2Record;
use holdfast_types::R2BucketName;

use super::{LANES, R2, RACES_MAX, Replaced, fresh_write_id, pause, record_key};
use crate::R2Error;
use crate::limits::{DELETE_MAX, check_key};

impl R2 {
    pub(super) async fn delete(&self, name: &R2BucketName, keys: Vec<String>) -> Result<(), R2Error> {
        if keys.len() > DELETE_MAX {
            let text = format!("A delete takes at most {DELETE_MAX} keys, not {}.", keys.len());
            return Err(R2Error::invalid_argument(text));
        }
        let keys: BTreeSet<String> = keys.into_iter().collect();
        for key in &keys {
            check_key(key)?;
        }
        let deletes = stream::iter(keys).map(|key| self.delete_one(name, key));
        deletes.buffer_unordered(LANES).try_collect().await
    }

    async fn delete_one(&self, name: &R2BucketName, key: String) -> Result<(), R2Error> {
        let record_key = record_key(name, &key);
        for races in 0..RACES_MAX {
            if races > 0 {
                pause(races).await?;
            }
            let seen = self.look(&record_key).await?;
            let Some(head) = seen.object() else { return Ok(()) };
            let record = R2Record::new(fresh_write_id()?, seen.barred().to_vec(), None);
            match self.replace(name, &key, &seen, &record, b"").await {
                Replaced::Yes => {
                    self.remove_body(name, &key, Some(&head.body)).await;
                    return Ok(());
                }
                // What came in between is deleted as well.
                Replaced::No | Replaced::Overtaken(_) => {}
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(R2Error::internal(format!("`{record_key}` is written to all the time")))
    }
}
