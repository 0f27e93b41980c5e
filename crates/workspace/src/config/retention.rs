//! Reads `[retention]`: how long files are kept after use; forever by default.

use serde::{Deserialize, Deserializer};

use super::field;

/// `[retention]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RetentionSection {
    /// Days in `sent/`: 1 to 36 500; `None`, written 0, keeps them forever.
    #[serde(deserialize_with = "sent_days")]
    pub sent_days: Option<u64>,
    /// Days in `archive/`: 1 to 36 500; `None`, written 0, keeps them forever.
    #[serde(deserialize_with = "archive_days")]
    pub archive_days: Option<u64>,
    /// Days in `dead_letter/`: 1 to 36 500; `None`, written 0, keeps them forever.
    #[serde(deserialize_with = "dead_letter_days")]
    pub dead_letter_days: Option<u64>,
    /// True if the daemon removes old files itself, once a day.
    pub automatic: bool,
}

fn sent_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    days(deserializer, "retention.sent_days")
}

fn archive_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    days(deserializer, "retention.archive_days")
}

fn dead_letter_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    days(deserializer, "retention.dead_letter_days")
}

fn days<'de, D: Deserializer<'de>>(deserializer: D, key: &str) -> Result<Option<u64>, D::Error> {
    let days = field::within(deserializer, key, 0..=36_500)?;
    Ok((days > 0).then_some(days))
}
