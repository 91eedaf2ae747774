//! The start-up probe of a store: takes the steps that `holdfast_core::probe` asks for, on objects below `probe/` that it
//! removes again, and reports each. It must never touch another key.

mod steps;

use std::time::Duration;

use holdfast_core::probe::{ProbeAnswer, ProbeEffect, Prober};
pub use holdfast_core::probe::{ProbeStep, ProbeVerdict, StepOutcome, StoreFault};

use self::steps::{Attempt, Taken};
use crate::{Bucket, BucketError};

/// Pause before an attempt after one whose cause was unclear.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(200);

/// How long one step may take.
const STEP_MS_MAX: u64 = 10_000;

/// One step of one attempt.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// Counts from 1.
    pub attempt: u32,
    /// The step.
    pub step: ProbeStep,
    /// What it showed.
    pub outcome: StepOutcome,
    /// What the store answered, in words.
    pub detail: String,
}

/// What a probe found.
#[derive(Clone, Debug)]
pub struct ProbeReport {
    /// The store's URL.
    pub url: String,
    /// Every step taken, in order.
    pub steps: Vec<StepResult>,
    /// The result.
    pub verdict: ProbeVerdict,
    /// Why objects of the probe stay in the store, if they do. Not a fault: nothing reads them.
    pub debris: Option<BucketError>,
}

impl ProbeReport {
    /// One line for a person: the verdict, the step and the store's words.
    #[must_use]
    pub fn describe(&self) -> String {
        let detail = self.steps.last().map_or("", |step| step.detail.as_str());
        let url = &self.url;
        match self.verdict {
            ProbeVerdict::Fit => format!("bucket `{url}` does what is needed"),
            ProbeVerdict::Unclear { step } => {
                format!("bucket `{url}` could not be probed to the end: step {}: {detail}", step.name())
            }
            ProbeVerdict::Unfit { step, fault } => {
                let fault = fault.describe();
                format!("bucket `{url}` cannot be used: step {}: {fault}: {detail}", step.name())
            }
        }
    }
}

/// Probes the store with writes. Takes a few requests on a good store.
pub async fn probe(bucket: &dyn Bucket) -> ProbeReport {
    let mut steps = Vec::new();
    let mut debris = None;
    let (mut prober, mut effect) = Prober::start();
    let mut attempt: Option<Attempt<'_>> = None;
    let verdict = loop {
        let (number, step) = match effect {
            ProbeEffect::Take { attempt, step } => (attempt, step),
            ProbeEffect::Conclude(verdict) => break verdict,
        };
        if step == ProbeStep::Create
            && let Some(old) = attempt.take()
        {
            debris = old.clean().await.err().or(debris);
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
        let taken = attempt.get_or_insert_with(|| Attempt::new(bucket)).take(step).await;
        let (outcome, next) = prober.on(taken.answer);
        steps.push(StepResult { attempt: number, step, outcome, detail: taken.detail });
        effect = next;
    };
    if let Some(last) = attempt {
        debris = last.clean().await.err().or(debris);
    }
    ProbeReport { url: bucket.url(), steps, verdict, debris }
}

/// What a look without writes found.
#[derive(Clone, Debug)]
pub struct ReadOnlyReport {
    /// The store's URL.
    pub url: String,
    /// Whether a listing was answered: the number of keys on its first short page, or the error.
    pub list: Result<usize, BucketError>,
    /// Whether a read of a key that nobody writes was answered as absent.
    pub absent: Result<(), BucketError>,
}

impl ReadOnlyReport {
    /// Whether both reads went as they must.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.list.is_ok() && self.absent.is_ok()
    }
}

/// Looks at the store without writing: says whether it can be reached and read, and nothing about conditions.
pub async fn probe_read_only(bucket: &dyn Bucket) -> ReadOnlyReport {
    let list =
        steps::within("list", "", bucket.list("", None, 10)).await.map(|listing| listing.objects.len());
    let key = steps::fresh_name("absent");
    let absent = match steps::within("get", &key, bucket.get(&key)).await {
        Ok(None) => Ok(()),
        Ok(Some(_)) => {
            let detail = "the store returned an object for a key that nobody has written";
            Err(BucketError::new("get", &key, crate::ErrorKind::BadBody, detail))
        }
        Err(error) => Err(error),
    };
    ReadOnlyReport { url: bucket.url(), list, absent }
}

fn taken(answer: ProbeAnswer, detail: impl Into<String>) -> Taken {
    Taken { answer, detail: detail.into() }
}

#[cfg(test)]
mod tests;
