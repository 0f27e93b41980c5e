//! What the log of a shared ledger takes. A host finds out by trying: the log names its limit when it refuses a batch.

use std::collections::BTreeMap;

use spool::{FileName, OutboxFile};

/// The most messages that are judged and committed together.
const BATCH_MAX: usize = 256;

/// The most that the log of a shared ledger takes at once, as far as this host has found out.
#[derive(Debug)]
pub(crate) struct LogTakes {
    /// The most files of a batch.
    pub(crate) files_max: usize,
    /// Files whose record alone is too large, and the number of bytes the log takes.
    too_large: BTreeMap<(String, FileName), usize>,
}

impl Default for LogTakes {
    fn default() -> Self {
        Self {
            files_max: BATCH_MAX,
            too_large: BTreeMap::new(),
        }
    }
}

impl LogTakes {
    /// Notes that the log refused a batch of these files as too large. The next batch has half as many; a file that was
    /// alone is refused.
    pub(crate) fn too_large(&mut self, judged: &[(String, FileName)], bytes_max: usize) {
        match judged {
            [alone] => drop(self.too_large.insert(alone.clone(), bytes_max)),
            _ => self.files_max = (judged.len() / 2).max(1),
        }
    }

    /// Notes that the log took a batch, so the next one may be twice as large.
    pub(crate) fn taken(&mut self) {
        self.files_max = BATCH_MAX.min(self.files_max * 2);
    }

    /// The number of bytes that the log takes, if it does not take the record of this file.
    pub(crate) fn refuses(&self, found: &OutboxFile) -> Option<usize> {
        if self.too_large.is_empty() {
            return None;
        }
        let file = (found.agent.clone(), found.file.clone());
        self.too_large.get(&file).copied()
    }

    /// Forgets a file that was judged or removed.
    pub(crate) fn forget(&mut self, agent: &str, file: &FileName) {
        if !self.too_large.is_empty() {
            self.too_large.remove(&(agent.to_owned(), file.clone()));
        }
    }
}
