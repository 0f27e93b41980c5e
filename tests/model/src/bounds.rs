//! The bounds of each walk: its limits, threads, messages and events. Together they cover the rules; each alone is
//! small enough to be walked completely.

mod all;

use review::{Act, Policy, Profile, ThreadMode};

use crate::describe::{Say, Slot};

pub use self::all::{all, small};

/// The bounds of one walk.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The walk's name, in one or two words.
    pub(crate) name: &'static str,
    /// The project's policy.
    pub(crate) policy: Policy,
    /// The number of generations to walk; a step beyond is cut off and counted.
    pub(crate) generations: u32,
    /// The threads that can exist.
    pub(crate) slots: &'static [Slot],
    /// The sayings about each.
    pub(crate) says: &'static [Say],
    /// True if odd responses are combined with every saying, not only with the first two.
    pub(crate) odd: bool,
    /// The reviewers that the author asks.
    pub(crate) reviewers: &'static [&'static str],
    /// The pull requests of the author.
    pub(crate) prs: &'static [&'static str],
    /// The body lines of the author's requests.
    pub(crate) requests: &'static [&'static str],
    /// The body lines of the author's reports.
    pub(crate) reports: &'static [&'static str],
    /// True if requests are replaced.
    pub(crate) supersedes: bool,
    /// The reviewer's turns per round.
    pub(crate) turns: u16,
    /// True if turns and takes are counted.
    pub(crate) counts: bool,
    /// True if the pull request has events.
    pub(crate) pulls: bool,
    /// The opener of the pull request, by its name at the forge.
    pub(crate) pull_author: Option<&'static str>,
    /// The decisions that people make.
    pub(crate) acts: Vec<Act>,
    /// The number of times people decide.
    pub(crate) decisions: u8,
    /// True if the daemon can crash between commit and delivery.
    pub(crate) crashes: bool,
    /// The number of findings, from the first slot on, that were handed off to the author as one task before the walk;
    /// 0 for no task.
    pub(crate) fixes: usize,
}

impl Bounds {
    /// Returns the walk's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the most rounds that a review can have.
    pub(crate) fn rounds_max(&self) -> u32 {
        (u32::from(self.policy.rounds.get()) + u32::from(self.decisions)) * self.generations + 1
    }

    /// True if slots differ only by name.
    pub(crate) fn is_symmetric(&self) -> bool {
        let are_alike =
            self.slots.len() > 1 && self.slots.iter().all(|slot| *slot == self.slots[0]);
        are_alike && !self.pulls && self.fixes == 0 && self.acts.is_empty() && !self.crashes
    }

    /// Describes the bounds in a line.
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
