//! Words of a closed set in another case (`p1`, `True`) or with hyphens for underscores (`review-lgtm`). A word that is
//! one letter off stays unchanged: it could be a slip of another word.

use message_schema::schema::Shape;

use super::Fix;

/// Returns the word of the set that was meant; `None` if the text is one of them already, or like none of them.
pub(super) fn fixed(text: &str, shape: &Shape) -> Option<(Fix, String)> {
    let words = shape.words();
    if words.is_empty() || words.iter().any(|word| word == text) {
        return None;
    }
    let mut alike = words.iter().filter(|word| folded(word) == folded(text));
    let word = alike.next().filter(|_| alike.next().is_none())?;
    let fix = if word.eq_ignore_ascii_case(text) {
        Fix::WordCase
    } else {
        Fix::WordHyphen
    };
    Some((fix, word.clone()))
}

/// Returns the text without the differences of case and hyphens.
pub(super) fn folded(text: &str) -> String {
    text.to_ascii_lowercase().replace('-', "_")
}
