//! Reads a workspace once and follows it: the ledger record by record, and whatever else the model needs. It takes no
//! lock and changes nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use inspect::dead_letter::refusals::RefusalLog;
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

/// A workspace as of the last look.
#[derive(Debug)]
pub struct Follower {
    root: PathBuf,
    tail: Tail,
    standing: WorkspaceStatus,
    policy: Policy,
    past: Past,
    runs: Runs,
    agents: Vec<AgentRow>,
}

/// Everything that only the whole ledger tells.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) timelines: Timelines,
    pub(crate) histories: Histories,
    pub(crate) tally: HistoryTally,
    /// The newest decisions, oldest first.
    pub(crate) decisions: VecDeque<LogLine>,
    refusals: RefusalLog,
}

impl Follower {
    /// Reads the whole ledger once.
    pub fn open(root: &Path) -> Result<Self, SpoolError> {
        let (index, folded) = LedgerIndex::read(root)?;
        let end = folded.verified.records;
        let mut past = Past::new(root);
        spool::read_ledger(root, &mut |entry| {
            // What was written since comes again by the tail.
            if entry.seq > end {
                return Ok(());
            }
            past.refusals.note_past(entry)?;
            past.note(entry, entry.seq + DECISIONS as u64 > end)
        })?;
        let mut follower = Self {
            root: root.to_owned(),
            tail: Tail::open(root, Since::Record(end))?,
            standing: WorkspaceStatus {
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
        follower.look()?;
        Ok(follower)
    }

    /// Looks again, and returns whether the ledger has changed. Reads outboxes, dead letters, runs and the config
    /// every time. Reads a ledger that was restored to an older state again from the start.
    pub fn refresh(&mut self) -> Result<bool, SpoolError> {
        match self.look() {
            Err(SpoolError::Replaced { .. }) => {
                *self = Self::open(&self.root)?;
                Ok(true)
            }
            seen => seen,
        }
    }

    fn look(&mut self) -> Result<bool, SpoolError> {
        // First what waits, then what was judged: a message that is judged in between is counted twice, not never.
        self.standing.agents = directory::agents(&self.root)?;
        self.standing.unjudged = PendingMail::look(&self.root, &self.standing.agents);
        let (past, index) = (&mut self.past, &mut self.standing.index);
        let count = self.tail.read(&mut |entry| {
            index.add(entry)?;
            past.refusals.note(entry)?;
            past.note(entry, true)
        })?;
        if let Some(verified) = self.tail.verified() {
            self.standing.folded.verified = verified.clone();
        }
        self.standing.dead = self.past.refusals.open(self.standing.index.state());
        self.standing.serving = spool::is_served(&self.root);
        self.standing.alerts = operator_alerts::read(&self.root);
        self.standing.heard = heartbeat::read(&self.root);
        let config = Config::load(&self.root).unwrap_or_default();
        self.standing.host = config.ledger.host.clone();
        self.policy = config.policy(self.standing.agents.iter().cloned());
        self.runs.look(&self.root);
        self.agents = AgentRow::all(&self.standing, &config, &self.runs);
        Ok(count > 0)
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The number of the last record that was read.
    pub fn seq(&self) -> u64 {
        self.tail.seq()
    }

    /// The status that the commands read of the same workspace.
    pub fn standing(&self) -> &WorkspaceStatus {
        &self.standing
    }

    /// The whole mailroom. `spell` writes a command as its reader has to type it.
    pub fn overview(&self, now: DateTime<Utc>, spell: &Spell<'_>) -> Overview {
        Overview::of(self, now, spell)
    }

    /// One review in detail, if there is one with that key.
    pub fn review(
        &self,
        key: &ReviewKey,
        now: DateTime<Utc>,
        spell: &Spell<'_>,
    ) -> Option<ReviewDetail> {
        let (key, review) = self
            .standing
            .index
            .state()
            .reviews_of(&key.pr)
            .find(|(known, _)| *known == key)?;
        Some(ReviewDetail::of(self, key, review, now, spell))
    }

    /// The key of the review that is written like this in a row: `#86 claude -> codex`.
    pub fn key_of(&self, review: &str) -> Option<&ReviewKey> {
        self.past.timelines.key_of(review)
    }

    /// The keys of the reviews a person means.
    pub fn keys_of(&self, which: &Which) -> Vec<&ReviewKey> {
        let selected = self.standing.selected(which);
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
    fn new(root: &Path) -> Self {
        Self {
            timelines: Timelines::default(),
            histories: Histories::default(),
            tally: HistoryTally::default(),
            decisions: VecDeque::new(),
            refusals: RefusalLog::new(root),
        }
    }

    fn note(&mut self, entry: &Entry, is_among_newest: bool) -> Result<(), VisitError> {
        let (record, at) = index::decision(entry)?;
        for step in record.steps() {
            self.histories.follow(&step.review);
        }
        self.histories.note_record(entry, &record);
        self.tally.note(&record, at);
        self.timelines.note(entry, &record, at);
        if is_among_newest {
            self.tell(entry, record);
        }
        Ok(())
    }

    fn tell(&mut self, entry: &Entry, record: Record) {
        if self.decisions.len() == DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(LogLine::of(entry, record));
    }
}
