//! What the daemon itself writes to agents: notices of refusals, and word of a review that ended
//! without them. Every letter is a message like any other, signed `settled`.

use message_schema::body::Body;
use message_schema::envelope::{DAEMON, Envelope, MessageType, Priority, Recipients, Timestamp};
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::{Message, Report, line, render_message};
use review::ReviewKey;

/// A body holds at most 20 000 characters; a longer report is cut and points to the whole.
const BODY_CHARS_MAX: usize = 20_000;

/// A letter's envelope fields that differ from letter to letter.
#[derive(Debug)]
pub(crate) struct Letter<'a> {
    /// Its id.
    pub(crate) id: &'a MessageId,
    /// Whom it is for.
    pub(crate) to: &'a AgentName,
    /// When it is written.
    pub(crate) at: Timestamp,
}

/// Tells the owner of an outbox that a message was refused, with the report as the body.
pub(crate) fn notice(
    letter: &Letter<'_>,
    report: &Report,
    about: Option<&Message>,
    summed_up: u32,
) -> String {
    let subject = format!("Refused: {} ({})", one_line(&report.file, 120), report.refused);
    let earlier = match summed_up {
        0 => String::new(),
        count => format!("{count} earlier refusals were not announced; see dead_letter/.\n"),
    };
    let yaml = report.to_yaml();
    let mut body = format!("{earlier}{yaml}");
    if body.chars().count() > BODY_CHARS_MAX {
        let rest = "\n(cut: the whole report stands in dead_letter/)\n";
        body = body.chars().take(BODY_CHARS_MAX - rest.len()).collect::<String>() + rest;
    }
    let parent = about.and_then(Message::id).map(String::from);
    write(letter, &subject, body, about.and_then(Message::related_pr), parent)
}

/// Tells the author that the daemon handed the review to a person.
pub(crate) fn escalated(letter: &Letter<'_>, review: &ReviewKey, reason: &str) -> String {
    let subject = format!("Review {review} is with a person: {reason}");
    let body = format!(
        "The review {review} was escalated: {reason}.\nNo agent can move it; a person decides what happens next.\n"
    );
    write(letter, &subject, body, Some(review.pr.clone()), None)
}

fn write(
    letter: &Letter<'_>,
    subject: &str,
    body: String,
    related_pr: Option<PrNumber>,
    parent_message_id: Option<String>,
) -> String {
    let from = AgentName::new(DAEMON).expect("the daemon's name is within the grammar of agent names");
    let envelope = Envelope {
        id: letter.id.clone(),
        from,
        to: Recipients::One(letter.to.clone()),
        kind: MessageType::Notification,
        priority: Priority::P1,
        created_at_utc: letter.at,
        related_pr,
        subject: one_line(subject, 200),
        related_packet: None,
        conversation_id: None,
        parent_message_id,
        context_keys: None,
        expires_at: None,
        channel: None,
        autonomy_hint: None,
        model: None,
        turns: None,
        input_tokens: None,
        output_tokens: None,
        wall_time_s: None,
        est_cost_usd: None,
        body: String::new(),
        auth: None,
    };
    render_message(&envelope, &Body::Text(body))
}

fn one_line(text: &str, chars_max: usize) -> String {
    let shown = |c: char| if line::is_trap(c) { ' ' } else { c };
    text.chars().map(shown).take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use message_schema::schema::Schema;
    use message_schema::{Code, coerce, parse};

    use super::*;

    #[test]
    fn a_notice_keeps_the_rules_whatever_the_refused_file_is_called() {
        let to = AgentName::new("claude").expect("a name");
        let at = Timestamp::parse("2026-02-13T10:00:00Z").expect("an instant");
        for file in ["x\u{202e}lmay.yaml", "x\u{2028}\u{85}\u{1b}[2J.yaml", &"\u{200f}".repeat(255)] {
            let report = Report {
                schema_version: 1,
                file: file.to_owned(),
                digest: "unread".to_owned(),
                message_id: None,
                from_outbox: to.clone(),
                received_at: at,
                refused: Code::Empty,
                summary: String::new(),
                retryable: true,
                violations: Vec::new(),
                review: None,
                legal_next: Vec::new(),
                attempts_left: None,
                next_command: None,
            };
            let letter = Letter { id: &MessageId::new("settled-1").expect("an id"), to: &to, at };
            let text = notice(&letter, &report, None, 0);
            let message = parse(text.as_bytes()).expect("readable");
            let subject = coerce(message.root(), Schema::Envelope.shape())["subject"].clone();
            let subject = subject.as_str().expect("a text");
            assert!(line::is_one_line(subject) && subject.ends_with("(empty)"), "{subject:?}");
        }
    }
}
