//! The reason a review does not go on: the one missing thing, the command that brings it, and what the daemon does if
//! nobody acts. Asks the rules of reviews and never repeats them.

mod ended;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::{Deadline, Invocation, ObservedRun, Phase, Policy, Review, ReviewKey, Side};
use serde::Serialize;
use workspace::shell::quoted;

use super::fix::{Actor, FixCommand, FixCommands, Spell, of_pr, of_repo};
use super::problems::{Problem, of_alert};
use super::row::{FailedRow, reason};
use super::{WorkspaceStatus, threads};
use crate::dead_letter::refusals::OpenRefusal;

/// The answer of `settled why` about one review. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct Why {
    /// The review's key, as people write it.
    pub review: String,
    /// Its phase.
    pub phase: &'static str,
    /// The reason why it is escalated or closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The round within its generation.
    pub round_of_generation: u32,
    /// The rounds this generation may take.
    pub rounds: u8,
    /// The kind of thing that is missing.
    pub kind: Missing,
    /// The one missing thing, in a sentence; absent if nothing is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The person or agent who can bring it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// The time since when it is in this phase.
    pub since: DateTime<Utc>,
    /// The commands that bring it, the best one first.
    pub fixes: Vec<FixCommand>,
    /// The last failed start of the reviewer's command in this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRow>,
    /// The obstacles to an approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<String>,
    /// The daemon's next action if nobody acts.
    pub otherwise: String,
    /// The time at which the deadline ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise_at: Option<DateTime<Utc>>,
}

/// The kinds of things a review can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// A host that handles the mail of the agent that has to act.
    Home,
    /// A daemon, to judge waiting mail or to keep a deadline that has passed.
    Daemon,
    /// A mailbox that the daemon can write to.
    Mailbox,
    /// A corrected message in place of one that was refused.
    Correction,
    /// A request by the author.
    Request,
    /// The reviewer's take.
    Take,
    /// The reviewer's feedback or lgtm.
    Response,
    /// The author's report on the findings.
    Report,
    /// A person's decision.
    Decision,
    /// A review of the pull request's current head, or of any named commit.
    Head,
    /// Permission to merge.
    MergeReady,
    /// Nothing.
    Nothing,
}

/// The missing thing, without the rest of the answer.
struct Diagnosis {
    kind: Missing,
    missing: Option<String>,
    fixes: Vec<FixCommand>,
}

impl WorkspaceStatus {
    /// Explains why this review does not go on, under the project's policy.
    pub fn why(
        &self,
        key: &ReviewKey,
        review: &Review,
        policy: &Policy,
        now: DateTime<Utc>,
        spell: &Spell<'_>,
    ) -> Why {
        let look = Look {
            status: self,
            key,
            review,
            policy,
            now,
            commands: FixCommands(spell),
        };
        let Diagnosis {
            kind,
            missing,
            fixes,
        } = look.answer();
        let (otherwise, otherwise_at) = look.otherwise();
        Why {
            review: key.to_string(),
            phase: review.phase.word(),
            reason: reason(&review.phase),
            round_of_generation: review.round_of_generation(),
            rounds: review.rounds.get() + review.granted,
            kind,
            actor: fixes
                .first()
                .filter(|_| missing.is_some())
                .map(|fix| fix.actor.clone()),
            missing,
            since: review.since,
            fixes,
            failed: review.failed.as_ref().map(FailedRow::of),
            gate: look.gate(),
            otherwise,
            otherwise_at,
        }
    }
}

struct Look<'a> {
    status: &'a WorkspaceStatus,
    key: &'a ReviewKey,
    review: &'a Review,
    policy: &'a Policy,
    now: DateTime<Utc>,
    commands: FixCommands<'a>,
}

impl Look<'_> {
    /// Unjudged mail comes first, since it may be all that is missing; then the mover's last refused message.
    fn answer(&self) -> Diagnosis {
        self.homeless()
            .or_else(|| self.unserved())
            .or_else(|| self.correction())
            .or_else(|| self.undelivered())
            .unwrap_or_else(|| self.of_phase())
    }

    /// The diagnosis if the daemon cannot write to the inbox of the mover, who has not taken its mail.
    fn undelivered(&self) -> Option<Diagnosis> {
        let mover = self.review.mover_of(self.key)?;
        if matches!(&self.review.phase, Phase::Reviewing(open) if open.taken_at.is_some()) {
            return None;
        }
        let alert = self.status.unwritable_inbox(mover.as_str())?;
        let Problem { what, fix, .. } = of_alert(alert, &self.commands);
        let mut fixes = vec![fix];
        fixes.extend(self.of_phase().fixes);
        Some(Diagnosis {
            kind: Missing::Mailbox,
            missing: Some(format!(
                "the operator must let the daemon deliver to {mover}: {what}"
            )),
            fixes,
        })
    }

    /// The diagnosis if no host handles the mail of the agent that has to act.
    fn homeless(&self) -> Option<Diagnosis> {
        let mover = self.review.mover_of(self.key)?;
        let (missing, fix) = self.status.homeless(mover, &self.commands)?;
        Some(Diagnosis {
            kind: Missing::Home,
            missing: Some(missing),
            fixes: vec![fix],
        })
    }

    fn unserved(&self) -> Option<Diagnosis> {
        if !self.status.is_unserved() {
            return None;
        }
        let overdue = self.review.deadline().filter(|(at, _)| *at <= self.now);
        let missing = match (
            self.status.unjudged.for_review(self.key, self.review),
            overdue,
        ) {
            (Some(waiting), _) => {
                format!(
                    "the operator must start the daemon: {}/outbox/{} waits to be judged",
                    waiting.agent, waiting.file
                )
            }
            (None, Some((at, which))) => {
                let since = at.format("%Y-%m-%dT%H:%M:%SZ");
                format!(
                    "the operator must start the daemon: the deadline `{}` passed at {since}",
                    which.word()
                )
            }
            (None, None) => return None,
        };
        let fix = self
            .commands
            .operator("serve", "judges the mail there and applies the deadlines");
        Some(Diagnosis {
            kind: Missing::Daemon,
            missing: Some(missing),
            fixes: vec![fix],
        })
    }

    /// The diagnosis if the mover's newest message was refused after everything else that happened here.
    fn correction(&self) -> Option<Diagnosis> {
        let mover = self.review.mover_of(self.key)?;
        let is_newest = |open: &&OpenRefusal| {
            let is_since = open.refusal.at >= self.review.since;
            open.agent() == mover && open.is_about(self.key, self.review) && is_since
        };
        let open = self.status.dead.iter().rfind(is_newest)?;
        let code = open.refusal.code;
        let missing = format!(
            "{mover} must correct its refused {}: {} ({})",
            open.file(),
            open.fix()
                .as_deref()
                .unwrap_or_else(|| code.sentence().trim_end_matches('.')),
            code,
        );
        // The commands that send the message again come before the one that explains the refusal.
        let mut fixes: Vec<FixCommand> = match &self.review.phase {
            Phase::Reviewing(_) => self.answers(),
            Phase::Awaiting { .. }
            | Phase::Fixing { .. }
            | Phase::Addressed { .. }
            | Phase::Approved(_)
            | Phase::Escalated(_)
            | Phase::Closed(_) => self.of_phase().fixes,
        };
        fixes.retain(|fix| matches!(&fix.actor, Actor::Agent(agent) if agent == mover));
        fixes.extend([
            self.commands.agent(
                mover,
                &open.show(),
                "shows the refused message and the reason",
            ),
            self.commands.agent(
                mover,
                &format!("explain {code}"),
                "shows the rule, with a corrected example",
            ),
        ]);
        Some(Diagnosis {
            kind: Missing::Correction,
            missing: Some(missing),
            fixes,
        })
    }

    fn of_phase(&self) -> Diagnosis {
        let (author, reviewer) = (&self.key.author, self.reviewer());
        if self.is_given_up() {
            return self.nothing();
        }
        let is_authors = self.review.mover() == Side::Author;
        if let Some(over) = is_authors.then(|| self.nobody_asks(None)).flatten() {
            return over;
        }
        match &self.review.phase {
            Phase::Awaiting { .. } => {
                let missing = format!("{author} must request round {}", self.review.round);
                self.author(Missing::Request, missing, &[self.request("BRANCH")])
            }
            Phase::Addressed { .. } => {
                let missing = format!("{author} must request round {}", self.review.round + 1);
                self.author(Missing::Request, missing, &[self.request("BRANCH")])
            }
            Phase::Fixing { .. } if self.review.open_blockers() == 0 => {
                let missing =
                    format!("{author} must request the next round: nothing blocking is open");
                self.author(
                    Missing::Request,
                    missing,
                    &[self.request("BRANCH"), self.addressed()],
                )
            }
            Phase::Fixing { .. } => {
                let open = self.review.open_blockers();
                let findings = if open == 1 {
                    "the blocking finding".to_owned()
                } else {
                    format!("{open} blocking findings")
                };
                let missing = format!("{author} must fix {findings} and report back");
                self.author(Missing::Report, missing, &[self.addressed()])
            }
            Phase::Reviewing(open) => self.reviewing(open, reviewer.as_str()),
            Phase::Approved(approval) => self.approved(approval),
            Phase::Escalated(why) => self.escalated(why),
            Phase::Closed(why) => self.closed(*why),
        }
    }

    fn reviewer(&self) -> &AgentName {
        self.review.reviewer(self.key)
    }

    fn author(&self, kind: Missing, missing: String, words: &[(String, &str)]) -> Diagnosis {
        let fixes = words
            .iter()
            .map(|(words, what)| self.commands.agent(&self.key.author, words, *what))
            .collect();
        Diagnosis {
            kind,
            missing: Some(missing),
            fixes,
        }
    }

    fn request(&self, branch: &str) -> (String, &'static str) {
        let words = format!(
            "send review_request --to {} {} --branch {branch} --diff-summary TEXT",
            self.reviewer(),
            of_pr(self.key)
        );
        (words, "asks for the next round")
    }

    fn addressed(&self) -> (String, &'static str) {
        let words = format!(
            "send review_addressed --to {} --pr {} --commit-sha SHA --changes-summary TEXT",
            self.reviewer(),
            self.key.pr
        );
        (words, "reports what was fixed; then comes the next request")
    }

    fn reviewing(&self, open: &Invocation, reviewer: &str) -> Diagnosis {
        let last = if self.review.is_last_round() {
            " (last round)"
        } else {
            ""
        };
        let attempts = match open.attempts_left {
            1 => " and 1 attempt left".to_owned(),
            left => format!(" and {left} attempts left"),
        };
        let turns = format!("{} of {} turns", open.turns_left(), open.turns.get());
        let failed = self
            .review
            .failed
            .as_ref()
            .map_or_else(String::new, |failed| {
                let (who, why) = (&failed.reviewer, failed.failure.sentence());
                format!("; the last start failed, that of {who}: {why}")
            });
        let used_up = self
            .status
            .index
            .state()
            .used_up(self.policy, self.reviewer(), &[], self.now)
            .map_or_else(String::new, |used_up| {
                let until = used_up.until.format("%Y-%m-%dT%H:%M:%SZ");
                format!("; {used_up}, so the daemon does not start its command before {until}")
            });
        let (kind, missing) = match open.taken_at {
            None => (
                Missing::Take,
                format!("{reviewer} must take the request{last}{used_up}"),
            ),
            Some(_) => {
                let missing = format!(
                    "{reviewer} must answer the request{last}: {turns}{attempts}{failed}{used_up}"
                );
                (Missing::Response, missing)
            }
        };
        let pr = self.of_reviewer();
        let agent = |words: String, what: &str| self.commands.agent(self.reviewer(), &words, what);
        let take = (kind == Missing::Take).then(|| {
            let words = format!("take {}", quoted(open.request.as_str().as_ref()));
            agent(words, "takes it; its seconds start then")
        });
        let mut fixes: Vec<FixCommand> = take.into_iter().collect();
        fixes.push(agent(
            format!("brief {pr}"),
            "shows this round's request and the legal actions",
        ));
        fixes.extend(self.answers());
        Diagnosis {
            kind,
            missing: Some(missing),
            fixes,
        }
    }

    /// The commands that answer the open request.
    fn answers(&self) -> Vec<FixCommand> {
        let pr = self.of_reviewer();
        let agent = |words: String, what: &str| self.commands.agent(self.reviewer(), &words, what);
        let mut fixes = vec![agent(
            format!("feedback {pr} --findings FILE"),
            "answers with findings",
        )];
        let (policy, key, review) = (self.policy, self.key, self.review);
        let state = self.status.index.state();
        let mut threads = review.threads.values();
        if state.may_approve(policy, key, review) {
            let words = format!("lgtm {pr}");
            fixes.push(agent(words, "approves, if the quality gate passes"));
        } else if !threads.any(review::Thread::blocks_approval) {
            let what = "approves what no agent may";
            fixes.push(self.commands.person(&self.named("review approve"), what));
        }
        fixes
    }

    /// Names the review for its reviewer: by number, by repository where it has one, and by author where several
    /// authors ask about that number.
    fn of_reviewer(&self) -> String {
        let (ReviewKey { pr, author, .. }, reviewer) = (self.key, self.reviewer());
        let mut reviews = self.status.index.state().reviews_of(pr);
        let asks_too = |(key, review): (&ReviewKey, &Review)| {
            review.reviewer(key) == reviewer && key.author != *author
        };
        let name = if reviews.any(asks_too) {
            format!(" --author {author}")
        } else {
            String::new()
        };
        format!("{pr}{}{name}", of_repo(self.key))
    }

    /// The obstacles to an approval of the review.
    fn gate(&self) -> Vec<String> {
        if self.review.phase.is_final() && self.review.mover() != Side::Person {
            return Vec::new();
        }
        let mut gate: Vec<String> = self
            .review
            .threads
            .iter()
            .filter(|(_, thread)| thread.blocks_approval() || thread.is_open())
            .map(|(id, thread)| threads::in_the_way(id, thread))
            .collect();
        if self.review.phase.invocation().is_some() {
            let (policy, key, review) = (self.policy, self.key, self.review);
            let state = self.status.index.state();
            gate.extend(state.lgtm_barred(policy, key, review));
            let commands = review::commands_so_far(policy, review).into_iter();
            let unmet = commands.filter(|(_, run)| !run.is_some_and(ObservedRun::passed));
            gate.extend(
                unmet.map(|(command, _)| format!("`{command}` must be recorded as passing")),
            );
        }
        gate
    }

    fn otherwise(&self) -> (String, Option<DateTime<Utc>>) {
        let Some((at, which)) = self.review.deadline() else {
            return ("does nothing: no deadline runs".to_owned(), None);
        };
        let what = match which {
            Deadline::PickUp => "hands the review to a person (reviewer_timeout)",
            Deadline::Runtime => {
                "writes the feedback itself and hands the review to a person (reviewer_budget_exceeded)"
            }
            Deadline::Author => "hands the review to a person (author_timeout)",
        };
        (what.to_owned(), Some(at))
    }
}

#[cfg(test)]
mod tests;
