//! The places of a quoted scalar's characters in its file: a body in JSON is one line of the file and many lines of
//! YAML, and its mistakes still need exact places.

use crate::line::lines;
use crate::place::Place;

/// The places of the characters of a quoted scalar that begins and ends on one line.
#[derive(Debug)]
pub(crate) struct Quoted {
    /// The points where the text and the file diverge: 0-based line and column of the text, sorted, and the column in
    /// the file, from 1.
    pieces: Vec<(u32, u32, u32)>,
    line: u32,
}

impl Quoted {
    /// Computes the places for the scalar with that text whose quote is at that place; `None` if it is not on one line.
    pub(crate) fn of(file: &str, place: Place, text: &str) -> Option<Self> {
        let file = file.strip_prefix('\u{feff}').unwrap_or(file);
        let nth = |number: u32| usize::try_from(number - 1).ok();
        let source = lines(file).nth(nth(place.line)?)?;
        let mut chars = source.chars().skip(nth(place.column)?);
        let quote = chars.next()?;
        let mut letters = text.chars().peekable();
        let mut quoted = Self {
            pieces: Vec::new(),
            line: place.line,
        };
        let (mut at, mut line, mut column, mut is_break) = (place.column + 1, 0, 0, true);
        loop {
            let first = chars.next()?;
            if first == quote && (quote == '"' || chars.clone().next() != Some('\'')) {
                return letters.next().is_none().then_some(quoted);
            }
            let width = if first == quote {
                chars.next();
                2
            } else if quote == '"' && first == '\\' {
                width_of_escape(&mut chars)?
            } else {
                1
            };
            let letter = letters.next()?;
            if width == 1 && letter != first {
                return None;
            }
            if is_break {
                quoted.pieces.push((line, column, at));
            }
            at += width;
            column += 1;
            is_break = width > 1;
            if letter == '\n' || (letter == '\r' && letters.peek() != Some(&'\n')) {
                (line, column, is_break) = (line + 1, 0, true);
            }
        }
    }

    /// Returns the place in the file of a 0-based line and column of the text.
    pub(crate) fn place(&self, line: u32, column: u32) -> Place {
        let after = self
            .pieces
            .partition_point(|(l, c, _)| (*l, *c) <= (line, column));
        let found = after.checked_sub(1).and_then(|at| self.pieces.get(at));
        let column = found.map_or(
            1,
            |(l, c, at)| if *l == line { at + (column - c) } else { *at },
        );
        Place {
            line: self.line,
            column,
        }
    }
}

/// Returns the width of an escape, its backslash included. The caller has consumed the backslash; this consumes the
/// rest.
fn width_of_escape(chars: &mut std::iter::Skip<std::str::Chars<'_>>) -> Option<u32> {
    let mut digits = match chars.next()? {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return Some(2),
    };
    let mut width = 2 + digits;
    let mut code = 0;
    while digits > 0 {
        code = code * 16 + chars.next()?.to_digit(16)?;
        digits -= 1;
    }
    // JSON writes a character beyond U+FFFF as two escapes.
    if (0xd800..0xdc00).contains(&code) {
        width += 6;
        chars.nth(5)?;
    }
    Some(width)
}
