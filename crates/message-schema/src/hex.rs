//! Bytes as hexadecimal digits.

/// Writes bytes, two lower-case digits for each.
pub fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads two digits of either case for each byte; `None` if the text is anything else.
pub fn read(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    // The number parser accepts a sign; a pair of digits must not have one.
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_two_digits_and_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = write(&bytes);
        assert!(
            text.starts_with("000102") && text.ends_with("fdfeff"),
            "{text}"
        );
        assert_eq!(text.len(), 512);
        assert_eq!(read(&text).as_ref(), Some(&bytes));
        assert_eq!(read(&text.to_uppercase()), Some(bytes));
        assert_eq!(read(""), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_pair_of_digits_is_not_read() {
        for text in ["0", "000", "0g", "+1", " 1", "ä", "0x00"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
