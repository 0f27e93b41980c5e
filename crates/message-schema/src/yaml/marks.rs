//! The look of a line of raw text, without a parser: its key, its value, its indentation, its quotes. Only for telling
//! people what went wrong; no message is read this way.

/// A line that looks like `key: value`.
#[derive(Debug)]
pub(super) struct FieldLine<'t> {
    /// Columns before the key, including the dashes of a list.
    pub(super) indent: usize,
    pub(super) key: &'t str,
    pub(super) value: &'t str,
    pub(super) column_of_value: usize,
}

impl FieldLine<'_> {
    /// True if the key's value is on the lines below.
    pub(super) fn opens_block(&self) -> bool {
        self.value.is_empty() || self.value.starts_with(['|', '>', '#'])
    }
}

/// Reads the line as `key: value`; `None` for any other line, and if the key is more than a word.
pub(super) fn field_of(text: &str) -> Option<FieldLine<'_>> {
    let rest = text.trim_start_matches([' ', '-']);
    let indent = text.len() - rest.len();
    let key = key_of(rest)?;
    let after = &rest[key.len() + 1..];
    let value = after.trim();
    let blanks = after.chars().take_while(|c| c.is_whitespace()).count();
    let key = key.trim_matches(['"', '\'']);
    let column_of_value = indent + rest[..rest.len() - after.len()].chars().count() + blanks;
    Some(FieldLine {
        indent,
        key,
        value,
        column_of_value,
    })
}

/// Returns the word before the colon of an unindented field, its quotes included.
pub(super) fn key_of(text: &str) -> Option<&str> {
    let (key, value) = text.split_once(':')?;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\'');
    let fits = (1..=64).contains(&key.len()) && key.chars().all(is_word);
    (fits && (value.is_empty() || value.starts_with([' ', '\t', '\r']))).then_some(key)
}

/// True if the parser may take the line for a field, however strange its key.
pub(super) fn is_field(text: &str) -> bool {
    text.contains(": ") || text.contains(":\t") || text.trim_end().ends_with(':')
}

/// Returns the byte offset after the closing quote of a value that begins with quotes.
pub(super) fn end_of_quotes(value: &str) -> Option<usize> {
    let quote = value.chars().next()?;
    let mut chars = value.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if quote == '"' && c == '\\' {
            chars.next();
        } else if c == quote {
            if quote == '\'' && chars.next_if(|(_, next)| *next == '\'').is_some() {
                continue;
            }
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// Returns the name of a space for people.
pub(super) fn name_of_space(c: char) -> String {
    match c {
        '\t' => "tab".to_owned(),
        '\u{a0}' => "no-break space (U+00A0)".to_owned(),
        other => format!("character U+{:04X}", u32::from(other)),
    }
}

/// Returns the number of spaces before the first letter.
pub(super) fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Returns a number of spaces in words.
pub(super) fn spaces(count: u32) -> String {
    match count {
        0 => "no space".to_owned(),
        1 => "1 space".to_owned(),
        count => format!("{count} spaces"),
    }
}
