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
use crate::thread::{Hold, Thread, ThreadState};

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
        index: 0,
    };
    for (index, finding) in response.packet.iter().flat_map(|packet| &packet.findings).enumerate() {
        sheet.index = index;
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
    /// Which finding of the packet is being read, from 0.
    index: usize,
}

impl Sheet<'_> {
    fn read(&mut self, finding: &Finding) {
        let threads = &self.response.review.threads;
        let id = finding.same_as.as_ref().unwrap_or(&finding.id);
        if *id != finding.id && threads.contains_key(&finding.id) {
            return self.fault(speaks_of_two(finding, id));
        }
        // Whatever else is said of a thread, from now on it is as bad as the reviewer says.
        let known = threads.get(id).map(|thread| thread.raised_to(finding));
        match known {
            Some(thread) if is_reused(finding, &thread) => self.fault(reused(finding, &thread)),
            Some(thread) if thread.is_open() => self.act(id, thread, finding),
            Some(thread) => self.restate(id, thread, finding),
            None if finding.action.is_some() || finding.same_as.is_some() => self.fault(unknown(id)),
            None => self.open(id, finding),
        }
    }

    fn open(&mut self, id: &FindingId, finding: &Finding) {
        if leaves_unfixed(finding, finding.severity) {
            return self.fault(wont_fix_is_a_persons(id, finding.severity));
        }
        self.changed.insert(id.clone(), Thread::opened_by(finding, self.response.review.round));
    }

    fn act(&mut self, id: &FindingId, thread: Thread, finding: &Finding) {
        let Some(action) = self.action(finding) else {
            // Named, but without an action: as good as silent.
            self.changed.insert(id.clone(), thread);
            return;
        };
        if !self.named.insert(id.clone()) {
            return self.fault(multiple(id));
        }
        if action == Action::Resolve && leaves_unfixed(finding, thread.severity) {
            return self.fault(wont_fix_is_a_persons(id, thread.severity));
        }
        let stance = finding.stance.unwrap_or(thread.dialogue.stance);
        let legal = thread.legal_actions(stance, self.last_round);
        if !legal.contains(&action) {
            return self.fault(illegal(id, &thread, action, legal, self.last_round));
        }
        self.changed.insert(id.clone(), thread.after(action, stance));
    }

    /// The action a finding takes on its open thread, if it takes one.
    fn action(&self, finding: &Finding) -> Option<Action> {
        match (finding.action, self.response.mode) {
            (Some(action), _) => Some(action),
            (None, ThreadMode::Explicit) => None,
            (None, ThreadMode::Inferred) => Some(match finding.status {
                Status::Fixed | Status::Resolved | Status::WontFix => Action::Resolve,
                Status::Open | Status::NotFixed | Status::NeedsClarification if self.last_round => {
                    Action::Escalate
                }
                Status::Open | Status::NotFixed | Status::NeedsClarification => Action::Reply,
            }),
        }
    }

    /// A finding whose thread is not open: its status restates what is known. `open` on a resolved
    /// thread opens it again with its counters, once; after that it can only be escalated. A
    /// deferred one opens again when it blocks now.
    fn restate(&mut self, id: &FindingId, thread: Thread, finding: &Finding) {
        let says_open =
            matches!(finding.status, Status::Open | Status::NotFixed | Status::NeedsClarification);
        let was_reopened = thread.state == ThreadState::Resolved && thread.reopened;
        let state = match (thread.state, finding.action) {
            (ThreadState::Resolved, Some(Action::Escalate)) if was_reopened => {
                ThreadState::Held(Hold::Escalate)
            }
            (_, Some(_)) => return self.fault(not_open(id, &thread)),
            (ThreadState::Resolved, None) if says_open && was_reopened => {
                return self.fault(reopened_before(id));
            }
            (ThreadState::Resolved, None) if says_open => ThreadState::Open,
            (ThreadState::Deferred, None) if says_open && thread.blocking => ThreadState::Open,
            (state, None) => state,
        };
        let reopened = thread.reopened || (thread.state == ThreadState::Resolved && says_open);
        self.changed.insert(id.clone(), Thread { state, reopened, ..thread });
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault.in_finding(self.index));
    }

    fn read_silence(&mut self) {
        let open: BTreeMap<&FindingId, Thread> = self
            .response
            .review
            .open_threads()
            .filter(|(id, _)| !self.named.contains(*id))
            .map(|(id, thread)| (id, self.changed.get(id).unwrap_or(thread).clone()))
            .collect();
        let covered = nit_cover(open.iter().map(|(id, thread)| (*id, thread)), self.response.nits);
        for (id, thread) in open {
            if covered.contains(id) {
                continue;
            }
            // A packet that names the thread without an action is no silence to infer from.
            let is_named = self.changed.contains_key(id);
            match self.response.silence {
                Silence::ResolvesAddressed(findings)
                    if !is_named && (findings.is_empty() || findings.contains(id)) =>
                {
                    let resolved = thread.after(Action::Resolve, thread.dialogue.stance);
                    self.changed.insert(id.clone(), resolved);
                }
                Silence::ResolvesAddressed(_) | Silence::IsMissing => {
                    self.faults.push(missing(id, &thread, self.last_round));
                }
                Silence::Carries => {}
            }
        }
    }
}

/// Whether a finding is to be left as it is although it is too bad for an agent to say so.
fn leaves_unfixed(finding: &Finding, severity: Severity) -> bool {
    finding.status == Status::WontFix && matches!(severity, Severity::P0 | Severity::P1)
}

fn speaks_of_two(finding: &Finding, other: &FindingId) -> Fault {
    Fault::new(
        Code::FindingIdReused,
        format!("`{}` is a thread of its own and cannot be the same as `{other}`", finding.id),
    )
    .thread(&finding.id)
    .field("same_as")
    .found(other)
    .expected("no same_as on the id of a known thread")
    .fix(format!("give `{}` and `{other}` an action each", finding.id))
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
        .field("id")
        .expected("an id this review has not used")
        .fix("give the new finding a new id")
}

fn unknown(id: &FindingId) -> Fault {
    Fault::new(
        Code::ThreadUnknown,
        format!("`{id}` is no thread of this review, so nothing can be done with it"),
    )
    .thread(id)
    .field("action")
    .expected("the id of an open thread, or a new finding without an action")
}

fn multiple(id: &FindingId) -> Fault {
    Fault::new(Code::ActionMultiple, format!("thread `{id}` is given more than one action"))
        .thread(id)
        .field("action")
        .expected("exactly one action")
        .fix(format!("leave only one finding that acts on `{id}`"))
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
        .field("action")
        .found(action)
        .expected(words(legal))
        .fix(format!("choose one of {}", words(legal)))
}

fn wont_fix_is_a_persons(id: &FindingId, severity: Severity) -> Fault {
    Fault::new(Code::ActionIllegal, format!("`{id}` is {severity}; only a person can leave it unfixed"))
        .thread(id)
        .field("status")
        .found(Status::WontFix)
        .expected("fixed, or action: veto to hand it to a person")
        .fix("write `action: veto` if it is not to be fixed")
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
        .field("action")
        .fix(format!("leave `{id}` out of the packet"))
}

fn reopened_before(id: &FindingId) -> Fault {
    Fault::new(Code::ThreadNotOpen, format!("thread `{id}` was reopened once and resolved again"))
        .thread(id)
        .field("status")
        .expected("action: escalate, which hands it to a person")
        .fix(format!("write `action: escalate` for `{id}` if it is really open again"))
}

fn missing(id: &FindingId, thread: &Thread, last_round: bool) -> Fault {
    let legal = words(thread.legal_actions(thread.dialogue.stance, last_round));
    Fault::new(Code::ActionMissing, format!("open thread `{id}` is given no action"))
        .thread(id)
        .field("findings")
        .expected(format!("one of {legal}"))
        .fix(format!("add `{id}` to the findings with `action:` one of {legal}"))
}
