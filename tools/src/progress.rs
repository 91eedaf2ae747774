//! Progress on stderr, on a terminal only. It must never be part of the result.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// Something is under way, for an unknown time.
#[must_use]
pub fn spinner(message: impl Into<String>) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is valid");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(message.into());
    bar.enable_steady_tick(TURN);
    bar
}

/// So many of so many.
#[must_use]
pub fn bar(len: u64, message: impl Into<String>) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {bar:32} {pos}/{len} {eta}").expect("the template is valid");
    ProgressBar::new(len).with_style(style).with_message(message.into())
}
