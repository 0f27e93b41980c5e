//! One fix: its kind, its place, its words.

use message_schema::Place;
use message_schema::line::escaped;

/// The kind of a corrected slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fix {
    /// A byte order mark at the start is gone.
    ByteOrderMark,
    /// Lines end with a line feed alone.
    LineEnds,
    /// A Markdown fence around the whole file is gone.
    Fence,
    /// A tab in an indentation is now spaces.
    TabIndent,
    /// A field's name is in lower case or has its underscores.
    Name,
    /// A word of a closed set is written in the case of the set: `P1`, `true`.
    WordCase,
    /// A word of a closed set has its underscores.
    WordHyphen,
    /// An instant in UTC is written `…Z`, without a zero fraction.
    TimeForm,
}

impl Fix {
    /// Every kind, in the order of the search.
    pub const ALL: [Self; 8] = [
        Self::ByteOrderMark,
        Self::LineEnds,
        Self::Fence,
        Self::TabIndent,
        Self::Name,
        Self::WordCase,
        Self::WordHyphen,
        Self::TimeForm,
    ];

    /// The name used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByteOrderMark => "byte_order_mark",
            Self::LineEnds => "line_ends",
            Self::Fence => "fence",
            Self::TabIndent => "tab_indent",
            Self::Name => "name",
            Self::WordCase => "word_case",
            Self::WordHyphen => "word_hyphen",
            Self::TimeForm => "time_form",
        }
    }
}

/// One fixed slip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedFix {
    /// Its kind.
    pub fix: Fix,
    /// Its place, in the fixed text as far as its lines go.
    pub place: Place,
    /// The field, dotted from the document's root, if it is one.
    pub field: Option<String>,
    /// The new text and the text it replaces, in a few words.
    pub what: String,
}

/// Returns the text escaped, on one line and in backticks.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", escaped(text))
}
