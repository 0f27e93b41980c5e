//! A mailroom without its own process, to separate the cost of a document from that of a process.
use std::time::Duration;

use daemon::mailroom::{Mailroom, Pass};
use tempfile::TempDir;
use workspace::clock::Clock;

use super::{AGENT, Hostile, lay, request};

/// A file that has not changed for so long is whole, in milliseconds.
const LATER_MS: u64 = 60_000;

/// A workspace in memory in which a review waits for its response.
pub struct Room {
    directory: TempDir,
    mailroom: Mailroom,
    clock: Clock,
}

impl Room {
    /// Makes the workspace and accepts the request.
    #[expect(clippy::new_without_default, reason = "it makes files")]
    pub fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let directory = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let directory = directory.expect("a directory");
        let agents =
            ["claude", AGENT].map(|name| message_schema::id::AgentName::new(name).expect("a name"));
        workspace::directory::init(directory.path(), &agents).expect("a workspace");
        let outbox = directory.path().join("agents/claude/outbox/request.yaml");
        crate::write(&outbox, &request());
        let (mailroom, _) = Mailroom::open(directory.path()).expect("a start");
        let mut room = Self {
            directory,
            mailroom,
            clock: Clock::start(),
        };
        assert_eq!(room.judge().accepted, 1, "the request");
        room
    }

    /// Writes a document into the outbox, with its packet.
    pub fn lay(&self, document: &Hostile) {
        lay(self.directory.path(), document);
    }

    /// Judges and delivers every file, including the reports, at a time when a file of now is old enough to be whole.
    pub fn judge(&mut self) -> Pass {
        self.mailroom.sweep().expect("a sweep");
        let mut now = self.clock.read();
        now.mono += LATER_MS;
        now.utc += Duration::from_millis(LATER_MS);
        self.mailroom.pass(now).expect("a pass")
    }

    /// Returns the size of the report on the document; 0 if it was accepted.
    pub fn report_bytes(&self) -> usize {
        let report = self
            .directory
            .path()
            .join("agents")
            .join(AGENT)
            .join("dead_letter/hostile.report.yaml");
        std::fs::metadata(report)
            .map_or(0, |data| usize::try_from(data.len()).unwrap_or(usize::MAX))
    }

    /// Returns the size of the ledger in bytes.
    pub fn ledger_bytes(&self) -> usize {
        let segments = crate::list(self.directory.path().join(".settled/ledger"));
        segments
            .iter()
            .map(|segment| std::fs::metadata(segment).map_or(0, |data| data.len() as usize))
            .sum()
    }
}
