//! The readers at work while the daemon runs: codex takes whatever shows, claude leaves its mail where it is, and an
//! onlooker opens each file of it the moment it sees it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use settled_tests::wait;

use crate::taker::{Take, name_of, take_all, visible};

/// The time for which the reader leaves the processor to the daemon between two looks.
const PAUSE: Duration = Duration::from_micros(200);

/// The files that the reader saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The files that codex took.
    pub(super) takes: Vec<Take>,
    /// The files of claude's inbox at the first sight of each name.
    pub(super) sights: Vec<Take>,
}

/// The reader at work on a thread of its own.
pub(super) struct Reader {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Reader {
    /// Begins to read, beside what was seen before.
    pub(super) fn start(root: &Path, mut seen: Seen) -> Reader {
        let done = Arc::new(AtomicBool::new(false));
        let (told, root) = (Arc::clone(&done), root.to_owned());
        let thread = std::thread::spawn(move || {
            let mut known = seen.sights.iter().map(|sight| sight.file.clone()).collect();
            while !told.load(Ordering::Relaxed) {
                read(&root, &mut seen, &mut known);
                wait::a_moment(PAUSE);
            }
            read(&root, &mut seen, &mut known);
            seen
        });
        Reader { done, thread }
    }

    /// Reads what is there, stops, and gives all it saw.
    pub(super) fn stop(self) -> Seen {
        self.done.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
