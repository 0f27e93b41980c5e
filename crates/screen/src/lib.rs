//! The abilities of a screen: its width, its colours, and bars and lines that fit it.

mod alternate;
mod progress;

use std::io::{IsTerminal as _, stderr, stdin, stdout};

use chrono::TimeDelta;
use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};
use workspace::clock::span;

pub use alternate::AlternateScreen;
pub use progress::ProgressLine;

/// The width of tables where nothing sets one.
const WIDTH: usize = 100;

/// The fewest cells that a cut word keeps.
const WORD_MIN: usize = 7;

/// The cells of a bar.
const BAR: usize = 10;

/// The screen that an answer goes to.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The width of a line in cells: most characters take one, those of Chinese or Japanese two.
    pub width: usize,
    /// True if `COLUMNS` or a terminal sets the width. Only then is prose wrapped; the reader of a pipe wants whole
    /// lines.
    is_fitted: bool,
    has_colours: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Somebody has to act now.
    Alarm,
    /// It is stuck until an agent or a person acts.
    Care,
    /// All is well.
    Well,
    /// It is secondary.
    Aside,
}

impl Tone {
    /// Returns the colour among the 256 that are the same in every theme. Each is half-way between black and white, so
    /// that it is readable on both; the sixteen named colours are not, yellow on white least of all.
    pub fn colour(self) -> u8 {
        match self {
            Self::Alarm => 196,
            Self::Care => 130,
            Self::Well => 28,
            Self::Aside => 243,
        }
    }
}

/// Returns the columns and rows of the terminal behind one of the three standard streams, if any is a terminal.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout())
        .or_else(|_| tcgetwinsize(stderr()))
        .or_else(|_| tcgetwinsize(stdin()))
        .ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some((columns, rows))
}

/// True if the terminal probably shows control sequences as text: `TERM` is `dumb`, empty or not set.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

impl Screen {
    /// Returns the screen of standard output: `COLUMNS` wide, else as wide as the terminal, else 100; coloured on a
    /// terminal that is not `dumb`, unless `NO_COLOR` is set.
    pub fn of_output() -> Self {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok());
        let is_terminal = stdout().is_terminal();
        let terminal = || terminal_size().map(|(width, _)| width);
        let is_quiet = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            width: columns.or_else(terminal).unwrap_or(WIDTH).max(20),
            is_fitted: columns.is_some() || is_terminal,
            has_colours: is_terminal && !is_quiet && !is_dumb(),
        }
    }

    /// Returns a screen without colours.
    pub fn plain(width: usize) -> Self {
        Self {
            width,
            is_fitted: true,
            has_colours: false,
        }
    }

    /// True if the line fits, or nothing sets the width.
    pub fn has_room_for(self, line: &str) -> bool {
        !self.is_fitted || line.width() <= self.width
    }

    /// Returns a line, with its long names shortened if it is too long.
    pub fn fit(self, line: &str) -> String {
        if self.has_room_for(line) {
            line.to_owned()
        } else {
            shorten(line, self.width)
        }
    }

    /// Wraps a line of prose between words if it is too long, and indents the further lines. A word longer than a line
    /// stays whole: it may be a path or an id to copy.
    pub fn wrap(self, indent: usize, line: &str) -> String {
        if self.has_room_for(line) {
            return format!("{line}\n");
        }
        let mut text = String::new();
        let mut cells = 0;
        // Leading blanks are the line's own indentation.
        let prose = line.trim_start_matches(' ');
        let begin = line.len() - prose.len();
        for word in prose.split(' ') {
            if text.is_empty() {
                text = format!("{:begin$}{word}", "");
                cells = begin + word.width();
            } else if cells + 1 + word.width() <= self.width {
                text += &format!(" {word}");
                cells += 1 + word.width();
            } else {
                text += &format!("\n{:indent$}{word}", "");
                cells = indent + word.width();
            }
        }
        text + "\n"
    }

    /// Colours the text, if the screen has colours.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let weight = match tone {
            Tone::Alarm => "1;",
            Tone::Care | Tone::Well | Tone::Aside => "",
        };
        if self.has_colours {
            format!("\u{1b}[{weight}38;5;{}m{text}\u{1b}[0m", tone.colour())
        } else {
            text.to_owned()
        }
    }

    /// Puts parts beside each other on as many lines as they need. Cuts a part wider than a line.
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

/// Draws the part of a whole that is left as a bar.
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

/// Returns the number of cells that a text takes.
pub fn cells(text: &str) -> usize {
    text.width()
}

/// Returns the text, cut to the width with an ellipsis.
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

/// Shortens a text to the width. First the longest words lose their middles, because names differ at their ends; then
/// the text loses its end.
pub fn shorten(text: &str, width: usize) -> String {
    let longest = text
        .split(' ')
        .map(UnicodeWidthStr::width)
        .max()
        .unwrap_or(0);
    let words_of = |cells| {
        let words = text.split(' ').map(|word| middle(word, cells));
        words.collect::<Vec<_>>().join(" ")
    };
    (WORD_MIN..=longest)
        .rev()
        .map(words_of)
        .find(|text| text.width() <= width)
        .unwrap_or_else(|| {
            let cut = cut(&words_of(WORD_MIN), width);
            cut.replace("……", "…")
        })
}

/// Returns the text, or its two ends around an ellipsis.
pub fn middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let begin = cut(text, width.div_ceil(2));
    let room = width.saturating_sub(begin.width());
    let mut cells = 0;
    let fits = |c: &char| {
        cells += c.width().unwrap_or(0);
        cells <= room
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    begin.chars().chain(end.into_iter().rev()).collect()
}

/// Formats an age: `2 h ago`.
pub fn ago(passed: TimeDelta) -> String {
    if passed < TimeDelta::zero() {
        "in the future".to_owned()
    } else {
        format!("{} ago", span(passed))
    }
}

/// Formats the time until something happens: `in 2 h`, or `overdue`.
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
        // These characters take two cells: a third would leave no room for the ellipsis.
        assert_eq!(cut("審査待ち", 6), "審査…");
        assert_eq!(cut("審査待ち", 7), "審査待…");
    }

    #[test]
    fn long_names_lose_their_middles_and_keep_both_ends() {
        let name = "owner/repository#1234567 a-long-author -> a-long-reviewer";
        assert_eq!(shorten(name, 80), name);
        assert_eq!(
            shorten(name, 46),
            "owner/…1234567 a-long-author -> a-long…eviewer"
        );
        assert_eq!(shorten(name, 30), "own…4567 a-l…thor -> a-l…ewer");
        assert_eq!(shorten(name, 12), "own…567 a-l…");
        // These characters take two cells: one that does not fit is left out whole.
        assert_eq!(middle("審査待ちです", 7), "審…です");
    }

    #[test]
    fn prose_is_wrapped_between_words_and_only_where_a_width_is_known() {
        let line = "missing:   the reviewer has not taken the request";
        let screen = Screen::plain(30);
        assert_eq!(
            screen.wrap(11, line),
            "missing:   the reviewer has\n           not taken the\n           request\n"
        );
        let pipe = Screen {
            is_fitted: false,
            ..screen
        };
        assert_eq!(pipe.wrap(11, line), format!("{line}\n"));
        let path = "a/path/that/is/longer/than/the/line";
        assert_eq!(
            screen.wrap(2, &format!("at {path}")),
            format!("at\n  {path}\n")
        );
    }

    const PROSE: [&str; 3] = [
        "missing:   the reviewer has not taken the request",
        "  who: a-long-reviewer-of-this or 審査待ちです and somebody else",
        "one",
    ];

    /// Puts each word on the last line if that still fits; a further line begins with the indentation.
    fn wrapped(width: usize, indent: usize, line: &str) -> String {
        if cells(line) <= width {
            return format!("{line}\n");
        }
        let prose = line.trim_start();
        let mut words = prose.split(' ');
        let begin = &line[..line.len() - prose.len()];
        let mut lines = vec![format!("{begin}{}", words.next().expect("a word"))];
        for word in words {
            let last = lines.last_mut().expect("a line");
            let longer = format!("{last} {word}");
            if cells(&longer) <= width {
                *last = longer;
            } else {
                lines.push(" ".repeat(indent) + word);
            }
        }
        lines.join("\n") + "\n"
    }

    #[test]
    fn a_line_takes_as_many_words_as_fit() {
        for line in PROSE {
            for (width, indent) in (1..70).flat_map(|width| [(width, 0), (width, 4)]) {
                let screen = Screen::plain(width);
                let text = screen.wrap(indent, line);
                assert_eq!(text, wrapped(width, indent, line), "{width}, {indent}");
                assert_eq!(screen.has_room_for(line), cells(line) <= width, "{width}");
                let fitted = screen.fit(line);
                assert_eq!(fitted == line, cells(line) <= width, "{width}");
                assert!(cells(&fitted) <= width, "{width}: {fitted}");
            }
        }
    }

    #[test]
    fn a_line_takes_as_many_parts_as_fit() {
        let parts = ["aaaa", "bb", "審査待ち", "ccccccc", "d", "ee"].map(str::to_owned);
        for (width, indent) in (12..60).flat_map(|width| [(width, 0), (width, 3)]) {
            let mut lines: Vec<String> = Vec::new();
            for part in &parts {
                let longer = lines.last().map(|line| format!("{line}   {part}"));
                match longer.filter(|longer| indent + cells(longer) <= width) {
                    Some(longer) => *lines.last_mut().expect("it is longer") = longer,
                    None => lines.push(part.clone()),
                }
            }
            let lines = lines
                .iter()
                .map(|line| format!("{}{line}\n", " ".repeat(indent)));
            let text = Screen::plain(width).flow(indent, &parts);
            assert_eq!(text, lines.collect::<String>(), "{width}, {indent}");
        }
    }

    #[test]
    fn a_text_keeps_both_ends_of_its_middle() {
        let middles = [1, 2, 3, 4, 5, 8, 9, 10].map(|width| middle("0123456789", width));
        let expected = [
            "…",
            "…9",
            "0…9",
            "0…89",
            "01…89",
            "012…6789",
            "0123…6789",
            "0123456789",
        ];
        assert_eq!(middles, expected);
    }

    #[test]
    fn what_is_to_come_is_ahead_until_it_is_overdue() {
        let said = [-1, 0, 119, 7_200].map(|seconds| ahead(TimeDelta::seconds(seconds)));
        assert_eq!(said, ["overdue", "in 0 s", "in 119 s", "in 2 h"]);
    }

    /// The contrast ratio of two relative luminances, as WCAG 2 defines it.
    fn contrast(one: f64, other: f64) -> f64 {
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// The relative luminance of one of the colours 16 to 255.
    fn luminance(colour: u8) -> f64 {
        let levels = [0.0, 95.0, 135.0, 175.0, 215.0, 255.0];
        let of_cube = |n: u8| levels[usize::from(n)];
        let rgb = match colour {
            16..=231 => {
                let n = colour - 16;
                [n / 36, n / 6 % 6, n % 6].map(of_cube)
            }
            232.. => [f64::from(colour - 232) * 10.0 + 8.0; 3],
            0..16 => panic!("a theme may change {colour}"),
        };
        let [red, green, blue] = rgb.map(|level: f64| {
            let level = level / 255.0;
            if level <= 0.040_45 {
                level / 12.92
            } else {
                ((level + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn every_colour_can_be_read_on_black_and_on_white() {
        for tone in [Tone::Alarm, Tone::Care, Tone::Well, Tone::Aside] {
            for ground in [0.0, 1.0] {
                let seen = contrast(luminance(tone.colour()), ground);
                // Running text needs 4.5, bold text 3.
                let asked = if tone == Tone::Alarm { 3.9 } else { 4.4 };
                assert!(seen >= asked, "{tone:?} on {ground}: {seen:.2}");
            }
        }
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
        // With its indentation the line would have 31 cells.
        let parts = ["a".repeat(15), "b".repeat(9)];
        let text = Screen::plain(30).flow(4, &parts);
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
