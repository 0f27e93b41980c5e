//! The promises of a run, each with its time: a place in the log of requests to the disk.
//!
//! A file that somebody saw, or a record that was acknowledged, is noted after it was seen, with the
//! log's length at that time. So a disk that got that much of the log got everything the promise
//! rests on.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::letters::Letter;
use crate::taker::Take;

/// The events of a run whose power is cut afterwards at every place.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Everything that was written.
    pub letters: Vec<Letter>,
    /// The place at which the workspace was ready; before that there is nothing to check.
    pub ready: usize,
    /// The place at which each file was seen first, by its path from the workspace's root.
    pub seen: BTreeMap<String, usize>,
    /// The places at which records were acknowledged in another way, each with the number of records.
    pub acknowledged: Vec<(usize, usize)>,
    /// The places at which a reader began to take a file, each with that file.
    pub takes: Vec<(usize, Take)>,
    /// The places at which a daemon ended in peace, each with the number of records there were.
    pub checkpoints: Vec<(usize, usize)>,
    /// The lines of the ledger as the run left it.
    pub ledger: Vec<Vec<u8>>,
    /// The place at which the run ended.
    pub end: usize,
}

impl History {
    /// Notes that this file was seen.
    pub fn saw(&mut self, path: String, position: usize) {
        self.seen.entry(path).or_insert(position);
    }

    /// The number of records that were promised to somebody before this place of the log.
    pub fn promised(&self, at: usize) -> usize {
        let told = self
            .acknowledged
            .iter()
            .filter(|(position, _)| *position <= at)
            .map(|(_, count)| *count);
        let mut promised = told.max().unwrap_or(0);
        for (index, line) in self.ledger.iter().enumerate().skip(promised) {
            let record: Value = serde_json::from_slice(line).unwrap_or_default();
            let is_seen =
                |path: String| self.seen.get(&path).is_some_and(|position| *position <= at);
            if files_of(&record).into_iter().any(is_seen) {
                promised = index + 1;
            }
        }
        promised
    }

    /// The number of records that had been delivered and made durable by a checkpoint before this place.
    pub fn checkpointed(&self, at: usize) -> usize {
        let before = self
            .checkpoints
            .iter()
            .filter(|(position, _)| *position <= at);
        before.map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// The history of the recovery from a cut at this place, which left this ledger after so many events.
    /// What had been promised before the cut stays promised, and at the end everything is.
    pub fn after_cut(&self, at: usize, ledger: Vec<Vec<u8>>, end: usize) -> History {
        let all = ledger.len();
        History {
            letters: self.letters.clone(),
            ready: 0,
            seen: BTreeMap::new(),
            acknowledged: vec![(0, self.promised(at).min(all)), (end, all)],
            takes: self
                .taken(at)
                .into_iter()
                .map(|take| (0, take.clone()))
                .collect(),
            checkpoints: vec![(0, self.checkpointed(at)), (end, all)],
            ledger,
            end,
        }
    }

    /// The files that readers may have taken before this place.
    pub fn taken(&self, at: usize) -> Vec<&Take> {
        self.takes
            .iter()
            .filter(|(position, _)| *position <= at)
            .map(|(_, take)| take)
            .collect()
    }
}

/// Every file a record makes or puts away, as paths from the root.
fn files_of(record: &Value) -> Vec<String> {
    let mut files = Vec::new();
    for delivery in record["deliveries"].as_array().into_iter().flatten() {
        let mailbox = delivery["mailbox"].as_str().unwrap_or_default();
        files.push(format!(
            "{}/{}",
            directory(mailbox),
            delivery["file"].as_str().unwrap_or_default()
        ));
    }
    let original = &record["original"];
    if let (Some(agent), Some(away)) = (original["outbox"].as_str(), original["away"].as_str()) {
        files.push(format!("agents/{agent}/{away}"));
    }
    files
}

/// The directory of a mailbox as a record names it, from the root.
pub(crate) fn directory(mailbox: &str) -> String {
    let is_agents = mailbox.ends_with("/inbox") || mailbox.ends_with("/dead_letter");
    if is_agents {
        format!("agents/{mailbox}")
    } else {
        mailbox.to_owned()
    }
}
