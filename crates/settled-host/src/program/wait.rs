//! Limits how long a command waits for a log that does not answer.

use std::io::Write as _;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::{Duration, Instant};

use message_schema::line::escaped;
use settled_host::{is_missing, is_unresolved};
use spool::log::{Head, Log, LogError};

/// The time after which the command says what it waits for.
const TOLD: Duration = Duration::from_millis(800);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The time limit for each step of a command that needs the log: its answer, a record of it, a record of this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait(Duration);

impl FromStr for Wait {
    type Err = ParseIntError;

    /// Reads whole seconds; 0 asks once.
    fn from_str(seconds: &str) -> Result<Wait, ParseIntError> {
        Ok(Wait(Duration::from_secs(u64::from(
            seconds.parse::<u16>()?,
        ))))
    }
}

impl Wait {
    /// True if this time has passed since then.
    pub(super) fn is_over(self, since: Instant) -> bool {
        since.elapsed() >= self.0
    }

    /// Twice as long.
    pub(super) fn twice(self) -> Wait {
        Wait(self.0 * 2)
    }

    /// Retries for a while if the log cannot be reached.
    pub(super) fn answer<T>(self, ask: impl FnMut() -> Result<T, LogError>) -> Result<T, LogError> {
        self.retrying(ask, LogError::is_retryable)
    }

    /// The end of a log that a person has just named. If the log does not exist, or its name has no address, this fails
    /// at once.
    pub(super) fn end_of_new(self, log: &mut dyn Log) -> Result<Head, LogError> {
        self.retrying(
            || log.head(),
            |error| error.is_retryable() && !is_missing(error) && !is_unresolved(error),
        )
    }

    fn retrying<T>(
        self,
        mut ask: impl FnMut() -> Result<T, LogError>,
        may_pass: impl Fn(&LogError) -> bool,
    ) -> Result<T, LogError> {
        let (since, mut is_told) = (Instant::now(), false);
        loop {
            match ask() {
                Err(error) if may_pass(&error) && !self.is_over(since) => {
                    if !is_told && since.elapsed() >= TOLD {
                        self.report(&error);
                        is_told = true;
                    }
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }

    /// Says to the person why nothing happens.
    fn report(self, error: &LogError) {
        let (error, most) = (escaped(&error.to_string()), self.0);
        let text = format!("settled host: {error}; waiting for it, at most {most:?} (--wait)\n");
        // Standard error may be closed.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_asked_again_and_what_stays_is_told() {
        let wait: Wait = "20".parse().expect("seconds");
        let away = || LogError::Unreachable {
            why: "x".to_owned(),
        };
        let mut asked = 0;
        let told = wait.answer(|| {
            asked += 1;
            if asked == 3 { Ok(asked) } else { Err(away()) }
        });
        assert_eq!(told, Ok(3));
        let denied = || LogError::Denied {
            why: "x".to_owned(),
        };
        for (wait, error) in [("20", denied()), ("0", away())] {
            let wait: Wait = wait.parse().expect("seconds");
            let mut asked = 0;
            let told: Result<(), _> = wait.answer(|| {
                asked += 1;
                Err(error.clone())
            });
            assert_eq!((told, asked), (Err(error), 1));
        }
    }
}
