//! Explains a refusal to the sender, whichever stage found the reason.

use message_schema::REPORT_VERSION;
use message_schema::envelope::Timestamp;
use message_schema::id::AgentName;
use message_schema::limit::HELD_MAX;
use message_schema::line::cut;
use message_schema::yaml::Node;
use message_schema::{Code, Level, Malformed, Message, Place, ReadBody, Report, ReportedViolation};
use review::{Costs, Fault, Refusal, Review, ReviewKey};
use spool::{FileName, Unfit};
use validate_message::{Packet, Violations};

/// The most characters of an agent's text that a sentence or value repeats: a title may be as long as its packet, and a
/// report names hundreds of titles.
const WORDS_CHARS_MAX: usize = 1_000;

/// The reasons for the refusal of a file, in the words of the report.
#[derive(Debug)]
pub struct Rejection {
    /// The code of the refusal.
    pub code: Code,
    /// Every violation.
    pub violations: Vec<ReportedViolation>,
    /// True if a corrected message can succeed.
    pub retryable: bool,
    /// The review it belongs to.
    pub review: Option<ReviewKey>,
    /// The current round of that review.
    pub round: Option<u32>,
    /// Its cost for the reviewer.
    pub costs: Costs,
    /// The faults that the review's rules found, in the order of the violations; empty if the file alone shows the
    /// error.
    pub faults: Vec<Fault>,
    /// The messages that may come next, each with its sender.
    pub legal_next: Vec<String>,
}

impl Rejection {
    /// Refuses an entry in the outbox that is not a file to be read.
    pub fn unread(unfit: Unfit, file: &FileName) -> Self {
        let code = match unfit {
            Unfit::TooLarge(_) => Code::TooLarge,
            Unfit::Symlink | Unfit::Directory | Unfit::Special | Unfit::HardLink => Code::NotAFile,
        };
        Self::unfit(
            code,
            file,
            &unfit.to_string(),
            "write a regular file into the outbox",
        )
    }

    fn unfit(code: Code, file: &FileName, found: &str, fix: &str) -> Self {
        let violation = ReportedViolation {
            message: code.sentence().trim_end_matches('.').to_owned(),
            found: Some(found.to_owned()),
            expected: Some("a regular file of at most 256 KiB with one name".to_owned()),
            fix: Some(fix.to_owned()),
            ..without_message(code, file)
        };
        Self::of_file(vec![violation])
    }

    /// Refuses a file of user `found`: `expected` did not write it, and nothing was read.
    pub fn of_another(found: u32, expected: u32, file: &FileName) -> Self {
        let violation = ReportedViolation {
            message: "the file belongs to another user than `settled.toml` names for this agent"
                .to_owned(),
            found: Some(format!("uid {found}")),
            expected: Some(format!("uid {expected}")),
            fix: Some(format!(
                "write it as the user with uid {expected}; if the agent runs as another user, correct its `uid` in settled.toml"
            )),
            ..without_message(Code::WrongOwner, file)
        };
        Self::of_file(vec![violation])
    }

    /// Refuses a message whose packet belongs to another user; the packet was not read.
    pub fn packet_of_another(
        found: u32,
        expected: u32,
        message: &Message,
        file: &FileName,
    ) -> Self {
        let field = message.packet_field().unwrap_or("findings_packet");
        let path = message.packet_path();
        let path = path.as_ref().map_or(field, |path| path.as_str());
        let place = match message.read_body() {
            ReadBody::Mapping(body) => Some(place_in(body, field)),
            ReadBody::Unread | ReadBody::Malformed(_) => None,
        };
        let violation = ReportedViolation {
            message: format!("the packet `{path}` belongs to another user than its sender"),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            field: Some(format!("body.{field}")),
            found: Some(format!("uid {found}")),
            expected: Some(format!("uid {expected}, or the daemon's")),
            fix: Some(
                "write your own packet under an unused name, and name that packet".to_owned(),
            ),
            ..without_message(Code::WrongOwner, file)
        };
        Self::of_file(vec![violation])
    }

    /// Refuses a message because [`HELD_MAX`] messages of its outbox already wait for a packet or behind one that does.
    pub fn too_many_waiting(file: &FileName) -> Self {
        let violation = ReportedViolation {
            message: "too many messages of this outbox wait for a packet".to_owned(),
            found: Some(format!("{HELD_MAX} that wait already")),
            expected: Some(format!("at most {HELD_MAX}")),
            fix: Some("write each packet before the message that names it".to_owned()),
            ..without_message(Code::TooManyWaiting, file)
        };
        Self::of_file(vec![violation])
    }

    /// Refuses a message whose record is larger than the log of a shared ledger takes.
    pub fn too_large_for_log(bytes_max: usize, file: &FileName) -> Self {
        let violation = ReportedViolation {
            message:
                "the message and its packet make a record that the shared ledger does not take"
                    .to_owned(),
            expected: Some(format!("a record of at most {bytes_max} bytes")),
            fix: Some(
                "split it, or have an operator raise `max_payload` of the broker; docs/hosts.md"
                    .to_owned(),
            ),
            ..without_message(Code::TooLarge, file)
        };
        Self::of_file(vec![violation])
    }

    /// Refuses bytes that are no message.
    pub fn malformed(malformed: Malformed, file: &FileName) -> Self {
        let violations = Violations::from(malformed);
        Self::of_file(
            violations
                .iter()
                .map(|violation| violation.reported(&file.to_string()))
                .collect(),
        )
    }

    /// Refuses a message with violations; a forged sender comes first among them.
    pub fn violations(
        violations: &Violations,
        message: &Message,
        outbox: &AgentName,
        file: &FileName,
    ) -> Self {
        let forged = message
            .from()
            .and_then(|from| review::sender_fault(&from, outbox));
        let forged = forged.map(|fault| reported_fault(&fault, message, None, file));
        let reported = violations
            .iter()
            .map(|violation| violation.reported(&file.to_string()));
        Self::of_file(forged.into_iter().chain(reported).collect())
    }

    /// Refuses a message that the rules of the review, or of admission, do not accept now.
    pub fn refusal(
        refusal: Refusal,
        message: &Message,
        packet: Option<&Packet>,
        file: &FileName,
    ) -> Self {
        let tree =
            packet.and_then(|packet| message_schema::parse_packet(packet.text.as_bytes()).ok());
        let packet = packet.map(|packet| packet.path.as_str()).zip(tree.as_ref());
        Self {
            code: refusal.code(),
            violations: refusal
                .faults
                .iter()
                .map(|fault| reported_fault(fault, message, packet, file))
                .collect(),
            retryable: refusal.retryable,
            review: refusal.review.map(|key| *key),
            round: None,
            costs: refusal.costs,
            legal_next: refusal.legal_next,
            faults: refusal.faults,
        }
    }

    /// Adds the counts of its review: the round, and the cycles and replies of each named thread.
    pub(crate) fn count(&mut self, review: &Review) {
        self.round = Some(review.round);
        for (violation, fault) in self.violations.iter_mut().zip(&self.faults) {
            let thread = fault.thread.as_ref().and_then(|id| review.threads.get(id));
            let dialogue = thread.map(|thread| &thread.dialogue);
            violation.round_count = dialogue.map(|dialogue| dialogue.round_count.into());
            violation.replies = dialogue.map(|dialogue| dialogue.replies.into());
        }
    }

    /// Marks the refusal as the one that cost the last attempt: no correction can succeed, so it suggests none.
    pub fn make_final(&mut self) {
        self.retryable = false;
        self.legal_next = vec!["a person decides".to_owned()];
        self.violations
            .iter_mut()
            .for_each(|violation| violation.fix = None);
    }

    fn of_file(violations: Vec<ReportedViolation>) -> Self {
        let first = violations
            .iter()
            .find(|violation| violation.level == Level::Error);
        let code = first
            .or(violations.first())
            .expect("a refusal names at least one violation")
            .code;
        Self {
            code,
            violations,
            retryable: true,
            review: None,
            round: None,
            costs: Costs::Nothing,
            legal_next: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Summarizes the reasons in one sentence.
    pub fn summary(&self) -> String {
        let errors = self
            .violations
            .iter()
            .filter(|violation| violation.level == Level::Error);
        let more = errors.count().saturating_sub(1);
        let first = self
            .violations
            .iter()
            .find(|violation| violation.code == self.code);
        let sentence = first.map_or_else(
            || self.code.sentence().to_owned(),
            |first| first.message.clone(),
        );
        match more {
            0 => sentence,
            _ => format!("{sentence} (and {more} more)"),
        }
    }

    /// Returns the report to put beside the original.
    pub fn report(&self, refused: &RefusedFile<'_>) -> Report {
        Report {
            schema_version: REPORT_VERSION,
            file: refused.file.to_string(),
            digest: refused
                .digest
                .clone()
                .unwrap_or_else(|| "unread".to_owned()),
            message_id: refused.message.and_then(Message::id),
            from_outbox: refused.outbox.clone(),
            received_at: refused.received_at,
            refused: self.code,
            summary: self.summary(),
            retryable: self.retryable,
            violations: self.violations.clone(),
            review: self.review.as_ref().map(ToString::to_string),
            round: self.round,
            legal_next: self.legal_next.clone(),
            attempts_left: refused.attempts_left,
            next_command: Some(format!("settled explain {}", self.code)),
        }
    }
}

/// The file a report is about.
#[derive(Debug)]
pub struct RefusedFile<'a> {
    /// Its name in the outbox.
    pub file: &'a FileName,
    /// Its digest, if it was read.
    pub digest: Option<String>,
    /// The message, if it could be read.
    pub message: Option<&'a Message>,
    /// The owner of its outbox.
    pub outbox: &'a AgentName,
    /// The time of the judgement.
    pub received_at: Timestamp,
    /// The attempts left, if the refusal cost one.
    pub attempts_left: Option<u32>,
}

fn without_message(code: Code, file: &FileName) -> ReportedViolation {
    ReportedViolation {
        code,
        message: String::new(),
        file: file.to_string(),
        line: None,
        column: None,
        field: None,
        thread: None,
        round_count: None,
        replies: None,
        clause: None,
        found: None,
        expected: None,
        fix: None,
        level: Level::Error,
    }
}

/// Reports a fault of the review's rules at its place in the packet or the message.
fn reported_fault(
    fault: &Fault,
    message: &Message,
    packet: Option<(&str, &Node)>,
    file: &FileName,
) -> ReportedViolation {
    let field = fault.field.as_deref().unwrap_or_default();
    let in_packet =
        packet.filter(|_| field.starts_with("findings") || field.starts_with("qa_validation"));
    let place = match (in_packet, field.strip_prefix("body."), message.read_body()) {
        (Some((_, tree)), _, _) => Some(place_in(tree, field)),
        (None, Some(field), ReadBody::Mapping(body)) => Some(place_in(body, field)),
        (None, Some(_), ReadBody::Unread | ReadBody::Malformed(_)) => None,
        (None, None, _) => (!field.is_empty()).then(|| place_in(message.root(), field)),
    };
    ReportedViolation {
        message: cut(&fault.message, WORDS_CHARS_MAX),
        file: in_packet.map_or_else(|| file.to_string(), |(path, _)| path.to_owned()),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        field: fault.field.clone(),
        thread: fault.thread.as_ref().map(ToString::to_string),
        clause: fault.clause.map(|clause| clause.as_str().to_owned()),
        found: fault
            .found
            .as_deref()
            .map(|found| cut(found, WORDS_CHARS_MAX)),
        expected: fault.expected.clone(),
        fix: fault.fix.clone(),
        ..without_message(fault.code, file)
    }
}

/// Returns the place of a dotted field such as `findings[2].action`, or of the nearest node around it.
fn place_in(tree: &Node, field: &str) -> Place {
    let mut node = tree;
    for step in field.split(['.', '[']) {
        let next = match step
            .strip_suffix(']')
            .and_then(|index| index.parse::<usize>().ok())
        {
            Some(index) => node.items().get(index),
            None => node.field(step).map(|field| &field.value),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node.place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_repeats_no_more_of_a_title_than_anybody_reads() {
        let whole = "ä".repeat(WORDS_CHARS_MAX);
        let message = message_schema::parse(b"from: a\n").expect("a mapping");
        let file = FileName::new("a.yaml").expect("a name");
        for (words, shown) in [
            (whole.clone(), whole.clone()),
            (whole.clone() + "more", whole + "…"),
        ] {
            let fault = Fault {
                found: Some(words.clone()),
                ..Fault::new(Code::Empty, words)
            };
            let reported = reported_fault(&fault, &message, None, &file);
            assert_eq!(reported.message, shown);
            assert_eq!(reported.found, Some(shown));
        }
    }

    #[test]
    fn a_report_says_everything_about_a_fault_of_the_rules() {
        let text = "from: a\ntype: review_feedback\nbody: |\n  round: 1\n";
        let message = message_schema::parse(text.as_bytes()).expect("a mapping");
        let packet = "findings:\n  - id: F-1\n    action: reply\n";
        let packet = message_schema::parse_packet(packet.as_bytes()).expect("a packet");
        let file = FileName::new("a.yaml").expect("a name");
        for (field, in_file, (line, column)) in [
            ("findings[0].action", "p.yaml", (3, 13)),
            ("body.round", "a.yaml", (4, 10)),
            ("from", "a.yaml", (1, 7)),
        ] {
            let fault = Fault {
                code: Code::ActionIllegal,
                field: Some(field.to_owned()),
                thread: Some("F-1".parse().expect("an id")),
                clause: Some(review::Clause::Blocking),
                message: "words".to_owned(),
                found: Some("this".to_owned()),
                expected: Some("that".to_owned()),
                fix: Some("write that".to_owned()),
            };
            let reported = reported_fault(&fault, &message, Some(("p.yaml", &packet)), &file);
            let expected = ReportedViolation {
                code: Code::ActionIllegal,
                message: "words".to_owned(),
                file: in_file.to_owned(),
                line: Some(line),
                column: Some(column),
                field: Some(field.to_owned()),
                thread: Some("F-1".to_owned()),
                round_count: None,
                replies: None,
                clause: Some("blocking".to_owned()),
                found: Some("this".to_owned()),
                expected: Some("that".to_owned()),
                fix: Some("write that".to_owned()),
                level: Level::Error,
            };
            assert_eq!(reported, expected, "{field}");
        }
    }

    #[test]
    fn every_refusal_of_a_file_says_what_was_found_expected_and_to_be_done() {
        let text = "from: a\ntype: review_feedback\nbody: |\n  findings_packet: packets/p.yaml\n";
        let message = message_schema::parse(text.as_bytes()).expect("a mapping");
        let file = FileName::new("a.yaml").expect("a name");
        for (rejection, code, found, expected, line) in [
            (
                Rejection::of_another(7, 8, &file),
                Code::WrongOwner,
                Some("uid 7"),
                "uid 8",
                None,
            ),
            (
                Rejection::packet_of_another(7, 8, &message, &file),
                Code::WrongOwner,
                Some("uid 7"),
                "uid 8, or the daemon's",
                Some(4),
            ),
            (
                Rejection::too_many_waiting(&file),
                Code::TooManyWaiting,
                Some("256 that wait already"),
                "at most 256",
                None,
            ),
            (
                Rejection::too_large_for_log(900, &file),
                Code::TooLarge,
                None,
                "a record of at most 900 bytes",
                None,
            ),
            (
                Rejection::unread(Unfit::Directory, &file),
                Code::NotAFile,
                Some("a directory"),
                "a regular file of at most 256 KiB with one name",
                None,
            ),
            (
                Rejection::unread(Unfit::TooLarge(300_000), &file),
                Code::TooLarge,
                Some("a file of 300000 bytes"),
                "a regular file of at most 256 KiB with one name",
                None,
            ),
        ] {
            assert_eq!(rejection.code, code);
            let [violation] = &rejection.violations[..] else {
                panic!("{rejection:?}");
            };
            assert_eq!((violation.code, violation.level), (code, Level::Error));
            assert_eq!(violation.found.as_deref(), found, "{code}");
            assert_eq!(violation.expected.as_deref(), Some(expected), "{code}");
            assert_eq!(violation.file, "a.yaml");
            assert_eq!(violation.line, line, "{code}");
            assert_ne!(violation.message, "", "{code}");
            assert!(violation.fix.is_some(), "{code}");
            assert!(rejection.retryable && rejection.faults.is_empty());
        }
    }

    #[test]
    fn a_packet_of_another_user_is_reported_where_the_message_names_it() {
        let text = "from: a\ntype: review_feedback\nbody: |\n  findings_packet: packets/p.yaml\n";
        let message = message_schema::parse(text.as_bytes()).expect("a mapping");
        let file = FileName::new("a.yaml").expect("a name");
        let rejection = Rejection::packet_of_another(7, 8, &message, &file);
        let violation = &rejection.violations[0];
        let place = (violation.line, violation.column);
        assert_eq!(place, (Some(4), Some(20)));
        assert_eq!(violation.field.as_deref(), Some("body.findings_packet"));
    }

    #[test]
    fn the_first_error_names_a_refusal_and_warnings_do_not_count() {
        let file = FileName::new("a.yaml").expect("a name");
        let of = |code, level, message: &str| ReportedViolation {
            message: message.to_owned(),
            level,
            ..without_message(code, &file)
        };
        let warning = of(Code::Empty, Level::Warning, "a warning");
        let error = of(Code::TooLarge, Level::Error, "an error");
        let one = Rejection::of_file(vec![warning.clone(), error.clone()]);
        assert_eq!(
            (one.code, one.summary()),
            (Code::TooLarge, "an error".to_owned())
        );
        let two = Rejection::of_file(vec![error.clone(), warning, error]);
        assert_eq!(two.summary(), "an error (and 1 more)");
    }

    #[test]
    fn a_field_is_found_where_it_stands_or_next_to_it() {
        let text = "findings:\n  - id: F-1\n    severity: P1\n  - id: F-2\n    action: reply\n";
        let tree = message_schema::parse_packet(text.as_bytes()).expect("a mapping");
        let place = |field| place_in(&tree, field).to_string();
        assert_eq!(place("findings[1].action"), "5:13");
        assert_eq!(
            place("findings[0].action"),
            "2:5",
            "the finding that lacks it"
        );
        assert_eq!(place("findings"), "2:3");
        assert_eq!(place("qa_validation.commands_run"), "1:1");
    }
}
