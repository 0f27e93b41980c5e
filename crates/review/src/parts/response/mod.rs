//! How a response acts on the open threads: every one gets exactly one action, and what is new
//! opens a thread. All faults of a response are found before anything is answered.

mod faults;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use message_schema::body::Nit;
use message_schema::id::{FindingId, RepoPath};
use message_schema::packet::{Action, Finding, FindingsPacket, Severity, Status};

use self::faults::{
    duplicate, illegal, missing, multiple, not_open, reopened_before, reused, speaks_of_two,
    too_many, unknown, wont_fix_needs_a_person,
};
use crate::parts::duplicate::FindingSignature;
use crate::parts::gate::nit_cover;
use crate::words::alert::{Alert, Late};
use crate::words::phase::Invocation;
use crate::words::refusal::Fault;
use crate::words::thread::{Hold, NEW_FINDINGS_MAX, Origin, Thread, ThreadState};
use policy::{Policy, ThreadMode};

/// A feedback or lgtm, as far as threads go.
pub(crate) struct Response<'a> {
    /// The threads as they stand.
    pub(crate) threads: &'a BTreeMap<FindingId, Thread>,
    /// The round it answers.
    pub(crate) round: u32,
    pub(crate) packet: Option<&'a FindingsPacket>,
    pub(crate) mode: ThreadMode,
    pub(crate) silence: Silence<'a>,
    /// The nits of an lgtm: they cover open threads that do not block.
    pub(crate) nits: &'a [Nit],
    pub(crate) new_blockers: NewBlockers<'a>,
    /// Whether the round takes no reply any more.
    pub(crate) last_round: bool,
    /// Whether the request comes from a verify run.
    pub(crate) verify_run: bool,
}

/// Which new findings may still block. A perfectionist reviewer never converges.
#[derive(Clone, Copy)]
pub(crate) enum NewBlockers<'a> {
    /// All.
    Any,
    /// Below P0, those in files the author touched and those that say what introduced them: what
    /// else blocks had to be found in the first round.
    InTouched(&'a [RepoPath]),
    /// P0, and what blocks outside the files of the claimed task: in those a fix pull request is judged by
    /// whether it fixes what it is for.
    OutsideTask,
}

/// So many faults are told of one response: a packet has room for thousands, and nobody reads them.
const FAULTS_MAX: usize = 200;

/// What a response does to the threads.
#[derive(Default)]
pub(crate) struct ThreadChanges {
    /// The threads it opens or changes.
    pub(crate) threads: BTreeMap<FindingId, Thread>,
    /// What both sides are told of it.
    pub(crate) alerts: Vec<Alert>,
}

/// What it means that a response does not name an open thread.
#[derive(Clone, Copy)]
pub(crate) enum Silence<'a> {
    /// The author named these findings as addressed: silence resolves them.
    ResolvesNamed(&'a [FindingId]),
    /// The author reported fixes and named no finding: silence resolves all but a P0.
    ResolvesAllButP0,
    /// Nothing was reported, or nothing is inferred: silence is a fault.
    IsMissing,
    /// The reviewer's budget is spent: the thread stays open.
    Carries,
}

impl<'a> Silence<'a> {
    /// How the silence of an lgtm is read in answer to this invocation.
    pub(crate) fn of_lgtm(policy: &Policy, invocation: &'a Invocation) -> Self {
        Self::after(
            policy,
            invocation
                .addressed
                .as_ref()
                .map(|report| &*report.findings),
        )
    }

    /// How the silence of a feedback is read. It says that something is wrong, so what it leaves out
    /// is resolved only where the author named it.
    pub(crate) fn of_feedback(policy: &Policy, invocation: &'a Invocation) -> Self {
        match Self::of_lgtm(policy, invocation) {
            Self::ResolvesAllButP0 => Self::IsMissing,
            silence @ (Self::ResolvesNamed(_) | Self::IsMissing | Self::Carries) => silence,
        }
    }

    /// How silence is read after the author reported these findings as addressed: `[]` names none,
    /// `None` is no report.
    pub(crate) fn after(policy: &Policy, reported: Option<&'a [FindingId]>) -> Self {
        match (policy.threads, reported) {
            (ThreadMode::Inferred, Some(_)) if policy.gate.require_actions => Self::IsMissing,
            (ThreadMode::Inferred, Some([])) => Self::ResolvesAllButP0,
            (ThreadMode::Inferred, Some(named)) => Self::ResolvesNamed(named),
            (ThreadMode::Inferred, None) | (ThreadMode::Explicit, _) => Self::IsMissing,
        }
    }
}

/// The threads a response opens or changes, or everything that is wrong with it, as far as a person
/// would read.
pub(crate) fn judge(response: &Response<'_>) -> Result<ThreadChanges, Vec<Fault>> {
    let mut sheet = Sheet {
        response,
        changed: BTreeMap::new(),
        named: BTreeSet::new(),
        known: OnceCell::new(),
        opened: Vec::new(),
        raised: Vec::new(),
        surplus: 0,
        alerts: Vec::new(),
        faults: Vec::new(),
        index: 0,
    };
    for (index, finding) in response
        .packet
        .iter()
        .flat_map(|packet| &packet.findings)
        .enumerate()
    {
        sheet.index = index;
        sheet.read(finding);
        if sheet.faults.len() >= FAULTS_MAX {
            break;
        }
    }
    // A thread that a packet does not name up to here may be named further on.
    if sheet.faults.len() < FAULTS_MAX {
        sheet.read_silence();
    }
    let raised = sheet.opened.len() + sheet.surplus;
    if raised > NEW_FINDINGS_MAX {
        sheet.faults.push(too_many(raised));
    }
    let Sheet {
        changed,
        alerts,
        faults,
        ..
    } = sheet;
    if faults.is_empty() {
        Ok(ThreadChanges {
            threads: changed,
            alerts,
        })
    } else {
        Err(faults)
    }
}

struct Sheet<'a> {
    response: &'a Response<'a>,
    changed: BTreeMap<FindingId, Thread>,
    /// Threads that were given an action.
    named: BTreeSet<FindingId>,
    /// What the known threads are compared by, worked out when the first new finding asks for it.
    known: OnceCell<Vec<(&'a FindingId, FindingSignature<'a>)>>,
    /// Threads this response opens, and what they are compared by.
    opened: Vec<(FindingId, FindingSignature<'a>)>,
    /// The findings that bring something up, and what they are compared by.
    raised: Vec<(&'a FindingId, FindingSignature<'a>)>,
    /// How many more it would open.
    surplus: usize,
    alerts: Vec<Alert>,
    faults: Vec<Fault>,
    /// Which finding of the packet is being read, from 0.
    index: usize,
}

impl<'a> Sheet<'a> {
    fn read(&mut self, finding: &'a Finding) {
        let threads = self.response.threads;
        let id = finding.same_as.as_ref().unwrap_or(&finding.id);
        if *id != finding.id && threads.contains_key(&finding.id) {
            return self.fault(speaks_of_two(finding, id));
        }
        match threads.get(id) {
            Some(before) if is_reused(finding, before) => self.fault(reused(finding, before)),
            Some(before) if before.is_open() => self.act(id, before, finding),
            Some(before) => self.restate(id, before, finding),
            None => self.read_new(id, finding),
        }
    }

    /// The thread as the findings before this one have left it. Whatever else is said of a thread,
    /// from now on it is as bad as the reviewer says.
    fn raised(&mut self, id: &FindingId, before: &Thread, finding: &Finding) -> Thread {
        let thread = self.changed.get(id).unwrap_or(before).raised_to(finding);
        if thread.severity < finding.severity {
            self.alerts.push(Alert::SeverityKept {
                thread: id.clone(),
                severity: thread.severity,
                stated: finding.severity,
            });
        } else if thread.blocking && !finding.blocks() && !finding.status.is_settled() {
            self.alerts.push(Alert::BlockingKept { thread: id.clone() });
        }
        if *id == finding.id {
            thread
        } else {
            thread.also_named(&finding.id)
        }
    }

    /// A finding under an id this review does not know: a thread of its own, unless it repeats one.
    fn read_new(&mut self, id: &FindingId, finding: &'a Finding) {
        // It is refused by now for what it raises; to compare each one more with all others would cost
        // the square of their number.
        if self.opened.len() > NEW_FINDINGS_MAX {
            self.surplus += 1;
            return;
        }
        let threads = self.response.threads;
        let mark = FindingSignature::of_finding(finding);
        let repeated = self.repeated(&mark);
        let known = repeated.as_ref().and_then(|(id, _)| threads.get(id));
        let may_act = known.is_some_and(Thread::is_settled_for_good);
        if finding.same_as.is_some() || (finding.action.is_some() && !may_act) {
            return self.fault(unknown(id));
        }
        match (repeated, known) {
            (Some((repeated, true)), Some(known)) => self.restate(&repeated, known, finding),
            (Some((repeated, _)), known) => self.fault(duplicate(finding, &repeated, known)),
            (None, _) => self.open(id, finding, mark),
        }
    }

    /// The thread a new finding repeats, and whether it is settled: first one that is still discussed,
    /// or that this very packet opens, else a resolved one. To resolve a thread in the same packet is
    /// no way round it.
    fn repeated(&self, mark: &FindingSignature<'_>) -> Option<(FindingId, bool)> {
        let threads = self.response.threads;
        let of_thread =
            |(id, thread): (&'a FindingId, &'a Thread)| (id, FindingSignature::of_thread(thread));
        let known = self
            .known
            .get_or_init(|| threads.iter().map(of_thread).collect());
        let is_settled = |thread: &Thread| thread.state == ThreadState::Resolved;
        let before = known
            .iter()
            .filter(|(_, other)| mark.repeats(other))
            .map(|(id, _)| {
                let was_settled = threads.get(*id).is_some_and(is_settled);
                (
                    *id,
                    was_settled && self.changed.get(*id).is_none_or(is_settled),
                )
            });
        let opened = self
            .opened
            .iter()
            .filter(|(_, other)| mark.matches(other))
            .map(|(id, _)| (id, false));
        before
            .chain(opened)
            .min_by_key(|(_, settled)| *settled)
            .map(|(id, settled)| (id.clone(), settled))
    }

    fn open(&mut self, id: &FindingId, finding: &'a Finding, mark: FindingSignature<'a>) {
        if leaves_unfixed(finding, finding.severity) {
            return self.fault(wont_fix_needs_a_person(id, finding.severity));
        }
        let mut thread = Thread::opened_by(finding, self.response.round);
        if self.response.verify_run {
            thread.origin = Origin::VerifyRun;
        }
        if thread.is_open()
            && let Some(why) = self.comes_too_late(&thread, finding)
        {
            thread.state = ThreadState::Deferred;
            self.alerts.push(Alert::FindingDeferred {
                thread: id.clone(),
                round: self.response.round,
                why,
            });
        }
        if thread.state != ThreadState::Resolved {
            self.raised.push((&finding.id, mark.clone()));
        }
        self.changed.insert(id.clone(), thread);
        self.opened.push((id.clone(), mark));
    }

    /// Why a new finding does not block any more, if it does not.
    fn comes_too_late(&self, thread: &Thread, finding: &Finding) -> Option<Late> {
        match self.response.new_blockers {
            NewBlockers::Any => None,
            NewBlockers::OutsideTask => (!self.blocks_a_fix(thread)).then_some(Late::InTask),
            NewBlockers::InTouched(touched) => {
                let lies_in_touched = finding
                    .file
                    .as_ref()
                    .is_some_and(|file| touched.contains(file));
                let is_late = thread.blocking
                    && thread.severity != Severity::P0
                    && !lies_in_touched
                    && finding.introduced_by.is_none();
                is_late.then_some(Late::OutsideTouched)
            }
        }
    }

    fn act(&mut self, id: &FindingId, before: &Thread, finding: &Finding) {
        let thread = self.raised(id, before, finding);
        let Some(action) = self.action(finding) else {
            // Named, but without an action: as good as silent.
            self.changed.insert(id.clone(), thread);
            return;
        };
        if !self.named.insert(id.clone()) {
            return self.fault(multiple(id));
        }
        if action == Action::Resolve && leaves_unfixed(finding, thread.severity) {
            return self.fault(wont_fix_needs_a_person(id, thread.severity));
        }
        let stance = finding.stance.unwrap_or(thread.dialogue.stance);
        let legal = thread.legal_actions(stance, self.response.last_round);
        if !legal.contains(&action) {
            return self.fault(illegal(
                id,
                &thread,
                action,
                legal,
                self.response.last_round,
            ));
        }
        self.changed
            .insert(id.clone(), thread.after(action, stance));
    }

    /// The action a finding takes on its open thread, if it takes one.
    fn action(&self, finding: &Finding) -> Option<Action> {
        match (finding.action, self.response.mode) {
            (Some(action), _) => Some(action),
            (None, ThreadMode::Explicit) => None,
            (None, ThreadMode::Inferred) => Some(match finding.status {
                Status::Fixed | Status::Resolved | Status::WontFix => Action::Resolve,
                Status::Open | Status::NotFixed | Status::NeedsClarification
                    if self.response.last_round =>
                {
                    Action::Escalate
                }
                Status::Open | Status::NotFixed | Status::NeedsClarification => Action::Reply,
            }),
        }
    }

    /// A finding whose thread is not open: its status restates what is known. `open` on a resolved
    /// thread opens it again with its counters, once; after that it can only be escalated. A
    /// deferred one opens again when it is worse now than when it was deferred.
    fn restate(&mut self, id: &FindingId, before: &'a Thread, finding: &'a Finding) {
        let thread = self.raised(id, before, finding);
        if thread.state == ThreadState::Deferred && leaves_unfixed(finding, thread.severity) {
            return self.fault(wont_fix_needs_a_person(id, thread.severity));
        }
        let is_worse = thread.blocking && (!before.blocking || thread.severity < before.severity);
        let says_open = matches!(
            finding.status,
            Status::Open | Status::NotFixed | Status::NeedsClarification
        );
        let is_for_good = thread.is_settled_for_good();
        let holds_up = self.may_block_again(&thread);
        let state = match (thread.state, finding.action) {
            (ThreadState::Resolved, Some(Action::Escalate)) if is_for_good && holds_up => {
                ThreadState::Held(Hold::Escalate)
            }
            (ThreadState::Resolved, Some(Action::Escalate)) if is_for_good => ThreadState::Deferred,
            (_, Some(_)) => return self.fault(not_open(id, &thread)),
            (ThreadState::Resolved, None) if says_open && is_for_good => {
                return self.fault(reopened_before(id));
            }
            (ThreadState::Resolved, None) if says_open && holds_up => ThreadState::Open,
            (ThreadState::Resolved, None) if says_open => ThreadState::Deferred,
            (ThreadState::Deferred, None) if says_open && is_worse && holds_up => ThreadState::Open,
            (state, None) => state,
        };
        let is_raised_again = thread.state == ThreadState::Resolved && says_open;
        if is_raised_again || state != thread.state {
            self.raised
                .push((&finding.id, FindingSignature::of_thread(before)));
            self.raised
                .push((&finding.id, FindingSignature::of_finding(finding)));
        }
        let thread = if is_raised_again {
            thread.raised_again(state)
        } else {
            thread.moved_to(state)
        };
        self.changed.insert(id.clone(), thread);
    }

    /// Whether a thread may be open again, rather than deferred; in a fix pull request only what
    /// blocks of what it is to fix, a P0, and what blocks outside the files of the task.
    fn may_block_again(&self, thread: &Thread) -> bool {
        match self.response.new_blockers {
            NewBlockers::Any | NewBlockers::InTouched(_) => true,
            NewBlockers::OutsideTask => {
                let is_of_the_task = thread.origin == Origin::CarriedOver;
                self.blocks_a_fix(thread) || (is_of_the_task && thread.blocking)
            }
        }
    }

    /// Whether a finding that is not of the task blocks a fix pull request all the same: a P0 does, and what
    /// blocks in a file that is none of the task's. Of one that names no file nobody can say so.
    fn blocks_a_fix(&self, thread: &Thread) -> bool {
        let is_outside = thread.file.as_ref().is_some_and(|file| {
            let mut known = self.response.threads.values();
            !known.any(|of| of.origin == Origin::CarriedOver && of.file.as_ref() == Some(file))
        });
        thread.severity == Severity::P0 || (thread.blocking && is_outside)
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault.in_finding(self.index));
    }

    fn read_silence(&mut self) {
        let open: BTreeMap<&FindingId, Thread> = self
            .response
            .threads
            .iter()
            .filter(|(_, thread)| thread.is_open())
            .filter(|(id, _)| !self.named.contains(*id))
            .map(|(id, thread)| (id, self.changed.get(id).unwrap_or(thread).clone()))
            .collect();
        // A nit that names no thread is not spent on one that silence resolves anyway.
        let nits = self.response.nits;
        let is_named = |id: &FindingId| nits.iter().any(|nit| nit.source.as_ref() == Some(id));
        let in_need = open
            .iter()
            .filter(|(id, thread)| is_named(id) || !self.silence_resolves(id, thread));
        let covered = nit_cover(in_need.map(|(id, thread)| (*id, thread)), nits);
        for (id, thread) in open {
            if covered.contains(id) {
                continue;
            }
            match self.response.silence {
                _ if self.silence_resolves(id, &thread) => match self.look_alike(&thread) {
                    Some(other) => {
                        let why = format!("and `{other}` of this response looks like it");
                        self.faults.push(missing(id, &thread, self.response, &why));
                    }
                    None => {
                        self.alerts
                            .push(Alert::ResolvedBySilence { thread: id.clone() });
                        self.changed
                            .insert(id.clone(), thread.resolved_by_silence());
                    }
                },
                Silence::ResolvesAllButP0 => {
                    let why = "and silence does not resolve a P0 that the author did not name";
                    self.faults.push(missing(id, &thread, self.response, why));
                }
                Silence::ResolvesNamed(_) | Silence::IsMissing => {
                    self.faults.push(missing(id, &thread, self.response, ""));
                }
                Silence::Carries => {}
            }
        }
    }

    /// What this response brings up that could be taken for this thread.
    fn look_alike(&self, thread: &Thread) -> Option<&'a FindingId> {
        let mark = FindingSignature::of_thread(thread);
        let mut raised = self.raised.iter();
        raised
            .find(|(_, other)| other.resembles(&mark))
            .map(|(id, _)| *id)
    }

    /// Whether an open thread that has no action is resolved by that. A packet that names it
    /// without an action is no silence to infer from.
    fn silence_resolves(&self, id: &FindingId, thread: &Thread) -> bool {
        let is_named = self.changed.contains_key(id);
        match self.response.silence {
            Silence::ResolvesNamed(findings) => !is_named && findings.contains(id),
            Silence::ResolvesAllButP0 => !is_named && thread.severity != Severity::P0,
            Silence::IsMissing | Silence::Carries => false,
        }
    }
}

/// Whether a finding is to be left as it is although it is too bad for an agent to say so.
fn leaves_unfixed(finding: &Finding, severity: Severity) -> bool {
    finding.status == Status::WontFix && matches!(severity, Severity::P0 | Severity::P1)
}

/// A known id with another path and another title is another problem under an old name.
fn is_reused(finding: &Finding, thread: &Thread) -> bool {
    let differs = |a: Option<&str>, b: Option<&str>| matches!((a, b), (Some(a), Some(b)) if a != b);
    finding.same_as.is_none()
        && differs(
            finding.file.as_ref().map(|f| f.as_str()),
            thread.file.as_ref().map(|f| f.as_str()),
        )
        && differs(finding.title.as_deref(), thread.title.as_deref())
}
