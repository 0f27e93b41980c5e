//! Quotes words for a shell.

use std::ffi::OsStr;

/// Quotes a word so that a shell takes it as one.
pub fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        let quoted = |word: &str| quoted(word.as_ref());
        assert_eq!(quoted("./mailroom"), "./mailroom");
        assert_eq!(quoted("my mail"), "'my mail'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
