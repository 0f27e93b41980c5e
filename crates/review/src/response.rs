//! How a response acts on the open threads: every one gets exactly one action, and what is new
//! opens a thread. All faults of a response are found before anything is answered.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::Code;
use message_schema::body::Nit;
use message_schema::id::FindingId;
use message_schema::packet::{Action, Finding, FindingsPacket, Severity, Status};

use crate::gate::nit_cover;
use crate::phase::Invocation;
use crate::policy::{Policy, ThreadMode};
use crate::refusal::Fault;
use crate::state::Review;
use crate::thread::{Thread, ThreadState};

/// A feedback or lgtm, as far as threads go.
pub(crate) struct Response<'a> {
    pub(crate) review: &'a Review,
    pub(crate) packet: Option<&'a FindingsPacket>,
    pub(crate) mode: ThreadMode,
    pub(crate) silence: Silence<'a>,
    /// The nits of an lgtm: they cover open threads that do not block.
    pub(crate) nits: &'a [Nit],
}

/// What it means that a response does not name an open thread.
#[derive(Clone, Copy)]
pub(crate) enum Silence<'a> {
    /// The author reported these findings as addressed (`[]` is all): silence resolves them.
    ResolvesAddressed(&'a [FindingId]),
    /// Nothing was reported, or nothing is inferred: silence is a fault.
    IsMissing,
    /// The reviewer's budget is spent: the thread stays open.
    Carries,
}

impl<'a> Silence<'a> {
    /// How silence is read in answer to this invocation.
    pub(crate) fn read_by(policy: &Policy, invocation: &'a Invocation) -> Self {
        match (policy.threads, &invocation.addressed) {
            (ThreadMode::Inferred, Some(findings)) => Self::ResolvesAddressed(findings),
            (ThreadMode::Inferred, None) | (ThreadMode::Explicit, _) => Self::IsMissing,
        }
    }
}

/// The threads a response opens or changes, or everything that is wrong with it.
pub(crate) fn judge(response: &Response<'_>) -> Result<BTreeMap<FindingId, Thread>, Vec<Fault>> {
    let mut sheet = Sheet {
        response,
        last_round: response.review.is_last(response.review.round),
        changed: BTreeMap::new(),
        named: BTreeSet::new(),
        faults: Vec::new(),
    };
    for finding in response.packet.iter().flat_map(|packet| &packet.findings) {
        sheet.read(finding);
    }
    sheet.read_silence();
    if sheet.faults.is_empty() { Ok(sheet.changed) } else { Err(sheet.faults) }
}

struct Sheet<'a> {
    response: &'a Response<'a>,
    last_round: bool,
    changed: BTreeMap<FindingId, Thread>,
    /// Threads that were given an action.
    named: BTreeSet<FindingId>,
    faults: Vec<Fault>,
}

impl Sheet<'_> {
    fn read(&mut self, finding: &Finding) {
        let id = finding.same_as.as_ref().unwrap_or(&finding.id);
        match self.response.review.threads.get(id) {
            Some(thread) if is_reused(finding, thread) => self.fault(reused(finding, thread)),
            Some(thread) if thread.is_open() => self.act(id, thread, finding),
            Some(thread) => self.restate(id, thread, finding),
            None if finding.action.is_some() || finding.same_as.is_some() => self.fault(unknown(id)),
            None => self.open(id, finding),
        }
    }

    fn open(&mut self, id: &FindingId, finding: &Finding) {
        if finding.status == Status::WontFix && matches!(finding.severity, Severity::P0 | Severity::P1) {
            return self.fault(wont_fix_is_a_persons(id, finding.severity));
        }
        self.changed.insert(id.clone(), Thread::opened_by(finding, self.response.review.round));
    }

    fn act(&mut self, id: &FindingId, thread: &Thread, finding: &Finding) {
        let action = match (finding.action, self.response.mode) {
            (Some(action), _) => action,
            (None, ThreadMode::Explicit) => return, // named, but without an action: as good as silent
            (None, ThreadMode::Inferred) => {
                if finding.status == Status::WontFix && matches!(thread.severity, Severity::P0 | Severity::P1)
                {
                    self.named.insert(id.clone());
                    return self.fault(wont_fix_is_a_persons(id, thread.severity));
                }
                match finding.status {
                    Status::Fixed | Status::Resolved | Status::WontFix => Action::Resolve,
                    Status::Open | Status::NotFixed | Status::NeedsClarification if self.last_round => {
                        Action::Escalate
                    }
                    Status::Open | Status::NotFixed | Status::NeedsClarification => Action::Reply,
                }
            }
        };
        if !self.named.insert(id.clone()) {
            return self.fault(multiple(id));
        }
        let stance = finding.stance.unwrap_or(thread.dialogue.stance);
        let legal = thread.legal_actions(stance, self.last_round);
        if !legal.contains(&action) {
            return self.fault(illegal(id, thread, action, legal, self.last_round));
        }
        self.changed.insert(id.clone(), thread.raised_to(finding).after(action, stance));
    }

    /// A finding whose thread is not open: its status restates what is known, and `open` on a
    /// resolved thread opens it again, once, with its counters.
    fn restate(&mut self, id: &FindingId, thread: &Thread, finding: &Finding) {
        if finding.action.is_some() {
            return self.fault(not_open(id, thread));
        }
        let says_open =
            matches!(finding.status, Status::Open | Status::NotFixed | Status::NeedsClarification);
        match thread.state {
            ThreadState::Resolved if says_open && thread.reopened => self.fault(reopened_before(id)),
            ThreadState::Resolved if says_open => {
                let open = Thread { state: ThreadState::Open, reopened: true, ..thread.raised_to(finding) };
                self.changed.insert(id.clone(), open);
            }
            ThreadState::Resolved | ThreadState::Held(_) | ThreadState::Deferred | ThreadState::Open => {}
        }
    }

    fn read_silence(&mut self) {
        let covered = nit_cover(self.response.review.open_threads(), self.response.nits);
        for (id, thread) in self.response.review.open_threads() {
            if self.named.contains(id) || (!thread.blocking && covered.contains(id)) {
                continue;
            }
            match self.response.silence {
                Silence::ResolvesAddressed(findings) if findings.is_empty() || findings.contains(id) => {
                    let resolved = thread.after(Action::Resolve, thread.dialogue.stance);
                    self.changed.insert(id.clone(), resolved);
                }
                Silence::ResolvesAddressed(_) | Silence::IsMissing => {
                    let fault = missing(id, thread, self.last_round);
                    self.fault(fault);
                }
                Silence::Carries => {}
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }
}

/// A known id with another path and another title is another problem under an old name.
fn is_reused(finding: &Finding, thread: &Thread) -> bool {
    let differs = |a: Option<&str>, b: Option<&str>| matches!((a, b), (Some(a), Some(b)) if a != b);
    finding.same_as.is_none()
        && differs(finding.file.as_ref().map(|f| f.as_str()), thread.file.as_ref().map(|f| f.as_str()))
        && differs(finding.title.as_deref(), thread.title.as_deref())
}

fn words(actions: &[Action]) -> String {
    let words: Vec<_> = actions.iter().map(|action| action.as_str()).collect();
    words.join(", ")
}

fn reused(finding: &Finding, thread: &Thread) -> Fault {
    let title = thread.title.as_deref().unwrap_or_default();
    Fault::new(Code::FindingIdReused, format!("`{}` already names another finding: {title}", finding.id))
        .thread(&finding.id)
        .field("findings.id")
        .expected("an id this review has not used")
        .fix("give the new finding a new id")
}

fn unknown(id: &FindingId) -> Fault {
    Fault::new(
        Code::ThreadUnknown,
        format!("`{id}` is no thread of this review, so nothing can be done with it"),
    )
    .thread(id)
    .field("findings.action")
    .expected("the id of an open thread, or a new finding without an action")
}

fn multiple(id: &FindingId) -> Fault {
    Fault::new(Code::ActionMultiple, format!("thread `{id}` is given more than one action"))
        .thread(id)
        .field("findings.action")
        .expected("exactly one action")
}

fn illegal(id: &FindingId, thread: &Thread, action: Action, legal: &[Action], last_round: bool) -> Fault {
    let reason = if last_round {
        "this is the last round".to_owned()
    } else {
        format!(
            "the stance was held for {} cycles and {} replies were given",
            thread.dialogue.round_count + 1,
            thread.dialogue.replies
        )
    };
    Fault::new(Code::ActionIllegal, format!("`{action}` is not legal on thread `{id}`: {reason}"))
        .thread(id)
        .field("findings.action")
        .found(action)
        .expected(words(legal))
        .fix(format!("choose one of {}", words(legal)))
}

fn wont_fix_is_a_persons(id: &FindingId, severity: Severity) -> Fault {
    Fault::new(Code::ActionIllegal, format!("`{id}` is {severity}; only a person can leave it unfixed"))
        .thread(id)
        .field("findings.status")
        .found(Status::WontFix)
        .expected("fixed, or veto to hand it to a person")
}

fn not_open(id: &FindingId, thread: &Thread) -> Fault {
    let state = match thread.state {
        ThreadState::Resolved => "resolved",
        ThreadState::Held(_) => "with a person",
        ThreadState::Deferred => "deferred",
        ThreadState::Open => "open",
    };
    Fault::new(Code::ThreadNotOpen, format!("thread `{id}` is {state} and takes no action"))
        .thread(id)
        .field("findings.action")
        .fix(format!("leave `{id}` out of the packet"))
}

fn reopened_before(id: &FindingId) -> Fault {
    Fault::new(Code::ThreadNotOpen, format!("thread `{id}` was reopened once and resolved again"))
        .thread(id)
        .field("findings.status")
        .fix(format!("leave `{id}` out of the packet"))
}

fn missing(id: &FindingId, thread: &Thread, last_round: bool) -> Fault {
    let legal = words(thread.legal_actions(thread.dialogue.stance, last_round));
    Fault::new(Code::ActionMissing, format!("open thread `{id}` is given no action"))
        .thread(id)
        .field("findings")
        .expected(format!("one of {legal}"))
        .fix(format!("add `{id}` to the findings with `action:` one of {legal}"))
}
