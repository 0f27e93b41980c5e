//! One finding's discussion: the reviewer's stance, its counters, and which of the four actions
//! are legal (`docs/protocol.md`, section 4). Counters survive resolution, so that a reopened thread
//! continues where it was.

mod line;

use std::collections::BTreeSet;

use message_schema::id::{FindingId, RepoPath};
use message_schema::packet::{Action, Finding, LineRange, Severity, Stance, Status};
use serde::{Deserialize, Serialize};

use self::line::ThreadLine;
use crate::key::TaskId;

/// The count of repeated stances from which `reply` is no longer legal, which is in the third cycle with the same
/// stance: another reply will not move a reviewer that has said the same three times.
pub const STANCE_HELD_MAX: u8 = 2;

/// The most replies a thread takes in its life, even if the stance flips.
pub const REPLIES_MAX: u8 = 3;

/// The place of a round in its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoundKind {
    /// Another round can follow.
    Earlier,
    /// No round follows, so a thread takes no reply.
    Last,
}

impl RoundKind {
    /// Returns the action that a status without an action stands for in such a round.
    pub fn inferred_action(self, status: Status) -> Action {
        match self {
            _ if status.is_settled() => Action::Resolve,
            Self::Last => Action::Escalate,
            Self::Earlier => Action::Reply,
        }
    }
}

/// The most new findings a response may raise.
pub const NEW_FINDINGS_MAX: usize = 25;

/// A finding under discussion.
///
/// The finding and its counters are kept in every state, because a reopened thread continues where it was. Enums hold
/// what is true only in some states: [`ThreadState`] for the discussion, [`Reopening`] for the weight of a resolution,
/// [`HandoffState`] for the task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "ThreadLine", into = "ThreadLine")]
pub struct Thread {
    /// Its severity; a later packet can raise it, never lower it.
    pub severity: Severity,
    /// True if it blocks approval.
    pub blocking: bool,
    /// A one-line summary.
    pub title: Option<String>,
    /// The file it is in.
    pub file: Option<RepoPath>,
    /// The lines it covers.
    pub lines: Option<LineRange>,
    /// The words that identify it: its title, else its recommendation, else what it expects.
    pub words: Option<String>,
    /// The reviewer's mark of the same problem across rounds.
    pub fingerprint: Option<String>,
    /// The round it was opened in.
    pub opened_in: u32,
    /// Stance and counters.
    pub dialogue: Dialogue,
    /// The state of its discussion.
    pub state: ThreadState,
    /// The cause of its last resolution.
    pub resolution: Resolution,
    /// The other ids under which its reviewer has raised it, as its packets spell them.
    pub aliases: BTreeSet<FindingId>,
    /// The reviewer's right to reopen it once it is resolved.
    pub reopening: Reopening,
    /// The reviewer's hints for the agent that fixes it after the merge.
    pub routing: Routing,
    /// The source of the finding.
    pub origin: Origin,
    /// The state of its handoff.
    pub handoff: HandoffState,
}

/// The cause of a thread's resolution. An approval that rests on silence shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The reviewer's action or status, or a person's decision.
    #[default]
    #[serde(rename = "word")]
    Explicit,
    /// The author reported fixes, and the response did not name it.
    Silence,
}

/// The finality of a thread's resolution. A problem that comes back is discussed once more and no further, or reopening
/// would buy endless rounds; and no agent overrules a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reopening {
    /// The reviewer may open the resolved thread again.
    #[default]
    Allowed,
    /// It was reopened before: the next resolution is final.
    Used,
    /// A person resolved it, which is final.
    Barred {
        /// True if it had been reopened before, or was raised again since.
        used: bool,
    },
}

impl Reopening {
    /// Returns the value after the reviewer has raised the resolved thread again.
    fn used(self) -> Self {
        match self {
            Self::Allowed | Self::Used => Self::Used,
            Self::Barred { .. } => Self::Barred { used: true },
        }
    }

    /// Returns the value after a person has resolved the thread.
    fn barred(self) -> Self {
        match self {
            Self::Allowed => Self::Barred { used: false },
            Self::Used => Self::Barred { used: true },
            barred @ Self::Barred { .. } => barred,
        }
    }
}

/// The hints that route a finding to a fixing agent once its pull request is merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Routing {
    /// The kind of problem.
    pub category: Option<String>,
    /// The agent that the reviewer wants to fix it.
    pub target: Option<String>,
    /// The reviewer's advice on the fix.
    pub recommendation: Option<String>,
}

/// The source of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A reviewer raised it.
    #[default]
    Review,
    /// A verify run of a fixing agent raised it. It is never handed off, or fixes would cause endless fixes.
    VerifyRun,
    /// A fix pull request took it over and has to fix it.
    CarriedOver,
}

/// The state of a finding's handoff once its pull request is merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum HandoffState {
    /// The policy decides.
    #[default]
    ByPolicy,
    /// A person wants it handed off whatever the policy says.
    Queued,
    /// The merge left it to a person, because an automatic task could begin an endless chain of fixes.
    LeftToPerson,
    /// It was handed off in this task, which happens only once.
    HandedOff(TaskId),
}

/// The reviewer's stance in the last cycle, and how often it was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dialogue {
    /// The reviewer's stance in its last cycle.
    pub stance: Stance,
    /// The number of cycles in a row that repeated that stance: 0 to `STANCE_HELD_MAX` while open.
    pub round_count: u8,
    /// The number of replies so far: 0 to [`REPLIES_MAX`].
    pub replies: u8,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// Needs exactly one action in each round.
    Open,
    /// Closed by the reviewer.
    Resolved,
    /// Escalated to a person.
    Held(Hold),
    /// Deferred under a nit; does not block.
    Deferred,
}

/// The action that escalated a thread to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// The reviewer stops arguing about a finding that is not fixed.
    Veto,
    /// The finding is worse than the reviewer thought.
    Escalate,
    /// A person took it.
    Person,
}

impl ThreadState {
    /// Returns the word for it on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Held(Hold::Veto) => "held (veto)",
            Self::Held(Hold::Escalate) => "held (escalate)",
            Self::Held(Hold::Person) => "held (person)",
            Self::Deferred => "deferred",
        }
    }
}

impl Thread {
    /// Opens a thread for a finding; a finding that is already settled becomes a resolved thread.
    pub fn opened_by(finding: &Finding, round: u32) -> Self {
        let stance = finding.stance.unwrap_or(Stance::SeeksChange);
        Self {
            severity: finding.severity,
            blocking: finding.blocks(),
            title: finding.title.clone(),
            file: finding.file.clone(),
            lines: finding.lines.or(finding.line.map(LineRange::line)),
            words: words_of(finding).map(str::to_owned),
            fingerprint: finding.fingerprint.clone(),
            opened_in: round,
            state: if finding.status.is_settled() {
                ThreadState::Resolved
            } else {
                ThreadState::Open
            },
            routing: Routing {
                category: finding.category.clone(),
                target: finding.target.clone(),
                recommendation: finding.recommendation.clone(),
            },
            ..Self::discussed(Dialogue::begun(stance))
        }
    }

    /// Makes a P1 thread that has only this dialogue.
    pub fn discussed(dialogue: Dialogue) -> Self {
        Self {
            severity: Severity::P1,
            blocking: true,
            title: None,
            file: None,
            lines: None,
            words: None,
            fingerprint: None,
            opened_in: 1,
            dialogue,
            state: ThreadState::Open,
            resolution: Resolution::default(),
            aliases: BTreeSet::new(),
            reopening: Reopening::default(),
            routing: Routing::default(),
            origin: Origin::default(),
            handoff: HandoffState::default(),
        }
    }

    /// Returns the finding with which a packet names the thread again under its id, unchanged.
    pub fn restated(&self, id: &FindingId, status: Status) -> Finding {
        Finding {
            id: id.clone(),
            severity: self.severity,
            status,
            // The other severities determine it.
            blocking: (self.severity == Severity::P2).then_some(self.blocking),
            title: self.title.clone(),
            area: None,
            category: None,
            file: self.file.clone(),
            line: None,
            lines: self.lines,
            repro: None,
            expected: None,
            evidence: None,
            recommendation: None,
            fingerprint: None,
            introduced_by: None,
            same_as: None,
            target: None,
            stance: None,
            action: None,
        }
    }

    /// True if it needs an action in each round.
    pub fn is_open(&self) -> bool {
        self.state == ThreadState::Open
    }

    /// True if it is escalated to a person.
    pub fn is_held(&self) -> bool {
        matches!(self.state, ThreadState::Held(_))
    }

    /// True if it is resolved because its reviewer did not name it.
    pub fn is_resolved_by_silence(&self) -> bool {
        self.state == ThreadState::Resolved && self.resolution == Resolution::Silence
    }

    /// True if it was resolved a second time, or by a person: from now on it can only be escalated.
    pub fn is_settled_for_good(&self) -> bool {
        self.state == ThreadState::Resolved
            && match self.reopening {
                Reopening::Allowed => false,
                Reopening::Used | Reopening::Barred { .. } => true,
            }
    }

    /// True if it was reopened after a resolution, which happens only once.
    pub fn was_reopened(&self) -> bool {
        match self.reopening {
            Reopening::Used | Reopening::Barred { used: true } => true,
            Reopening::Allowed | Reopening::Barred { used: false } => false,
        }
    }

    /// True if a person has resolved it, whatever its state is now.
    pub fn was_resolved_by_person(&self) -> bool {
        match self.reopening {
            Reopening::Barred { .. } => true,
            Reopening::Allowed | Reopening::Used => false,
        }
    }

    /// True if a person wants it handed off whatever the policy says.
    pub fn is_queued(&self) -> bool {
        self.handoff == HandoffState::Queued
    }

    /// Returns the task it was handed off in, if any.
    pub fn task(&self) -> Option<&TaskId> {
        match &self.handoff {
            HandoffState::HandedOff(task) => Some(task),
            HandoffState::ByPolicy | HandoffState::Queued | HandoffState::LeftToPerson => None,
        }
    }

    /// True if the merge left it to a person, who has not decided since.
    pub fn is_left_to_person(&self) -> bool {
        self.handoff == HandoffState::LeftToPerson && self.state != ThreadState::Resolved
    }

    /// True if it bars approval: it blocks and is open or escalated to a person.
    pub fn blocks_approval(&self) -> bool {
        self.blocking && matches!(self.state, ThreadState::Open | ThreadState::Held(_))
    }

    /// Returns the actions that are legal for the reviewer with the stance it takes now.
    pub fn legal_actions(&self, stance: Stance, round_kind: RoundKind) -> &'static [Action] {
        match self.state {
            ThreadState::Open => {
                let next = self.dialogue.next(stance);
                let may_reply = next.round_count < STANCE_HELD_MAX
                    && next.replies < REPLIES_MAX
                    && round_kind == RoundKind::Earlier;
                if may_reply {
                    Action::ALL
                } else {
                    &[Action::Resolve, Action::Veto, Action::Escalate]
                }
            }
            ThreadState::Resolved | ThreadState::Held(_) | ThreadState::Deferred => &[],
        }
    }

    /// Returns the reason that an open thread takes no reply in such a round.
    pub fn why_no_reply(&self, round_kind: RoundKind) -> String {
        match round_kind {
            RoundKind::Last => "this is the last round".to_owned(),
            RoundKind::Earlier => format!(
                "the stance was held for {} cycles and {} replies were given",
                self.dialogue.round_count + 1,
                self.dialogue.replies
            ),
        }
    }

    /// Returns the thread after a legal action taken with this stance.
    pub fn after(&self, action: Action, stance: Stance) -> Self {
        let mut dialogue = self.dialogue.next(stance);
        let state = match action {
            Action::Resolve => ThreadState::Resolved,
            Action::Veto => ThreadState::Held(Hold::Veto),
            Action::Escalate => ThreadState::Held(Hold::Escalate),
            Action::Reply => {
                dialogue.replies += 1;
                ThreadState::Open
            }
        };
        Self {
            dialogue,
            state,
            resolution: Resolution::Explicit,
            ..self.clone()
        }
    }

    /// Returns the thread as resolved by a response that does not name it.
    pub fn resolved_by_silence(&self) -> Self {
        Self {
            resolution: Resolution::Silence,
            ..self.after(Action::Resolve, self.dialogue.stance)
        }
    }

    /// Adds another id under which the reviewer raised it.
    pub fn also_named(mut self, id: &FindingId) -> Self {
        self.aliases.insert(id.clone());
        self
    }

    /// Returns the thread in another state, with its counters.
    pub fn moved_to(&self, state: ThreadState) -> Self {
        Self {
            state,
            ..self.clone()
        }
    }

    /// Returns the thread after the reviewer has raised it again, which it may do once.
    pub fn raised_again(&self, state: ThreadState) -> Self {
        Self {
            state,
            reopening: self.reopening.used(),
            ..self.clone()
        }
    }

    /// Returns the thread as resolved by a person.
    pub fn resolved_by_person(&self) -> Self {
        Self {
            state: ThreadState::Resolved,
            resolution: Resolution::Explicit,
            reopening: self.reopening.barred(),
            ..self.clone()
        }
    }

    /// Returns the thread with another state of its handoff.
    pub fn with_handoff(&self, handoff: HandoffState) -> Self {
        Self {
            handoff,
            ..self.clone()
        }
    }

    /// Returns the thread as a fix pull request takes it over: open from the start, with its own counters. A thread
    /// that does not block is deferred, so that it does not hold up the fix. It counts as handed off, so the fix does
    /// not hand it off again.
    pub fn carried_over(&self, task: &TaskId) -> Self {
        Self {
            opened_in: 1,
            dialogue: Dialogue::begun(Stance::SeeksChange),
            state: if self.blocking {
                ThreadState::Open
            } else {
                ThreadState::Deferred
            },
            resolution: Resolution::default(),
            aliases: BTreeSet::new(),
            reopening: Reopening::Allowed,
            origin: Origin::CarriedOver,
            handoff: HandoffState::HandedOff(task.clone()),
            ..self.clone()
        }
    }

    /// Returns the thread with the severity of a later packet, if that is worse.
    pub fn raised_to(&self, finding: &Finding) -> Self {
        Self {
            severity: self.severity.min(finding.severity),
            blocking: self.blocking || finding.blocks(),
            ..self.clone()
        }
    }
}

impl Dialogue {
    /// Begins with this stance.
    fn begun(stance: Stance) -> Self {
        Self {
            stance,
            round_count: 0,
            replies: 0,
        }
    }

    /// Returns the stance and count of this cycle, before its action is judged.
    fn next(self, stance: Stance) -> Self {
        let held = stance == self.stance;
        let round_count = if held {
            self.round_count.saturating_add(1)
        } else {
            0
        };
        Self {
            stance,
            round_count,
            ..self
        }
    }
}

/// Returns the words that identify a finding: its title, else its recommendation, else what it expects.
pub fn words_of(finding: &Finding) -> Option<&str> {
    [&finding.title, &finding.recommendation, &finding.expected]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(round_count: u8, replies: u8) -> Thread {
        Thread::discussed(Dialogue {
            stance: Stance::SeeksChange,
            round_count,
            replies,
        })
    }

    #[test]
    fn a_stance_held_for_three_cycles_takes_no_reply() {
        assert!(
            thread(0, 0)
                .legal_actions(Stance::SeeksChange, RoundKind::Earlier)
                .contains(&Action::Reply)
        );
        assert!(
            !thread(1, 1)
                .legal_actions(Stance::SeeksChange, RoundKind::Earlier)
                .contains(&Action::Reply)
        );
        assert!(
            thread(1, 1)
                .legal_actions(Stance::Accepts, RoundKind::Earlier)
                .contains(&Action::Reply)
        );
    }

    #[test]
    fn flipping_the_stance_buys_no_fourth_reply() {
        let mut thread = thread(0, 0);
        let mut stance = Stance::Accepts;
        for _ in 0..REPLIES_MAX {
            assert!(
                thread
                    .legal_actions(stance, RoundKind::Earlier)
                    .contains(&Action::Reply)
            );
            thread = thread.after(Action::Reply, stance);
            stance = if stance == Stance::Accepts {
                Stance::SeeksChange
            } else {
                Stance::Accepts
            };
        }
        assert!(
            !thread
                .legal_actions(stance, RoundKind::Earlier)
                .contains(&Action::Reply)
        );
    }

    #[test]
    fn the_last_round_takes_no_reply() {
        assert!(
            !thread(0, 0)
                .legal_actions(Stance::Accepts, RoundKind::Last)
                .contains(&Action::Reply)
        );
    }

    #[test]
    fn a_resolved_thread_accepts_no_action() {
        let resolved = thread(0, 0).after(Action::Resolve, Stance::Accepts);
        assert!(
            resolved
                .legal_actions(Stance::Accepts, RoundKind::Earlier)
                .is_empty()
        );
        assert!(!resolved.blocks_approval());
    }

    #[test]
    fn a_held_blocker_stands_in_the_way() {
        assert!(
            thread(0, 0)
                .after(Action::Veto, Stance::SeeksChange)
                .blocks_approval()
        );
    }
}
