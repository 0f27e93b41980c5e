//! Receipts of what an agent's commands showed it: hidden files in its own archive, one for each request, removed after
//! two weeks. Nothing depends on an old receipt, so errors of a removal are ignored.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use message_schema::id::{AgentName, MessageId};
use serde::Serialize;
use spool::Layout;
use workspace::atomic_file;

/// The time for which a receipt is kept.
const KEPT: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The receipts of one kind.
pub(crate) struct Receipts {
    archive: PathBuf,
    prefix: &'static str,
}

impl Receipts {
    /// The receipts of an agent whose names begin with this.
    pub(crate) fn of(root: &Path, me: &AgentName, prefix: &'static str) -> Self {
        Self {
            archive: Layout::new(root).archive(me.as_str()),
            prefix,
        }
    }

    /// Writes the receipt for a request in place of an earlier one.
    pub(crate) fn write(&self, request: &MessageId, receipt: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(receipt).expect("text keys and plain values");
        atomic_file::replace(&self.path(request), &text)
    }

    /// Lists the receipts and when they were written, and removes old ones.
    pub(crate) fn kept(&self) -> Vec<(PathBuf, Option<SystemTime>)> {
        let limit = SystemTime::now().checked_sub(KEPT);
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.archive).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !name
                .to_str()
                .is_some_and(|name| name.starts_with(self.prefix))
            {
                continue;
            }
            let written = entry.metadata().and_then(|data| data.modified()).ok();
            if written.zip(limit).is_some_and(|(at, limit)| at < limit) {
                let _ = fs::remove_file(entry.path());
            } else {
                kept.push((entry.path(), written));
            }
        }
        kept
    }

    /// The file of the receipt for a request.
    pub(crate) fn path(&self, request: &MessageId) -> PathBuf {
        self.archive.join(format!("{}{request}.json", self.prefix))
    }
}
