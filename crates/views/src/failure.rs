//! The failure of a command: its reason, and what to do next.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::answer::Next;
use crate::exit::{Exit, is_out_of_room};

/// The reason why a command failed, and what to run next.
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the command.
    pub exit: Exit,
    /// The failure in a phrase.
    pub message: String,
    /// The protocol's code for it, if it has one.
    pub code: Option<&'static str>,
    /// The data known despite the failure, for `--json`.
    pub data: Option<Box<Value>>,
    /// The commands that fix it.
    pub next: Vec<Next>,
    /// The error of the operating system that caused it.
    pub cause: Option<io::ErrorKind>,
}

/// An error that no command gives an exit code of its own.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(Exit::Failed, &error)
    }
}

impl Failure {
    /// Makes a failure with only a message.
    pub fn plain(exit: Exit, message: String) -> Self {
        Self {
            exit,
            message,
            code: None,
            data: None,
            next: Vec::new(),
            cause: None,
        }
    }

    /// Makes a failure from an error and its causes.
    pub fn new(exit: Exit, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut failure = Self::plain(exit, error.to_string());
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                failure.cause = Some(error.kind());
                if exit == Exit::Failed && is_out_of_room(error.kind()) {
                    failure.exit = Exit::Temporary;
                }
            }
            let text = error.to_string();
            if !failure.message.ends_with(&text) {
                failure.message = format!("{}: {text}", failure.message);
            }
            cause = error.source();
        }
        failure
    }

    /// Sets the command that comes next.
    pub fn next(self, command: String) -> Self {
        Self {
            next: vec![Next {
                run: command,
                why: None,
            }],
            ..self
        }
    }

    /// Adds an alternative next command.
    pub fn or(mut self, command: String) -> Self {
        if self.next.iter().all(|next| next.run != command) {
            self.next.push(Next {
                run: command,
                why: None,
            });
        }
        self
    }

    /// Names this command if the file system takes no more and no command is named yet.
    pub fn or_check(self, command: String) -> Self {
        let takes_no_more = self.cause.is_some_and(|cause| {
            is_out_of_room(cause) || cause == io::ErrorKind::ReadOnlyFilesystem
        });
        match takes_no_more && self.next.is_empty() {
            true => self.next(command),
            false => self,
        }
    }

    /// True if the reader of our output went away, which is not our failure.
    pub fn is_broken_pipe(&self) -> bool {
        self.cause == Some(io::ErrorKind::BrokenPipe)
    }

    /// Sets the protocol's code.
    pub fn code(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    /// Sets the data known despite the failure.
    pub fn data(self, data: &impl Serialize) -> Self {
        let data = serde_json::to_value(data).expect("text keys and plain values are JSON");
        Self {
            data: Some(Box::new(data)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(failure: &Failure) -> Vec<&str> {
        failure.next.iter().map(|next| next.run.as_str()).collect()
    }

    #[test]
    fn a_failure_has_its_code_its_data_and_each_command_once() {
        let failure = Failure::plain(Exit::Usage, "no such review".to_owned())
            .next("settled status".to_owned())
            .or("settled status".to_owned())
            .or("settled why 86".to_owned())
            .code("unknown_review")
            .data(&["#86"]);
        assert_eq!(runs(&failure), ["settled status", "settled why 86"]);
        assert_eq!(failure.code, Some("unknown_review"));
        assert_eq!(failure.data.as_deref(), Some(&serde_json::json!(["#86"])));
    }

    #[test]
    fn a_failure_says_each_cause_once_and_knows_that_its_reader_left() {
        let failure = |kind: io::ErrorKind| {
            Failure::from(spool::SpoolError::Io {
                operation: "write",
                path: "out".into(),
                source: kind.into(),
            })
        };
        let gone = failure(io::ErrorKind::BrokenPipe);
        assert_eq!(
            (gone.exit, gone.message.as_str()),
            (Exit::Failed, "cannot write out: broken pipe")
        );
        assert!(gone.is_broken_pipe());
        assert!(!failure(io::ErrorKind::NotFound).is_broken_pipe());
        let full = failure(io::ErrorKind::StorageFull);
        assert_eq!(full.exit, Exit::Temporary, "there may be room later");
        let check = |kind| failure(kind).or_check("settled doctor".to_owned());
        assert_eq!(runs(&check(io::ErrorKind::StorageFull)), ["settled doctor"]);
        let read_only = check(io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(runs(&read_only), ["settled doctor"]);
        assert_eq!(read_only.exit, Exit::Failed);
        assert!(check(io::ErrorKind::NotFound).next.is_empty());
    }
}
