//! Maps a place in a text to its byte offset.

use message_schema::Place;
use message_schema::line::line_starts;
use message_schema::yaml::{Scalar, Style};

/// A text without a byte order mark, and where its lines begin.
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// The byte offset of each character and the end of the last one, unless the text is ASCII only: otherwise each
    /// value of a one-line file would need a scan of the line.
    characters: Option<Vec<usize>>,
}

impl<'t> Lines<'t> {
    /// Scans the text once.
    pub(crate) fn of(text: &'t str) -> Self {
        let begins = text
            .char_indices()
            .map(|(at, _)| at)
            .chain(std::iter::once(text.len()));
        let characters = (!text.is_ascii()).then(|| begins.collect());
        Self {
            text,
            starts: line_starts(text).collect(),
            characters,
        }
    }

    /// Returns the byte offset of the character at that place; `None` past the end of its line.
    pub(crate) fn offset(&self, place: Place) -> Option<usize> {
        let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
        let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
        let start = *self.starts.get(line)?;
        let end = self
            .starts
            .get(line + 1)
            .map_or(self.text.len(), |next| next - 1);
        let at = match &self.characters {
            None => start + column,
            Some(begins) => *begins.get(begins.partition_point(|at| *at < start) + column)?,
        };
        (at <= end).then_some(at)
    }

    /// Returns the bytes of a text that is written literally, without escapes and on one line, apart from quotes;
    /// `None` for any other.
    pub(crate) fn verbatim(&self, text: &str, place: Place) -> Option<std::ops::Range<usize>> {
        let at = self.offset(place)?;
        let quote = self.text[at..]
            .chars()
            .next()
            .filter(|c| matches!(c, '"' | '\''));
        let start = at + quote.map_or(0, char::len_utf8);
        let rest = self.text.get(start..)?.strip_prefix(text)?;
        let is_whole =
            quote.is_none_or(|quote| rest.starts_with(quote) && !text.contains(['\\', quote]));
        (is_whole && !text.contains('\n')).then(|| start..start + text.len())
    }

    /// Returns the bytes of a scalar's text, if it is plain or quoted and written literally.
    pub(crate) fn scalar(&self, scalar: &Scalar, place: Place) -> Option<std::ops::Range<usize>> {
        match scalar.style {
            Style::Plain | Style::Quoted => self.verbatim(&scalar.text, place),
            Style::Literal | Style::Folded => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_plain_letters_are_bytes() {
        let lines = Lines::of("ab\nc");
        let at = |line, column| lines.offset(Place { line, column });
        assert_eq!((at(1, 2), at(1, 3), at(1, 4)), (Some(1), Some(2), None));
        assert_eq!((at(2, 1), at(2, 2), at(2, 3)), (Some(3), Some(4), None));
    }

    #[test]
    fn columns_are_characters_and_end_with_their_line() {
        let lines = Lines::of("größe: 'a'\nb");
        let at = |line, column| lines.offset(Place { line, column });
        assert_eq!((at(1, 1), at(1, 4), at(1, 5)), (Some(0), Some(4), Some(6)));
        assert_eq!(
            (at(2, 1), at(2, 2), at(2, 3), at(3, 1)),
            (Some(13), Some(14), None, None)
        );
        assert_eq!(
            lines.verbatim("a", Place { line: 1, column: 8 }),
            Some(10..11)
        );
        assert_eq!(lines.verbatim("ab", Place { line: 1, column: 8 }), None);
    }
}
