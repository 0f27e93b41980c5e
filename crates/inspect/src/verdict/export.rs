//! Selects the records of a ledger that concern a pull request: all that move or mention one of its reviews, with any
//! reviewer, since generations and reviews are counted over all of them; and the records that handed off the tasks it
//! fixes.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, SecondsFormat, Utc};
use message_schema::id::{AgentName, PrNumber, Repo};
use review::{Event, Record, TaskId};
use spool::{Digest, Entry, SpoolError};
use workspace::config::{self, Config};
use workspace::directory;
use workspace::index::{self, LedgerIndex};

use super::approval::{self, NoAnswer};
use super::file::{self, Anchor, Header, PolicyThen, RecordUse, VerdictFile};
use super::proof::{self, Unfounded};
use super::summary::EvidenceSummary;

/// A verdict file, and what it shows.
#[derive(Debug)]
pub struct Exported {
    /// The file.
    pub bytes: Vec<u8>,
    /// The digest of the whole file.
    pub seal: Digest,
    /// The end of the ledger.
    pub anchor: Anchor,
    /// The number of records in it.
    pub records: usize,
    /// The evidence of each review that counts, by its key.
    pub evidence: BTreeMap<String, EvidenceSummary>,
    /// The reason why judging the records again gives something else: the config was changed since. The exporter should
    /// learn it before a verifier does.
    pub unfounded: Option<Unfounded>,
}

/// The reason why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger or the workspace cannot be read.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The config cannot be read or used.
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// A ledger line that we would not write byte for byte as it is.
    #[error(
        "record {seq} of the ledger was written in another form, and cannot be copied byte for byte"
    )]
    OtherForm {
        /// The record's number.
        seq: u64,
    },
    /// There is no such review.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

/// Copies the records that concern a pull request, without the lock.
pub fn export(
    root: &Path,
    pr: &PrNumber,
    repo: Option<&Repo>,
    reviewers: &[AgentName],
    now: DateTime<Utc>,
) -> Result<Exported, ExportError> {
    let pr = pr.to_canonical();
    let (index, _) = LedgerIndex::read(root)?;
    approval::find(index.state(), &pr, repo, reviewers)?;
    let toml = text_of_config(root)?;
    let agents = directory::agents(root)?;
    let mut copy = Copy {
        pr: pr.clone(),
        picked: Vec::new(),
        dispatches: BTreeMap::new(),
        last: None,
        bad: None,
    };
    let verified = spool::read_ledger(root, &mut |entry| copy.note(entry).map_err(Into::into))?;
    copy.check(verified.last);
    if let Some(seq) = copy.bad {
        return Err(ExportError::OtherForm { seq });
    }
    let records = copy.records();
    let anchor = Anchor {
        records: verified.records,
        last: verified.last,
    };
    let header = Header {
        pr,
        repo: repo.cloned(),
        reviewers: reviewers.to_vec(),
        exported_at: now.to_rfc3339_opts(SecondsFormat::Secs, true),
        by: format!("settled {}", env!("CARGO_PKG_VERSION")),
        ledger: anchor.clone(),
        policy: PolicyThen {
            taken: "at_export".to_owned(),
            toml,
        },
        agents,
        evidence: BTreeMap::new(),
    };
    let mut file = VerdictFile {
        header,
        records,
        seal: Digest::ZERO,
    };
    let proof = proof::prove(&file);
    if let Ok(proof) = &proof {
        file.header.evidence = proof.evidence(&file.header);
    }
    let (bytes, seal) = file::write(&file.header, &file.records);
    Ok(Exported {
        bytes,
        seal,
        anchor,
        records: file.records.len(),
        evidence: file.header.evidence,
        unfounded: proof.err(),
    })
}

/// The text of a usable config.
fn text_of_config(root: &Path) -> Result<Option<String>, config::ConfigError> {
    let path = root.join(config::FILE);
    let text = config::text(&path)?;
    if let Some(text) = &text {
        Config::parse(text, &path)?;
    }
    Ok(text)
}

/// The records found so far.
struct Copy {
    pr: PrNumber,
    picked: Vec<(Entry, Vec<TaskId>)>,
    /// Every record of another pull request that handed something off, by task.
    dispatches: BTreeMap<TaskId, Entry>,
    /// The previous record, if it may be copied.
    last: Option<(u64, Digest)>,
    /// The first record that cannot be copied.
    bad: Option<u64>,
}

impl Copy {
    fn note(&mut self, entry: &Entry) -> Result<(), index::Unreadable> {
        self.check(entry.prev);
        let (record, _) = index::decision(entry)?;
        let steps = record.steps();
        let concerns = steps.iter().any(|step| step.review.pr == self.pr)
            || event(&record)
                .and_then(Event::pr)
                .is_some_and(|pr| pr.to_canonical() == self.pr);
        let tasks: Vec<TaskId> = tasks(&record).collect();
        if concerns || !tasks.is_empty() {
            self.last = Some((entry.seq, Digest::of(&entry.to_line())));
        }
        if concerns {
            let fixes = steps.iter().filter_map(|step| step.fixes.clone()).collect();
            self.picked.push((entry.clone(), fixes));
        } else {
            self.dispatches
                .extend(tasks.into_iter().map(|task| (task, entry.clone())));
        }
        Ok(())
    }

    /// Checks the previous record: the digest that this line names must be that of the line we would write for it.
    fn check(&mut self, named: Digest) {
        if let Some((seq, digest)) = self.last.take()
            && digest != named
        {
            self.bad = self.bad.or(Some(seq));
        }
    }

    /// The records in the order of the ledger, each once.
    fn records(self) -> Vec<(RecordUse, Entry)> {
        let Self {
            picked, dispatches, ..
        } = self;
        let given = picked
            .iter()
            .flat_map(|(_, fixes)| fixes)
            .filter_map(|task| dispatches.get(task));
        let given: BTreeMap<u64, (RecordUse, Entry)> = given
            .map(|entry| (entry.seq, (RecordUse::Given, entry.clone())))
            .collect();
        let judged = picked
            .into_iter()
            .map(|(entry, _)| (entry.seq, (RecordUse::Judged, entry)));
        given
            .into_iter()
            .chain(judged)
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect()
    }
}

fn event(record: &Record) -> Option<&Event> {
    match record {
        Record::Event(record) => Some(record.event()),
        Record::Judged(_) => None,
    }
}

fn tasks(record: &Record) -> impl Iterator<Item = TaskId> {
    let handoff = record
        .happened()
        .and_then(|happened| happened.handoff.as_ref());
    handoff
        .into_iter()
        .flat_map(|handoff| &handoff.tasks)
        .map(|task| task.id.clone())
}
