//! Everything that somebody has to act on, worst first, each with the command that fixes it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::{AgentName, FindingId};
use message_schema::line::{escaped, is_shown_as_is};
use review::{Deadline, EscalationReason, Phase, Policy, Review, ReviewKey, UsedUp};
use rustix::fs::StatVfsMountFlags;
use serde::Serialize;
use spool::{dirs, path_text};
use workspace::operator_alerts::{self, Alert};
use workspace::shell::quoted;

use super::WorkspaceStatus;
use super::fix::{FixCommand, FixCommands, Spell};
use crate::dead_letter::refusals::OpenRefusal;

/// The delay that a serving daemon may have before a deadline counts as overdue.
const GRACE: TimeDelta = TimeDelta::seconds(60);

/// One thing that somebody has to act on. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The problem, in a sentence.
    pub what: String,
    /// The time since when it is one, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// The review it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The file or directory it concerns.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "spool::path_text::serialize_if_any"
    )]
    pub path: Option<PathBuf>,
    /// The command that fixes it, and who runs it.
    pub fix: FixCommand,
}

/// The kinds of problem, worst first: what stops everything, then a review, then a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// This host cannot follow the shared ledger, so it accepts nothing.
    SharedLedger,
    /// No host handles an agent's mail.
    NoHome,
    /// A deadline has passed, and no daemon serves or the serving one does not keep it.
    DeadlineOverdue,
    /// Mail waits in outboxes and no daemon serves.
    MailUnjudged,
    /// Files wait in the outbox of an agent that lives on another host now.
    MailLeft,
    /// The daemon cannot write to a mailbox, so mail waits for it.
    Unwritable,
    /// The daemon cannot read something.
    Unreadable,
    /// An outbox belongs to the wrong user.
    OutboxOwner,
    /// A review waits for a person.
    ReviewEscalated,
    /// A review goes on, but a blocking finding waits for a person, so it cannot end in an approval.
    BlockerHeld,
    /// Findings that the merge left to a person await a decision.
    HandoffLeft,
    /// The pull request's head is not the approved commit.
    ApprovalStale,
    /// A daily budget is used up, so no command starts before the next day.
    BudgetUsedUp,
    /// A message was refused and nobody corrected it.
    DeadLetter,
    /// An inbox holds a file that no record accounts for.
    SenderUnproven,
    /// A sender changed its accepted message after it was judged.
    SentDiffers,
}

impl ProblemKind {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::SharedLedger => "shared_ledger",
            Self::NoHome => "no_home",
            Self::DeadlineOverdue => "deadline_overdue",
            Self::MailUnjudged => "mail_unjudged",
            Self::MailLeft => "mail_left",
            Self::Unwritable => "unwritable",
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
    /// Returns all problems, the worst kind first and the oldest first within a kind.
    pub fn problems(&self, policy: &Policy, now: DateTime<Utc>, spell: &Spell<'_>) -> Vec<Problem> {
        let commands = FixCommands(spell);
        let mut problems: Vec<Problem> = self.mail(&commands).into_iter().collect();
        problems.extend(self.home_problems(&commands));
        for (key, review) in self.index.state().current_reviews() {
            problems.extend(self.of_review(key, review, policy, now, spell));
        }
        let used_up = self.index.state().used_up_today(policy, now);
        problems.extend(
            used_up
                .iter()
                .map(|(agent, used_up)| budget_used_up(*agent, used_up, &commands)),
        );
        problems.extend(self.dead.iter().map(|open| dead_letter(open, &commands)));
        problems.extend(self.alerts.iter().map(|alert| of_alert(alert, &commands)));
        // Undated ones come last of their kind.
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
        // The first fix that `why` names is the command.
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
            // Once the pull request is merged or closed, nobody can do anything about it.
            Phase::Approved(approval)
                if approval.stale && !self.index.state().is_pull_over(key) =>
            {
                let what =
                    format!("{key}: the head of the pull request is not the approved commit");
                problems.push(problem(ProblemKind::ApprovalStale, what, None));
            }
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => {
                if let Some((id, _)) = review.held_blockers().next() {
                    problems.push(held_blocker(key, id, &self.name_of(key), &commands));
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
            problems.push(handoff_left(key, &left, &self.name_of(key), &commands));
        }
        problems
    }

    /// The review's deadline, if it passed longer ago than a daemon may be late.
    fn overdue(&self, review: &Review, now: DateTime<Utc>) -> Option<(DateTime<Utc>, Deadline)> {
        // A daemon keeps a deadline within seconds, not at the instant.
        let grace = if self.is_unserved() {
            TimeDelta::zero()
        } else {
            GRACE
        };
        review.deadline().filter(|(at, _)| *at + grace <= now)
    }

    /// Names the review on a person's command line: by its number, and by reviewer and repository where another review,
    /// of this pull request or of another repository's, has that number.
    pub fn name_of(&self, key: &ReviewKey) -> String {
        if self.index.state().reviews_of(&key.pr).count() == 1 {
            return key.pr.to_string();
        }
        format!(
            "{} --reviewer {}{}",
            key.pr,
            key.reviewer,
            super::fix::of_repo(key)
        )
    }

    fn mail(&self, commands: &FixCommands<'_>) -> Option<Problem> {
        let counts = self.unjudged.counts.iter();
        let counts: Vec<String> = counts
            .filter(|(agent, _)| self.away(agent).is_none())
            .map(|(agent, count)| format!("{count} of {agent}"))
            .collect();
        (self.is_unserved() && !counts.is_empty()).then(|| Problem {
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

/// Groups the problems by kind: their number, and the first.
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
    name: &str,
    commands: &FixCommands<'_>,
) -> Problem {
    let words = format!("thread release {name} {id}");
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

fn handoff_left(key: &ReviewKey, left: &[&str], name: &str, commands: &FixCommands<'_>) -> Problem {
    let (words, ids) = (format!("threads {name}"), escaped(&left.join(", ")));
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
        Some(agent) => format!("{agent}: {used_up}, so its command does not start before {until}"),
        None => format!("{used_up}, so no command starts before {until}"),
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

fn dead_letter(open: &OpenRefusal, commands: &FixCommands<'_>) -> Problem {
    let (agent, file, code) = (open.agent(), open.file(), open.refusal.code);
    Problem {
        kind: ProblemKind::DeadLetter,
        what: format!(
            "{agent}/dead_letter/{} was refused ({code}) and not corrected since",
            escaped(&file)
        ),
        since: Some(open.refusal.at),
        review: open.refusal.review.clone(),
        path: Some(PathBuf::from(dirs::of_agent(agent.as_str(), dirs::DEAD_LETTER)).join(file)),
        fix: commands.agent(
            agent,
            &open.show(),
            "shows the refused message and the reason",
        ),
    }
}

/// Makes a command on the file of an alert, if its path can be typed.
fn with_path(command: &str, alert: &Alert, what: &str, commands: &FixCommands<'_>) -> FixCommand {
    match alert.path.to_str().filter(|path| is_shown_as_is(path)) {
        Some(path) => FixCommands::by_hand(format!("{command} {}", quoted(path.as_ref())), what),
        None => commands.operator("status", what),
    }
}

/// Makes the command that lets the daemon into the directory or read the file of an alert, or that shows what is there
/// in place of a directory.
fn readable(alert: &Alert, commands: &FixCommands<'_>) -> FixCommand {
    match alert.path.symlink_metadata() {
        Ok(data) if data.is_dir() => entry(alert, commands),
        // No mode helps. The daemon refuses a message or a packet that is no regular file, so this is no such file.
        Ok(data) if !data.is_file() || is_of_agent(&alert.path) => in_the_way(alert, commands),
        Ok(_) | Err(_) => {
            let what = "as its owner or root: lets the daemon read it";
            with_path("chmod a+r", alert, what, commands)
        }
    }
}

/// True if the path is that of one of an agent's directories; looks at the path alone.
fn is_of_agent(path: &Path) -> bool {
    let nested = [dirs::TAKEN, dirs::INBOX_ARCHIVE];
    dirs::OF_AGENT.iter().chain(&nested).any(|directory| {
        let agents = path.ancestors().nth(directory.split('/').count() + 1);
        path.ends_with(directory) && agents.is_some_and(|agents| agents.ends_with(dirs::AGENTS))
    })
}

/// Makes the command that shows what is in the place of a directory.
fn in_the_way(alert: &Alert, commands: &FixCommands<'_>) -> FixCommand {
    let what =
        "shows what is in the place of the directory: move it away, and make the directory again";
    with_path("ls -l", alert, what, commands)
}

/// Makes the command that lets the daemon into the directory of an alert.
fn entry(alert: &Alert, commands: &FixCommands<'_>) -> FixCommand {
    let what = "as its owner or root: lets the daemon in, if it has the directory's user or group; \
                `settled init --separate-users` gives it both";
    with_path("chmod ug+rwx", alert, what, commands)
}

/// Makes the command that lets the daemon write to the directory of an alert, as far as its mode says what is wrong.
fn writable(alert: &Alert, commands: &FixCommands<'_>) -> FixCommand {
    match alert.path.symlink_metadata() {
        Ok(data) if !data.is_dir() => in_the_way(alert, commands),
        Ok(data) if data.mode() & 0o300 == 0o300 => {
            let (command, what) = match rustix::fs::statvfs(&alert.path) {
                Ok(disk) if disk.f_flag.contains(StatVfsMountFlags::RDONLY) => (
                    "findmnt --target",
                    "shows how it is mounted: mount it for writing",
                ),
                Ok(disk) if disk.f_files > 0 && disk.f_favail == 0 => {
                    ("df -i", "shows how many more files fit: remove some")
                }
                Ok(_) | Err(_) => (
                    "df -h",
                    "shows the room that is left: free some, or fix what the error names",
                ),
            };
            with_path(command, alert, what, commands)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = "as its owner or root: makes the directory again";
            with_path("mkdir -p", alert, what, commands)
        }
        // The person who asks may lack the permission to see the directory.
        Ok(_) | Err(_) => entry(alert, commands),
    }
}

/// Makes the problem that an alert is, with the command that fixes it.
pub(crate) fn of_alert(alert: &Alert, commands: &FixCommands<'_>) -> Problem {
    let (kind, fix) = match alert.kind {
        operator_alerts::AlertKind::Unreadable => {
            (ProblemKind::Unreadable, readable(alert, commands))
        }
        operator_alerts::AlertKind::Unwritable => {
            (ProblemKind::Unwritable, writable(alert, commands))
        }
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
    // The shared ledger is no file of this workspace.
    let what = if kind == ProblemKind::SharedLedger {
        alert.what.clone()
    } else {
        format!("{}: {}", path_text::shown(&alert.path), alert.what)
    };
    Problem {
        kind,
        what,
        since: None,
        review: None,
        path: Some(alert.path.clone()),
        fix,
    }
}
