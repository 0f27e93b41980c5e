//! Dead letters that nobody corrected: refusals of the ledger whose original still lies in `dead_letter/` and whose
//! sender got nothing accepted in its place since.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};
use message_schema::line::is_one_line;
use message_schema::{Code, Report};
use review::{Phase, Record, ReviewKey, State};
use spool::{Away, Content, Entry, Layout, Mailbox, Original};

use super::unjudged::About;
use crate::fold::{self, Unreadable};
use crate::shell::quoted;

/// So many of the newest are looked into for the pull request they name; what the daemon found of a message is known
/// of all.
const LOOKED_INTO_MAX: usize = 100;

/// A message that was refused and not corrected since.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    /// When it was refused.
    pub(crate) at: DateTime<Utc>,
    /// Whose it is.
    pub(crate) agent: AgentName,
    /// The name it has in `dead_letter/`.
    pub(crate) file: String,
    /// Why it was refused.
    pub(crate) code: Code,
    /// What to do about it, as its report says.
    pub(crate) fix: Option<String>,
    /// The review the daemon found it to belong to.
    pub(crate) review: Option<String>,
    /// The pull request it names, if it is one of the newest.
    pub(crate) pr: Option<PrNumber>,
}

impl DeadLetter {
    /// The words of the command that shows it. A name that would steer a terminal, or that looks like an option,
    /// is not repeated.
    pub(crate) fn show(&self) -> String {
        if is_one_line(&self.file) && !self.file.starts_with('-') {
            return format!("dead-letter show {}", quoted(self.file.as_ref()));
        }
        "dead-letter list".to_owned()
    }

    /// Whether nothing can come of it any more: its review was closed.
    pub(crate) fn is_over(&self, state: &State) -> bool {
        let reviews = || state.reviews().filter(|(key, _)| self.is_about(key));
        let is_closed = |phase: &Phase| match phase {
            Phase::Closed(_) => true,
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. }
            | Phase::Approved(_)
            | Phase::Escalated(_) => false,
        };
        reviews().next().is_some() && reviews().all(|(_, review)| is_closed(&review.phase))
    }

    /// Whether it belongs to a review: the daemon found so, or it names the pull request and is of one of the two.
    pub(crate) fn is_about(&self, key: &ReviewKey) -> bool {
        match (&self.review, &self.pr) {
            // The number first: it is cheaper to look for than the whole is to write.
            (Some(review), _) => review.contains(key.pr.as_str()) && *review == key.to_string(),
            (None, Some(pr)) => {
                pr.same_pr(&key.pr) && (self.agent == key.author || self.agent == key.reviewer)
            }
            (None, None) => false,
        }
    }
}

/// Whether anything lies in a `dead_letter/`, so that the ledger is worth reading for it. One that cannot be
/// looked into may hold something.
pub(crate) fn is_any(root: &Path, agents: &[AgentName]) -> bool {
    agents.iter().any(|agent| {
        let directory = Layout::new(root).mailbox(&Mailbox::DeadLetter(agent.to_string()));
        std::fs::read_dir(directory).is_ok_and(|mut listed| listed.next().is_some())
    })
}

/// The refusals that stand, while the ledger is read.
#[derive(Debug)]
pub(crate) struct DeadLetters<'a> {
    root: &'a Path,
    standing: BTreeMap<u64, DeadLetter>,
    /// Under what each can be corrected.
    marks: HashMap<Mark, Vec<u64>>,
}

/// What a corrected message has in common with the refused one, beside its sender.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Mark {
    Id(String, String),
    File(String, String),
    Review(String, String),
}

impl<'a> DeadLetters<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root, standing: BTreeMap::new(), marks: HashMap::new() }
    }

    /// Follows what an entry does to them.
    pub(crate) fn note(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        let Some(original) = &entry.original else { return Ok(()) };
        match &original.away {
            Away::Sent(_) => self.correct(entry, original),
            Away::DeadLetter(file) => {
                let mailbox = Mailbox::DeadLetter(original.outbox.clone());
                let path = Layout::new(self.root).mailbox(&mailbox).join(file);
                // Whoever took it away is done with it.
                if path.symlink_metadata().is_ok() {
                    self.add(entry, original, &path)?;
                }
            }
        }
        Ok(())
    }

    /// Those that stand, oldest first.
    pub(crate) fn into_letters(self) -> Vec<DeadLetter> {
        let mut letters: Vec<DeadLetter> = self.standing.into_values().collect();
        for letter in letters.iter_mut().rev().take(LOOKED_INTO_MAX) {
            let mailbox = Mailbox::DeadLetter(letter.agent.to_string());
            letter.pr = About::of(&Layout::new(self.root).mailbox(&mailbox).join(&letter.file)).pr;
        }
        letters
    }

    fn correct(&mut self, entry: &Entry, original: &Original) {
        for mark in marks(original, entry.id.as_deref(), entry.review.as_deref()) {
            for seq in self.marks.remove(&mark).unwrap_or_default() {
                self.standing.remove(&seq);
            }
        }
    }

    fn add(&mut self, entry: &Entry, original: &Original, path: &Path) -> Result<(), Unreadable> {
        let (record, at) = fold::decision(entry)?;
        let Record::Refused { from, code, .. } = record else { return Ok(()) };
        let report = report(entry);
        let review = report.as_ref().and_then(|report| report.review.clone());
        for mark in marks(original, entry.id.as_deref(), review.as_deref()) {
            self.marks.entry(mark).or_default().push(entry.seq);
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fix = report.and_then(|report| report.violations.into_iter().find_map(|violation| violation.fix));
        let letter = DeadLetter { at, agent: from, file, code, fix, review, pr: None };
        self.standing.insert(entry.seq, letter);
        Ok(())
    }
}

fn marks(original: &Original, id: Option<&str>, review: Option<&str>) -> impl Iterator<Item = Mark> {
    let outbox = || original.outbox.clone();
    let id = id.map(|id| Mark::Id(outbox(), id.to_owned()));
    let review = review.map(|review| Mark::Review(outbox(), review.to_owned()));
    [Some(Mark::File(outbox(), original.file.to_string())), id, review].into_iter().flatten()
}

/// The report as the record has it: the copy in `dead_letter/` may have been changed.
fn report(entry: &Entry) -> Option<Report> {
    entry.deliveries.iter().find_map(|delivery| match (&delivery.mailbox, &delivery.content) {
        (Mailbox::DeadLetter(_), Content::Text(text)) => Report::from_yaml(text.as_bytes()).ok(),
        (
            Mailbox::DeadLetter(_) | Mailbox::Inbox(_) | Mailbox::Packets(_) | Mailbox::PullRequest(_),
            Content::Original | Content::Text(_) | Content::Withdrawn(_),
        ) => None,
    })
}
