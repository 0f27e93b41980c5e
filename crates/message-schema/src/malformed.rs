//! The errors that stop the reader: the bytes cannot be a message. Each has one cause and one place. The validator
//! decides whether a readable message is *correct*.

use crate::code::Code;
use crate::line::escaped;
use crate::place::Place;

/// Why bytes could not be read as one YAML mapping within the limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// The limit or rule that was broken.
    pub code: Code,
    /// The place, if there is a single one.
    pub place: Option<Place>,
    /// The problem, as a lower-case phrase.
    pub message: String,
    /// The text found there, if it can be shown.
    pub found: Option<String>,
    /// The input that would have been accepted.
    pub expected: String,
    /// The way to fix it, if known.
    pub fix: Option<String>,
    pub(crate) cut_off: bool,
}

impl Malformed {
    pub(crate) fn new(code: Code, place: Option<Place>, message: impl Into<String>) -> Self {
        Self {
            code,
            place,
            message: message.into(),
            found: None,
            expected: "one YAML mapping of fields".to_owned(),
            fix: None,
            cut_off: false,
        }
    }

    pub(crate) fn expected(self, expected: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            ..self
        }
    }

    pub(crate) fn found(self, found: impl Into<String>) -> Self {
        Self {
            found: Some(found.into()),
            ..self
        }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        // A fix may repeat text of the file, which must not break out of its line.
        Self {
            fix: Some(escaped(&fix.into())),
            ..self
        }
    }

    pub(crate) fn cut_off(self, cut_off: bool) -> Self {
        Self { cut_off, ..self }
    }

    /// True if the writer of the text may not have finished: it is empty or truncated. Such a file gets a moment before
    /// it is refused.
    pub fn looks_cut_off(&self) -> bool {
        self.cut_off
    }
}
