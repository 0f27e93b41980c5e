//! The reasons an output is no answer.

use std::fmt;

use super::cause::{Cause, ERROR, NO_END, ProgramFailure};

/// The longest last words that are kept, in bytes: as much as a message may have.
pub(super) const SAID_MAX: usize = message_schema::limit::MESSAGE_BYTES_MAX as usize;

/// The reason an output is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The program reported no end.
    NoEnd,
    /// The program ended with an error and gave no words for it.
    Wordless,
    /// The program ended with an error that it explains.
    Reported(ProgramFailure),
    /// The last words are longer than what is kept.
    TooLong,
    /// The last words are not UTF-8.
    NotUtf8,
    /// Something kept the output open after the program's end, so that its end was not read.
    CutOff,
}

impl Unreadable {
    /// The reason in a failure: one of the known reasons if its sentence says no more, or else the program's report.
    pub(super) fn of(failure: ProgramFailure) -> Self {
        let known = [
            Self::NoEnd,
            Self::Wordless,
            Self::TooLong,
            Self::NotUtf8,
            Self::CutOff,
        ];
        let known = known
            .into_iter()
            .find(|reason| failure.cause.is_none() && reason.to_string() == failure.why);
        known.unwrap_or(Self::Reported(failure))
    }

    /// The cause, if the program names one.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Reported(failure) => failure.cause,
            Self::NoEnd | Self::Wordless | Self::TooLong | Self::NotUtf8 | Self::CutOff => None,
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEnd => out.write_str(NO_END),
            Self::Wordless => out.write_str(ERROR),
            Self::Reported(failure) => out.write_str(&failure.why),
            Self::TooLong => write!(out, "it says more than {SAID_MAX} bytes"),
            Self::NotUtf8 => out.write_str("it is not UTF-8 text"),
            Self::CutOff => out.write_str("its output did not end with it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::AgentOutput;
    use crate::stream::cause::{Retry, failure};

    /// Ends of runs that other versions recorded must be read, and they must read ours.
    #[test]
    fn each_reason_is_read_as_it_was_recorded_and_recorded_as_its_sentence() {
        for (reason, recorded) in [
            (Unreadable::NoEnd, r#""its output has no end""#),
            (Unreadable::Wordless, r#""its result is an error""#),
            (Unreadable::TooLong, r#""it says more than 262144 bytes""#),
            (Unreadable::NotUtf8, r#""it is not UTF-8 text""#),
            (Unreadable::CutOff, r#""its output did not end with it""#),
            (
                Unreadable::Reported(failure(None, "no memory")),
                r#""its result is an error: no memory""#,
            ),
            (
                Unreadable::Reported(failure(Some(401), "")),
                r#""it is not logged in","cause":"not_logged_in""#,
            ),
            (
                Unreadable::Reported(failure(Some(429), "wait").with_retry(Some(Retry::AfterS(5)))),
                r#""its quota is used up: wait","cause":{"quota":{"retry":{"after_s":5}}}"#,
            ),
        ] {
            let output = AgentOutput {
                unreadable: Some(reason),
                ..AgentOutput::default()
            };
            let line = format!(r#"{{"text":"","unreadable":{recorded},"turns":0}}"#);
            assert_eq!(serde_json::to_string(&output).expect("JSON"), line);
            let read: AgentOutput = serde_json::from_str(&line).expect("an output");
            assert_eq!(read, output);
        }
    }

    #[test]
    fn an_error_without_words_is_no_report() {
        assert_eq!(Unreadable::of(failure(None, "")), Unreadable::Wordless);
        let announced = failure(None, "").announced(Some(Cause::NotLoggedIn));
        assert_eq!(Unreadable::of(announced).cause(), Some(Cause::NotLoggedIn));
    }
}
