//! The promises of a run, each with its time: a position in the log of requests to the disk.
//!
//! A seen file or an acknowledged record is noted after it was seen, with the length of the log at that time. So a disk
//! that received that much of the log received everything on which the promise rests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::messages::Message;
use crate::taker::Take;

/// The events of a run whose power is afterwards cut at every position.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every message written.
    pub messages: Vec<Message>,
    /// The position at which the workspace was ready; there is nothing to check before.
    pub ready: usize,
    /// The position at which each file was first seen, by its path from the workspace's root.
    pub seen: BTreeMap<String, usize>,
    /// The positions at which records were acknowledged in another way, each with the number of records.
    pub acknowledged: Vec<(usize, usize)>,
    /// The positions at which a reader began to take a file, each with that file.
    pub takes: Vec<(usize, Take)>,
    /// The positions at which a daemon ended normally, each with the number of records at that time.
    pub checkpoints: Vec<(usize, usize)>,
    /// The lines of the ledger at the end of the run.
    pub ledger: Vec<Vec<u8>>,
    /// The position at which the run ended.
    pub end: usize,
}

impl History {
    /// Notes that a file was seen at this position.
    pub fn saw(&mut self, path: String, position: usize) {
        self.seen.entry(path).or_insert(position);
    }

    /// Returns the number of records promised to anybody before this position.
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

    /// Returns the number of records that a checkpoint before this position made durable with their deliveries.
    pub fn checkpointed(&self, at: usize) -> usize {
        let before = self
            .checkpoints
            .iter()
            .filter(|(position, _)| *position <= at);
        before.map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// Returns the history of the recovery from a cut at this position, which left this ledger after `end` events.
    /// Earlier promises stay, and at the end every record is promised.
    pub fn after_cut(&self, at: usize, ledger: Vec<Vec<u8>>, end: usize) -> History {
        let all = ledger.len();
        History {
            messages: self.messages.clone(),
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

    /// Returns the files that readers may have taken before this position.
    pub fn taken(&self, at: usize) -> Vec<&Take> {
        self.takes
            .iter()
            .filter(|(position, _)| *position <= at)
            .map(|(_, take)| take)
            .collect()
    }
}

/// Every file that a record makes or puts away, as a path from the root.
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

/// The directory of a mailbox that a record names, relative to the root.
pub(crate) fn directory(mailbox: &str) -> String {
    let is_agents = mailbox.ends_with("/inbox") || mailbox.ends_with("/dead_letter");
    if is_agents {
        format!("agents/{mailbox}")
    } else {
        mailbox.to_owned()
    }
}
