//! Text of one line: the characters that would end it, reverse it or control a terminal, and the escaped form of a text
//! that has them. The schemas decide which fields must be one line.

/// True if the character could break out of a line: a control character, a line or paragraph separator, or one that
/// changes the direction of the text around it (bidi).
pub fn is_trap(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True if the character looks like a space or like nothing, but is no space to YAML.
pub fn is_strange_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200b}' | '\u{202f}' | '\u{205f}' | '\u{2060}' | '\u{3000}' | '\u{feff}'
    )
}

/// True if the character looks like a quote to people but is a letter to YAML.
pub fn is_typographic_quote(c: char) -> bool {
    matches!(c, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

/// Returns the lines of a text as YAML counts them: a line feed ends one, with or without a carriage return before it,
/// and so does a lone carriage return. Line ends are not included.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest
            .find(['\n', '\r'])
            .or_else(|| (!rest.is_empty()).then_some(rest.len()))?;
        let (line, behind) = rest.split_at(at);
        let is_pair = behind.starts_with("\r\n");
        rest = behind
            .get(if is_pair { 2 } else { 1 }..)
            .unwrap_or_default();
        Some(line)
    })
}

/// Returns the last non-blank line of a text, trimmed; empty if all lines are blank.
pub fn last(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the byte offset of each line of a text: one more than it has line ends.
pub fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let is_end = move |at: usize| match bytes[at] {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    std::iter::once(0).chain(
        (0..bytes.len())
            .filter(move |at| is_end(*at))
            .map(|at| at + 1),
    )
}

/// True if the text can be shown on one line unchanged.
pub fn is_one_line(text: &str) -> bool {
    !text.contains(is_trap)
}

/// Returns the text with every character escaped (`\n`, `\u{202e}`) that could break out of its line.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_trap(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns at most `characters_max` characters of the text, followed by an ellipsis if it was longer.
pub fn cut(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_that_stands_alone_ends_a_line() {
        let text = "a\r\nb\rc\r\r\nd\n\ne";
        assert_eq!(
            lines(text).collect::<Vec<_>>(),
            ["a", "b", "c", "", "d", "", "e"]
        );
        assert_eq!(
            line_starts(text).collect::<Vec<_>>(),
            [0, 3, 5, 7, 9, 11, 12]
        );
        assert_eq!(
            (
                lines("").count(),
                lines("a\r").count(),
                line_starts("a\r").count()
            ),
            (0, 1, 2)
        );
    }

    #[test]
    fn the_last_line_is_the_last_with_a_word() {
        assert_eq!(last("one\n two \r\n\n \t\n"), "two");
        assert_eq!((last("one"), last(" \n"), last("")), ("one", "", ""));
    }

    #[test]
    fn a_text_that_is_cut_says_that_it_goes_on() {
        assert_eq!(cut("größer", 6), "größer");
        assert_eq!(cut("größer", 5), "größe…");
        assert_eq!(cut("größer", 0), "…");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn what_ends_turns_or_steers_a_line_is_shown_by_its_number() {
        assert_eq!(
            escaped("a\n\u{1b}[2Jb\u{202e}c\u{2028}"),
            "a\\n\\u{1b}[2Jb\\u{202e}c\\u{2028}"
        );
        assert_eq!(escaped("größe \u{1f600} \\ '"), "größe \u{1f600} \\ '");
        assert!(is_one_line("a b") && !is_one_line("a\u{85}b") && !is_one_line("a\u{2066}b"));
    }
}
