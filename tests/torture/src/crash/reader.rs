//! The readers during a run: codex takes every file that appears, claude leaves its mail in place, and an onlooker
//! opens each file of it as soon as it appears.

use std::collections::BTreeSet;
use std::path::Path;

use crate::onlooker::Onlooker;
use crate::taker::{Take, name_of, take_all, visible};

/// The files seen by the readers.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The files that codex took.
    pub(super) takes: Vec<Take>,
    /// The files of claude's inbox, each as it was when its name first appeared.
    pub(super) sights: Vec<Take>,
}

/// The readers on their own thread.
pub(super) struct Reader(Onlooker<Seen>);

impl Reader {
    /// Starts to read, and adds to what was seen before.
    pub(super) fn start(root: &Path, seen: Seen) -> Reader {
        let inboxes =
            ["claude", "codex"].map(|agent| root.join("agents").join(agent).join("inbox"));
        let root = root.to_owned();
        let mut known = seen.sights.iter().map(|sight| sight.file.clone()).collect();
        let read = move |seen: &mut Seen| read(&root, seen, &mut known);
        Reader(Onlooker::start(inboxes.into(), seen, read))
    }

    /// Reads what is left, stops, and returns everything seen.
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
