//! Removes what surrounds a text and means nothing: a byte order mark, and carriage returns before line
//! feeds.

use message_schema::{Place, parse};

use super::{AppliedFix, Fix};
use crate::content::values;

/// Removes a byte order mark from the start.
pub(super) fn byte_order_mark(text: &str) -> Option<(String, Vec<AppliedFix>)> {
    text.strip_prefix('\u{feff}')?;
    // A second one is no more wanted than the first.
    let rest = text.trim_start_matches('\u{feff}');
    let applied = AppliedFix {
        fix: Fix::ByteOrderMark,
        place: Place::START,
        field: None,
        what: "removed a byte order mark".to_owned(),
    };
    says_the_same(text, rest).then(|| (rest.to_owned(), vec![applied]))
}

/// Ends every line with a line feed alone. A carriage return elsewhere stays; with two before a line feed, the number
/// of lines is ambiguous.
pub(super) fn line_ends(text: &str) -> Option<(String, Vec<AppliedFix>)> {
    let at = text.find("\r\n").filter(|_| !text.contains("\r\r\n"))?;
    let line = text[..at].matches('\n').count() + 1;
    let lines = text.replace("\r\n", "\n");
    let applied = AppliedFix {
        fix: Fix::LineEnds,
        place: Place {
            line: u32::try_from(line).ok()?,
            column: 1,
        },
        field: None,
        what: "lines end with LF instead of CRLF".to_owned(),
    };
    says_the_same(text, &lines).then(|| (lines, vec![applied]))
}

/// True if both texts have the same values, or neither can be parsed.
fn says_the_same(before: &str, after: &str) -> bool {
    match (parse(before.as_bytes()), parse(after.as_bytes())) {
        (Ok(before), Ok(after)) => values(&before) == values(&after),
        (Err(_), Err(_)) => true,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}
