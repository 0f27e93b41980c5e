//! Writes the daemon's own messages to agents, signed `settled`: their common envelope and the notice of a refusal. The
//! modules below write the others.

pub(crate) mod budget;
pub(crate) mod handoff;
pub(crate) mod news;

use message_schema::body::Body;
use message_schema::envelope::{
    DAEMON, Envelope, MessageType, Priority, Recipients, TextKind, Timestamp,
};
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::limit::{BODY_CHARS_MAX, SUBJECT_CHARS_MAX};
use message_schema::{Message, Report, line, render_message};

/// The envelope fields of a notice that its record fixes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoticeHead<'a> {
    /// Its id.
    pub id: &'a MessageId,
    /// Its recipient.
    pub to: &'a AgentName,
    /// The time it is written.
    pub at: Timestamp,
}

/// The content of a notice and the rest of its envelope.
#[derive(Debug)]
struct NoticeContent {
    kind: MessageType,
    priority: Priority,
    subject: String,
    body: Body,
    related_pr: Option<PrNumber>,
    related_packet: Option<String>,
    parent_message_id: Option<String>,
}

/// Notifies the owner of an outbox of a refusal, with the report as the body.
pub(crate) fn refusal(
    head: &NoticeHead<'_>,
    report: &Report,
    about: Option<&Message>,
    summed_up: u32,
) -> String {
    let earlier = match summed_up {
        0 => String::new(),
        count => format!("{count} earlier refusals have no notice; see dead_letter/.\n"),
    };
    let body = earlier + &report.to_yaml();
    let content = NoticeContent {
        related_pr: about.and_then(Message::related_pr),
        parent_message_id: about.and_then(Message::id).map(String::from),
        ..notification(
            format!(
                "Refused: {} ({})",
                one_line(&report.file, 120),
                report.refused
            ),
            fitted(body, "dead_letter/ has the whole report"),
        )
    };
    write(head, content)
}

/// Notifies a sender that it changed a message after the daemon judged it.
pub(crate) fn sent_differs(head: &NoticeHead<'_>, file: &str) -> String {
    let subject = format!(
        "Changed after the daemon judged it: sent/{} (sent_differs)",
        one_line(file, 120)
    );
    let body = format!(
        "sent/{file} was changed after it was judged, most likely by a writer that paused. Its recipients have the bytes that the daemon judged and get no others.\n\
         Send the whole message again under a new id. Write it under a name that does not end in .yaml, .yml or .json and \
         rename it into your outbox, or use `settled send`.\n"
    );
    write(
        head,
        notification(subject, fitted(body, "`settled log` shows the record")),
    )
}

fn notification(subject: String, body: String) -> NoticeContent {
    NoticeContent {
        kind: MessageType::Text(TextKind::Notification),
        priority: Priority::P1,
        subject,
        body: Body::Text(body),
        related_pr: None,
        related_packet: None,
        parent_message_id: None,
    }
}

fn write(head: &NoticeHead<'_>, content: NoticeContent) -> String {
    let envelope = Envelope {
        id: head.id.clone(),
        from: daemon(),
        to: Recipients::One(head.to.clone()),
        kind: content.kind,
        priority: content.priority,
        created_at_utc: head.at,
        related_pr: content.related_pr,
        subject: one_line(&content.subject, SUBJECT_CHARS_MAX),
        related_packet: content.related_packet,
        conversation_id: None,
        parent_message_id: content.parent_message_id,
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
    render_message(&envelope, &content.body)
}

fn daemon() -> AgentName {
    AgentName::new(DAEMON).expect("the daemon's name is within the grammar of agent names")
}

/// Cuts a body that is too long and says where the whole text is.
fn fitted(body: String, whole: &str) -> String {
    if body.chars().count() <= BODY_CHARS_MAX {
        return body;
    }
    let rest = format!("\n(cut: {whole})\n");
    body.chars()
        .take(BODY_CHARS_MAX - rest.chars().count())
        .collect::<String>()
        + &rest
}

/// Cuts another agent's text to `chars_max` characters and replaces those that could break out of the line.
fn one_line(text: &str, chars_max: usize) -> String {
    let shown = |c: char| if line::is_trap(c) { ' ' } else { c };
    text.chars().map(shown).take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use message_schema::schema::Schema;
    use message_schema::{Code, coerce, parse};

    use super::*;

    fn report(file: &str, to: &AgentName, at: Timestamp) -> Report {
        Report {
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
            round: None,
            legal_next: Vec::new(),
            attempts_left: None,
            next_command: None,
        }
    }

    #[test]
    fn a_notice_keeps_the_rules_whatever_the_refused_file_is_called() {
        let to = AgentName::new("claude").expect("a name");
        let at = Timestamp::parse("2026-02-13T10:00:00Z").expect("an instant");
        for file in [
            "x\u{202e}lmay.yaml",
            "x\u{2028}\u{85}\u{1b}[2J.yaml",
            &"\u{200f}".repeat(255),
        ] {
            let head = NoticeHead {
                id: &MessageId::new("settled-1").expect("an id"),
                to: &to,
                at,
            };
            let text = refusal(&head, &report(file, &to, at), None, 0);
            let message = parse(text.as_bytes()).expect("readable");
            let subject = coerce(message.root(), Schema::Envelope.shape())["subject"].clone();
            let subject = subject.as_str().expect("a text");
            assert!(
                line::is_one_line(subject) && subject.ends_with("(empty)"),
                "{subject:?}"
            );
        }
    }

    #[test]
    fn a_body_is_cut_where_a_body_ends_and_says_so() {
        let whole = "ä".repeat(BODY_CHARS_MAX);
        assert_eq!(fitted(whole.clone(), "elsewhere"), whole);
        let cut = fitted(whole + "x", "elsewhere");
        assert_eq!(cut.chars().count(), BODY_CHARS_MAX);
        assert!(
            cut.ends_with("ä\n(cut: elsewhere)\n"),
            "{}",
            &cut[cut.len() - 40..]
        );
    }
}
