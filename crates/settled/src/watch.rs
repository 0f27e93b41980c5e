//! Hints from the file system: which message or packet was just finished or begun. Hints make delivery
//! fast; the sweep makes it certain. A lost or false hint costs time, never a message.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Above so many files with a waiting hint, the hints are dropped for one whole sweep.
const HINTS_MAX: usize = 8192;

/// What was seen of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A writer made it and may still be writing.
    Begun,
    /// Its writer closed it, or it was renamed in: it is whole.
    Finished,
}

/// What the watcher saw since it was last asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Files by directory and name, with the latest hint.
    pub hints: Vec<(PathBuf, OsString, Hint)>,
    /// Whether events were lost, so that only a sweep can tell.
    pub sweep: bool,
}

/// Watches the directories it is told of.
#[derive(Debug)]
pub struct Watch {
    watcher: Option<notify::RecommendedWatcher>,
    board: Arc<Board>,
}

/// Where the watcher's thread pins what it saw.
#[derive(Debug, Default)]
struct Board {
    pinned: Mutex<Pinned>,
    bell: Notify,
}

/// Hints in the order they came: messages of one sender are judged in the order it finished them.
#[derive(Debug, Default)]
struct Pinned {
    hints: BTreeMap<u64, (PathBuf, Hint)>,
    /// Where a file's latest hint is pinned.
    places: HashMap<PathBuf, u64>,
    next: u64,
    sweep: bool,
}

impl Watch {
    /// Starts watching; without events (exhausted watches, odd file systems) the sweep does all
    /// the work and the error says what is slower now.
    pub fn start() -> (Self, Result<(), notify::Error>) {
        let board = Arc::new(Board::default());
        let pin = Arc::clone(&board);
        match notify::recommended_watcher(move |event| pin.pin(event)) {
            Ok(watcher) => (Self { watcher: Some(watcher), board }, Ok(())),
            Err(error) => (Self { watcher: None, board }, Err(error)),
        }
    }

    /// A watch that never sees anything.
    pub fn blind() -> Self {
        Self { watcher: None, board: Arc::default() }
    }

    /// Adds a directory. What was written before this call is found by the next sweep.
    pub fn add(&mut self, directory: &Path) -> Result<(), notify::Error> {
        match &mut self.watcher {
            Some(watcher) => watcher.watch(directory, RecursiveMode::NonRecursive),
            None => Ok(()),
        }
    }

    /// Waits until something was seen.
    pub async fn rings(&self) {
        self.board.bell.notified().await;
    }

    /// Takes what was seen.
    pub fn take(&self) -> Seen {
        let mut pinned = self.board.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let Pinned { hints, sweep, .. } = std::mem::take(&mut *pinned);
        let split = |(path, hint): (PathBuf, Hint)| {
            let name = path.file_name()?.to_owned();
            Some((path.parent()?.to_owned(), name, hint))
        };
        Seen { hints: hints.into_values().filter_map(split).collect(), sweep }
    }
}

impl Board {
    /// Runs on the watcher's thread, whose queue overflows if this is slow: it only takes notes.
    fn pin(&self, event: Result<notify::Event, notify::Error>) {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(event) if event.need_rescan() => pinned.sweep = true,
            Ok(event) => match hint_of(event.kind) {
                Some(hint) => pinned.note(event.paths, hint),
                None => return,
            },
            Err(_) => pinned.sweep = true,
        }
        drop(pinned);
        self.bell.notify_one();
    }
}

impl Pinned {
    fn note(&mut self, paths: Vec<PathBuf>, hint: Hint) {
        if self.hints.len() >= HINTS_MAX {
            self.hints.clear();
            self.places.clear();
            self.sweep = true;
        }
        for path in paths {
            if let Some(before) = self.places.insert(path.clone(), self.next) {
                self.hints.remove(&before);
            }
            self.hints.insert(self.next, (path, hint));
            self.next += 1;
        }
    }
}

fn hint_of(kind: EventKind) -> Option<Hint> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(Hint::Finished),
        EventKind::Create(CreateKind::File | CreateKind::Any) => Some(Hint::Begun),
        EventKind::Any
        | EventKind::Access(_)
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::Event;
    use notify::event::Flag;

    fn seen(events: Vec<Event>) -> Seen {
        let watch = Watch::blind();
        events.into_iter().for_each(|event| watch.board.pin(Ok(event)));
        watch.take()
    }

    #[test]
    fn the_last_hint_of_a_file_counts() {
        let create = Event::new(EventKind::Create(CreateKind::File)).add_path("/o/a.yaml".into());
        let close =
            Event::new(EventKind::Access(AccessKind::Close(AccessMode::Write))).add_path("/o/a.yaml".into());
        let seen = seen(vec![create, close]);
        assert_eq!(seen.hints, [("/o".into(), "a.yaml".into(), Hint::Finished)]);
        assert!(!seen.sweep);
    }

    #[test]
    fn files_are_named_in_the_order_they_were_finished() {
        let event = |kind, name: &str| Event::new(kind).add_path(format!("/o/{name}.yaml").into());
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let begun = EventKind::Create(CreateKind::File);
        let seen = seen(vec![event(begun, "b"), event(begun, "a"), event(close, "a"), event(close, "b")]);
        let names: Vec<_> = seen.hints.iter().map(|(_, name, _)| name.to_str()).collect();
        assert_eq!(names, [Some("a.yaml"), Some("b.yaml")]);
    }

    #[test]
    fn an_overflow_without_a_path_asks_for_a_sweep() {
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert!(seen(vec![overflow]).sweep);
    }

    #[test]
    fn a_flood_of_hints_becomes_one_sweep() {
        let finished = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let flood = (0..=HINTS_MAX).map(|n| Event::new(finished).add_path(format!("/o/{n}.yaml").into()));
        let seen = seen(flood.collect());
        assert!(seen.sweep && seen.hints.len() <= HINTS_MAX);
    }

    #[test]
    fn our_own_reading_rings_no_bell() {
        let open = Event::new(EventKind::Access(AccessKind::Open(AccessMode::Any))).add_path("/o".into());
        assert_eq!(seen(vec![open]), Seen::default());
    }
}
