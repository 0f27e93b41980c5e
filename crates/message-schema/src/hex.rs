//! Bytes as hexadecimal digits.

/// Writes bytes, two lower-case digits for each.
pub fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads two digits of either case for each byte; `None` if the text is anything else.
pub fn read(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 2];
    fill(&mut bytes, text)?;
    Some(bytes)
}

/// Reads as many bytes as the array has; `None` if the text is anything but their digits.
pub fn read_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes, text)?;
    Some(bytes)
}

fn fill(bytes: &mut [u8], text: &str) -> Option<()> {
    let digits = text.as_bytes();
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(16 * value(pair[0])? + value(pair[1])?).ok()?;
    }
    Some(())
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
        assert_eq!(read_array("00fF"), Some([0, 255]));
    }

    #[test]
    fn what_is_no_pair_of_digits_is_not_read() {
        for text in ["0", "000", "0g", "+1", " 1", "ä", "0x00"] {
            assert_eq!(read(text), None, "{text}");
            assert_eq!(read_array::<1>(text), None, "{text}");
        }
    }
}
