//! A file's own name: one path component, as the bytes in the file system.
//!
//! The spool's `Layout` knows its directory.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name that file systems allow, in bytes.
const NAME_MAX: usize = 255;

/// One path component: never empty, `.`, `..`, longer than 255 bytes, or with `/` or NUL in it.
///
/// Shown and stored as text in which `%`, control characters, characters that end or reorder a line, and bytes that are
/// not UTF-8 are percent-encoded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(OsString);

/// The error for bytes that no file can have as its name here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a file name is 1 to 255 bytes without `/` and NUL, and neither `.` nor `..`")]
pub struct NotAFileName;

impl FileName {
    /// Accepts the bytes as a name if a file can have it.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<FileName, NotAFileName> {
        let bytes = bytes.into();
        let fits = !bytes.is_empty()
            && bytes.len() <= NAME_MAX
            && bytes != b"."
            && bytes != b".."
            && !bytes.contains(&b'/')
            && !bytes.contains(&0);
        if fits {
            Ok(FileName(OsString::from_vec(bytes)))
        } else {
            Err(NotAFileName)
        }
    }

    /// Returns the name's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_encoded_bytes()
    }

    /// Returns `<stem>.<seq>.<ext>`: the name to use when this one is taken by other bytes.
    pub fn numbered(&self, seq: u64) -> FileName {
        self.with_ending(&format!(".{seq}"))
    }

    /// Returns `<stem>.report.yaml`: the name of the report beside a refused original.
    pub fn report(&self) -> FileName {
        let (stem, _) = self.split();
        fit(stem, b".report.yaml")
    }

    /// Returns the names to try in turn if other bytes may have a name already.
    pub fn variants(&self, seq: u64) -> [FileName; 4] {
        [
            self.clone(),
            self.numbered(seq),
            self.with_ending(&format!(".{seq}-2")),
            self.with_ending(&format!(".{seq}-3")),
        ]
    }

    fn with_ending(&self, ending: &str) -> FileName {
        let (stem, extension) = self.split();
        fit(stem, &[ending.as_bytes(), extension].concat())
    }

    /// Splits before the last dot, unless that begins the name; the extension keeps its dot.
    fn split(&self) -> (&[u8], &[u8]) {
        let bytes = self.as_bytes();
        match bytes.iter().rposition(|byte| *byte == b'.') {
            Some(dot) if dot > 0 => bytes.split_at(dot),
            Some(_) | None => (bytes, b""),
        }
    }
}

/// Joins stem and ending, cutting the stem (between characters) so that the whole fits a name.
fn fit(stem: &[u8], ending: &[u8]) -> FileName {
    let ending = &ending[..ending.len().min(NAME_MAX - 1)];
    let mut end = stem.len().min(NAME_MAX - ending.len());
    while end > 1 && end < stem.len() && stem[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    FileName::new([&stem[..end], ending].concat())
        .expect("parts of a name, cut to length, make a name")
}

impl AsRef<Path> for FileName {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// Displays bytes as text: `%`, control characters, characters that end or reorder a line, and bytes that are not UTF-8
/// are percent-encoded.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(at) = rest.find(is_hidden) {
                let (plain, from) = rest.split_at(at);
                let end = from.chars().next().map_or(from.len(), char::len_utf8);
                f.write_str(plain)?;
                from.as_bytes()[..end]
                    .iter()
                    .try_for_each(|byte| write!(f, "%{byte:02X}"))?;
                rest = &from[end..];
            }
            f.write_str(rest)?;
            chunk
                .invalid()
                .iter()
                .try_for_each(|byte| write!(f, "%{byte:02X}"))?;
        }
        Ok(())
    }
}

/// True for the sign of the encoding itself and for what `message_schema::line::is_trap` calls a trap; this room must
/// not know that one.
fn is_hidden(c: char) -> bool {
    c == '%'
        || c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the bytes of a displayed text; `None` if two hex digits do not follow a `%`.
pub(crate) fn bytes_of_shown(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    Some(bytes)
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self.as_bytes()).fmt(f)
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileName({self})")
    }
}

impl FromStr for FileName {
    type Err = NotAFileName;

    /// Reads the displayed form back; a `%` that two hex digits do not follow is an error.
    fn from_str(text: &str) -> Result<FileName, NotAFileName> {
        FileName::new(bytes_of_shown(text).ok_or(NotAFileName)?)
    }
}

impl Serialize for FileName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FileName, D::Error> {
        crate::from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(bytes: &[u8]) -> FileName {
        FileName::new(bytes).expect("a name")
    }

    #[test]
    fn a_path_is_not_a_name() {
        for bytes in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'x'; 256]] {
            assert!(
                FileName::new(bytes).is_err(),
                "{bytes:?} was taken for a name"
            );
        }
        assert!(FileName::new([b'x'; 255]).is_ok());
    }

    #[test]
    fn a_name_is_shown_without_control_characters_and_broken_text() {
        assert_eq!(
            name(b"100%\n\xff\xc3\xa9.yaml").to_string(),
            "100%25%0A%FF\u{e9}.yaml"
        );
        assert_eq!(
            name("\u{1b}[1m\u{202e}lmay".as_bytes()).to_string(),
            "%1B[1m%E2%80%AElmay"
        );
    }

    #[test]
    fn numbers_and_reports_stand_before_the_extension() {
        assert_eq!(name(b"a.b.yaml").numbered(12).as_bytes(), b"a.b.12.yaml");
        assert_eq!(name(b"plain").numbered(12).as_bytes(), b"plain.12");
        assert_eq!(name(b".yaml").numbered(12).as_bytes(), b".yaml.12");
        assert_eq!(name(b"a.b.json").report().as_bytes(), b"a.b.report.yaml");
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_keeps_a_byte_of_its_stem() {
        let long = name("\u{e9}".repeat(127).as_bytes()).report();
        let expected = "\u{e9}".repeat(121) + ".report.yaml";
        assert_eq!(long.as_bytes(), expected.as_bytes());
        let plain = name(&[b'x'; 255]).numbered(12);
        assert_eq!(plain.as_bytes(), [&[b'x'; 252][..], b".12"].concat());
        // An extension that leaves no room is cut instead.
        let extension = [b'x'; 252];
        for stem in [&b"a"[..], "\u{e9}".as_bytes()] {
            let odd = name(&[stem, b".", &extension[..]].concat()).numbered(12);
            let expected = [&stem[..1], b".12.", &extension[..250]].concat();
            assert_eq!(odd.as_bytes(), expected);
        }
    }

    proptest! {
        #[test]
        fn every_name_survives_its_text(bytes in proptest::collection::vec(any::<u8>(), 1..255)) {
            if let Ok(name) = FileName::new(bytes) {
                prop_assert_eq!(name.to_string().parse::<FileName>(), Ok(name));
            }
        }

        #[test]
        fn derived_names_fit_and_differ(stem in "[a-z\u{e9}]{1,130}", extension in "(\\.[a-z]{1,260})?", seq in any::<u64>()) {
            if let Ok(name) = FileName::new(format!("{stem}{extension}")) {
                let variants = name.variants(seq);
                for (at, variant) in variants.iter().enumerate() {
                    prop_assert!(variant.as_bytes().len() <= 255);
                    prop_assert!(!variants[..at].contains(variant), "{} twice", variant);
                }
                prop_assert!(name.report().as_bytes().ends_with(b".report.yaml"));
            }
        }
    }
}
