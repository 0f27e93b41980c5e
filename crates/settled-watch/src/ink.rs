//! The purposes of coloured text, and lines made of it. Colour never carries information alone.

use message_schema::line::escaped;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use screen::Tone;

/// The most characters of a text before it is escaped; nobody reads more on a screen.
const SHOWN_MAX: usize = 2_000;

/// The use of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// False with `NO_COLOR`, and on a terminal without colours.
    pub has_colours: bool,
}

/// The purpose of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Ordinary text.
    Plain,
    /// Somebody has to act now.
    Alarm,
    /// It is stuck until an agent or a person acts.
    Care,
    /// All is well.
    Well,
    /// It is secondary.
    Aside,
    /// A label of what follows.
    Head,
}

/// One line of a frame, in pieces.
pub(crate) type Pieces = Vec<(Ink, String)>;

impl Theme {
    /// Reads the theme from the environment.
    pub fn of_environment() -> Self {
        let is_quiet = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            has_colours: !is_quiet && !screen::is_dumb(),
        }
    }

    /// The style of a text: the colours are those of `screen`.
    pub(crate) fn style(self, ink: Ink) -> Style {
        let (tone, modifier) = match ink {
            Ink::Plain => return Style::new(),
            Ink::Head => return Style::new().add_modifier(Modifier::BOLD),
            Ink::Alarm => (Tone::Alarm, Modifier::BOLD),
            Ink::Care => (Tone::Care, Modifier::empty()),
            Ink::Well => (Tone::Well, Modifier::empty()),
            Ink::Aside => (Tone::Aside, Modifier::empty()),
        };
        let style = Style::new().add_modifier(modifier);
        if self.has_colours {
            style.fg(Color::Indexed(tone.colour()))
        } else {
            style
        }
    }

    pub(crate) fn line(self, pieces: Pieces) -> Line<'static> {
        let span = |(ink, text)| Span::styled(text, self.style(ink));
        Line::from_iter(pieces.into_iter().map(span))
    }
}

/// Prepares an untrusted text for drawing: on one line, without anything that would steer a terminal.
pub(crate) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN_MAX).map(|(at, _)| at);
    escaped(end.map_or(text, |end| &text[..end]))
}

/// Like [`shown`], wrapped to at most `lines_max` lines of `width` cells.
pub(crate) fn wrapped(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.lines().take(lines_max) {
        let mut line = String::new();
        for word in shown(part).split_whitespace() {
            let room = width.saturating_sub(screen::cells(&line));
            if line.is_empty() {
                line.push_str(word);
            } else if screen::cells(word) < room {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
            while screen::cells(&line) > width {
                let head = fitting(&line, width);
                let rest = line.split_off(head);
                lines.push(std::mem::replace(&mut line, rest));
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = screen::cut(&format!("{last} …"), width);
            if !last.ends_with('…') {
                last.push('…');
            }
        }
    }
    lines
}

/// Returns the number of bytes of a text that fit into `width` cells, at least one character.
fn fitting(text: &str, width: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let fits = ends.take_while(|end| screen::cells(&text[..*end]) <= width);
    fits.last()
        .unwrap_or_else(|| text.chars().next().map_or(0, char::len_utf8))
}

/// Cuts or pads a text to exactly `width` cells.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let text = screen::cut(text, width);
    let blanks = width.saturating_sub(screen::cells(&text));
    text + &" ".repeat(blanks)
}

/// Draws the part of a whole that is left, in shapes.
pub(crate) fn bar(left: u64, whole: u64, width: usize) -> String {
    let cells = width as u64;
    let full = if whole == 0 {
        0
    } else {
        (left.min(whole) * cells).div_ceil(whole)
    };
    let full = usize::try_from(full).unwrap_or(width);
    "█".repeat(full) + &"░".repeat(width - full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_its_room_and_nothing_steers_the_terminal() {
        let hostile = format!("\u{1b}[2J\u{202e}{} 審査待ち\n\u{7}", "a".repeat(100_000));
        for width in [1, 2, 7, 40] {
            let lines = wrapped(&hostile, width, 9);
            assert!(lines.len() <= 9, "{lines:?}");
            // A wide character does not fit into one cell.
            assert!(
                lines.iter().all(|line| screen::cells(line) <= width.max(2)),
                "{lines:?}"
            );
            let all = lines.concat();
            assert!(!all.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{all}");
        }
    }

    #[test]
    fn a_word_that_is_too_long_fills_its_lines() {
        assert_eq!(wrapped("abcdefgh", 3, 9), ["abc", "def", "gh"]);
        assert_eq!(wrapped("審査待ち", 5, 9), ["審査", "待ち"]);
    }

    #[test]
    fn a_bar_is_empty_only_when_nothing_is_left() {
        assert_eq!(bar(1, 1000, 4), "█░░░");
        assert_eq!(bar(0, 8, 4), "░░░░");
        assert_eq!(bar(9, 8, 4), "████");
        assert_eq!(padded("審査", 5), "審査 ");
    }
}
