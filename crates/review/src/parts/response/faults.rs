//! The faults in a response's changes to threads, in words its reviewer can act on.

use message_schema::Code;
use message_schema::id::FindingId;
use message_schema::packet::{Action, Finding, Severity, Status};
use review_words::refusal::Fault;
use review_words::thread::NEW_FINDINGS_MAX;
use review_words::thread::{RoundKind, Thread, ThreadState};

use super::Response;

pub(super) fn speaks_of_two(finding: &Finding, other: &FindingId) -> Fault {
    Fault::new(
        Code::FindingIdReused,
        format!(
            "`{}` is a separate thread and cannot be the same as `{other}`",
            finding.id
        ),
    )
    .thread(&finding.id)
    .field("same_as")
    .found(other)
    .expected("no same_as on the id of a known thread")
    .fix(format!(
        "give `{}` and `{other}` an action each",
        finding.id
    ))
}

fn words(actions: &[Action]) -> String {
    let words: Vec<_> = actions.iter().map(|action| action.as_str()).collect();
    words.join(", ")
}

pub(super) fn reused(finding: &Finding, thread: &Thread) -> Fault {
    let title = thread.title.as_deref().unwrap_or_default();
    Fault::new(
        Code::FindingIdReused,
        format!("`{}` already names another finding: {title}", finding.id),
    )
    .thread(&finding.id)
    .field("id")
    .expected("an id this review has not used")
    .fix("give the new finding a new id")
}

pub(super) fn unknown(id: &FindingId) -> Fault {
    Fault::new(
        Code::ThreadUnknown,
        format!("`{id}` is not a thread of this review, so no action applies to it"),
    )
    .thread(id)
    .field("action")
    .expected("the id of an open thread, or a new finding without an action")
}

/// `before` is the thread before this response; a thread that this response opens has none.
pub(super) fn duplicate(finding: &Finding, known: &FindingId, before: Option<&Thread>) -> Fault {
    let fault = Fault::new(
        Code::DuplicateFinding,
        format!(
            "`{}` is the same as `{known}`: the same words in the same place, or the same title in the same file",
            finding.id
        ),
    )
    .thread(known)
    .field("id")
    .found(&finding.id);
    // Only an open thread takes an action, and following refused advice would cost another attempt.
    if before.is_some_and(Thread::is_open) {
        fault
            .expected(format!("an action on `{known}`, or a new finding"))
            .fix(format!(
                "write the finding under the id `{known}`, with an action"
            ))
    } else {
        fault.expected("a new finding").fix(format!(
            "leave `{}` out; put the rest into `{known}`, without an action",
            finding.id
        ))
    }
}

pub(super) fn too_many(count: usize) -> Fault {
    Fault::new(
        Code::TooManyFindings,
        format!("{count} new findings in one response"),
    )
    .field("findings")
    .found(count)
    .expected(format!(
        "at most {NEW_FINDINGS_MAX} new findings in a round"
    ))
    .fix("keep the worst ones and merge related ones")
}

pub(super) fn multiple(id: &FindingId) -> Fault {
    Fault::new(
        Code::ActionMultiple,
        format!("thread `{id}` has more than one action"),
    )
    .thread(id)
    .field("action")
    .expected("exactly one action")
    .fix(format!("leave only one finding that acts on `{id}`"))
}

pub(super) fn illegal(
    id: &FindingId,
    thread: &Thread,
    action: Action,
    legal: &[Action],
    round_kind: RoundKind,
) -> Fault {
    let reason = thread.why_no_reply(round_kind);
    Fault::new(
        Code::ActionIllegal,
        format!("`{action}` is not legal on thread `{id}`: {reason}"),
    )
    .thread(id)
    .field("action")
    .found(action)
    .expected(words(legal))
    .fix(format!("choose one of {}", words(legal)))
}

pub(super) fn wont_fix_needs_a_person(id: &FindingId, severity: Severity) -> Fault {
    Fault::new(
        Code::ActionIllegal,
        format!("`{id}` is {severity}; only a person can leave it unfixed"),
    )
    .thread(id)
    .field("status")
    .found(Status::WontFix)
    .expected("fixed, or action: veto to hand it to a person")
    .fix("write `action: veto` if nobody should fix it")
}

pub(super) fn not_open(id: &FindingId, thread: &Thread) -> Fault {
    let state = match thread.state {
        ThreadState::Resolved => "resolved",
        ThreadState::Held(_) => "with a person",
        ThreadState::Deferred => "deferred",
        ThreadState::Open => "open",
    };
    Fault::new(
        Code::ThreadNotOpen,
        format!("thread `{id}` is {state} and takes no action"),
    )
    .thread(id)
    .field("action")
    .fix(format!("leave `{id}` out of the packet"))
}

pub(super) fn reopened_before(id: &FindingId) -> Fault {
    Fault::new(
        Code::ThreadNotOpen,
        format!("thread `{id}` was reopened once and resolved again"),
    )
    .thread(id)
    .field("status")
    .expected("action: escalate, which hands it to a person")
    .fix(format!(
        "write `action: escalate` for `{id}` if it is really open again"
    ))
}

/// `why` ends the sentence if silence would have resolved another thread.
pub(super) fn missing(
    id: &FindingId,
    thread: &Thread,
    response: &Response<'_>,
    why: &str,
) -> Fault {
    let comma = if why.is_empty() { "" } else { ", " };
    let legal = words(thread.legal_actions(thread.dialogue.stance, response.round_kind));
    // An lgtm needs no packet, so its sender may not know that it can have one.
    let fix = match response.packet {
        Some(_) => format!("add `{id}` to the findings with `action:` one of {legal}"),
        None => format!(
            "name a findings packet in `findings_packet`, and in it `{id}` with `action:` one of {legal}"
        ),
    };
    Fault::new(
        Code::ActionMissing,
        format!("open thread `{id}` has no action{comma}{why}"),
    )
    .thread(id)
    .field("findings")
    .expected(format!("one of {legal}"))
    .fix(fix)
}
