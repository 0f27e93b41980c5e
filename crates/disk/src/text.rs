//! Reads a value that is stored as text without copying the text, and a long text with one copy.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use memchr::memchr;
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

/// Parses the value from its text; a value of another kind is an error.
pub fn from_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(Text(PhantomData))
}

/// Reads a long text from JSON bytes. The JSON parser copies a text with escapes twice, and its buffer grows with it.
pub fn long_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let json = <&RawValue>::deserialize(deserializer)?.get();
    let text = unescaped(json).map_or_else(|| serde_json::from_str(json), Ok);
    text.map_err(de::Error::custom)
}

/// Reads an optional long text.
pub fn long_text_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct LongText(#[serde(deserialize_with = "long_text")] String);
    Ok(Option::<LongText>::deserialize(deserializer)?.map(|LongText(text)| text))
}

/// Unescapes a JSON text that has only short escapes; `None` for any other.
fn unescaped(json: &str) -> Option<String> {
    let mut rest = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let mut after = rest[at + 1..].chars();
        text.push(match after.next()? {
            'n' => '\n',
            plain @ ('"' | '\\' | '/') => plain,
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            _ => return None,
        });
        rest = after.as_str();
    }
    text.push_str(rest);
    Some(text)
}

struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> de::Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Long(#[serde(deserialize_with = "long_text")] String);

    #[test]
    fn what_is_no_text_is_refused() {
        for json in [
            "7",
            "null",
            r#""\ud800""#,
            "\"a\nb\"",
            r#""\x""#,
            "{}",
            "\"\\",
        ] {
            assert!(serde_json::from_str::<Long>(json).is_err(), "{json}");
        }
        assert!(serde_json::from_slice::<Long>(b"\"\xff\"").is_err());
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Optional(#[serde(deserialize_with = "long_text_if_any")] Option<String>);

    #[derive(Debug, PartialEq, Deserialize)]
    struct Number(#[serde(deserialize_with = "from_text")] u8);

    #[test]
    fn short_escapes_take_one_copy_and_all_others_are_left_to_the_json_parser() {
        let json = r#""a\"b\\c\/d\ne\tf\rg\bh\fi""#;
        let text = "a\"b\\c/d\ne\tf\rg\u{8}h\u{c}i";
        assert_eq!(unescaped(json).as_deref(), Some(text));
        for other in [r#""\u0061""#, r#""\x""#, "7", "\"", r#""\"#] {
            assert_eq!(unescaped(other), None, "{other}");
        }
    }

    #[test]
    fn a_text_may_be_missing_and_a_value_is_read_from_its_text_alone() {
        let optional = |json| {
            serde_json::from_str::<Optional>(json)
                .expect("a text or none")
                .0
        };
        let texts = [optional("null"), optional("\"a\"")];
        assert_eq!(texts, [None, Some("a".to_owned())]);
        let number = |json| serde_json::from_str::<Number>(json).map_err(|error| error.to_string());
        assert_eq!(number("\"7\""), Ok(Number(7)));
        let error = number("7").expect_err("it is no text");
        assert!(error.contains("expected a text"), "{error}");
    }

    proptest! {
        #[test]
        fn a_long_text_is_what_every_reader_of_json_reads(
            parts in proptest::collection::vec("\\PC{0,9}|[\n\t\r\"\\\\/]{0,3}|\u{8}|\u{c}|\u{1}|\u{2028}", 0..9)
        ) {
            let text = parts.concat();
            for json in [serde_json::to_string(&text).expect("JSON"), serde_json::to_string(&text).expect("JSON").replace('/', "\\/").replace('a', "\\u0061")] {
                prop_assert_eq!(serde_json::from_str::<Long>(&json).expect("a text"), Long(text.clone()));
            }
        }
    }
}
