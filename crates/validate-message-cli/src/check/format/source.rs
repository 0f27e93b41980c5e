//! The source lines of a violation: found by number, cut to a width, made harmless.

use message_schema::Place;
use message_schema::line::is_escaped;

/// The greatest distance above a violation at which its parent line is still shown, in lines.
const PARENT_DISTANCE_MAX: usize = 40;

/// The maximum length of a mark, in characters.
const MARK_MAX: usize = 60;

/// A text and the offsets of its lines.
pub(super) struct Lines<'t> {
    text: &'t [u8],
    starts: Vec<usize>,
}

/// A few lines of a text, ready to show.
pub(super) struct Excerpt {
    /// The number of the first line, from 1.
    pub(super) first: usize,
    pub(super) text: String,
    /// The place within the excerpt, in bytes.
    pub(super) mark: std::ops::Range<usize>,
    /// The parent line's text within the excerpt, in bytes.
    pub(super) parent: Option<std::ops::Range<usize>>,
}

impl<'t> Lines<'t> {
    /// Finds the lines as the reader of messages counts them: a line feed ends one, and so does a lone carriage return.
    pub(super) fn of(text: &'t [u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut starts = vec![0];
        for (at, byte) in text.iter().enumerate() {
            if *byte == b'\n' || (*byte == b'\r' && text.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            }
        }
        Self { text, starts }
    }

    fn line(&self, number: usize) -> Option<&'t [u8]> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        let mut line = &self.text[start..end];
        while let [rest @ .., b'\n' | b'\r'] = line {
            line = rest;
        }
        Some(line)
    }

    /// Returns the lines around a place, each cut to slightly more than `width` characters; `found` is the text
    /// reported there.
    pub(super) fn excerpt(
        &self,
        place: Place,
        found: Option<&str>,
        width: usize,
    ) -> Option<Excerpt> {
        let number = usize::try_from(place.line).ok()?;
        let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
        // The reader counted this place in valid text; nothing beyond the line is decoded.
        let line = self.line(number)?;
        let parent = self.parent(number);
        let first = parent.unwrap_or(number);
        let mut text = String::new();
        let mut parent_mark = None;
        for above in first..number {
            let line = String::from_utf8_lossy(self.line(above)?);
            let start = text.len() + line.len() - line.trim_start_matches(' ').len();
            let shown = Shown::of(&line, 0, 1, width);
            text.push_str(&shown.text);
            if above == first {
                parent_mark = Some(start.min(text.len())..text.len());
            }
            text.push('\n');
        }
        let line = String::from_utf8_lossy(line);
        let shown = Shown::of(&line, column, mark_length(&line, column, found), width);
        let start = text.len();
        text.push_str(&shown.text);
        Some(Excerpt {
            first,
            mark: start + shown.mark.start..start + shown.mark.end,
            parent: parent_mark,
            text,
        })
    }

    /// Returns the parent of this line: the nearest line above with less indentation.
    fn parent(&self, number: usize) -> Option<usize> {
        let own = indentation(self.line(number)?)?;
        let nearest = number.saturating_sub(PARENT_DISTANCE_MAX).max(1);
        (nearest..number).rev().find(|above| {
            self.line(*above)
                .and_then(indentation)
                .is_some_and(|indentation| indentation < own)
        })
    }
}

/// Returns the number of blanks before the line's text; `None` for an empty line.
fn indentation(line: &[u8]) -> Option<usize> {
    line.iter().position(|byte| *byte != b' ')
}

/// Returns the number of characters to mark from the column on: a whole quoted text or list, else the found value, else
/// a word.
fn mark_length(line: &str, column: usize, found: Option<&str>) -> usize {
    let rest: String = line.chars().skip(column).take(MARK_MAX).collect();
    // Mark a quoted text or a list to its end, if that is on this line.
    let closing = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => Some(quote),
        Some('[') => Some(']'),
        Some('{') => Some('}'),
        Some(_) | None => None,
    };
    if let Some(end) = closing.and_then(|closing| rest.chars().skip(1).position(|c| c == closing)) {
        return end + 2;
    }
    let found = found
        .map(|found| found.trim_end_matches('…'))
        .filter(|found| rest.starts_with(found));
    let found = found.map_or(0, |found| found.chars().count());
    if found > 0 {
        return found;
    }
    let word = rest
        .chars()
        .take_while(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | ']' | '}'));
    word.count().max(1)
}

/// A line as shown, and the position of its mark.
struct Shown {
    text: String,
    mark: std::ops::Range<usize>,
}

impl Shown {
    fn of(line: &str, column: usize, length: usize, width: usize) -> Self {
        // Cut a long line so that the text before the place is still visible.
        let before = width / 2;
        let skipped = if column < width.saturating_sub(length) {
            0
        } else {
            column.saturating_sub(before)
        };
        let mut text = String::from(if skipped > 0 { "…" } else { "" });
        let mut mark = None;
        let mut end = None;
        let mut characters = line.chars().enumerate().skip(skipped);
        for (at, c) in characters.by_ref().take(width) {
            if at == column {
                mark = Some(text.len());
            }
            if at == column + length {
                end = Some(text.len());
            }
            match c {
                '\t' => text.push('→'),
                c if is_escaped(c) => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        // A place after the last character is the end of the line.
        let mark = mark.unwrap_or(text.len());
        let mark = mark..end.unwrap_or(text.len());
        if characters.next().is_some() {
            text.push('…');
        }
        Self { text, mark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_an_odd_text_is_shown_whole_and_marked_between_characters() {
        let long = "k\t\u{202e}größe \u{1f600}".repeat(30);
        let text = format!(
            "\u{feff}body: |\r\n\t- {long}\n  {long}\r    \"x\u{202e}\": [a\n\n      - \u{1b}[2J\n"
        );
        let lines = Lines::of(text.as_bytes());
        for line in 0..9 {
            for column in 0..420 {
                for found in [None, Some("größe"), Some("")] {
                    let Some(excerpt) = lines.excerpt(Place { line, column }, found, 50) else {
                        continue;
                    };
                    let shown = &excerpt.text;
                    let is_mark = shown.get(excerpt.mark.clone()).is_some();
                    let is_parent = excerpt
                        .parent
                        .is_none_or(|parent| shown.get(parent).is_some());
                    assert!(is_mark && is_parent, "{line}:{column} {found:?}\n{shown}");
                    assert!(
                        shown.chars().all(|c| c == '\n' || !is_escaped(c)),
                        "{shown}"
                    );
                    assert!(
                        excerpt.first >= 1
                            && shown.lines().all(|line| line.chars().count() < 50 * 9)
                    );
                }
            }
        }
        assert!(
            lines
                .excerpt(
                    Place {
                        line: 99,
                        column: 1
                    },
                    None,
                    50
                )
                .is_none()
        );
        assert!(
            lines
                .excerpt(Place { line: 6, column: 9 }, None, 50)
                .is_some_and(|it| it.first == 4)
        );
    }
}
