//! Text of one line: the characters that would end it, reverse it, control a terminal or hide in it, and the escaped form
//! of a text that has them. The schemas decide which fields must be one line.

/// True if the character could break out of a line: a control character, a line or paragraph separator, or one that
/// changes the direction of the text around it (bidi).
pub fn is_trap(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True if no screen shows the character, and no script needs it: soft hyphens, spaces without a width, marks of byte
/// order and of annotations, and tags, which spell whole invisible sentences; only three flags are made with tags.
/// The two joiners are no such characters, because Persian, Hindi and families of emoji are written with them.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'
            ..='\u{2064}' | '\u{206a}'
            ..='\u{206f}' | '\u{feff}' | '\u{fff9}'
            ..='\u{fffb}' | '\u{e0000}'
            ..='\u{e007f}'
    )
}

/// True if we escape the character wherever we show a text: it could break out of its line, or is invisible.
pub fn is_escaped(c: char) -> bool {
    is_trap(c) || is_unseen(c)
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

/// True if nothing in the text could break out of its line.
pub fn is_one_line(text: &str) -> bool {
    !text.contains(is_trap)
}

/// True if the text can be shown unchanged: [`escaped`] changes nothing in it.
pub fn is_shown_as_is(text: &str) -> bool {
    !text.contains(is_escaped)
}

/// Returns the text with every character escaped (`\n`, `\u{202e}`, `\u{200b}`) that could break out of its line or is
/// invisible.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns JSON with the same characters escaped as in [`escaped`], except for the line feeds between its values. Such a
/// character occurs only inside a string, where the escape means the same.
pub fn escaped_in_json(json: &str) -> String {
    // Most texts are plain, and a scan of the bytes is cheap.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return json.to_owned();
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_escaped(c) {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            escaped.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns a count with its noun: `1 finding`, `2 findings`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
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
    fn one_thing_is_in_the_singular() {
        assert_eq!(counted(0, "move", "moves"), "0 moves");
        assert_eq!(counted(1, "move", "moves"), "1 move");
        assert_eq!(counted(2, "dead letter", "dead letters"), "2 dead letters");
    }

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
        assert!(is_shown_as_is("größe \u{1f600} '") && !is_shown_as_is("a\nb"));
        assert!(is_one_line("a b") && !is_one_line("a\u{85}b") && !is_one_line("a\u{2066}b"));
    }

    #[test]
    fn what_nobody_sees_is_shown_by_its_number() {
        let unseen = "a\u{ad}\u{180e}\u{200b}\u{2060}\u{2064}\u{206a}\u{206f}\u{feff}\u{fff9}\u{fffb}\u{e0000}\u{e0041}\u{e007f}";
        let shown = r"a\u{ad}\u{180e}\u{200b}\u{2060}\u{2064}\u{206a}\u{206f}\u{feff}\u{fff9}\u{fffb}\u{e0000}\u{e0041}\u{e007f}";
        assert_eq!(escaped(unseen), shown);
        assert!(!is_shown_as_is("a\u{200b}"));
        assert!(is_one_line(unseen), "it stays on its line");
        // Joiners, a variation selector and what is next to the ranges.
        let seen = "\u{200a}\u{200c}\u{200d}\u{fe0f}\u{e0100}\u{ac}\u{ae}\u{2065}\u{fffc}\u{e0080}";
        assert_eq!(escaped(seen), seen);
    }

    #[test]
    fn json_is_escaped_like_text_and_means_the_same() {
        let text = "a\n\u{7f}\u{85}\u{202e}\u{feff}\u{e0041}é\u{1f600}\u{200d}";
        let json = serde_json::to_string_pretty(&[text]).expect("JSON");
        let harmless = escaped_in_json(&json);
        let shown = r#"a\n\u007f\u0085\u202e\ufeff\udb40\udc41é"#;
        assert_eq!(harmless, format!("[\n  \"{shown}\u{1f600}\u{200d}\"\n]"));
        let parsed: Vec<String> = serde_json::from_str(&harmless).expect("JSON");
        assert_eq!(parsed, [text]);
        assert_eq!(escaped_in_json("[\n 1]"), "[\n 1]");
    }
}
