//! The fate of every refusal whose files are still in `dead_letter/`: open, so that somebody has to act, or
//! corrected, taken away, or settled with its review.
//!
//! `status`, `why`, `problems` and `dead-letter list` all take their open refusals from here.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};
use message_schema::line::is_one_line;
use message_schema::{Code, Report};
use review::{Judgement, Phase, Record, RefusedMessage, Review, ReviewKey, State};
use serde::Serialize;
use spool::{Away, Content, Entry, FileName, Layout, Mailbox, Original, SpoolError, VisitError};
use workspace::index::{self, Unreadable};
use workspace::ledger_end::{self, RECORDS_AT_FIRST, Searched};
use workspace::shell::quoted;

use crate::status::pending::ClaimedReview;

/// The number of newest refusals whose file is read for the pull request it names. The review that the daemon found is
/// known for all.
const LOOKED_INTO_MAX: usize = 100;

/// A message that was refused, and what became of it.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The time of the refusal.
    pub at: DateTime<Utc>,
    /// The agent that sent it.
    pub agent: AgentName,
    /// The name it has in `dead_letter/`.
    pub file: String,
    /// The name of its report there.
    pub report_file: Option<String>,
    /// The code of the refusal.
    pub code: Code,
    /// The fix that its report names.
    pub fix: Option<String>,
    /// The review the daemon found it to belong to.
    pub review: Option<String>,
    /// The pull request it names, if it was among the newest and so was read.
    pub pr: Option<PrNumber>,
    /// The correction, if one was accepted.
    pub corrected: Option<Correction>,
    /// True if the refused file is still there; its sender removes it when done with it.
    is_there: bool,
    /// True if the file was already read for the pull request it names.
    is_looked_into: bool,
}

/// The message that was accepted in place of a refused one.
#[derive(Clone, Copy, Debug)]
pub struct Correction {
    /// The record that accepted it.
    pub by: u64,
    /// The link between both.
    pub same: Same,
}

/// The link between a correction and the refused message of the same sender, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// By the message's id.
    Id,
    /// By the file's name.
    File,
    /// By the review it belongs to.
    Review,
}

impl Same {
    /// Describes the accepted message by this link.
    pub fn words(self) -> &'static str {
        match self {
            Self::Id => "the same id",
            Self::File => "a file of the same name",
            Self::Review => "a message to the same review",
        }
    }
}

impl Refusal {
    /// Returns the words of the command that shows it. Does not repeat a name that could steer a terminal or looks like
    /// an option.
    pub fn show(&self) -> String {
        if is_one_line(&self.file) && !self.file.starts_with('-') {
            return format!("dead-letter show {}", quoted(self.file.as_ref()));
        }
        "dead-letter list".to_owned()
    }

    /// True if somebody has to act on it.
    pub fn is_open(&self, state: &State) -> bool {
        self.is_there && self.corrected.is_none() && !self.is_over(state)
    }

    /// True if a correction is useless by now: its review was closed, or was approved or escalated since.
    fn is_over(&self, state: &State) -> bool {
        let of_pr = self.named_pr();
        let reviews = || {
            let of_pr = of_pr.iter().flat_map(|pr| state.reviews_of(pr));
            of_pr.filter(|(key, _)| self.is_about(key))
        };
        let has_ended = |review: &Review| match review.phase {
            Phase::Closed(_) => true,
            Phase::Approved(_) | Phase::Escalated(_) => review.since > self.at,
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => false,
        };
        reviews().next().is_some() && reviews().all(|(_, review)| has_ended(review))
    }

    /// The pull request of its review, which the report writes like `#86 claude -> codex`; else the one the file names.
    fn named_pr(&self) -> Option<PrNumber> {
        let number = |review: &str| review.split_once('#')?.1.split(' ').next()?.parse().ok();
        let of_review = self.review.as_deref().and_then(number);
        of_review.or_else(|| self.pr.clone())
    }

    /// True if it belongs to a review: the daemon found so, or it names the pull request and comes from one of the two
    /// agents.
    pub fn is_about(&self, key: &ReviewKey) -> bool {
        match (&self.review, &self.pr) {
            // Search for the number first: cheaper than formatting the whole key.
            (Some(review), _) => review.contains(key.pr.as_str()) && *review == key.to_string(),
            (None, Some(pr)) => {
                pr.same_pr(&key.pr) && (self.agent == key.author || self.agent == key.reviewer)
            }
            (None, None) => false,
        }
    }
}

/// Lists the refusals of these agents whose file or report is still in `dead_letter/`, oldest first. Reads back only
/// until every file there is explained: nothing if there are no files, the whole ledger for a file that the daemon did
/// not put there.
pub fn read(root: &Path, agents: &[AgentName]) -> Result<Vec<Refusal>, SpoolError> {
    read_back(root, agents, RECORDS_AT_FIRST)
}

/// Like [`read`], but starts with this many records.
pub fn read_back(
    root: &Path,
    agents: &[AgentName],
    records: u64,
) -> Result<Vec<Refusal>, SpoolError> {
    let present = FilesThere::list(root, agents);
    if present.0.is_empty() {
        return Ok(Vec::new());
    }
    let found = ledger_end::search(root, records, |tail, searched| {
        let (mut log, mut unexplained) = (RefusalLog::new(root), present.clone());
        tail.read(&mut |entry| {
            if !present.has_some_of(entry) {
                return Ok(());
            }
            unexplained.explain(entry);
            log.note_past(entry).map_err(VisitError::from)
        })?;
        let is_enough = searched == Searched::All || unexplained.0.values().all(HashSet::is_empty);
        Ok(is_enough.then_some(log))
    })?;
    Ok(found.map_or_else(Vec::new, |mut log| {
        log.look();
        log.refusals
    }))
}

/// The files in the `dead_letter/` of each agent that has any.
#[derive(Clone)]
struct FilesThere(HashMap<String, HashSet<PathBuf>>);

impl FilesThere {
    /// A directory that cannot be read counts as empty.
    fn list(root: &Path, agents: &[AgentName]) -> Self {
        let files = agents.iter().filter_map(|agent| {
            let listed = std::fs::read_dir(super::directory(root, agent)).ok()?;
            let names: HashSet<PathBuf> = listed
                .flatten()
                .map(|file| file.file_name().into())
                .collect();
            (!names.is_empty()).then(|| (agent.to_string(), names))
        });
        Self(files.collect())
    }

    /// True if the record is about a message of an agent with a file there.
    fn has_some_of(&self, entry: &Entry) -> bool {
        let original = entry.original.as_ref();
        original.is_some_and(|original| self.0.contains_key(&original.outbox))
    }

    /// Removes the files that this record put there.
    fn explain(&mut self, entry: &Entry) {
        let Some(original) = &entry.original else {
            return;
        };
        let Some(names) = self.0.get_mut(&original.outbox) else {
            return;
        };
        if let Away::DeadLetter(file) = &original.away {
            names.remove::<Path>(file.as_ref());
        }
        if let Some((file, _)) = report(entry) {
            names.remove::<Path>(file.as_ref());
        }
    }
}

/// Collects refusals while the ledger is read and as it grows.
#[derive(Debug)]
pub struct RefusalLog {
    root: PathBuf,
    refusals: Vec<Refusal>,
    /// The refusals that each mark can correct, by index.
    marks: HashMap<RefusalMark, Vec<usize>>,
}

/// The agent, the kind, and the id, name or review itself.
type RefusalMark = (String, Same, String);

impl RefusalLog {
    /// Returns a log before the first record.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            refusals: Vec::new(),
            marks: HashMap::new(),
        }
    }

    /// Takes in a record whose files were delivered long ago: if they are gone, the refusal is settled.
    pub fn note_past(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        if self.is_gone(entry) {
            return Ok(());
        }
        self.note(entry)
    }

    /// Takes in a record whose files may not be there yet.
    pub fn note(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        let Some(original) = &entry.original else {
            return Ok(());
        };
        match &original.away {
            Away::Sent(_) => self.correct(entry, original),
            Away::DeadLetter(file) => self.add(entry, original, file)?,
        }
        Ok(())
    }

    /// Returns the refusals that are open now, oldest first.
    pub fn open(&mut self, state: &State) -> Vec<Refusal> {
        self.look();
        let open = self
            .refusals
            .iter()
            .filter(|refusal| refusal.is_open(state));
        open.cloned().collect()
    }

    /// Checks which files are there, and reads the newest uncorrected ones for the pull request they name.
    fn look(&mut self) {
        let root = &self.root;
        let mut looked_into = 0;
        for refusal in self.refusals.iter_mut().rev() {
            let path = super::directory(root, &refusal.agent).join(&refusal.file);
            refusal.is_there = path.symlink_metadata().is_ok();
            if refusal.corrected.is_some() || looked_into == LOOKED_INTO_MAX {
                continue;
            }
            looked_into += 1;
            if refusal.is_there && !refusal.is_looked_into {
                refusal.pr = ClaimedReview::of(&path).pr;
                refusal.is_looked_into = true;
            }
        }
    }

    /// True if neither the refused file nor its report is in `dead_letter/`.
    fn is_gone(&self, entry: &Entry) -> bool {
        let Some(Original {
            outbox,
            away: Away::DeadLetter(file),
            ..
        }) = &entry.original
        else {
            return false;
        };
        let directory = Layout::new(&self.root).mailbox(&Mailbox::DeadLetter(outbox.clone()));
        let lies_there = |name: &FileName| directory.join(name).symlink_metadata().is_ok();
        !lies_there(file) && !report(entry).is_some_and(|(file, _)| lies_there(file))
    }

    fn correct(&mut self, entry: &Entry, original: &Original) {
        for mark in marks(original, entry.id.as_deref(), entry.review.as_deref()) {
            let same = mark.1;
            for at in self.marks.remove(&mark).unwrap_or_default() {
                let corrected = &mut self.refusals[at].corrected;
                // Marks of one entry come id first; a later entry that matches by id replaces a weaker link.
                if corrected.is_none() || same == Same::Id {
                    *corrected = Some(Correction {
                        by: entry.seq,
                        same,
                    });
                }
            }
        }
    }

    fn add(
        &mut self,
        entry: &Entry,
        original: &Original,
        file: &FileName,
    ) -> Result<(), Unreadable> {
        let (record, at) = index::decision(entry)?;
        let Record::Judged(Judgement::Refused(RefusedMessage { from, code, .. })) = record else {
            return Ok(());
        };
        let (report_file, text) = report(entry).unzip();
        let report = text.and_then(|text| Report::from_yaml(text.as_bytes()).ok());
        let review = report.as_ref().and_then(|report| report.review.clone());
        for mark in marks(original, entry.id.as_deref(), review.as_deref()) {
            self.marks
                .entry(mark)
                .or_default()
                .push(self.refusals.len());
        }
        self.refusals.push(Refusal {
            at,
            agent: from,
            file: raw(file),
            report_file: report_file.map(raw),
            code,
            fix: report.and_then(|report| {
                report
                    .violations
                    .into_iter()
                    .find_map(|violation| violation.fix)
            }),
            review,
            pr: None,
            corrected: None,
            is_there: false,
            is_looked_into: false,
        });
        Ok(())
    }
}

/// The name on disk; `Display` escapes it for terminals.
fn raw(name: &FileName) -> String {
    name.as_ref().to_string_lossy().into_owned()
}

fn marks(
    original: &Original,
    id: Option<&str>,
    review: Option<&str>,
) -> impl Iterator<Item = RefusalMark> {
    let mark = |same, text: &str| (original.outbox.clone(), same, text.to_owned());
    let id = id.map(|id| mark(Same::Id, id));
    let review = review.map(|review| mark(Same::Review, review));
    [
        id,
        Some(mark(Same::File, &original.file.to_string())),
        review,
    ]
    .into_iter()
    .flatten()
}

/// The report's name and its text in the record: the copy in `dead_letter/` may have been changed.
fn report(entry: &Entry) -> Option<(&FileName, &str)> {
    entry
        .deliveries
        .iter()
        .find_map(|delivery| match (&delivery.mailbox, &delivery.content) {
            (Mailbox::DeadLetter(_), Content::Text(text)) => Some((&delivery.file, text.as_str())),
            (
                Mailbox::DeadLetter(_)
                | Mailbox::Inbox(_)
                | Mailbox::Packets(_)
                | Mailbox::PullRequest(_),
                Content::Original | Content::Text(_) | Content::Withdrawn(_),
            ) => None,
        })
}
