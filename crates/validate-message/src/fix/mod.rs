//! Fixes a message where its writer can have meant only one thing: text in, text out.
//!
//! Each kind of slip has a file here and a name in reports. A fixed text has the same values as before, except for the
//! reported ones; a text for which that is uncertain stays unchanged, and so does every signed one. Counts, places and
//! anything else that needs a judgement are never filled in. The command decides which files to read and write.

mod applied;
mod fence;
mod names;
mod slips;
mod tabs;
mod times;
mod words;
mod wrapping;

use message_schema::{Message, ReadBody, parse};

use crate::content::{Values, values, values_of_text};
use crate::lines::Lines;
use crate::signed::is_signed;
use slips::Slip;

pub use self::applied::{AppliedFix, Fix};

/// The maximum number of passes over a text: a fixed name exposes a value to fix, a fixed type a body.
const PASSES_MAX: usize = 8;

/// A text with its fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The whole text.
    pub text: String,
    /// The fixes, in the order in which they were made; at least one.
    pub fixes: Vec<AppliedFix>,
}

/// Fixes what can be fixed; `None` if there is nothing, if the bytes are not text, or if the message is signed.
pub fn fix(bytes: &[u8]) -> Option<Fixed> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|_| !is_signed(bytes))?;
    let mut fixed = Fixed {
        text: text.to_owned(),
        fixes: Vec::new(),
    };
    // Fences can be nested, and a byte order mark can be inside one.
    for _ in 0..PASSES_MAX {
        let known = fixed.fixes.len();
        for fix in [
            wrapping::byte_order_mark,
            wrapping::line_ends,
            fence::strip,
            tabs::replace,
        ] {
            if let Some((text, fixes)) = fix(&fixed.text) {
                fixed.text = text;
                fixed.fixes.extend(fixes);
            }
        }
        if fixed.fixes.len() == known {
            break;
        }
    }
    let Fixed { text, fixes } = passes(fixed.text);
    fixed.fixes.extend(fixes);
    let fixed = Fixed { text, ..fixed };
    // A signature that only shows once the fence is removed counts as well.
    (!fixed.fixes.is_empty() && !is_signed(fixed.text.as_bytes())).then_some(fixed)
}

/// Fixes the slips of a parsable text, pass by pass: each can reveal more.
fn passes(text: String) -> Fixed {
    let mut fixed = Fixed {
        text,
        fixes: Vec::new(),
    };
    for _ in 0..PASSES_MAX {
        let Some((text, fixes)) = pass(&fixed.text) else {
            break;
        };
        fixed.text = text;
        fixed.fixes.extend(fixes);
    }
    fixed
}

/// Fixes names, or values if no name is wrong: every slip that is visible without fixing another one first.
fn pass(text: &str) -> Option<(String, Vec<AppliedFix>)> {
    let message = parse(text.as_bytes()).ok()?;
    let slips = slips::of(&message, &Lines::of(text));
    if slips.is_empty() {
        return None;
    }
    let mut fixed = String::with_capacity(text.len());
    let mut done = 0;
    for slip in &slips {
        fixed.extend([&text[done..slip.range.start], &slip.becomes]);
        done = slip.range.end;
    }
    fixed.push_str(&text[done..]);
    says_what_was_meant(&message, &slips, &fixed)
        .then(|| (fixed, slips.iter().map(Slip::applied).collect()))
}

/// True if the fixed text differs from the message only in the fixed slips.
fn says_what_was_meant(before: &Message, slips: &[Slip], fixed: &str) -> bool {
    let Ok(after) = parse(fixed.as_bytes()) else {
        return false;
    };
    // Once its name or type is fixed, a body is parsed for the first time; its text must not have changed.
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
