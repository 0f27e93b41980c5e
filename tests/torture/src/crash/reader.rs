//! The readers at work while the daemon runs: codex takes whatever shows, claude leaves its mail where it is, and an
//! onlooker opens each file of it the moment it sees it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::onlooker::Onlooker;
use crate::taker::{Take, name_of, take_all, visible};

/// The files that the reader saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The files that codex took.
    pub(super) takes: Vec<Take>,
    /// The files of claude's inbox at the first sight of each name.
    pub(super) sights: Vec<Take>,
}

/// The reader at work on a thread of its own.
pub(super) struct Reader(Onlooker<Seen>);

impl Reader {
    /// Begins to read, beside what was seen before.
    pub(super) fn start(root: &Path, seen: Seen) -> Reader {
        let inboxes =
            ["claude", "codex"].map(|agent| root.join("agents").join(agent).join("inbox"));
        let root = root.to_owned();
        let mut known = seen.sights.iter().map(|sight| sight.file.clone()).collect();
        let read = move |seen: &mut Seen| read(&root, seen, &mut known);
        Reader(Onlooker::start(inboxes.into(), seen, read))
    }

    /// Reads what is there, stops, and gives all it saw.
    pub(super) fn stop(self) -> Seen {
        self.0.stop()
    }
}

fn read(root: &Path, seen: &mut Seen, known: &mut BTreeSet<String>) {
    take_all(root, "codex", &mut seen.takes);
    for path in visible(&root.join("agents/claude/inbox")) {
        if known.insert(name_of(&path)) {
            let bytes = std::fs::read(&path).expect("nobody takes from this inbox");
            seen.sights.push(Take {
                agent: "claude".to_owned(),
                file: name_of(&path),
                bytes,
            });
        }
    }
}
