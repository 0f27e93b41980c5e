//! Finds the reason a program could not answer: it is not logged in, its quota is used up (and until when), or
//! something else failed. The words come from the program or its service: they are kept short and on one line, and are
//! never instructions.

use message_schema::line::{cut, escaped};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most characters of a program's words to keep.
const WORDS_MAX: usize = 200;

/// The longest plausible wait, in seconds: 31 days.
pub const WAIT_S_MAX: u64 = 31 * 86_400;

/// Words with which programs and services say that the user is not logged in.
const NOT_LOGGED_IN: [&str; 12] = [
    "unauthorized",
    "not logged in",
    "please run /login",
    "authentication failed",
    "authentication required",
    "authentication_error",
    "failed to authenticate",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "oauth token has expired",
    "set an auth method",
];

/// Words with which they say that a quota is used up.
const QUOTA: [&str; 13] = [
    "quota",
    "usage limit",
    "rate limit",
    "rate_limit",
    "resource_exhausted",
    "hit your limit",
    "session limit",
    "hour limit reached",
    "weekly limit",
    "out of credits",
    "credit balance is too low",
    "insufficient balance",
    "too many requests",
];

/// Words before an HTTP status. Elsewhere a number is a line, a count, or part of an id.
const STATUS: [&str; 4] = ["http", "status", "code", "error"];

/// Words before the time to wait.
const WAIT: [&str; 8] = [
    "retry in ",
    "retry after ",
    "retry-after: ",
    "try again in ",
    "try again after ",
    "reset in ",
    "resets in ",
    "reset after ",
];

/// The sentence about an output in which the program reports no end.
pub(super) const NO_END: &str = "its output has no end";

/// The sentence about a result that is an error without words.
pub(super) const ERROR: &str = "its result is an error";

/// The failure that a program reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFailure {
    /// The failure in one line, with the program's words.
    pub why: String,
    /// Its cause, if the words name one.
    pub cause: Option<Cause>,
}

/// A cause that a program names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The user is not logged in, or the service refuses the key.
    NotLoggedIn,
    /// A quota or a rate limit is used up.
    Quota {
        /// When it can be used again, if the program says so.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        retry: Option<Retry>,
    },
}

/// When a quota can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// This many seconds after the program ended; at most 31 days.
    AfterS(u64),
    /// At this second since 1970-01-01T00:00:00Z.
    At(u64),
}

/// The failure in a program's result, with the status of the service if it names one.
pub(super) fn failure(status: Option<u64>, words: &str) -> ProgramFailure {
    classify(status, ERROR, words)
}

/// The failure in the last line that a program wrote to standard error.
pub fn last_words(how: &str, words: &str) -> ProgramFailure {
    classify(None, how, words)
}

fn classify(status: Option<u64>, otherwise: &str, words: &str) -> ProgramFailure {
    // A full disk quota is no quota of a service.
    let lower = words.to_lowercase().replace("disk quota", "disk space");
    let says = |known: &[&str]| known.iter().any(|word| lower.contains(word));
    let quota = || Cause::Quota {
        retry: retry_in_words(words),
    };
    let cause = match status.or_else(|| status_in_words(&lower)) {
        Some(401 | 403) => Some(Cause::NotLoggedIn),
        Some(429) => Some(quota()),
        _ if says(&QUOTA) => Some(quota()),
        _ if says(&NOT_LOGGED_IN) => Some(Cause::NotLoggedIn),
        _ => None,
    };
    let what = cause.map_or(otherwise, |cause| cause.words());
    let words = short(words);
    let why = if words.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {words}")
    };
    ProgramFailure { why, cause }
}

/// The first status in the words that has a cause, at the beginning or after a word that announces a status.
fn status_in_words(lower: &str) -> Option<u64> {
    let mut before = None;
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| {
        let is_status = before.is_none_or(|before| STATUS.contains(&before));
        if !word.is_empty() {
            before = Some(word);
        }
        let status = word.parse().ok()?;
        (is_status && [401, 429].contains(&status)).then_some(status)
    })
}

impl Cause {
    fn words(self) -> &'static str {
        match self {
            Self::NotLoggedIn => "it is not logged in",
            Self::Quota { .. } => "its quota is used up",
        }
    }
}

impl ProgramFailure {
    /// Adds the cause that the program announced earlier, unless the failure has one itself.
    pub(super) fn announced(mut self, cause: Option<Cause>) -> Self {
        match (self.cause, cause) {
            (None, Some(cause)) => {
                self.why = format!("{}: {}", cause.words(), self.why);
                self.cause = Some(cause);
                self
            }
            (_, Some(Cause::Quota { retry })) => self.with_retry(retry),
            (_, Some(Cause::NotLoggedIn) | None) => self,
        }
    }

    /// Sets the wait that the program names outside its words.
    pub(super) fn with_retry(mut self, named: Option<Retry>) -> Self {
        if let Some(Cause::Quota { retry }) = &mut self.cause {
            *retry = named.or(*retry);
        }
        self
    }
}

/// The wait in a service's document: `resets_in_seconds`, `retry_after`, `retryDelay`, or an instant.
pub(super) fn retry_in_document(document: &Value) -> Option<Retry> {
    match document {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let seconds = || match value {
                Value::Number(number) => number.as_f64().and_then(whole_seconds),
                Value::String(text) => text
                    .parse()
                    .ok()
                    .and_then(whole_seconds)
                    .or_else(|| duration_s(text)),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            };
            match name.as_str() {
                "resets_in_seconds" | "retry_after" | "retry-after" | "retryAfter"
                | "retryDelay" => seconds().map(Retry::AfterS),
                "resets_at" | "resetsAt" => value.as_u64().map(Retry::At),
                _ => retry_in_document(value),
            }
        }),
        Value::Array(items) => items.iter().find_map(retry_in_document),
        Value::String(text) => retry_in_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The wait in a document inside a text: programs quote their service's document.
fn retry_in_text(text: &str) -> Option<Retry> {
    let document = text.get(text.find('{')?..=text.rfind('}')?)?;
    let document: Value = serde_json::from_str(document).ok()?;
    retry_in_document(&document)
}

/// The wait in words: `try again in 2h 5m`, `retry in 34.07s`, or an instant after a bar, as in `usage limit
/// reached|1771030800`.
fn retry_in_words(words: &str) -> Option<Retry> {
    let lower = words.to_lowercase();
    let after = WAIT
        .iter()
        .find_map(|wait| Some(&lower[lower.find(wait)? + wait.len()..]));
    let instant = || {
        let (_, digits) = words.rsplit_once('|')?;
        let seconds: u64 = digits.trim().parse().ok()?;
        // Ten digits are an instant between 2001 and 2286.
        (digits.trim().len() == 10).then_some(Retry::At(seconds))
    };
    after
        .and_then(duration_s)
        .map(Retry::AfterS)
        .or_else(|| retry_in_text(words))
        .or_else(instant)
}

/// The duration at the beginning of a text, in whole seconds: numbers with their units.
fn duration_s(text: &str) -> Option<u64> {
    let mut rest = text.trim_start().trim_start_matches("about ");
    let mut sum = None;
    loop {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Ok(number) = rest[..number_end].parse::<f64>() else {
            break;
        };
        let after = rest[number_end..].trim_start();
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let seconds = match &after[..unit_end] {
            "ms" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + number * seconds);
        rest = after[unit_end..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    whole_seconds(sum?)
}

/// Rounds up, and to at most the longest plausible wait.
fn whole_seconds(seconds: f64) -> Option<u64> {
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    // The lost fraction and any excess do not matter after rounding up and the limit.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = seconds.ceil() as u64;
    Some(whole.min(WAIT_S_MAX))
}

/// Puts the words on one line, escaped and cut.
fn short(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    escaped(&cut(&words.join(" "), WORDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_and_a_quota_are_told_from_other_failures() {
        for (status, words, what) in [
            (Some(401), "scripted", "it is not logged in: scripted"),
            (None, "HTTP 429", "its quota is used up: HTTP 429"),
            (
                None,
                "You've hit your usage limit",
                "its quota is used up: You've hit your usage limit",
            ),
            (Some(400), "bad", "its result is an error: bad"),
            (None, "", "its result is an error"),
        ] {
            assert_eq!(failure(status, words).why, what);
        }
    }

    #[test]
    fn words_that_only_look_like_a_cause_name_none() {
        for words in [
            "prompt is too long: 214290 tokens > 200000 maximum",
            "internal error, request 7d1c-429c-8f0a",
            "panicked at src/authentication.rs:12:9",
            "panicked at src/main.rs:429:5",
            "Disk quota exceeded (os error 122)",
            "401 files were read, and one was not",
        ] {
            let cause = failure(Some(500), words).cause;
            assert_eq!(cause, None, "{words}");
        }
        for words in ["line 401", "src/a.rs:429"] {
            assert_eq!(last_words("it failed", words).cause, None, "{words}");
        }
    }

    #[test]
    fn the_words_of_each_service_name_their_cause() {
        for words in [
            "Credit balance is too low",
            "5-hour limit reached",
            "You've hit your session limit",
            "Weekly limit reached",
            "Insufficient Balance",
            "unexpected status 429",
            "[API Error: {\"error\":{\"code\":429}}]",
        ] {
            let cause = failure(None, words).cause;
            assert_eq!(cause, Some(Cause::Quota { retry: None }), "{words}");
        }
        for words in [
            "OAuth token has expired",
            "API key not valid. Please pass a valid API key.",
            "API Error: 401",
            "authentication_error",
        ] {
            let cause = failure(Some(400), words)
                .cause
                .or(failure(None, words).cause);
            assert_eq!(cause, Some(Cause::NotLoggedIn), "{words}");
        }
    }

    #[test]
    fn a_failure_has_the_cause_that_was_announced() {
        let announced = Some(Cause::Quota {
            retry: Some(Retry::At(7)),
        });
        let failed = failure(None, "no answer").announced(announced);
        assert_eq!(
            failed.why,
            "its quota is used up: its result is an error: no answer"
        );
        assert_eq!(failed.cause, announced);
        let failed = failure(Some(429), "slow down").announced(announced);
        assert_eq!(failed.why, "its quota is used up: slow down");
        assert_eq!(failed.cause, announced);
        let failed = failure(Some(401), "who?").announced(announced);
        assert_eq!(failed.cause, Some(Cause::NotLoggedIn));
    }

    #[test]
    fn the_wait_that_words_name_is_read() {
        let retry = |words: &str| match failure(Some(429), words).cause {
            Some(Cause::Quota { retry }) => retry,
            Some(Cause::NotLoggedIn) | None => panic!("{words}: no quota"),
        };
        for (words, seconds) in [
            ("Please retry in 34.07s.", 35),
            ("Please try again in 20s. Visit", 20),
            (
                "You've hit your usage limit. Try again in 2 hours 5 minutes.",
                7_500,
            ),
            ("try again in 1 day, 3 hours, and 1 minute", 86_400 + 10_860),
            ("Your quota will reset after 1h2m3s.", 3_723),
            ("rate limited; retry-after: 12 seconds", 12),
            ("retry after 900ms", 1),
            ("retry in 99999999 hours", 31 * 24 * 3_600),
        ] {
            assert_eq!(retry(words), Some(Retry::AfterS(seconds)), "{words}");
        }
        assert_eq!(
            retry("Claude AI usage limit reached|1771030800"),
            Some(Retry::At(1_771_030_800))
        );
        assert_eq!(
            retry(r#"[API Error: {"error":{"code":429,"details":[{"retryDelay":"34s"}]}}]"#),
            Some(Retry::AfterS(34))
        );
        for words in [
            "resets 3pm",
            "try again in a while",
            "try again in 5",
            "a|b",
        ] {
            assert_eq!(retry(words), None, "{words}");
        }
    }

    #[test]
    fn the_wait_that_a_document_names_is_read_wherever_it_stands() {
        let read = |text: &str| {
            retry_in_document(&serde_json::from_str(text).expect("a document of the test"))
        };
        for (text, retry) in [
            (
                r#"{"error": {"type": "usage_limit_reached", "resets_in_seconds": 760}}"#,
                Retry::AfterS(760),
            ),
            (
                r#"{"error": {"details": [{"a": 1}, {"retryDelay": "34.2s"}]}}"#,
                Retry::AfterS(35),
            ),
            (
                r#"{"responseHeaders": {"retry-after": "17"}}"#,
                Retry::AfterS(17),
            ),
            (
                r#"{"responseBody": "{\"error\": {\"resets_at\": 1771030800}}"}"#,
                Retry::At(1_771_030_800),
            ),
            (
                r#"{"rate_limit_info": {"resetsAt": 1771030800}}"#,
                Retry::At(1_771_030_800),
            ),
        ] {
            assert_eq!(read(text), Some(retry), "{text}");
        }
        assert_eq!(read(r#"{"retry_after": 0}"#), Some(Retry::AfterS(0)));
        for text in [
            r#"{"retry_after": "soon", "resets_at": "noon"}"#,
            r#"{"retry_after": -5}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_words_are_one_short_line() {
        let told = failure(None, &format!("\u{1b}[31mred\n{}", "x".repeat(500))).why;
        assert!(
            told.len() < 300 && !told.contains(['\n', '\u{1b}']),
            "{told}"
        );
    }
}
