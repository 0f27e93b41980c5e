//! The bounds of each walk: which limits, which threads, which messages and events. Together they
//! cover the rules; each by itself is small enough to be walked to its end.

mod all;

use review::{Act, Policy, Profile, ThreadMode};

use crate::describe::{Say, Slot};

pub use self::all::{all, small};

/// What is walked.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// One or two words for it.
    pub(crate) name: &'static str,
    /// The project's rules.
    pub(crate) policy: Policy,
    /// Generations that are walked; a step beyond is cut off and counted.
    pub(crate) generations: u32,
    /// The threads there can be.
    pub(crate) slots: &'static [Slot],
    /// What can be said of each.
    pub(crate) says: &'static [Say],
    /// Whether odd responses are combined with everything that is said, not with the first two
    /// sayings alone.
    pub(crate) odd: bool,
    /// The reviewers the author asks.
    pub(crate) reviewers: &'static [&'static str],
    /// The pull requests of the author.
    pub(crate) prs: &'static [&'static str],
    /// The body lines of the author's requests.
    pub(crate) requests: &'static [&'static str],
    /// The body lines of what the author reports.
    pub(crate) reports: &'static [&'static str],
    /// Whether requests are replaced.
    pub(crate) supersedes: bool,
    /// The reviewer's turns per round.
    pub(crate) turns: u16,
    /// Whether turns and takes are counted.
    pub(crate) counts: bool,
    /// Whether the pull request moves.
    pub(crate) pulls: bool,
    /// Who opened the pull request, by its name at the forge.
    pub(crate) pull_author: Option<&'static str>,
    /// What people decide.
    pub(crate) acts: Vec<Act>,
    /// How often people decide.
    pub(crate) decisions: u8,
    /// Whether the daemon crashes between commit and delivery.
    pub(crate) crashes: bool,
    /// How many findings, those of the first slots, were handed off to the author as one task before the
    /// walk; 0 is no task.
    pub(crate) fixes: usize,
}

impl Bounds {
    /// The walk's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The most rounds a review can have.
    pub(crate) fn rounds_max(&self) -> u32 {
        (u32::from(self.policy.rounds.get()) + u32::from(self.decisions)) * self.generations + 1
    }

    /// Whether no slot can be told from another but by its name.
    pub(crate) fn is_symmetric(&self) -> bool {
        let are_alike =
            self.slots.len() > 1 && self.slots.iter().all(|slot| *slot == self.slots[0]);
        are_alike && !self.pulls && self.fixes == 0 && self.acts.is_empty() && !self.crashes
    }

    /// In a line: what the numbers behind it belong to.
    pub(crate) fn line(&self) -> String {
        let Self {
            policy,
            generations,
            slots,
            says,
            ..
        } = self;
        let severities: Vec<_> = slots.iter().map(|slot| slot.severity.to_string()).collect();
        let mode = match policy.threads {
            ThreadMode::Inferred => "inferred",
            ThreadMode::Explicit => "explicit",
        };
        let mut more = Vec::new();
        let mut note = |is_so: bool, text: String| more.extend(is_so.then_some(text));
        note(
            self.reviewers.len() > 1,
            format!("{} reviewers", self.reviewers.len()),
        );
        note(
            self.prs.len() > 1,
            format!("{} pull requests", self.prs.len()),
        );
        note(self.supersedes, "replacements".to_owned());
        note(self.counts, format!("{} turns", self.turns));
        note(self.pulls, "pull request events".to_owned());
        note(policy.profile == Profile::Advisory, "advisory".to_owned());
        note(self.fixes > 0, "fix pull request".to_owned());
        note(
            self.decisions > 0,
            format!(
                "{} of {} decisions of people",
                self.decisions,
                self.acts.len()
            ),
        );
        note(self.crashes, "crashes".to_owned());
        let more = if more.is_empty() {
            String::new()
        } else {
            format!("; {}", more.join(", "))
        };
        format!(
            "{} rounds, {generations} generations, threads {} ({mode}), {} sayings each{more}",
            policy.rounds,
            severities.join(" "),
            says.len()
        )
    }
}
