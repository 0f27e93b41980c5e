//! Writes the `review_feedback` of a reviewer that has spent its budget for the round, with a packet of the open threads.

use message_schema::body::{Body, Escalation, ReviewFeedback};
use message_schema::envelope::{DAEMON, MessageType, ReviewKind, Timestamp};
use message_schema::id::{FindingId, PacketPath};
use message_schema::limit::PACKET_BYTES_MAX;
use message_schema::packet::{Finding, FindingsPacket, Status, Summary};
use message_schema::render_packet;
use review::{Deadline, Event, Invocation, Review, ReviewKey, Thread};

use super::{NoticeContent, NoticeHead, one_line, write};

/// The length in characters to which titles are cut if whole titles would make the packet too large.
const BRIEF_TITLE_CHARS: usize = 80;

/// The reviewer's round that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent<'a> {
    /// The review.
    pub key: &'a ReviewKey,
    /// The review while its request was still open.
    pub review: &'a Review,
    /// The round.
    pub round: u32,
    /// The event; `None` if a refused message spent the budget.
    pub event: Option<&'a Event>,
}

/// A packet and the number of its findings that block.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The packet's text.
    pub text: String,
    blocking: usize,
}

/// Returns the packet with the open threads.
pub(crate) fn packet(spent: &Spent<'_>, name: &str, at: Timestamp) -> Carried {
    let whole = open_findings(spent.review, carried);
    let blocking = whole
        .iter()
        .filter(|finding| finding.counts_as_blocking())
        .count();
    let packet = |findings: Vec<Finding>| FindingsPacket {
        packet_id: Some(name.to_owned()),
        source_review_packet: None,
        reviewer: Some(DAEMON.to_owned()),
        round: Some(spent.round),
        created_at_utc: Some(at),
        reviewed_sha: None,
        summary: Some(Summary {
            verdict: Some(verdict(spent)),
            blocking_count: u32::try_from(blocking).ok(),
            non_blocking_count: u32::try_from(findings.len() - blocking).ok(),
        }),
        findings,
        qa_validation: None,
        examined: None,
    };
    let text = render_packet(&packet(whole));
    if text.len() as u64 <= PACKET_BYTES_MAX {
        return Carried { text, blocking };
    }
    // The packet that raised a finding still has its full text.
    Carried {
        text: render_packet(&packet(open_findings(spent.review, in_brief))),
        blocking,
    }
}

/// Returns the message that names the packet.
pub(crate) fn feedback(
    head: &NoticeHead<'_>,
    spent: &Spent<'_>,
    carried: &Carried,
    path: PacketPath,
) -> String {
    let (pr, reviewer) = (&spent.key.pr, spent.review.reviewer(spent.key));
    let request = spent
        .review
        .phase
        .invocation()
        .map(|open| String::from(open.request.clone()));
    let related_packet = Some(path.as_str().to_owned());
    let feedback = ReviewFeedback {
        findings_packet: path,
        round: spent.round,
        blocking_count: u32::try_from(carried.blocking).expect("a packet has few findings"),
        escalation: Some(Escalation::ReviewerBudgetExceeded),
        validated_head: None,
        examined: None,
        withheld_side_effects: None,
        telemetry: None,
    };
    let content = NoticeContent {
        kind: MessageType::Review(ReviewKind::Feedback),
        priority: spent.review.priority,
        subject: format!(
            "Review feedback: round {} (#{pr}), the budget of {reviewer} is spent",
            spent.round
        ),
        body: Body::Feedback(feedback),
        related_pr: Some(pr.clone()),
        related_packet,
        parent_message_id: request,
    };
    write(head, content)
}

/// Explains the reviewer's budget and how it was spent.
fn verdict(spent: &Spent<'_>) -> String {
    let reviewer = spent.review.reviewer(spent.key);
    let had = |open: &Invocation| match spent.event.map(Event::deadline) {
        Some(Some((_, Deadline::Runtime))) => format!(
            "{reviewer} gave no response within {} seconds",
            open.runtime_s.get()
        ),
        Some(Some((_, Deadline::PickUp | Deadline::Author)) | None) => format!(
            "{reviewer} gave no response within {} turns",
            open.turns.get()
        ),
        None => format!(
            "the approval of {reviewer} declares more than its {} turns",
            open.turns.get()
        ),
    };
    let had = spent
        .review
        .phase
        .invocation()
        .map_or_else(|| format!("{reviewer} gave no response"), had);
    format!("{had}; the threads keep their state, and a person decides")
}

fn open_findings(review: &Review, find: fn(&FindingId, &Thread) -> Finding) -> Vec<Finding> {
    review
        .open_threads()
        .map(|(id, thread)| find(id, thread))
        .collect()
}

/// Returns a thread as the packet shows it.
fn carried(id: &FindingId, thread: &Thread) -> Finding {
    let routing = &thread.routing;
    // Without a title and a recommendation, its expectation identifies a thread.
    let is_nameless = thread.title.is_none() && routing.recommendation.is_none();
    Finding {
        title: thread.title.clone(),
        category: routing.category.clone(),
        expected: thread.words.clone().filter(|_| is_nameless),
        recommendation: routing.recommendation.clone(),
        fingerprint: thread.fingerprint.clone(),
        target: routing.target.clone(),
        ..in_brief(id, thread)
    }
}

/// Returns a thread with only the fields that identify it.
fn in_brief(id: &FindingId, thread: &Thread) -> Finding {
    let title = thread
        .title
        .as_deref()
        .map(|title| one_line(title, BRIEF_TITLE_CHARS));
    Finding {
        title,
        ..thread.restated(id, Status::Open)
    }
}
