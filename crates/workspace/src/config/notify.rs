//! Reads `[notify]`: the channels that tell people that a review needs them or that the daemon stopped, and the quiet
//! hours.

use std::path::PathBuf;

use chrono::NaiveTime;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::field;

/// The accepted values of `quiet_hours`.
const HOURS: &str = "\"\", or two different times of day such as \"22:00-07:00\"";

/// The accepted values of `webhook`.
const ADDRESS: &str = "\"\", or an address that begins with https:// or http://";

/// The default number of seconds without a daemon after which it counts as stopped.
const STOPPED_S: u64 = 10;

/// The longest such time: a day.
const STOPPED_S_MAX: u64 = 86_400;

/// `[notify]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct NotifySection {
    /// The program and arguments to start for each notice; none if empty.
    #[serde(deserialize_with = "command")]
    pub command: Vec<String>,
    /// The address to post each notice to; none if empty.
    #[serde(deserialize_with = "webhook")]
    pub webhook: Option<String>,
    /// The file with the secret that signs posted notices, relative to the workspace.
    pub webhook_secret_file: PathBuf,
    /// True if each notice is shown on the desktop.
    pub desktop: bool,
    /// The hours in which no notice is sent; what happens then is reported afterwards.
    #[serde(deserialize_with = "quiet_hours")]
    pub quiet_hours: Option<QuietHours>,
    /// The number of seconds without a daemon after which it counts as stopped: 0 to 86400.
    #[serde(deserialize_with = "stopped_after_s")]
    pub stopped_after_s: u64,
}

/// The hours of a day, in the machine's time zone, in which no notice is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// The first minute of the quiet hours.
    pub from: NaiveTime,
    /// The first minute after them; before `from` if they span midnight.
    pub until: NaiveTime,
}

impl Default for NotifySection {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            webhook: None,
            webhook_secret_file: PathBuf::new(),
            desktop: false,
            quiet_hours: None,
            stopped_after_s: STOPPED_S,
        }
    }
}

impl QuietHours {
    /// True if this time is within the quiet hours.
    pub fn holds(&self, time: NaiveTime) -> bool {
        if self.from < self.until {
            (self.from..self.until).contains(&time)
        } else {
            time >= self.from || time < self.until
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (from, until) = text.split_once('-')?;
        let time = |text| NaiveTime::parse_from_str(text, "%H:%M").ok();
        let (from, until) = (time(from)?, time(until)?);
        (from != until).then_some(Self { from, until })
    }
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let command = Vec::<String>::deserialize(deserializer)?;
    match command.first() {
        Some(program) if program.trim().is_empty() => Err(Error::custom(
            "notify.command has a blank program, expected the program and its arguments",
        )),
        Some(_) | None => Ok(command),
    }
}

fn webhook<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let address = field::text(deserializer, "notify.webhook", ADDRESS)?;
    if address.is_empty() {
        return Ok(None);
    }
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"));
    let is_fit = rest.is_some_and(|rest| !rest.is_empty())
        && address.chars().all(|c| c.is_ascii_graphic() && c != '"');
    // The address may contain a secret, so the error does not repeat it.
    is_fit.then_some(Some(address)).ok_or_else(|| {
        Error::custom(format!(
            "notify.webhook is not an address, expected {ADDRESS}"
        ))
    })
}

fn quiet_hours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<QuietHours>, D::Error> {
    let text = field::text(deserializer, "notify.quiet_hours", HOURS)?;
    if text.is_empty() {
        return Ok(None);
    }
    let refused = || format!("notify.quiet_hours is \"{text}\", expected {HOURS}");
    QuietHours::read(&text)
        .map(Some)
        .ok_or_else(|| Error::custom(refused()))
}

fn stopped_after_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "notify.stopped_after_s", 0..=STOPPED_S_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> NaiveTime {
        NaiveTime::parse_from_str(text, "%H:%M").expect("a time of day")
    }

    #[test]
    fn quiet_hours_may_last_over_midnight() {
        let night = QuietHours::read("22:00-07:00").expect("hours");
        let noon = QuietHours::read("12:00-13:30").expect("hours");
        for (at, in_night, in_noon) in [
            ("21:59", false, false),
            ("22:00", true, false),
            ("00:00", true, false),
            ("06:59", true, false),
            ("07:00", false, false),
            ("12:00", false, true),
            ("13:30", false, false),
        ] {
            let held = (night.holds(time(at)), noon.holds(time(at)));
            assert_eq!(held, (in_night, in_noon), "{at}");
        }
    }

    #[test]
    fn hours_that_are_none_are_refused() {
        for bad in ["22:00", "22-7", "24:00-07:00", "07:00-07:00", "a-b", "-"] {
            assert_eq!(QuietHours::read(bad), None, "{bad}");
        }
    }
}
