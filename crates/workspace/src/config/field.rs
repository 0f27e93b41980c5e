//! Reads each value of `settled.toml` and words the error for a wrong one; `config` adds the place.

use message_schema::id::AgentName;
use message_schema::limit::Rounds;
use message_schema::packet::Severity;
use review::{
    EvidenceMode, FilesPerHour, HandoffMode, HumanPaths, LateFindings, MessagesPerHour,
    OpenReviews, Profile, RuntimeClock, ThreadMode,
};
use runner::stream::OutputFormat;
use serde::de::value::StringDeserializer;
use serde::de::{Error, IntoDeserializer};
use serde::{Deserialize, Deserializer};

pub(super) fn rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rounds, D::Error> {
    let number = integer(deserializer, "rounds.max", "1, 2 or 3")?;
    u64::try_from(number)
        .ok()
        .and_then(|n| Rounds::new(n).ok())
        .ok_or_else(|| Error::custom(format!("rounds.max is {number}, expected 1, 2 or 3")))
}

pub(super) fn messages_per_hour<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<MessagesPerHour, D::Error> {
    let number = integer(deserializer, "limits.messages_per_hour", "1 to 10000")?;
    u64::try_from(number)
        .ok()
        .and_then(MessagesPerHour::new)
        .ok_or_else(|| {
            Error::custom(format!(
                "limits.messages_per_hour is {number}, expected 1 to 10000"
            ))
        })
}

pub(super) fn files_per_hour<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<FilesPerHour, D::Error> {
    let number = integer(deserializer, "limits.files_per_hour", "1 to 1000000")?;
    u64::try_from(number)
        .ok()
        .and_then(FilesPerHour::new)
        .ok_or_else(|| {
            Error::custom(format!(
                "limits.files_per_hour is {number}, expected 1 to 1000000"
            ))
        })
}

pub(super) fn open_reviews<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<OpenReviews, D::Error> {
    let number = integer(deserializer, "limits.open_reviews", "1 to 1000000")?;
    u64::try_from(number)
        .ok()
        .and_then(OpenReviews::new)
        .ok_or_else(|| {
            Error::custom(format!(
                "limits.open_reviews is {number}, expected 1 to 1000000"
            ))
        })
}

/// Reads a uid. Root cannot be an agent's user, because nothing keeps it out, and the last number means none.
pub(super) fn uid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = integer(deserializer, "uid", "1 to 4294967294")?;
    let uid = u32::try_from(number)
        .ok()
        .filter(|uid| (1..u32::MAX).contains(uid));
    uid.map(Some)
        .ok_or_else(|| Error::custom(format!("uid is {number}, expected 1 to 4294967294")))
}

fn integer<'de, D: Deserializer<'de>>(
    deserializer: D,
    key: &str,
    range: &str,
) -> Result<i64, D::Error> {
    i64::deserialize(deserializer).map_err(|_| {
        Error::custom(format!(
            "{key} is not an integer, expected an integer, {range}"
        ))
    })
}

/// Reads a number within a range.
pub(super) fn within<'de, D: Deserializer<'de>>(
    deserializer: D,
    key: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, D::Error> {
    let expected = format!("{} to {}", range.start(), range.end());
    let number = integer(deserializer, key, &expected)?;
    let fits = u64::try_from(number)
        .ok()
        .filter(|number| range.contains(number));
    fits.ok_or_else(|| Error::custom(format!("{key} is {number}, expected {expected}")))
}

/// Reads one of a setting's words; the error names the key and all words.
pub(super) fn word<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    key: &str,
    expected: &str,
) -> Result<T, D::Error> {
    let text = text(deserializer, key, expected)?;
    let value: StringDeserializer<serde::de::value::Error> = text.clone().into_deserializer();
    T::deserialize(value)
        .map_err(|_| Error::custom(format!("{key} is \"{text}\", expected {expected}")))
}

pub(super) fn text<'de, D: Deserializer<'de>>(
    deserializer: D,
    key: &str,
    expected: &str,
) -> Result<String, D::Error> {
    String::deserialize(deserializer)
        .map_err(|_| Error::custom(format!("{key} is not a text, expected {expected}")))
}

pub(super) fn profile<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Profile, D::Error> {
    word(deserializer, "profile", "\"gate\" or \"advisory\"")
}

pub(super) fn runtime_clock<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<RuntimeClock, D::Error> {
    word(deserializer, "runtime_clock", "\"take\" or \"delivery\"")
}

pub(super) fn threads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ThreadMode, D::Error> {
    word(deserializer, "threads", "\"inferred\" or \"explicit\"")
}

pub(super) fn late_findings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<LateFindings, D::Error> {
    word(deserializer, "late_findings", "\"block\" or \"defer\"")
}

pub(super) fn output<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OutputFormat, D::Error> {
    word(
        deserializer,
        "output",
        "\"text\", \"claude\", \"codex\" or \"gemini\"",
    )
}

pub(super) fn handoff_mode<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<HandoffMode, D::Error> {
    word(
        deserializer,
        "handoff.mode",
        "\"off\", \"threshold\" or \"full\"",
    )
}

pub(super) fn handoff_threshold<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Severity, D::Error> {
    word(
        deserializer,
        "handoff.threshold",
        "\"P0\", \"P1\", \"P2\" or \"P3\"",
    )
}

pub(super) fn evidence<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<EvidenceMode, D::Error> {
    word(deserializer, "gate.evidence", "\"warn\" or \"require\"")
}

pub(super) fn human_paths<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<HumanPaths, D::Error> {
    HumanPaths::new(Vec::<String>::deserialize(deserializer)?).ok_or_else(|| {
        Error::custom(
            "gate.human_paths has a pattern that names nothing, expected paths of the repository such as \".github/\" or \"**/*.sql\", without blanks around them and without the parts \".\" and \"..\"",
        )
    })
}

pub(super) fn vendor<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let expected = "1 to 64 letters, digits, `-`, `_` or `.`";
    let vendor = text(deserializer, "vendor", expected)?;
    let is_fit = (1..=64).contains(&vendor.len())
        && vendor
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    match is_fit {
        true => Ok(Some(vendor)),
        false => Err(Error::custom(format!(
            "vendor is \"{vendor}\", expected {expected}"
        ))),
    }
}

pub(super) fn commands<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let commands = Vec::<String>::deserialize(deserializer)?;
    no_blank(&commands, "command", "a command line").map_err(Error::custom)?;
    Ok(commands)
}

/// The parser knows the place of the list but not of its items, so the error numbers the first blank one.
pub(super) fn no_blank(items: &[String], item: &str, expected: &str) -> Result<(), String> {
    match items.iter().position(|text| text.trim().is_empty()) {
        Some(at) => Err(format!("{item} {} is blank, expected {expected}", at + 1)),
        None => Ok(()),
    }
}

/// The word that may end a list of reviewers.
pub(crate) const PERSON: &str = "person";

/// Reads reviewers in the order in which they get a request. A person ends the list, whether given or not.
pub(super) fn reviewers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<AgentName>, D::Error> {
    let expected = "a list of agents, each once, and `person` at most at its end";
    let wrong = |found: String| Error::custom(format!("reviewers {found}, expected {expected}"));
    let mut names = Vec::<String>::deserialize(deserializer)
        .map_err(|_| wrong("is not a list of texts".to_owned()))?;
    if names.last().is_some_and(|name| name == PERSON) {
        names.pop();
    }
    let mut reviewers = Vec::new();
    for name in names {
        let shown = message_schema::line::escaped(&name);
        let agent = AgentName::new(name)
            .ok()
            .filter(|name| name.as_str() != PERSON);
        let agent = agent.ok_or_else(|| wrong(format!("names `{shown}`")))?;
        if reviewers.contains(&agent) {
            return Err(wrong(format!("names `{shown}` twice")));
        }
        reviewers.push(agent);
    }
    Ok(reviewers)
}
