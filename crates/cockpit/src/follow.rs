//! Reads a workspace once and follows it: the ledger record by record, and the other files the model needs. Reads without
//! the lock and changes nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use inspect::dead_letter::refusals;
use inspect::log::LogLine;
use inspect::status::WorkspaceStatus;
use inspect::status::fix::Spell;
use inspect::status::pending::PendingMail;
use inspect::status::threads::Histories;
use review::{Policy, Record, ReviewKey, Which};
use spool::{Entry, Fold as _, Since, SpoolError, Tail, VisitError};
use workspace::config::Config;
use workspace::index::{self, LedgerIndex};
use workspace::{directory, heartbeat, operator_alerts};

use crate::agents::{AgentRow, Runs};
use crate::history::HistoryTally;
use crate::timeline::Timelines;
use crate::{Overview, ReviewDetail};

/// The number of newest decisions to keep.
const DECISIONS: usize = 10;

/// A workspace as of the last refresh.
#[derive(Debug)]
pub struct Follower {
    root: PathBuf,
    tail: Tail,
    status: WorkspaceStatus,
    policy: Policy,
    past: Past,
    runs: Runs,
    agents: Vec<AgentRow>,
}

/// Everything that only the whole ledger shows.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) timelines: Timelines,
    pub(crate) histories: Histories,
    pub(crate) tally: HistoryTally,
    /// The newest decisions, oldest first.
    pub(crate) decisions: VecDeque<LogLine>,
}

impl Follower {
    /// Reads the whole ledger once.
    pub fn open(root: &Path) -> Result<Self, SpoolError> {
        let (index, folded) = LedgerIndex::read(root)?;
        let end = folded.verified.records;
        let mut past = Past::new();
        spool::read_ledger(root, &mut |entry| {
            // The tail brings later records again.
            if entry.seq > end {
                return Ok(());
            }
            let record = past.note(entry)?;
            if entry.seq + DECISIONS as u64 > end {
                past.keep(entry, record);
            }
            Ok(())
        })?;
        let mut follower = Self {
            root: root.to_owned(),
            tail: Tail::open(root, Since::Record(end))?,
            status: WorkspaceStatus {
                index,
                folded,
                serving: None,
                agents: Vec::new(),
                unjudged: PendingMail::default(),
                dead: Vec::new(),
                alerts: Vec::new(),
                host: None,
                heard: Vec::new(),
            },
            policy: Policy::default(),
            past,
            runs: Runs::default(),
            agents: Vec::new(),
        };
        follower.read_new()?;
        Ok(follower)
    }

    /// Reads what is new, and returns whether the ledger has changed. Reads outboxes, dead letters, runs and the config
    /// every time. Rereads a ledger that was restored to an older state from its start.
    pub fn refresh(&mut self) -> Result<bool, SpoolError> {
        match self.read_new() {
            Err(SpoolError::Replaced { .. }) => {
                *self = Self::open(&self.root)?;
                Ok(true)
            }
            seen => seen,
        }
    }

    fn read_new(&mut self) -> Result<bool, SpoolError> {
        // Outboxes before the ledger: a message judged in between is counted twice rather than never.
        self.status.agents = directory::agents(&self.root)?;
        self.status.unjudged = PendingMail::read(&self.root, &self.status.agents);
        let (past, index) = (&mut self.past, &mut self.status.index);
        let count = self.tail.read(&mut |entry| {
            index.add(entry)?;
            let record = past.note(entry)?;
            past.keep(entry, record);
            Ok(())
        })?;
        if let Some(verified) = self.tail.verified() {
            self.status.folded.verified = verified.clone();
        }
        self.status.dead = refusals::open(&self.root, &self.status.index);
        self.status.serving = spool::is_served(&self.root);
        self.status.alerts = operator_alerts::read(&self.root);
        self.status.heard = heartbeat::read(&self.root);
        let config = Config::load(&self.root).unwrap_or_default();
        self.status.host = config.ledger.host.clone();
        self.policy = config.policy(self.status.agents.iter().cloned());
        self.runs.refresh(&self.root);
        self.agents = AgentRow::all(&self.status, &config, &self.runs);
        Ok(count > 0)
    }

    /// Returns the workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the number of the last record read.
    pub fn seq(&self) -> u64 {
        self.tail.seq()
    }

    /// Returns the status that the commands read from the same workspace.
    pub fn status(&self) -> &WorkspaceStatus {
        &self.status
    }

    /// Returns the whole mailroom. `spell` writes a command the way its reader has to type it.
    pub fn overview(&self, now: DateTime<Utc>, spell: &Spell<'_>) -> Overview {
        Overview::of(self, now, spell)
    }

    /// Returns one review in detail, if it exists.
    pub fn review(
        &self,
        key: &ReviewKey,
        now: DateTime<Utc>,
        spell: &Spell<'_>,
    ) -> Option<ReviewDetail> {
        let (key, review) = self
            .status
            .index
            .state()
            .reviews_of(&key.pr)
            .find(|(known, _)| *known == key)?;
        Some(ReviewDetail::of(self, key, review, now, spell))
    }

    /// Returns the key of the review that a row names: `#86 claude -> codex`.
    pub fn key_of(&self, review: &str) -> Option<&ReviewKey> {
        self.past.timelines.key_of(review)
    }

    /// Returns the keys of the reviews that `which` selects.
    pub fn keys_of(&self, which: &Which) -> Vec<&ReviewKey> {
        let selected = self.status.selected(which);
        selected.into_iter().map(|(key, _)| key).collect()
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn past(&self) -> &Past {
        &self.past
    }

    pub(crate) fn agents(&self) -> &[AgentRow] {
        &self.agents
    }
}

impl Past {
    fn new() -> Self {
        Self {
            timelines: Timelines::default(),
            histories: Histories::default(),
            tally: HistoryTally::default(),
            decisions: VecDeque::new(),
        }
    }

    fn note(&mut self, entry: &Entry) -> Result<Record, VisitError> {
        let (record, at) = index::decision(entry)?;
        for step in record.steps() {
            self.histories.follow(&step.review);
        }
        self.histories.note_record(entry, &record);
        self.tally.note(&record, at);
        self.timelines.note(entry, &record, at);
        Ok(record)
    }

    /// Keeps the record among the newest ones.
    fn keep(&mut self, entry: &Entry, record: Record) {
        if self.decisions.len() == DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(LogLine::of(entry, record));
    }
}
