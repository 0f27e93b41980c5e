//! The names of hosts that write one ledger together.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name of a host: a label of the domain name system.
const BYTES_MAX: usize = 63;

/// A host that serves a workspace together with others: 1 to 63 lower-case letters, digits, `-`, `_` and `.`, the first
/// one a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// A text was read where the name of a host was expected.
#[derive(Debug, thiserror::Error)]
#[error(
    "the name of a host is 1 to {BYTES_MAX} lower-case letters, digits, `-`, `_` and `.`, and begins with a letter or a \
     digit"
)]
pub struct NotAHostName;

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = NotAHostName;

    fn from_str(text: &str) -> Result<HostName, NotAHostName> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=BYTES_MAX).contains(&text.len())
            && text.bytes().next().is_some_and(is_plain)
            && text
                .bytes()
                .all(|byte| is_plain(byte) || b"-_.".contains(&byte));
        if fits {
            Ok(HostName(text.to_owned()))
        } else {
            Err(NotAHostName)
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for HostName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostName, D::Error> {
        disk::from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_host_is_a_short_plain_word() {
        let longest = "x".repeat(63);
        let long = "x".repeat(64);
        for (name, is_one) in [
            ("a", true),
            ("7", true),
            ("tower-2_a.b", true),
            (&longest, true),
            ("", false),
            (&long, false),
            ("-a", false),
            (".a", false),
            ("_a", false),
            ("Tower", false),
            ("a b", false),
            ("t\u{f6}wer", false),
        ] {
            let read = name.parse::<HostName>().ok();
            let shown = read.as_ref().map(ToString::to_string);
            assert_eq!(shown.as_deref(), is_one.then_some(name), "{name:?}");
            assert_eq!(read.as_ref().map(HostName::as_str), shown.as_deref());
        }
    }
}
