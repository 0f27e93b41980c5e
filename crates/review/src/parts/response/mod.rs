//! The effect of a response on the threads: every open thread gets exactly one action, and every new finding opens a
//! thread. All faults of a response are found before it is refused.

mod faults;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use message_schema::body::Nit;
use message_schema::id::{FindingId, RepoPath};
use message_schema::packet::{Action, Finding, FindingsPacket, Severity, Status};
use policy::{Policy, ThreadMode};
use review_words::alert::{Alert, Late};
use review_words::phase::Invocation;
use review_words::refusal::Fault;
use review_words::thread::{Hold, NEW_FINDINGS_MAX, Origin, RoundKind, Thread, ThreadState};

use self::faults::{
    duplicate, illegal, missing, multiple, not_open, reopened_before, reused, speaks_of_two,
    too_many, unknown, wont_fix_needs_a_person,
};
use crate::parts::duplicate::FindingSignature;
use crate::parts::gate::nit_cover;

/// A feedback or lgtm, as far as threads are concerned.
pub(crate) struct Response<'a> {
    /// The threads before the response.
    pub(crate) threads: &'a BTreeMap<FindingId, Thread>,
    /// The round it answers.
    pub(crate) round: u32,
    pub(crate) packet: Option<&'a FindingsPacket>,
    pub(crate) mode: ThreadMode,
    pub(crate) silence: Silence<'a>,
    /// The nits of an lgtm: they cover open threads that do not block.
    pub(crate) nits: &'a [Nit],
    pub(crate) new_blockers: NewBlockers<'a>,
    /// The kind of the round: the last one takes no reply.
    pub(crate) round_kind: RoundKind,
    /// True if the request comes from a verify run.
    pub(crate) verify_run: bool,
}

/// The new findings that may still block. A perfectionist reviewer never converges.
#[derive(Clone, Copy)]
pub(crate) enum NewBlockers<'a> {
    /// All.
    Any,
    /// Below P0, those that name what introduced them, and those in files that the author touched: by its report or by
    /// its request. Other blockers should have been found in the first round.
    InTouched([&'a [RepoPath]; 2]),
    /// P0, and blockers outside the files of the claimed task: inside them the measure of a fix pull request is whether
    /// it fixes its task.
    OutsideTask,
}

/// The most faults that a refusal names: a packet has room for thousands, and nobody would read them.
const FAULTS_MAX: usize = 200;

/// The changes a response makes to the threads.
#[derive(Default)]
pub(crate) struct ThreadChanges {
    /// The threads it opens or changes.
    pub(crate) threads: BTreeMap<FindingId, Thread>,
    /// The alerts to both sides.
    pub(crate) alerts: Vec<Alert>,
}

/// The meaning of a response that does not name an open thread.
#[derive(Clone, Copy, Debug)]
pub enum Silence<'a> {
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
    /// Returns the meaning of silence in an lgtm that answers this invocation.
    pub fn of_lgtm(policy: &Policy, invocation: &'a Invocation) -> Self {
        let addressed = invocation.addressed.as_ref();
        Self::after(policy, addressed.map(|report| &*report.findings))
    }

    /// Returns the meaning of silence in a feedback. Feedback says that something is wrong, so an unnamed thread is
    /// resolved only if the author named it.
    pub fn of_feedback(policy: &Policy, invocation: &'a Invocation) -> Self {
        match Self::of_lgtm(policy, invocation) {
            Self::ResolvesAllButP0 => Self::IsMissing,
            silence @ (Self::ResolvesNamed(_) | Self::IsMissing | Self::Carries) => silence,
        }
    }

    /// Returns the meaning of silence after the author reported these findings as addressed: `[]` names none, `None` is
    /// no report.
    pub(crate) fn after(policy: &Policy, reported: Option<&'a [FindingId]>) -> Self {
        match (policy.threads, reported) {
            (ThreadMode::Inferred, Some(_)) if policy.gate.require_actions => Self::IsMissing,
            (ThreadMode::Inferred, Some([])) => Self::ResolvesAllButP0,
            (ThreadMode::Inferred, Some(named)) => Self::ResolvesNamed(named),
            (ThreadMode::Inferred, None) | (ThreadMode::Explicit, _) => Self::IsMissing,
        }
    }

    /// True if a response that does not name this open thread resolves it.
    pub fn resolves(self, id: &FindingId, severity: Severity) -> bool {
        match self {
            Self::ResolvesNamed(findings) => findings.contains(id),
            Self::ResolvesAllButP0 => severity != Severity::P0,
            Self::IsMissing | Self::Carries => false,
        }
    }
}

/// Returns the threads a response opens or changes, or its faults, as many as a person would read.
pub(crate) fn judge(response: &Response<'_>) -> Result<ThreadChanges, Vec<Fault>> {
    let mut sheet = Sheet {
        response,
        changed: BTreeMap::new(),
        named: BTreeSet::new(),
        known: OnceCell::new(),
        opened: Vec::new(),
        problems: Vec::new(),
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
    // Only a packet that was read to its end shows which threads it does not name.
    if sheet.faults.len() < FAULTS_MAX {
        sheet.read_silence();
    }
    let new_count = sheet.opened.len() + sheet.surplus;
    if new_count > NEW_FINDINGS_MAX {
        sheet.faults.push(too_many(new_count));
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
    /// The threads that got an action.
    named: BTreeSet<FindingId>,
    /// The features of the known threads, computed for the first new finding.
    known: OnceCell<Vec<(&'a FindingId, FindingSignature<'a>)>>,
    /// The threads this response opens, with their features.
    opened: Vec<(FindingId, FindingSignature<'a>)>,
    /// The findings that raise a problem, with their features.
    problems: Vec<(&'a FindingId, FindingSignature<'a>)>,
    /// The number of further threads it would open.
    surplus: usize,
    alerts: Vec<Alert>,
    faults: Vec<Fault>,
    /// The position of the current finding in the packet, from 0.
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

    /// Returns the thread as the findings before this one left it, with the severity raised to this finding's.
    fn thread_raised_to(&mut self, id: &FindingId, before: &Thread, finding: &Finding) -> Thread {
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

    /// Reads a finding under an id that is new to this review: it opens a thread, unless it repeats one.
    fn read_new(&mut self, id: &FindingId, finding: &'a Finding) {
        // The response already raises enough to be refused; comparing each further finding with all others would take
        // quadratic time.
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

    /// Returns the thread that a new finding repeats, and whether it is settled: first one that is still discussed, or
    /// that this packet opens, else a resolved one. A packet cannot avoid this by resolving the thread first.
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
                let stays_so = self.changed.get(*id).is_none_or(is_settled);
                (*id, was_settled && stays_so)
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
            self.problems.push((&finding.id, mark.clone()));
        }
        self.changed.insert(id.clone(), thread);
        self.opened.push((id.clone(), mark));
    }

    /// Returns the reason a new finding no longer blocks, if it does not.
    fn comes_too_late(&self, thread: &Thread, finding: &Finding) -> Option<Late> {
        match self.response.new_blockers {
            NewBlockers::Any => None,
            NewBlockers::OutsideTask => (!self.blocks_a_fix(thread)).then_some(Late::InTask),
            NewBlockers::InTouched(touched) => {
                let is_in_touched = finding
                    .file
                    .as_ref()
                    .is_some_and(|file| touched.iter().any(|files| files.contains(file)));
                let is_late = thread.blocking
                    && thread.severity != Severity::P0
                    && !is_in_touched
                    && finding.introduced_by.is_none();
                is_late.then_some(Late::OutsideTouched)
            }
        }
    }

    fn act(&mut self, id: &FindingId, before: &Thread, finding: &Finding) {
        let thread = self.thread_raised_to(id, before, finding);
        let Some(action) = self.action(finding) else {
            // Named, but without an action: counts as silence.
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
        let kind = self.response.round_kind;
        let legal = thread.legal_actions(stance, kind);
        if !legal.contains(&action) {
            return self.fault(illegal(id, &thread, action, legal, kind));
        }
        self.changed
            .insert(id.clone(), thread.after(action, stance));
    }

    /// Returns the action that a finding takes on its open thread, if it takes one.
    fn action(&self, finding: &Finding) -> Option<Action> {
        let kind = self.response.round_kind;
        match (finding.action, self.response.mode) {
            (Some(action), _) => Some(action),
            (None, ThreadMode::Explicit) => None,
            (None, ThreadMode::Inferred) => Some(kind.inferred_action(finding.status)),
        }
    }

    /// Reads a finding whose thread is not open: its status restates what is known. `open` reopens a resolved thread
    /// with its counters, once; after that it can only be escalated. A deferred thread reopens if it is worse now than
    /// when it was deferred.
    fn restate(&mut self, id: &FindingId, before: &'a Thread, finding: &'a Finding) {
        let thread = self.thread_raised_to(id, before, finding);
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
            self.problems
                .push((&finding.id, FindingSignature::of_thread(before)));
            self.problems
                .push((&finding.id, FindingSignature::of_finding(finding)));
        }
        let thread = if is_raised_again {
            thread.raised_again(state)
        } else {
            thread.moved_to(state)
        };
        self.changed.insert(id.clone(), thread);
    }

    /// True if a thread may be open again, rather than deferred. In a fix pull request that holds only for a P0, for
    /// blockers of its task, and for blockers outside the files of the task.
    fn may_block_again(&self, thread: &Thread) -> bool {
        match self.response.new_blockers {
            NewBlockers::Any | NewBlockers::InTouched(_) => true,
            NewBlockers::OutsideTask => {
                let is_of_the_task = thread.origin == Origin::CarriedOver;
                self.blocks_a_fix(thread) || (is_of_the_task && thread.blocking)
            }
        }
    }

    /// True if a finding that is not of the task still blocks a fix pull request: a P0, or a blocker in a file outside
    /// the task. A finding without a file is never outside.
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
        // A nit that names no thread is not spent on a thread that silence resolves anyway.
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

    /// Returns a finding of this response that a reader could take for this thread.
    fn look_alike(&self, thread: &Thread) -> Option<&'a FindingId> {
        let mark = FindingSignature::of_thread(thread);
        let mut problems = self.problems.iter();
        let found = problems.find(|(_, other)| other.resembles(&mark));
        found.map(|(id, _)| *id)
    }

    /// True if silence resolves an open thread that has no action. A packet that names the thread without an action is
    /// not silent about it.
    fn silence_resolves(&self, id: &FindingId, thread: &Thread) -> bool {
        !self.changed.contains_key(id) && self.response.silence.resolves(id, thread.severity)
    }
}

/// True if a finding says `wont_fix` although it is so severe that only a person may.
fn leaves_unfixed(finding: &Finding, severity: Severity) -> bool {
    finding.status == Status::WontFix && matches!(severity, Severity::P0 | Severity::P1)
}

/// True if a known id has another path and another title: another problem under an old id.
fn is_reused(finding: &Finding, thread: &Thread) -> bool {
    let differs = |a: Option<&str>, b: Option<&str>| matches!((a, b), (Some(a), Some(b)) if a != b);
    finding.same_as.is_none()
        && differs(
            finding.file.as_ref().map(|f| f.as_str()),
            thread.file.as_ref().map(|f| f.as_str()),
        )
        && differs(finding.title.as_deref(), thread.title.as_deref())
}
