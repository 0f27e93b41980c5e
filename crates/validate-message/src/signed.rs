//! Recognizes signed messages. OACP signs the bytes above the trailer as they are, so any change of them, even of a
//! blank, invalidates the signature.

use message_schema::parse;

/// True if the message has a signature: a non-empty field `auth` or, if the file cannot be parsed, a line that begins
/// with that name.
pub fn is_signed(bytes: &[u8]) -> bool {
    match parse(bytes) {
        Ok(message) => message
            .root()
            .field("auth")
            .is_some_and(|auth| !auth.value.is_absent()),
        Err(_) => bytes.split(|byte| *byte == b'\n').any(names_it),
    }
}

fn names_it(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    [
        "auth:",
        "auth :",
        "\"auth\"",
        "'auth'",
        "{\"auth\"",
        "{auth",
    ]
    .iter()
    .any(|name| {
        line.len() >= name.len() && line[..name.len()].eq_ignore_ascii_case(name.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_says_something_is_a_signature_and_a_word_in_a_text_is_none() {
        assert!(
            is_signed(b"id: a\nauth: \"eyJ\"\n")
                && is_signed(b"{\"id\": \"a\", \"auth\": \"eyJ\"}")
        );
        assert!(!is_signed(b"id: a\nauth: ~\n") && !is_signed(b"id: auth\nbody: |\n  auth: x\n"));
    }

    #[test]
    fn in_a_file_that_cannot_be_read_the_name_at_the_start_of_a_line_is_enough() {
        assert!(
            is_signed(b"id: [\nauth: \"eyJ\"\n") && is_signed(b"```yaml\r\nauth: \"eyJ\"\r\n```")
        );
        assert!(is_signed(b"id: [\nAUTH: x\n") && !is_signed(b"id: [\nsubject: auth: x\n"));
    }
}
