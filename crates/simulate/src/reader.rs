//! Reads the fields of a scenario file with their positions. An unknown word is an error with line and column, never
//! ignored.

use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::Place;
use message_schema::envelope::Timestamp;
use message_schema::yaml::{Content, Field, Node};

/// An error in a scenario file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParseError {
    /// The position.
    pub(super) place: Place,
    /// The text found there and what would have been accepted.
    pub(super) message: String,
}

pub(super) type Parsed<T> = Result<T, ParseError>;

impl ParseError {
    pub(super) fn at(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
        }
    }
}

/// Returns the fields of a mapping; fails if it has any field that is not `known`.
pub(super) fn fields<'n>(node: &'n Node, what: &str, known: &[&str]) -> Parsed<&'n [Field]> {
    let Content::Map(fields) = &node.content else {
        return Err(ParseError::at(
            node.place,
            format!("{what} is {}, expected a mapping", node.kind()),
        ));
    };
    match fields
        .iter()
        .find(|field| !known.contains(&field.key.as_str()))
    {
        Some(field) => Err(ParseError::at(
            field.key_place,
            format!(
                "{what} has no `{}`, expected one of {}",
                field.key,
                known.join(", ")
            ),
        )),
        None => Ok(fields),
    }
}

/// Returns the value of a field, if the mapping has it and it is not empty.
pub(super) fn value<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.field(key)
        .map(|field| &field.value)
        .filter(|value| !value.is_absent())
}

/// Returns the text of a scalar.
pub(super) fn text(node: &Node) -> Parsed<&str> {
    node.text().ok_or_else(|| {
        ParseError::at(
            node.place,
            format!("expected a text, found {}", node.kind()),
        )
    })
}

/// Parses a scalar as `T`.
pub(super) fn parsed<T>(node: &Node) -> Parsed<T>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text = text(node)?.trim();
    text.parse()
        .map_err(|error| ParseError::at(node.place, format!("`{text}`: {error}")))
}

/// Parses an optional field as `T`.
pub(super) fn optional<T>(node: &Node, key: &str) -> Parsed<Option<T>>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    value(node, key).map(parsed).transpose()
}

/// Returns a required field.
pub(super) fn required<'n>(node: &'n Node, what: &str, key: &str) -> Parsed<&'n Node> {
    value(node, key).ok_or_else(|| ParseError::at(node.place, format!("{what} needs `{key}`")))
}

/// Returns the items of a list; a single value counts as a list of one.
pub(super) fn one_or_many(node: &Node) -> &[Node] {
    match &node.content {
        Content::List(items) => items,
        Content::Scalar(_) | Content::Map(_) => std::slice::from_ref(node),
    }
}

/// Reads a word of a closed set, with the type's own names.
pub(super) fn word<T: serde::de::DeserializeOwned>(node: &Node) -> Parsed<T> {
    let text = text(node)?.trim();
    serde_json::from_value(text.into())
        .map_err(|error| ParseError::at(node.place, error.to_string()))
}

/// Parses a span of time: `90s`, `15m`, `2h`, `7d`, or several of these in a row.
pub(super) fn span(node: &Node) -> Parsed<TimeDelta> {
    let text = text(node)?.trim();
    span_of(text).ok_or_else(|| {
        let message =
            format!("`{text}` is not a span of time, expected one like 90s, 15m, 2h, 7d or 1h30m");
        ParseError::at(node.place, message)
    })
}

/// Parses an instant, or a span after the start such as `+2h`.
pub(super) fn instant(node: &Node, start: DateTime<Utc>) -> Parsed<DateTime<Utc>> {
    let text = text(node)?.trim();
    let after = text
        .strip_prefix('+')
        .and_then(span_of)
        .map(|span| start + span);
    let at = after.or_else(|| Timestamp::parse(text).map(Timestamp::utc));
    at.ok_or_else(|| {
        let expected = Timestamp::EXPECTED;
        ParseError::at(
            node.place,
            format!("`{text}`: expected {expected}, or a span after the start like +2h"),
        )
    })
}

fn span_of(text: &str) -> Option<TimeDelta> {
    let mut rest = text;
    let mut span = TimeDelta::zero();
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..unit].parse().ok()?;
        let part = match rest.get(unit..=unit)? {
            "s" => TimeDelta::try_seconds(number),
            "m" => TimeDelta::try_minutes(number),
            "h" => TimeDelta::try_hours(number),
            "d" => TimeDelta::try_days(number),
            _ => None,
        };
        span = span.checked_add(&part.filter(|_| number <= SPAN_MAX)?)?;
        rest = &rest[unit + 1..];
    }
    (!text.is_empty()).then_some(span)
}

/// The largest number in a span: dates have an upper bound.
const SPAN_MAX: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_units() {
        assert_eq!(span_of("90s"), Some(TimeDelta::seconds(90)));
        assert_eq!(span_of("1d2h30m"), Some(TimeDelta::minutes(26 * 60 + 30)));
        for bad in ["", "2", "h", "2w", "-2h", "2 h", "2é", "9999999d"] {
            assert_eq!(span_of(bad), None, "{bad:?}");
        }
    }
}
