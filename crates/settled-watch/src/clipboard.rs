//! Copies a text through the terminal itself with the control sequence OSC 52, which also works over ssh.

/// The sequence that puts a text into the clipboard of the person at the terminal.
pub(crate) fn copy(text: &str) -> String {
    format!("\u{1b}]52;c;{}\u{7}", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let of = |at: usize| group.get(at).copied().unwrap_or(0);
        let bits = u32::from_be_bytes([0, of(0), of(1), of(2)]);
        for n in 0..4 {
            if n <= group.len() {
                let letter = (bits >> (18 - 6 * n)) & 63;
                text.push(char::from(LETTERS[letter as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_are_those_of_rfc_4648() {
        for (text, letters) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), letters);
        }
        assert_eq!(copy("foo"), "\u{1b}]52;c;Zm9v\u{7}");
    }
}
