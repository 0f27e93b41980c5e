//! One finding's discussion: the reviewer's stance, its counters, and which of the four actions
//! are legal (seed 000). Counters survive resolution, so that a reopened thread goes on where it was.

use message_schema::id::{FindingId, RepoPath};
use message_schema::packet::{Action, Finding, LineRange, Severity, Stance, Status};
use serde::{Deserialize, Serialize};

use crate::words::key::TaskId;

/// The count of repeated stances from which `reply` is no longer legal (seed 000).
pub const STANCE_HELD_MAX: u8 = 2;

/// How many replies a thread takes in its life, however often the stance flips.
pub const REPLIES_MAX: u8 = 3;

/// New findings a response may raise.
pub(crate) const NEW_FINDINGS_MAX: usize = 25;

/// A finding under discussion.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// How bad it is; a later packet can raise it, never lower it.
    pub severity: Severity,
    /// Whether it blocks approval.
    pub blocking: bool,
    /// One line on what it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The file it is in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<RepoPath>,
    /// The lines it covers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<LineRange>,
    /// The words it is known by: its title, else its recommendation, else what it expects.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub words: Option<String>,
    /// The reviewer's mark of the same problem across rounds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
    /// The round it was opened in.
    pub opened_in: u32,
    /// Stance and counters.
    pub dialogue: Dialogue,
    /// Where it stands.
    pub state: ThreadState,
    /// Whether it was open again after having been resolved; that happens once.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub reopened: bool,
    /// Whether a person resolved it: from then on it can only be escalated.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub by_person: bool,
    /// What is known about it for whoever is to fix it.
    #[serde(skip_serializing_if = "Fate::is_default", default)]
    pub fate: Fate,
}

/// What matters of a finding once its pull request is merged (seed 003).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fate {
    /// The kind of problem; routes handoffs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub category: Option<String>,
    /// The agent the reviewer wants it handed to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// What the reviewer says to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recommendation: Option<String>,
    /// Whether it was found in a verify run of a fixing agent.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub verify_run: bool,
    /// Whether a person wants it handed off whatever the mode.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub queued: bool,
    /// The task it was handed off in; that happens once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task: Option<TaskId>,
    /// Whether it is one of the findings this fix pull request is to fix.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub carried: bool,
}

impl Fate {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The reviewer's stance in the last cycle and how often it was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dialogue {
    /// What the reviewer wanted in its last cycle.
    pub stance: Stance,
    /// How many cycles in a row that stance was repeated: 0 to [`STANCE_HELD_MAX`] while open.
    pub round_count: u8,
    /// How many replies were given: 0 to [`REPLIES_MAX`].
    pub replies: u8,
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// Needs exactly one action in each round.
    Open,
    /// Closed by the reviewer.
    Resolved,
    /// With a person.
    Held(Hold),
    /// Left for later under a nit; does not block.
    Deferred,
}

/// Which action handed a thread to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Not fixed, and no more arguing.
    Veto,
    /// Worse than thought.
    Escalate,
    /// None: a person took it.
    Person,
}

impl ThreadState {
    /// The word for it on the screen and in JSON.
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
    /// The thread a finding opens, or records when it was settled already.
    pub fn opened_by(finding: &Finding, round: u32) -> Self {
        Self {
            severity: finding.severity,
            blocking: finding.blocks(),
            title: finding.title.clone(),
            file: finding.file.clone(),
            lines: finding.lines.or(finding.line.map(LineRange::line)),
            words: words_of(finding).map(str::to_owned),
            fingerprint: finding.fingerprint.clone(),
            opened_in: round,
            dialogue: Dialogue {
                stance: finding.stance.unwrap_or(Stance::SeeksChange),
                round_count: 0,
                replies: 0,
            },
            state: if finding.status.is_settled() {
                ThreadState::Resolved
            } else {
                ThreadState::Open
            },
            reopened: false,
            by_person: false,
            fate: Fate {
                category: finding.category.clone(),
                target: finding.target.clone(),
                recommendation: finding.recommendation.clone(),
                ..Fate::default()
            },
        }
    }

    /// A P1 of which nothing is known but how its discussion stands.
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
            reopened: false,
            by_person: false,
            fate: Fate::default(),
        }
    }

    /// The thread as a packet names it again under its id: the same problem, as bad as it is.
    pub fn restated(&self, id: &FindingId, status: Status) -> Finding {
        Finding {
            id: id.clone(),
            severity: self.severity,
            status,
            // The other severities leave no choice.
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

    /// Whether it needs an action in each round.
    pub fn is_open(&self) -> bool {
        self.state == ThreadState::Open
    }

    /// Whether it is with a person.
    pub fn is_held(&self) -> bool {
        matches!(self.state, ThreadState::Held(_))
    }

    /// Whether it was resolved a second time, or by a person: from now on it can only be escalated.
    pub fn is_settled_for_good(&self) -> bool {
        self.state == ThreadState::Resolved && (self.reopened || self.by_person)
    }

    /// Whether it stands in the way of approval: it blocks and is open or with a person.
    pub fn blocks_approval(&self) -> bool {
        self.blocking && matches!(self.state, ThreadState::Open | ThreadState::Held(_))
    }

    /// What the reviewer may do with this thread, given the stance it takes now.
    pub fn legal_actions(&self, stance: Stance, last_round: bool) -> &'static [Action] {
        match self.state {
            ThreadState::Open => {
                let next = self.dialogue.next(stance);
                let may_reply =
                    next.round_count < STANCE_HELD_MAX && next.replies < REPLIES_MAX && !last_round;
                if may_reply {
                    Action::ALL
                } else {
                    &[Action::Resolve, Action::Veto, Action::Escalate]
                }
            }
            ThreadState::Resolved | ThreadState::Held(_) | ThreadState::Deferred => &[],
        }
    }

    /// The thread after a legal action taken with this stance.
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
            ..self.clone()
        }
    }

    /// The thread as a fix pull request takes it over: open from the start, with counters of its
    /// own; what does not block is deferred, so that it holds nothing up. It was handed off, and is
    /// not again with the fix.
    pub(crate) fn carried_over(&self, task: &TaskId) -> Self {
        Self {
            opened_in: 1,
            dialogue: Dialogue {
                stance: Stance::SeeksChange,
                round_count: 0,
                replies: 0,
            },
            state: if self.blocking {
                ThreadState::Open
            } else {
                ThreadState::Deferred
            },
            reopened: false,
            by_person: false,
            fate: Fate {
                carried: true,
                queued: false,
                task: Some(task.clone()),
                ..self.fate.clone()
            },
            ..self.clone()
        }
    }

    /// The thread with the severity a later packet states, if that is worse.
    pub fn raised_to(&self, finding: &Finding) -> Self {
        Self {
            severity: self.severity.min(finding.severity),
            blocking: self.blocking || finding.blocks(),
            ..self.clone()
        }
    }
}

impl Dialogue {
    /// Stance and count of this cycle, before the action is judged.
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

/// The words a finding is known by: its title, else its recommendation, else what it expects.
pub(crate) fn words_of(finding: &Finding) -> Option<&str> {
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
                .legal_actions(Stance::SeeksChange, false)
                .contains(&Action::Reply)
        );
        assert!(
            !thread(1, 1)
                .legal_actions(Stance::SeeksChange, false)
                .contains(&Action::Reply)
        );
        assert!(
            thread(1, 1)
                .legal_actions(Stance::Accepts, false)
                .contains(&Action::Reply)
        );
    }

    #[test]
    fn flipping_the_stance_buys_no_fourth_reply() {
        let mut thread = thread(0, 0);
        let mut stance = Stance::Accepts;
        for _ in 0..REPLIES_MAX {
            assert!(thread.legal_actions(stance, false).contains(&Action::Reply));
            thread = thread.after(Action::Reply, stance);
            stance = if stance == Stance::Accepts {
                Stance::SeeksChange
            } else {
                Stance::Accepts
            };
        }
        assert!(!thread.legal_actions(stance, false).contains(&Action::Reply));
    }

    #[test]
    fn the_last_round_takes_no_reply() {
        assert!(
            !thread(0, 0)
                .legal_actions(Stance::Accepts, true)
                .contains(&Action::Reply)
        );
    }

    #[test]
    fn a_resolved_thread_accepts_no_action() {
        let resolved = thread(0, 0).after(Action::Resolve, Stance::Accepts);
        assert!(resolved.legal_actions(Stance::Accepts, false).is_empty());
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
