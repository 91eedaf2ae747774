//! Tells the object of the cron triggers of each version that is deployed. Every node does: telling it twice changes
//! nothing, and whoever owns the object answers for the version that its own node runs.

use std::sync::Arc;
use std::time::Duration;

use holdfast_deploy::Running;
use holdfast_js::{Application, CRON_CLASS, CRON_OBJECT, JsError, id_from_name};
use holdfast_outbound::{ObjectTarget, Outbound, read_whole};
use holdfast_rpc::ObjectCall;
use http_body_util::{BodyExt as _, Empty};
use tokio::time::Instant;

use crate::backoff::Backoff;

/// Longest time for one try.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer, in bytes: a version.
const ANSWER_LEN_MAX: usize = 1024;
/// Between tries: half a second doubling to 32. The owner's node may adopt the version a little later than this one.
const PAUSES: Backoff = Backoff::new(500, 6);

/// Does so until nothing is deployed any more by anybody.
pub(crate) async fn tell(outbound: Outbound, mut running: Running) {
    loop {
        let application = running.borrow_and_update().clone();
        tokio::select! {
            changed = running.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = look_after(&outbound, application) => {}
        }
    }
}

/// Ends when the object looks after this version, which needs none where it has no triggers: one that had some before finds
/// so itself when its alarm comes. Then waits for ever.
async fn look_after(outbound: &Outbound, application: Option<Arc<Application>>) {
    if let Some(application) = application.filter(|application| application.crons().next().is_some()) {
        let version = application.version();
        for failures in 0.. {
            match ask(outbound).await {
                Ok(looks_after) if looks_after == version => {
                    tracing::info!(version, "the cron triggers of this version are looked after");
                    break;
                }
                Ok(looks_after) => {
                    tracing::debug!(
                        version,
                        looks_after,
                        "the cron triggers of another version are looked after; asking again"
                    );
                }
                Err(error) => {
                    tracing::warn!(version, %error, "the cron triggers are not looked after yet; trying again");
                }
            }
            PAUSES.pause(failures).await;
        }
    }
    std::future::pending().await
}

/// Has the object look at what its node runs. Which version that is.
async fn ask(outbound: &Outbound) -> Result<String, JsError> {
    let name = CRON_OBJECT.to_owned();
    let target =
        ObjectTarget { class: CRON_CLASS.to_owned(), id: id_from_name(CRON_CLASS, &name), name: Some(name) };
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let request =
        http::Request::get("http://cron.holdfast.internal/").body(body).expect("these are valid parts");
    let reply =
        outbound.call_object(target, request, ObjectCall::default(), Instant::now() + TIMEOUT).await?;
    let answer = read_whole(reply.response.into_body(), ANSWER_LEN_MAX).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
