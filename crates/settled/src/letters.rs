//! What the daemon itself writes to agents: notices of refusals, and word of a review that ended
//! without them. Every letter is a message like any other, signed `settled`.

use message_schema::body::Body;
use message_schema::envelope::{DAEMON, Envelope, MessageType, Priority, Recipients, Timestamp};
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::{Message, Report, render_message};
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
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).take(chars_max).collect()
}
