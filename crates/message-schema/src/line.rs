//! What may stand in one line: the characters that would end it, turn it around or steer a
//! terminal, and how a text that has them is shown. Which fields must be one line is the schemas'.

/// Whether the character could break out of a line: a control character, a line or paragraph
/// separator, or one that changes the direction of the text around it (bidi).
pub fn is_trap(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether the character looks like a space, or like nothing, and is no space to YAML.
pub fn is_strange_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200b}' | '\u{202f}' | '\u{205f}' | '\u{2060}' | '\u{3000}' | '\u{feff}'
    )
}

/// Whether the character is a quote to people and a letter to YAML.
pub fn is_typographic_quote(c: char) -> bool {
    matches!(c, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

/// Whether the text can be shown in one line as it is.
pub fn is_one_line(text: &str) -> bool {
    !text.contains(is_trap)
}

/// The text with every character escaped (`\n`, `\u{202e}`) that could break out of its line.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_trap(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_turns_or_steers_a_line_is_shown_by_its_number() {
        assert_eq!(escaped("a\n\u{1b}[2Jb\u{202e}c\u{2028}"), "a\\n\\u{1b}[2Jb\\u{202e}c\\u{2028}");
        assert_eq!(escaped("größe \u{1f600} \\ '"), "größe \u{1f600} \\ '");
        assert!(is_one_line("a b") && !is_one_line("a\u{85}b") && !is_one_line("a\u{2066}b"));
    }
}
