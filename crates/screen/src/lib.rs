//! What a screen can show: how wide it is, whether it has colours, and bars and lines that fit it.

use std::io::{IsTerminal as _, stderr, stdin, stdout};

use chrono::TimeDelta;
use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use workspace::clock::span;

/// As wide as everything is where nobody says how wide it may be.
const WIDTH: usize = 100;

/// The cells of a bar.
const BAR: usize = 10;

/// The screen that an answer goes to.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// How many cells a line has: most characters take one, those of Chinese or Japanese two.
    pub width: usize,
    has_colours: bool,
}

/// What a text is coloured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Somebody has to act now.
    Alarm,
    /// It does not go on by itself.
    Care,
    /// It is well.
    Well,
    /// It only stands beside.
    Aside,
}

/// The columns and rows of the terminal one of the three standard streams is, if any is.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout())
        .or_else(|_| tcgetwinsize(stderr()))
        .or_else(|_| tcgetwinsize(stdin()))
        .ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some((columns, rows))
}

impl Screen {
    /// What standard output is: `COLUMNS`, else the terminal's width, else 100; colours on a terminal without
    /// `NO_COLOR`.
    pub fn of_output() -> Self {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size().map(|(width, _)| width);
        let is_quiet = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            width: columns.or_else(terminal).unwrap_or(WIDTH).max(20),
            has_colours: stdout().is_terminal() && !is_quiet,
        }
    }

    /// One without colours.
    pub fn plain(width: usize) -> Self {
        Self {
            width,
            has_colours: false,
        }
    }

    /// The text, coloured where there are colours.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let number = match tone {
            Tone::Alarm => "31;1",
            Tone::Care => "33",
            Tone::Well => "32",
            Tone::Aside => "2",
        };
        if self.has_colours {
            format!("\u{1b}[{number}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Parts beside each other, on as many lines as they need; none is broken unless it is wider than a line.
    pub fn flow(self, indent: usize, parts: &[String]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for part in parts {
            let part = cut(part, self.width - indent);
            match lines.last_mut() {
                Some(line) if line.width() + 3 + part.width() <= self.width - indent => {
                    *line += &format!("   {part}");
                }
                Some(_) | None => lines.push(part),
            }
        }
        lines.iter().fold(String::new(), |text, line| {
            text + &format!("{:indent$}{line}\n", "")
        })
    }
}

/// How much of a whole is left, as a bar.
pub fn bar(left: u64, whole: u64) -> String {
    let cells = BAR as u64;
    let full = if whole == 0 {
        0
    } else {
        (left.min(whole) * cells).div_ceil(whole)
    };
    let full = usize::try_from(full).unwrap_or(BAR);
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR - full))
}

/// The text, or as much of it as fits with an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cells = 0;
    let fits = |c: &char| {
        cells += c.width().unwrap_or(0);
        cells < width
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// How long ago something was.
pub fn ago(passed: TimeDelta) -> String {
    if passed < TimeDelta::zero() {
        "in the future".to_owned()
    } else {
        format!("{} ago", span(passed))
    }
}

/// How soon something will be.
pub fn ahead(left: TimeDelta) -> String {
    if left < TimeDelta::zero() {
        "overdue".to_owned()
    } else {
        format!("in {}", span(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_never_negative() {
        let ages = [-5, 0, 119, 120, 7199, 7200, 172_799, 172_800];
        let said = ages.map(|seconds| ago(TimeDelta::seconds(seconds)));
        let short = [
            "0 s ago",
            "119 s ago",
            "2 min ago",
            "119 min ago",
            "2 h ago",
            "47 h ago",
            "2 d ago",
        ];
        assert_eq!(said[0], "in the future");
        assert_eq!(said[1..], short);
    }

    #[test]
    fn a_bar_is_empty_only_when_nothing_is_left() {
        assert_eq!(bar(8, 8), "[##########]");
        assert_eq!(bar(1, 1000), "[#---------]");
        assert_eq!(bar(0, 8), "[----------]");
        assert_eq!(bar(9, 8), "[##########]");
        assert_eq!(bar(0, 0), "[----------]");
    }

    #[test]
    fn a_cut_text_fits_whatever_it_is_written_in() {
        assert_eq!(cut("plain", 5), "plain");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("審査待ち", 8), "審査待ち");
        // Two cells each: a third character would not leave one for the ellipsis.
        assert_eq!(cut("審査待ち", 6), "審査…");
        assert_eq!(cut("審査待ち", 7), "審査待…");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let parts = ["a".repeat(15), "b".repeat(5), "c".repeat(90)];
        let text = Screen::plain(30).flow(4, &parts);
        assert_eq!(
            text.lines()
                .map(|line| line.chars().count())
                .collect::<Vec<_>>(),
            [27, 30],
            "{text}"
        );
    }
}
