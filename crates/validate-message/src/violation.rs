//! A violation, and all violations of a message in order. The binary decides how to print them.

use crate::found::Found;
use message_schema::line::escaped;
use message_schema::{Code, Level, Malformed, Place, ReportedViolation};

/// The most characters of a value that a violation shows.
const SHOWN_MAX: usize = 80;

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The code of the rule.
    pub code: Code,
    /// The level: an error refuses the message, a warning does not.
    pub level: Level,
    /// The file it is in.
    pub file: Source,
    /// Its place in that file, if it is at one place.
    pub place: Option<Place>,
    /// The field, dotted from the document's root: `body.round`, `findings[2].severity`.
    pub field: Option<String>,
    /// One sentence, without a full stop.
    pub message: String,
    /// The text found there: at most 80 characters, control characters escaped.
    pub found: Option<String>,
    /// The values that would have been accepted.
    pub expected: Option<String>,
    /// The way to fix it.
    pub fix: Option<String>,
}

/// The file a violation is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The message.
    Message,
    /// The packet at that path of the workspace.
    Packet(String),
}

impl Violation {
    pub(crate) fn new(
        code: Code,
        file: Source,
        place: Option<Place>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            level: Level::Error,
            file,
            place,
            field: None,
            message: message.into(),
            found: None,
            expected: None,
            fix: None,
        }
    }

    pub(crate) fn field(self, field: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..self
        }
    }

    pub(crate) fn found(self, found: &str) -> Self {
        Self {
            found: Some(shown(found)),
            ..self
        }
    }

    pub(crate) fn expected(self, expected: impl Into<String>) -> Self {
        Self {
            expected: Some(expected.into()),
            ..self
        }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    pub(crate) fn warning(self) -> Self {
        Self {
            level: Level::Warning,
            ..self
        }
    }

    pub(crate) fn malformed(malformed: Malformed, code: Code, file: Source) -> Self {
        Self {
            code,
            level: Level::Error,
            file,
            place: malformed.place,
            field: None,
            message: malformed.message,
            found: malformed.found.as_deref().map(shown),
            expected: Some(malformed.expected),
            fix: malformed.fix,
        }
    }

    /// Returns the violation on one line, `outbox/x.yaml:9:5: body_field_invalid: …`, with its fix on an indented
    /// second one; `message_file` is the name of the message's file there.
    pub fn to_text(&self, message_file: &str) -> String {
        let file = match &self.file {
            Source::Message => message_file,
            Source::Packet(path) => &escaped(path),
        };
        let place = self
            .place
            .map(|place| format!(":{place}"))
            .unwrap_or_default();
        let weight = match self.level {
            Level::Error => "",
            Level::Warning => " (warning)",
        };
        let fix = self
            .fix
            .as_ref()
            .map(|fix| format!("\n    fix: {fix}"))
            .unwrap_or_default();
        format!(
            "{file}{place}: {}{weight}: {}{fix}",
            self.code, self.message
        )
    }

    /// Returns the violation in the form of a report; `message_file` is the name of the message's file there.
    pub fn reported(&self, message_file: &str) -> ReportedViolation {
        ReportedViolation {
            code: self.code,
            message: self.message.clone(),
            file: match &self.file {
                Source::Message => message_file.to_owned(),
                Source::Packet(path) => path.clone(),
            },
            line: self.place.map(|place| place.line),
            column: self.place.map(|place| place.column),
            field: self.field.clone(),
            thread: None,
            round_count: None,
            replies: None,
            clause: None,
            found: self.found.clone(),
            expected: self.expected.clone(),
            fix: self.fix.clone(),
            level: self.level,
        }
    }
}

/// Returns a value on one line of a report: control and bidi characters escaped, long texts cut.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", escaped(&text[..end])),
        None => escaped(text),
    }
}

/// Every violation of one message, the message's before the packet's, each file's by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations {
    violations: Vec<Violation>,
    is_cut: bool,
}

impl Violations {
    pub(crate) fn sorted(found: Found) -> Self {
        let is_cut = found.is_cut();
        let mut violations = found.into_vec();
        violations.sort_by(|a, b| {
            (&a.file, a.place, a.code, &a.field).cmp(&(&b.file, b.place, b.code, &b.field))
        });
        Self { violations, is_cut }
    }

    /// True if there were more than 200 errors or more than 200 warnings, so that some were left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the violations, errors and warnings.
    pub fn as_slice(&self) -> &[Violation] {
        &self.violations
    }

    /// Iterates over the violations, errors and warnings.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.violations.iter()
    }

    /// Returns the first violation that refuses the message.
    pub fn first_error(&self) -> Option<&Violation> {
        self.violations
            .iter()
            .find(|violation| violation.level == Level::Error)
    }

    /// Returns the violations, errors and warnings.
    pub fn into_vec(self) -> Vec<Violation> {
        self.violations
    }
}

impl<'v> IntoIterator for &'v Violations {
    type Item = &'v Violation;
    type IntoIter = std::slice::Iter<'v, Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Malformed> for Violations {
    fn from(malformed: Malformed) -> Self {
        let code = malformed.code;
        Self {
            violations: vec![Violation::malformed(malformed, code, Source::Message)],
            is_cut: false,
        }
    }
}
