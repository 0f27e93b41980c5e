//! Everything that needs somebody, worst first, each with the command that fixes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::{AgentName, FindingId};
use message_schema::line::{escaped, is_one_line};
use review::{Deadline, EscalationReason, Phase, Policy, Review, ReviewKey, UsedUp};
use serde::Serialize;
use workspace::operator_alerts::{self, Alert};
use workspace::shell::quoted;

use super::WorkspaceStatus;
use super::fix::{FixCommand, FixCommands, Spell};
use crate::dead_letter::refusals::Refusal;

/// The delay that a serving daemon may have before it is a problem.
const GRACE: TimeDelta = TimeDelta::seconds(60);

/// One thing that needs somebody. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The problem, in a sentence.
    pub what: String,
    /// The time since which it is one, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// The review it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The file or directory it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The command that fixes it, and the one who runs it.
    pub fix: FixCommand,
}

/// The kinds, the worst first: what stops everything, what stops a review, what stops a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The ledger that several hosts share cannot be followed, so nothing is accepted on this host.
    SharedLedger,
    /// A deadline has come and no daemon serves, or the one that serves does not keep it.
    DeadlineOverdue,
    /// Mail waits in outboxes and no daemon serves.
    MailUnjudged,
    /// Something may not be read by the daemon.
    Unreadable,
    /// An outbox belongs to the wrong user.
    OutboxOwner,
    /// A review waits for a person.
    ReviewEscalated,
    /// A review goes on, but something that blocks is with a person, so it can end in no approval.
    BlockerHeld,
    /// Findings that the merge left to a person wait for a decision.
    HandoffLeft,
    /// The pull request has another head than was approved.
    ApprovalStale,
    /// A budget of the day is used up, so commands are not started before the day turns.
    BudgetUsedUp,
    /// A message was refused and not corrected since.
    DeadLetter,
    /// A file in an inbox that nobody is proven to have sent.
    SenderUnproven,
    /// An accepted message that its sender changed after it was judged.
    SentDiffers,
}

impl ProblemKind {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::SharedLedger => "shared_ledger",
            Self::DeadlineOverdue => "deadline_overdue",
            Self::MailUnjudged => "mail_unjudged",
            Self::Unreadable => "unreadable",
            Self::OutboxOwner => "outbox_owner",
            Self::ReviewEscalated => "review_escalated",
            Self::BlockerHeld => "blocker_held",
            Self::HandoffLeft => "handoff_left",
            Self::ApprovalStale => "approval_stale",
            Self::BudgetUsedUp => "budget_used_up",
            Self::DeadLetter => "dead_letter",
            Self::SenderUnproven => "sender_unproven",
            Self::SentDiffers => "sent_differs",
        }
    }
}

impl WorkspaceStatus {
    /// All problems, the worst kind first and within a kind the oldest.
    pub fn problems(&self, policy: &Policy, now: DateTime<Utc>, spell: &Spell<'_>) -> Vec<Problem> {
        let commands = FixCommands(spell);
        let mut problems: Vec<Problem> = self.mail(&commands).into_iter().collect();
        for (key, review) in self.index.state().current_reviews() {
            problems.extend(self.of_review(key, review, policy, now, spell));
        }
        let used_up = self.index.state().used_up_today(policy, now);
        problems.extend(
            used_up
                .iter()
                .map(|(agent, used_up)| budget_used_up(*agent, used_up, &commands)),
        );
        problems.extend(
            self.dead
                .iter()
                .map(|letter| dead_letter(letter, &commands)),
        );
        problems.extend(self.alerts.iter().map(|alert| of_alert(alert, &commands)));
        // What is not dated comes last of its kind.
        problems.sort_by_key(|problem| (problem.kind, problem.since.is_none(), problem.since));
        problems
    }

    fn of_review(
        &self,
        key: &ReviewKey,
        review: &Review,
        policy: &Policy,
        now: DateTime<Utc>,
        spell: &Spell<'_>,
    ) -> Vec<Problem> {
        let commands = FixCommands(spell);
        // What `why` says first is what fixes it.
        let problem = |kind, what: String, since| {
            let fix = self
                .why(key, review, policy, now, spell)
                .fixes
                .into_iter()
                .next();
            let why = || commands.person(&format!("why {}", key.pr), "what is missing");
            Problem {
                kind,
                what,
                since,
                review: Some(key.to_string()),
                path: None,
                fix: fix.unwrap_or_else(why),
            }
        };
        let mut problems = Vec::new();
        if let Some((at, which)) = self.overdue(review, now) {
            let what = format!(
                "{key}: the deadline {} has passed and nobody applied it",
                which.word()
            );
            let fix = match self.serving {
                Some(true) => commands.operator("doctor", "shows what stops the daemon"),
                Some(false) | None => commands.operator("serve", "keeps it"),
            };
            problems.push(Problem {
                fix,
                ..problem(ProblemKind::DeadlineOverdue, what, Some(at))
            });
        }
        match &review.phase {
            Phase::Escalated(reason) => {
                let what = waits_for_person(key, review, reason);
                let kind = ProblemKind::ReviewEscalated;
                problems.push(problem(kind, what, Some(review.since)));
            }
            Phase::Approved(approval) if approval.stale => {
                let what =
                    format!("{key}: the head of the pull request is not the approved commit");
                problems.push(problem(ProblemKind::ApprovalStale, what, None));
            }
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => {
                let held = review
                    .threads
                    .iter()
                    .find(|(_, thread)| thread.blocking && thread.is_held());
                if let Some((id, _)) = held {
                    problems.push(held_blocker(key, id, self.is_alone(key), &commands));
                }
            }
            Phase::Approved(_) | Phase::Closed(_) => {}
        }
        let left: Vec<&str> = self
            .index
            .state()
            .left_to_person(key, review)
            .map(FindingId::as_str)
            .collect();
        if !left.is_empty() {
            problems.push(handoff_left(key, &left, self.is_alone(key), &commands));
        }
        problems
    }

    /// The review's deadline, if it has passed by more than a daemon's delay.
    fn overdue(&self, review: &Review, now: DateTime<Utc>) -> Option<(DateTime<Utc>, Deadline)> {
        // A daemon keeps a deadline within seconds, not at the instant.
        let grace = if self.is_unserved() {
            TimeDelta::zero()
        } else {
            GRACE
        };
        review.deadline().filter(|(at, _)| *at + grace <= now)
    }

    /// True if its pull request has no other review.
    pub fn is_alone(&self, key: &ReviewKey) -> bool {
        self.index.state().reviews_of(&key.pr).count() == 1
    }

    fn mail(&self, commands: &FixCommands<'_>) -> Option<Problem> {
        if !self.is_unserved() || self.unjudged.counts.is_empty() {
            return None;
        }
        let counts: Vec<String> = self
            .unjudged
            .counts
            .iter()
            .map(|(agent, count)| format!("{count} of {agent}"))
            .collect();
        Some(Problem {
            kind: ProblemKind::MailUnjudged,
            what: format!(
                "mail waits to be judged and no daemon serves: {}",
                counts.join(", ")
            ),
            since: self.unjudged.oldest(),
            review: None,
            path: None,
            fix: commands.operator("serve", "judges and delivers it"),
        })
    }
}

/// The problems of each kind: how many, and the first of them.
pub fn by_kind(problems: &[Problem]) -> BTreeMap<ProblemKind, (usize, &Problem)> {
    let mut kinds = BTreeMap::new();
    for problem in problems {
        kinds.entry(problem.kind).or_insert((0, problem)).0 += 1;
    }
    kinds
}

fn waits_for_person(key: &ReviewKey, review: &Review, reason: &EscalationReason) -> String {
    let failed = review.failed.as_ref().map_or_else(String::new, |failed| {
        format!(": {}", escaped(&failed.failure.sentence()))
    });
    format!(
        "{key} waits for a person: {}{failed}",
        escaped(&reason.to_string())
    )
}

fn held_blocker(
    key: &ReviewKey,
    id: &FindingId,
    is_alone: bool,
    commands: &FixCommands<'_>,
) -> Problem {
    let words = format!("thread release {} {id}", super::fix::named(key, is_alone));
    Problem {
        kind: ProblemKind::BlockerHeld,
        what: format!("{key}: {id} blocks and is with a person, so no lgtm passes"),
        since: None,
        review: Some(key.to_string()),
        path: None,
        fix: commands.person(
            &words,
            "gives it back to the agents; `resolve` and `wont-fix` end it",
        ),
    }
}

fn handoff_left(
    key: &ReviewKey,
    left: &[&str],
    is_alone: bool,
    commands: &FixCommands<'_>,
) -> Problem {
    let (words, ids) = (
        format!("threads {}", super::fix::named(key, is_alone)),
        escaped(&left.join(", ")),
    );
    Problem {
        kind: ProblemKind::HandoffLeft,
        what: format!("{key}: the merge handed {ids} to no agent, so a person decides"),
        since: None,
        review: Some(key.to_string()),
        path: None,
        fix: commands.person(
            &words,
            "shows each with what a person may do: `resolve`, `wont-fix` or `queue`",
        ),
    }
}

fn budget_used_up(
    agent: Option<&AgentName>,
    used_up: &UsedUp,
    commands: &FixCommands<'_>,
) -> Problem {
    let until = used_up.until.format("%Y-%m-%dT%H:%M:%SZ");
    let what = match agent {
        Some(agent) => format!("{agent}: {used_up}, so its command is not started before {until}"),
        None => format!("{used_up}, so no command is started before {until}"),
    };
    Problem {
        kind: ProblemKind::BudgetUsedUp,
        what,
        since: None,
        review: None,
        path: None,
        fix: commands.operator(
            "log",
            "shows what each run used (`spent`); to go on today, raise the limit in settled.toml and reload it",
        ),
    }
}

fn dead_letter(letter: &Refusal, commands: &FixCommands<'_>) -> Problem {
    let Refusal {
        agent, file, code, ..
    } = letter;
    Problem {
        kind: ProblemKind::DeadLetter,
        what: format!(
            "{agent}/dead_letter/{} was refused ({code}) and not corrected since",
            escaped(file)
        ),
        since: Some(letter.at),
        review: letter.review.clone(),
        path: Some(
            PathBuf::from(spool::dirs::of_agent(
                agent.as_str(),
                spool::dirs::DEAD_LETTER,
            ))
            .join(file),
        ),
        fix: commands.agent(
            agent,
            &letter.show(),
            "shows the refused message and the reason",
        ),
    }
}

/// A command on the file of an alert, where its path can be typed.
fn with_path(command: &str, alert: &Alert, what: &str, commands: &FixCommands<'_>) -> FixCommand {
    match alert.path.to_str().filter(|path| is_one_line(path)) {
        Some(path) => FixCommands::by_hand(format!("{command} {}", quoted(path.as_ref())), what),
        None => commands.operator("status", what),
    }
}

fn of_alert(alert: &Alert, commands: &FixCommands<'_>) -> Problem {
    let (kind, fix) = match alert.kind {
        operator_alerts::AlertKind::Unreadable => (
            ProblemKind::Unreadable,
            commands.operator("doctor --fix", "fixes what can be fixed safely"),
        ),
        operator_alerts::AlertKind::OutboxOwner => (
            ProblemKind::OutboxOwner,
            commands.operator(
                "init --separate-users",
                "as root: gives each agent its own files",
            ),
        ),
        operator_alerts::AlertKind::SenderUnproven => {
            let what = "look at the file; to deliver it, its sender must send it through an outbox";
            let fix = with_path("ls -l", alert, what, commands);
            (ProblemKind::SenderUnproven, fix)
        }
        operator_alerts::AlertKind::SharedLedger | operator_alerts::AlertKind::HostClock => (
            ProblemKind::SharedLedger,
            commands.operator("doctor", "checks this host"),
        ),
        operator_alerts::AlertKind::SentDiffers => {
            let what = "clears this once its sender has sent the message again";
            (
                ProblemKind::SentDiffers,
                with_path("rm", alert, what, commands),
            )
        }
    };
    Problem {
        kind,
        what: alert.what.clone(),
        since: None,
        review: None,
        path: Some(alert.path.clone()),
        fix,
    }
}
