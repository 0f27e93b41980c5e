//! Mends a message where its writer can have meant only one thing: text in, text out.
//!
//! Each kind of slip has a file here and a name to report it by. What is mended says the same as before
//! but for what is named; a text for which that is not certain stays as it is, and so does every
//! signed one. Counts, places and whatever else would need a judgement are never filled in. Which
//! files are read and written is the command's business.

mod fence;
mod names;
mod slips;
mod tabs;
mod times;
mod words;
mod wrapping;

use message_schema::line::escaped;
use message_schema::{Message, Place, ReadBody, parse};

use crate::content::{Values, values, values_of_text};
use crate::lines::Lines;
use crate::signed::is_signed;
use slips::Slip;

/// The maximum number of passes over a text: a corrected name exposes a value to correct, a corrected type a body.
const PASSES_MAX: usize = 8;

/// The kind of a corrected slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fix {
    /// A byte order mark at the start is gone.
    ByteOrderMark,
    /// Lines end with a line feed alone.
    LineEnds,
    /// A Markdown fence around the whole file is gone.
    Fence,
    /// A tab that indents is now spaces.
    TabIndent,
    /// A field's name is in lower case or has its underscores.
    Name,
    /// A word of a closed set is written in the case of the set: `P1`, `true`.
    WordCase,
    /// A word of a closed set has its underscores.
    WordHyphen,
    /// An instant in UTC is written `…Z`, without a fraction that is zero.
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

/// One slip that was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Its kind.
    pub fix: Fix,
    /// Its place, in the mended text as far as its lines go.
    pub place: Place,
    /// The field, dotted from the document's root, where it is one.
    pub field: Option<String>,
    /// The text that is there now and the text it replaces, in a few words.
    pub what: String,
}

/// A text that was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The whole text.
    pub text: String,
    /// The changes, in the order they were made; at least one.
    pub mended: Vec<Mended>,
}

/// Mends what can be mended; `None` if that is nothing, if the bytes are not text, and for a signed message.
pub fn fix(bytes: &[u8]) -> Option<Fixed> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|_| !is_signed(bytes))?;
    let mut fixed = Fixed {
        text: text.to_owned(),
        mended: Vec::new(),
    };
    // A fence may be inside a fence, and a byte order mark behind one.
    for _ in 0..PASSES_MAX {
        let known = fixed.mended.len();
        for mend in [
            wrapping::byte_order_mark,
            wrapping::line_ends,
            fence::strip,
            tabs::replace,
        ] {
            if let Some((text, mended)) = mend(&fixed.text) {
                fixed.text = text;
                fixed.mended.extend(mended);
            }
        }
        if fixed.mended.len() == known {
            break;
        }
    }
    let Fixed { text, mended } = passes(fixed.text);
    fixed.mended.extend(mended);
    let fixed = Fixed { text, ..fixed };
    // A signature that only shows once the fence is removed binds just as well.
    (!fixed.mended.is_empty() && !is_signed(fixed.text.as_bytes())).then_some(fixed)
}

/// Mends what can be seen in a text that can be read, however often that shows more.
fn passes(text: String) -> Fixed {
    let mut fixed = Fixed {
        text,
        mended: Vec::new(),
    };
    for _ in 0..PASSES_MAX {
        let Some((text, mended)) = pass(&fixed.text) else {
            break;
        };
        fixed.text = text;
        fixed.mended.extend(mended);
    }
    fixed
}

/// Mends names, or values where no name is wrong: what can be seen without mending another slip first.
fn pass(text: &str) -> Option<(String, Vec<Mended>)> {
    let message = parse(text.as_bytes()).ok()?;
    let slips = slips::of(&message, &Lines::of(text));
    if slips.is_empty() {
        return None;
    }
    let mut mended = String::with_capacity(text.len());
    let mut done = 0;
    for slip in &slips {
        mended.extend([&text[done..slip.range.start], &slip.becomes]);
        done = slip.range.end;
    }
    mended.push_str(&text[done..]);
    says_what_was_meant(&message, &slips, &mended)
        .then(|| (mended, slips.iter().map(Slip::told).collect()))
}

/// True if the mended text differs from the message in the mended slips only.
fn says_what_was_meant(before: &Message, slips: &[Slip], mended: &str) -> bool {
    let Ok(after) = parse(mended.as_bytes()) else {
        return false;
    };
    // With its name or type mended a body is read for the first time; its text has to be the same.
    let is_read = |message: &Message| matches!(message.read_body(), ReadBody::Mapping(_));
    let read: fn(&Message) -> Values = if is_read(before) && is_read(&after) {
        values
    } else {
        values_of_text
    };
    let mut expected = read(before);
    slips.iter().for_each(|slip| slip.replace_in(&mut expected));
    expected == read(&after)
}

/// The text escaped, on one line and in backticks.
fn shown(text: &str) -> String {
    format!("`{}`", escaped(text))
}
