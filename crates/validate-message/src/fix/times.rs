//! Instants in UTC that are not written `YYYY-MM-DDTHH:MM:SSZ`: with a fraction or an offset of zero. With another
//! offset or fraction it is another instant, and stays unchanged.

use message_schema::envelope::Timestamp;
use message_schema::schema::Shape;

use super::Fix;

/// The length of an instant up to its fraction and offset, in bytes.
const SECONDS: usize = "YYYY-MM-DDTHH:MM:SS".len();

/// The spellings of a zero offset.
const ZERO: [&str; 5] = ["Z", "z", "+00:00", "-00:00", "+0000"];

/// Returns the instant in its only accepted form.
pub(super) fn fixed(text: &str, shape: &Shape) -> Option<(Fix, String)> {
    if !shape.is_instant() || Timestamp::parse(text).is_some() {
        return None;
    }
    let (seconds, rest) = text.split_at_checked(SECONDS)?;
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            Some(fraction.trim_start_matches('0')).filter(|rest| rest.len() < fraction.len())?
        }
        None => rest,
    };
    let instant = seconds.replace('t', "T") + "Z";
    (ZERO.contains(&offset) && Timestamp::parse(&instant).is_some())
        .then_some((Fix::TimeForm, instant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use message_schema::Schema;

    #[test]
    fn only_another_writing_of_the_same_instant_is_fixed() {
        let (shape, _) = Schema::Envelope
            .shape()
            .field("created_at_utc")
            .expect("a field");
        let fixed = |text: &str| fixed(text, shape).map(|(_, text)| text);
        for text in [
            "2026-02-13T10:00:00+00:00",
            "2026-02-13T10:00:00.000Z",
            "2026-02-13t10:00:00z",
            "2026-02-13T10:00:00.0+0000",
            "2026-02-13T10:00:00-00:00",
        ] {
            assert_eq!(
                fixed(text).as_deref(),
                Some("2026-02-13T10:00:00Z"),
                "{text}"
            );
        }
        for text in [
            "2026-02-13T10:00:00Z",
            "2026-02-13T10:00:00.5Z",
            "2026-02-13T10:00:00.Z",
            "2026-02-13T12:00:00+02:00",
            "2026-02-13T10:00:00",
            "2026-02-30T10:00:00+00:00",
            "2026-02-13 10:00:00Z",
            "größe-größe-größe",
        ] {
            assert_eq!(fixed(text), None, "{text}");
        }
        let (subject, _) = Schema::Envelope.shape().field("subject").expect("a field");
        assert_eq!(super::fixed("2026-02-13T10:00:00+00:00", subject), None);
    }
}
