//! The newest decisions, and frames that fit a terminal: the lower part of `settled watch`.

use inspect::log::LogLine;
use screen::Screen;

/// Formats the decisions, one per line, below an empty line; empty if there are none.
pub fn text(decisions: &[LogLine], screen: Screen) -> String {
    if decisions.is_empty() {
        return String::new();
    }
    let told: Vec<(String, &str)> = decisions
        .iter()
        .map(|decision| (decision.text(), decision.at.as_str()))
        .collect();
    let fits = |(text, _): &(String, &str)| text.lines().all(|line| screen.has_room_for(line));
    let is_narrow = !told.iter().all(fits);
    let mut said = "\n".to_owned();
    for (text, at) in &told {
        for line in text.lines() {
            said += &if is_narrow {
                shortened(line, at, screen) + "\n"
            } else {
                format!("{line}\n")
            };
        }
    }
    said
}

/// A line of the log, with only the time of day, and with the file name cut to a quarter of the screen.
fn shortened(line: &str, at: &str, screen: Screen) -> String {
    let line = line.replacen(at, at.get(11..19).unwrap_or(at), 1);
    let short = |word| match word {
        file if str::contains(file, '/') => screen::middle(file, screen.width / 4),
        word => word.to_owned(),
    };
    let words: Vec<String> = line.split(' ').map(short).collect();
    screen::cut(&words.join(" "), screen.width)
}

/// Cuts a frame to the terminal: drops lines at the bottom, and ends long lines with an ellipsis. Lines with colours
/// fit already.
pub fn fitting(frame: &str) -> String {
    let (width, height) = screen::terminal_size().unwrap_or((100, 24));
    let mut text = String::from("\u{1b}[H");
    for (n, line) in frame.lines().take(height).enumerate() {
        let line = if line.contains('\u{1b}') {
            line.to_owned()
        } else {
            screen::cut(line, width)
        };
        text += &format!("{}{line}\u{1b}[K", if n == 0 { "" } else { "\r\n" });
    }
    text + "\u{1b}[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_begins_at_the_top_and_clears_what_was_behind_its_lines() {
        assert_eq!(
            fitting("one\n\u{1b}[1mtwo\u{1b}[0m\n"),
            "\u{1b}[Hone\u{1b}[K\r\n\u{1b}[1mtwo\u{1b}[0m\u{1b}[K\u{1b}[J"
        );
    }
}
