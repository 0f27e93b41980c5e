//! Watches directories for hints that a writer has finished a message or packet. Hints make delivery fast, the sweep makes
//! it certain: a lost or false hint costs time, never a message.

mod changes;
mod queue;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub use changes::Changes;
pub use notify::Error;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use queue::Queue;

/// The most files of one directory with a waiting hint. Above that, its hints are dropped in favour of one whole sweep;
/// those of other directories stay.
const HINTS_MAX: usize = 8192;

/// The most files of all directories with a waiting hint. Above that, all hints are dropped.
const HINTS_OF_ALL_MAX: usize = 8 * HINTS_MAX;

/// The longest pause of the watcher of what is kept apart. Meanwhile the kernel's queue has room for 16 384 events, unless
/// `fs.inotify.max_queued_events` says otherwise.
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// The kinds of events that `notify` is asked for: those that can be a hint or end a watch. Opened files are left out, because
/// an agent that only reads its files would fill the kernel's queue. So are writes: a program makes a million a second. `notify`
/// reports a file that is renamed in only if it is asked for created files as well; these are no hint.
const KINDS: EventKindMask = EventKindMask::CREATE
    .union(EventKindMask::REMOVE)
    .union(EventKindMask::MODIFY_NAME)
    .union(EventKindMask::ACCESS_CLOSE);

/// The changes since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Finished files by directory and name: a writer closed them, or they were renamed to that name.
    pub hints: Vec<(PathBuf, OsString)>,
    /// Directories whose hints were dropped because they were too many.
    pub lost: Vec<PathBuf>,
    /// True if events were lost, so that only a sweep can find what happened.
    pub sweep: bool,
    /// True if further changes in some directory wake nobody until the next call: the caller sets a time for it.
    pub is_throttled: bool,
}

/// Watches directories.
pub struct Watch {
    queue: Option<Queue>,
    /// The watcher of what is kept apart. Where a user may have no second queue, the events of all share one.
    apart: Option<RecommendedWatcher>,
    collector: Arc<Collector>,
}

/// The identity of the directory at a path. File systems may reuse an inode number at once, so the creation time counts
/// as well, if there is one.
type Identity = (u64, u64, Option<SystemTime>);

/// The identity of a directory; `None` if there is none, or a link: it could lead to a place outside the workspace.
fn identity_of(directory: &Path) -> Option<Identity> {
    let data = directory.symlink_metadata().ok()?;
    data.is_dir()
        .then(|| (data.dev(), data.ino(), data.created().ok()))
}

/// Decides whether a file of a directory may ever matter; the watcher's thread asks, so that other files wake nobody.
pub type IsWanted = fn(&Path, &OsStr) -> bool;

/// Where the watcher's thread collects hints.
#[derive(Debug)]
struct Collector {
    collected: Mutex<Collected>,
    wakeup: Notify,
    /// Tells the watcher of what is kept apart that the hints were taken.
    taken: Condvar,
    is_wanted: IsWanted,
}

/// The hints of each directory; the directories take turns.
#[derive(Debug, Default)]
struct Collected {
    directories: BTreeMap<PathBuf, DirectoryHints>,
    /// The number of hints in all of them.
    count: usize,
    /// The directory whose turn was last.
    last: PathBuf,
    /// Directories whose hints were dropped.
    lost: HashSet<PathBuf>,
    watched: HashMap<PathBuf, Identity>,
    /// The files of the last call.
    recent: HashMap<PathBuf, HashSet<OsString>>,
    /// Directories in which a file was removed, or one of the last call finished again, since that call.
    restless: HashSet<PathBuf>,
    /// The directories whose hints wake nobody.
    throttled: HashSet<PathBuf>,
    sweep: bool,
    /// The number of calls that took hints.
    takes: u64,
}

/// The finished files in the order they came, because messages of one sender are judged in the order it finished them. A
/// file keeps its place if it is closed again: a child of its writer may have inherited the handle.
#[derive(Debug, Default)]
struct DirectoryHints {
    files: BTreeMap<u64, OsString>,
    places: HashMap<OsString, u64>,
    next: u64,
}

impl Watch {
    /// Starts watching for files that are wanted. Without events (exhausted watches, unusual file systems) the sweep does
    /// all the work, and the error says why delivery is slower.
    pub fn start(is_wanted: IsWanted) -> (Self, Result<(), Error>) {
        let mut watch = Self {
            collector: Arc::new(Collector::new(is_wanted)),
            ..Self::blind()
        };
        let started = Queue::start(&watch.collector).map(|queue| {
            watch.queue = Some(queue);
            let mut works_until = Instant::now();
            let collect = move |collector: &Collector, event| {
                collector.collect_apart(event, &mut works_until);
            };
            watch.apart = watch.collector.watcher(collect).ok();
        });
        (watch, started)
    }

    /// A watch that never sees anything.
    pub fn blind() -> Self {
        Self {
            queue: None,
            apart: None,
            collector: Arc::new(Collector::new(|_, _| true)),
        }
    }

    /// Watches the directory at this path, also if another one has taken its place; costs one look if nothing changed.
    /// True if the watch is new: the next sweep finds what was written before. A directory that is missing, is a link,
    /// or cannot be watched is left to the sweep.
    pub fn keep(&mut self, directory: &Path) -> Result<bool, Error> {
        let Some(queue) = &mut self.queue else {
            return Ok(false);
        };
        if !self.collector.is_new(directory) {
            return Ok(false);
        }
        queue.watch(directory).map(|()| true)
    }

    /// Like `keep`, but with a queue of its own in the kernel: the events of others do not wait behind those of this
    /// directory. While it is throttled, its events are read in turn with the calls of [`Watch::take`], many at a time: a
    /// thread that the kernel wakes for each of 50 000 events a second takes a core that others need. What the queue has
    /// no room for is lost without a sweep, so this is for directories that no sweep lists.
    pub fn keep_apart(&mut self, directory: &Path) -> Result<bool, Error> {
        let Some(watcher) = &mut self.apart else {
            return self.keep(directory);
        };
        if !self.collector.is_new(directory) {
            return Ok(false);
        }
        // The watcher answers once it has read its queue, and must not pause meanwhile.
        self.collector.end_pause(&mut self.collector.collected());
        watch(watcher, directory).map(|()| true)
    }

    /// Waits until the watcher has seen something.
    pub async fn changed(&self) {
        self.collector.wakeup.notified().await;
    }

    /// Takes at most `most` of the hints seen so far, of each directory its share, and wakes again for the others. The
    /// removal of a watched directory needs a sweep.
    ///
    /// With a `patient` directory, some wake nobody until the next call: that one if more than one of its files is taken,
    /// and those in which a file was removed since the last call, or one of its files was finished again. Otherwise a program
    /// that changes packets, makes and removes files, or opens and closes them, without a pause would wake the daemon without
    /// a pause, and leave no core to anybody else.
    pub fn take(&mut self, most: usize, patient: Option<&Path>) -> Seen {
        let mut collected = self.collector.collected();
        self.collector.end_pause(&mut collected);
        let hints = collected.take_turns(most);
        let restless = std::mem::take(&mut collected.restless);
        collected.recent.clear();
        for (directory, name) in &hints {
            let recent = collected.recent.entry(directory.clone()).or_default();
            recent.insert(name.clone());
        }
        if let Some(patient) = patient {
            collected.throttled = restless;
            let of_patient = hints.iter().filter(|(directory, _)| directory == patient);
            if of_patient.count() > 1 {
                collected.throttled.insert(patient.to_owned());
            }
        }
        let seen = Seen {
            hints,
            lost: collected.lost.drain().collect(),
            sweep: std::mem::take(&mut collected.sweep),
            is_throttled: !collected.throttled.is_empty(),
        };
        let mut left = collected.directories.iter();
        if left.any(|(directory, left)| !left.files.is_empty() && collected.wakes(directory)) {
            self.collector.wakeup.notify_one();
        }
        seen
    }
}

/// Makes the watcher watch a directory, in place of one that was renamed away and is still watched under this name.
fn watch(watcher: &mut RecommendedWatcher, directory: &Path) -> Result<(), Error> {
    // Usually there is none, so an error here is harmless.
    let _ = watcher.unwatch(directory);
    watcher.watch(directory, RecursiveMode::NonRecursive)
}

impl Collector {
    fn new(is_wanted: IsWanted) -> Self {
        Self {
            collected: Mutex::default(),
            wakeup: Notify::new(),
            taken: Condvar::new(),
            is_wanted,
        }
    }

    /// Notes that the directory at this path is watched from now on; false if it is watched, or there is none.
    fn is_new(&self, directory: &Path) -> bool {
        // The threads that read events wait for the lock, so it is not held during the look.
        let identity = identity_of(directory);
        let mut collected = self.collected();
        let Some(identity) = identity else {
            collected.watched.remove(directory);
            return false;
        };
        let before = collected.watched.insert(directory.to_owned(), identity);
        before != Some(identity)
    }

    /// Starts a watcher that collects its events here.
    fn watcher(
        self: &Arc<Self>,
        mut collect: impl FnMut(&Self, Result<notify::Event, Error>) + Send + 'static,
    ) -> Result<RecommendedWatcher, Error> {
        let collector = Arc::clone(self);
        let config = Config::default().with_event_kinds(KINDS);
        RecommendedWatcher::new(move |event| collect(&collector, event), config)
    }

    /// Collects an event of what is kept apart, and pauses if its directory is throttled.
    fn collect_apart(&self, event: Result<notify::Event, Error>, works_until: &mut Instant) {
        if !event.as_ref().is_ok_and(|event| !event.need_rescan()) {
            return;
        }
        let begun = Instant::now();
        let is_throttled = self.collect(event) == Wake::Throttled;
        if is_throttled && begun >= *works_until && self.pauses(PAUSE_MAX) {
            // It works for half of what it paused at least: more is read in one go, and a flood is kept up with.
            *works_until = Instant::now() + begun.elapsed() / 2;
        }
    }

    /// Waits until hints are taken, for this long at most. Returns false at once if no directory is throttled: the next take may
    /// be far off.
    fn pauses(&self, most: Duration) -> bool {
        let collected = self.collected();
        if collected.throttled.is_empty() {
            return false;
        }
        let before = collected.takes;
        let is_before = |collected: &mut Collected| collected.takes == before;
        drop(self.taken.wait_timeout_while(collected, most, is_before));
        true
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets all directories wake the caller, and their watcher read on.
    fn end_pause(&self, collected: &mut Collected) {
        collected.throttled.clear();
        collected.takes += 1;
        self.taken.notify_all();
    }

    /// Runs on the watcher's thread, whose queue overflows if this is slow: it only takes notes.
    fn collect(&self, event: Result<notify::Event, Error>) -> Wake {
        self.note(|collected| match event {
            Ok(event) if !event.need_rescan() => {
                let paths = event.paths.iter();
                let wakes = paths.map(|path| collected.note_path(path, event.kind, self.is_wanted));
                wakes.max().unwrap_or(Wake::No)
            }
            Ok(_) | Err(_) => collected.lost_events(),
        })
    }

    /// Takes notes, and wakes the caller if they are news.
    fn note(&self, take: impl FnOnce(&mut Collected) -> Wake) -> Wake {
        let wake = take(&mut self.collected());
        if wake == Wake::Now {
            self.wakeup.notify_one();
        }
        wake
    }
}

/// The news of an event, the loudest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// There is none.
    No,
    /// Its directory is throttled.
    Throttled,
    Now,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Finished,
    Removed,
}

impl Collected {
    fn wakes(&self, directory: &Path) -> bool {
        !self.throttled.contains(directory)
    }

    /// Notes that events were lost.
    fn lost_events(&mut self) -> Wake {
        self.sweep = true;
        Wake::Now
    }

    /// Notes an event of a file, or the end of a watched directory.
    fn note_path(&mut self, path: &Path, kind: EventKind, is_wanted: IsWanted) -> Wake {
        if kind == EventKind::Remove(RemoveKind::Folder) && self.watched.contains_key(path) {
            return self.note_end(path);
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Wake::No;
        };
        let Some(news) = news_of(kind) else {
            return Wake::No;
        };
        if !is_wanted(directory, name) {
            return Wake::No;
        }
        self.note(directory, name, news)
    }

    /// Notes that the watch ended with its directory, even if another one has its name and number by now.
    fn note_end(&mut self, directory: &Path) -> Wake {
        if self.watched.remove(directory).is_none() {
            return Wake::No;
        }
        self.lost_events()
    }

    /// Notes what happened to a file that is wanted.
    fn note(&mut self, directory: &Path, name: &OsStr, news: News) -> Wake {
        if news == News::Removed {
            self.restless.insert(directory.to_owned());
            if let Some(hints) = self.directories.get_mut(directory) {
                self.count -= usize::from(hints.withdraw(name));
            }
            return Wake::No;
        }
        let mut recent = self.recent.get(directory).into_iter();
        if recent.any(|recent| recent.contains(name)) {
            self.restless.insert(directory.to_owned());
        }
        if !self.directories.contains_key(directory) {
            self.directories
                .insert(directory.to_owned(), DirectoryHints::default());
        }
        let hints = self.directories.get_mut(directory);
        let hints = hints.expect("it was there or was put in");
        let before = hints.files.len();
        hints.note(name);
        let now = hints.files.len();
        self.count = self.count + now - before;
        if now > HINTS_MAX {
            self.count -= now;
            self.directories.remove(directory);
            self.lost.insert(directory.to_owned());
        }
        if self.count > HINTS_OF_ALL_MAX {
            self.count = 0;
            self.directories.clear();
            self.sweep = true;
        }
        if self.wakes(directory) {
            Wake::Now
        } else {
            Wake::Throttled
        }
    }

    /// Takes hints from each directory in turn, beginning after the one whose turn was last.
    fn take_turns(&mut self, most: usize) -> Vec<(PathBuf, OsString)> {
        let share = (most / self.directories.len().max(1)).max(1);
        let mut taken = Vec::new();
        for _ in 0..self.directories.len() {
            let after = (Bound::Excluded(&self.last), Bound::Unbounded);
            let next = self.directories.range::<PathBuf, _>(after).next();
            let Some((directory, _)) = next.or_else(|| self.directories.first_key_value()) else {
                break;
            };
            self.last.clone_from(directory);
            let hints = self.directories.get_mut(&self.last).expect("it is there");
            let room = share.min(most - taken.len());
            for name in hints.take(room) {
                taken.push((self.last.clone(), name));
            }
            if hints.files.is_empty() {
                self.directories.remove(&self.last);
            }
            if taken.len() >= most {
                break;
            }
        }
        self.count -= taken.len();
        taken
    }
}

impl DirectoryHints {
    fn note(&mut self, name: &OsStr) {
        if !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), self.next);
            self.files.insert(self.next, name.to_owned());
            self.next += 1;
        }
    }

    /// Drops the hint of a file that was removed; returns whether there was one. Only Linux tells of all events in their
    /// order.
    fn withdraw(&mut self, name: &OsStr) -> bool {
        let place = cfg!(target_os = "linux").then(|| self.places.remove(name));
        let removed = place.flatten().map(|place| self.files.remove(&place));
        removed.is_some()
    }

    fn take(&mut self, most: usize) -> Vec<OsString> {
        let first = (0..most).map_while(|_| self.files.pop_first());
        let taken: Vec<OsString> = first.map(|(_, name)| name).collect();
        for name in &taken {
            self.places.remove(name);
        }
        taken
    }
}

/// Returns what an event says of a file, if that may ever matter.
fn news_of(kind: EventKind) -> Option<News> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(News::Finished),
        EventKind::Remove(_) => Some(News::Removed),
        EventKind::Any
        | EventKind::Access(_)
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use notify::Event;
    use notify::event::{CreateKind, DataChange, Flag};

    use super::*;

    fn seen(events: Vec<Event>) -> Seen {
        let mut watch = Watch::blind();
        for event in events {
            watch.collector.collect(Ok(event));
        }
        watch.take(usize::MAX, None)
    }

    fn event(kind: EventKind, name: &str) -> Event {
        Event::new(kind).add_path(format!("/o/{name}.yaml").into())
    }

    fn names(seen: &Seen) -> Vec<&OsString> {
        seen.hints.iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn files_are_named_in_the_order_they_were_finished() {
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let begun = EventKind::Create(CreateKind::File);
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let seen = seen(vec![
            event(begun, "b"),
            event(begun, "a"),
            event(begun, "c"),
            event(close, "a"),
            event(written, "c"),
            event(close, "b"),
        ]);
        assert_eq!(
            seen.hints,
            ["a.yaml", "b.yaml"].map(|name| ("/o".into(), name.into()))
        );
        assert!(!seen.sweep);
    }

    #[test]
    fn a_file_that_is_closed_again_by_a_child_of_its_writer_keeps_its_place() {
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let seen = seen(vec![
            event(renamed, "a"),
            event(renamed, "b"),
            event(close, "a"),
        ]);
        assert_eq!(names(&seen), ["a.yaml", "b.yaml"]);
    }

    #[test]
    fn an_overflow_without_a_path_asks_for_a_sweep() {
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert!(seen(vec![overflow]).sweep);
    }

    /// Returns whether it was woken since the last call.
    fn wakes(watch: &Watch) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(watch.changed()).poll(&mut context).is_ready()
    }

    fn finished(path: &str) -> Event {
        Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::To))).add_path(path.into())
    }

    #[test]
    fn a_flood_of_hints_costs_the_others_of_its_directory_and_no_other_directory() {
        let mut events = vec![finished("/other/a.yaml"), finished("/o/before.yaml")];
        events.extend((0..HINTS_MAX).map(|n| finished(&format!("/o/{n}.yaml"))));
        let seen = seen(events);
        assert_eq!(seen.lost, [PathBuf::from("/o")]);
        assert_eq!(names(&seen), ["a.yaml"]);
        assert!(!seen.sweep);
    }

    #[test]
    fn a_flood_in_many_directories_costs_all_hints_and_asks_for_a_sweep() {
        let flood = (0..HINTS_OF_ALL_MAX).map(|n| {
            let directory = n / HINTS_MAX;
            finished(&format!("/{directory}/{n}.yaml"))
        });
        let mut watch = Watch::blind();
        for event in flood {
            watch.collector.collect(Ok(event));
        }
        assert!(!watch.collector.collected().sweep);
        watch.collector.collect(Ok(finished("/other/a.yaml")));
        watch.collector.collect(Ok(finished("/other/b.yaml")));
        let seen = watch.take(10, None);
        assert!(seen.sweep);
        assert_eq!(names(&seen), ["b.yaml"]);
    }

    #[test]
    fn directories_take_turns_and_what_is_left_wakes_again() {
        let mut watch = Watch::blind();
        let flood = (0..1_000).map(|n| finished(&format!("/flood/{n}.yaml")));
        let others = ["/a/1.yaml", "/z/1.yaml", "/z/2.yaml"].map(finished);
        for event in flood.chain(others) {
            watch.collector.collect(Ok(event));
        }
        let mut taken = Vec::new();
        for round in 1..=101 {
            assert!(wakes(&watch), "{round}");
            let hints = watch.take(10, None).hints;
            assert!(hints.len() <= 10);
            taken.extend(hints);
            if round == 1 {
                let others = taken
                    .iter()
                    .filter(|(directory, _)| !directory.ends_with("flood"));
                assert_eq!(others.count(), 3, "{taken:?}");
            }
        }
        assert_eq!(taken.len(), 1_003, "none is lost");
        let of_flood = taken
            .iter()
            .filter(|(directory, _)| directory.ends_with("flood"));
        let expected = (0..1_000).map(|n| OsString::from(format!("{n}.yaml")));
        assert!(
            of_flood.map(|(_, name)| name.clone()).eq(expected),
            "in order"
        );
    }

    #[test]
    fn a_file_that_is_not_wanted_wakes_nobody() {
        let mut watch = Watch::blind();
        watch.collector = Arc::new(Collector::new(|_, name| name == "a.yaml"));
        let junk = watch.collector.collect(Ok(finished("/o/.junk")));
        assert!(junk == Wake::No && !wakes(&watch));
        let message = watch.collector.collect(Ok(finished("/o/a.yaml")));
        assert_eq!(message, Wake::Now);
        assert!(wakes(&watch));
        assert_eq!(names(&watch.take(10, None)), ["a.yaml"]);
    }

    #[test]
    fn a_throttled_directory_wakes_nobody_and_is_taken_with_whatever_else_wakes() {
        let mut watch = Watch::blind();
        let packets = Path::new("/packets");
        let collect = |watch: &Watch, names: &[&str]| {
            for name in names {
                watch.collector.collect(Ok(finished(name)));
            }
        };
        collect(&watch, &["/packets/1"]);
        assert!(wakes(&watch) && !watch.take(10, Some(packets)).is_throttled);
        collect(&watch, &["/packets/1", "/packets/2", "/packets/3"]);
        assert!(wakes(&watch), "one is no crowd");
        let seen = watch.take(2, Some(packets));
        assert_eq!((seen.hints.len(), seen.is_throttled), (2, true));
        assert!(!wakes(&watch), "the third can wait");
        collect(&watch, &["/packets/4"]);
        assert!(!wakes(&watch), "and the fourth");
        collect(&watch, &["/o/a.yaml"]);
        assert!(wakes(&watch));
        let seen = watch.take(10, Some(packets));
        assert_eq!(names(&seen), ["a.yaml", "3", "4"]);
        assert!(seen.is_throttled);
        collect(&watch, &["/packets/5"]);
        assert!(!wakes(&watch));
        assert!(!watch.take(10, Some(packets)).is_throttled);
        collect(&watch, &["/packets/6"]);
        assert!(wakes(&watch), "the crowd is gone");
    }

    #[test]
    fn a_directory_in_which_a_file_is_finished_again_and_again_wakes_nobody_for_a_while() {
        let mut watch = Watch::blind();
        let packets = Path::new("/packets");
        let collect = |watch: &Watch, path: &str| watch.collector.collect(Ok(finished(path)));
        assert_eq!(collect(&watch, "/o/a.yaml"), Wake::Now);
        assert!(
            !watch.take(10, Some(packets)).is_throttled,
            "the first time"
        );
        assert_eq!(collect(&watch, "/o/b.yaml"), Wake::Now);
        assert_eq!(collect(&watch, "/o/a.yaml"), Wake::Now);
        let seen = watch.take(10, Some(packets));
        assert_eq!(names(&seen), ["b.yaml", "a.yaml"]);
        assert!(seen.is_throttled);
        assert_eq!(collect(&watch, "/o/c.yaml"), Wake::Throttled);
        assert_eq!(collect(&watch, "/other/a.yaml"), Wake::Now);
        let seen = watch.take(10, Some(packets));
        assert_eq!(names(&seen), ["a.yaml", "c.yaml"]);
        assert!(!seen.is_throttled, "nothing was finished again meanwhile");
        assert_eq!(collect(&watch, "/o/d.yaml"), Wake::Now);
    }

    fn removed(path: &str) -> Event {
        Event::new(EventKind::Remove(RemoveKind::File)).add_path(path.into())
    }

    // Elsewhere a removal may be told after the creation that followed it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_removed_file_is_not_looked_at_and_its_directory_wakes_nobody_for_a_while() {
        let mut watch = Watch::blind();
        let packets = Path::new("/packets");
        let collect = |watch: &Watch, events: Vec<Event>| {
            for event in events {
                watch.collector.collect(Ok(event));
            }
        };
        collect(
            &watch,
            vec![
                finished("/o/a.yaml"),
                finished("/o/b.yaml"),
                removed("/o/a.yaml"),
            ],
        );
        assert!(wakes(&watch));
        let seen = watch.take(10, Some(packets));
        assert_eq!(names(&seen), ["b.yaml"]);
        assert!(seen.is_throttled);
        collect(&watch, vec![finished("/o/c.yaml")]);
        assert!(!wakes(&watch));
        collect(&watch, vec![finished("/other/a.yaml")]);
        assert!(wakes(&watch), "other directories wake");
        let seen = watch.take(10, Some(packets));
        assert_eq!(names(&seen), ["a.yaml", "c.yaml"]);
        assert!(!seen.is_throttled, "nothing was removed meanwhile");
        collect(&watch, vec![finished("/o/d.yaml"), removed("/o/d.yaml")]);
        assert!(wakes(&watch), "the file had a hint");
        assert!(watch.take(10, Some(packets)).hints.is_empty());
        collect(&watch, vec![removed("/o/d.yaml")]);
        assert!(!wakes(&watch), "a removal alone is no news");
        assert_eq!(watch.collector.collected().count, 0);
    }

    #[test]
    fn only_the_end_of_a_watched_directory_asks_for_a_sweep() {
        let mut watch = Watch::blind();
        let removed = |path: &str| {
            let event = Event::new(EventKind::Remove(RemoveKind::Folder));
            Ok(event.add_path(path.into()))
        };
        let mut watched = watch.collector.collected();
        watched.watched.insert("/o".into(), (1, 1, None));
        drop(watched);
        assert_eq!(watch.collector.collect(removed("/o/child")), Wake::No);
        assert!(!watch.take(10, None).sweep);
        assert_eq!(watch.collector.collect(removed("/o")), Wake::Now);
        assert!(watch.take(10, None).sweep);
        assert_eq!(watch.collector.collect(removed("/o")), Wake::No);
    }

    #[test]
    fn what_is_kept_apart_is_not_swept_and_its_watcher_pauses_only_while_it_wakes_nobody() {
        let mut watch = Watch::blind();
        let begun = Instant::now();
        let mut works_until = begun;
        let mut collect = |watch: &Watch, event: Result<Event, Error>| {
            watch.collector.collect_apart(event, &mut works_until);
            works_until
        };
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        collect(&watch, Ok(overflow));
        collect(&watch, Err(Error::generic("no events")));
        assert_eq!(watch.take(10, None), Seen::default());
        let throttle = |directory: &str| {
            watch
                .collector
                .collected()
                .throttled
                .insert(directory.into())
        };
        throttle("/other");
        assert_eq!(collect(&watch, Ok(finished("/packets/1"))), begun);
        throttle("/packets");
        assert_eq!(collect(&watch, Ok(removed("/packets/1"))), begun, "no hint");
        let worked_until = collect(&watch, Ok(finished("/packets/2")));
        let earliest = begun + PAUSE_MAX + PAUSE_MAX / 2;
        assert!(worked_until >= earliest, "it paused and works on");
    }

    #[test]
    fn a_pause_ends_with_the_next_take_and_there_is_none_where_all_directories_wake() {
        let mut watch = Watch::blind();
        let collector = Arc::clone(&watch.collector);
        let minute = Duration::from_secs(60);
        assert!(!collector.pauses(minute));
        let thread = std::thread::spawn(move || {
            // A take before the pause makes all directories wake the daemon again.
            while !collector.pauses(minute) {
                collector.collected().throttled.insert("/packets".into());
            }
        });
        while !thread.is_finished() {
            watch.take(10, None);
            std::thread::yield_now();
        }
        thread.join().expect("the thread ends");
    }

    #[test]
    fn a_pause_without_a_take_is_as_long_as_it_may_be() {
        let collector = Collector::new(|_, _| true);
        collector.collected().throttled.insert("/packets".into());
        let begun = Instant::now();
        assert!(collector.pauses(Duration::from_millis(1)));
        assert!(begun.elapsed() >= Duration::from_millis(1));
    }

    /// Waits for a hint about this file, forever if none comes; earlier files may wake it late.
    fn wait_for(watch: &mut Watch, file: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        while !watch
            .take(usize::MAX, None)
            .hints
            .iter()
            .any(|(_, name)| name == file)
        {
            runtime.block_on(watch.changed());
        }
    }

    #[test]
    fn nothing_wakes_until_something_was_seen() {
        let watch = Watch::blind();
        assert!(!wakes(&watch));
        let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
        watch
            .collector
            .collect(Ok(Event::new(close).add_path("/o/a.yaml".into())));
        assert!(wakes(&watch));
    }

    #[test]
    fn a_directory_made_again_is_watched_again() {
        let root = tempfile::tempdir().expect("a directory");
        let outbox = root.path().join("outbox");
        let (mut watch, started) = Watch::start(|_, _| true);
        started.expect("events");
        assert!(!watch.keep(&outbox).expect("nothing to watch"));
        std::fs::create_dir(&outbox).expect("an outbox");
        assert!(watch.keep(&outbox).expect("a watch"));
        assert!(
            !watch.keep(&outbox).expect("the same watch"),
            "it is watched already"
        );

        std::fs::remove_dir(&outbox).expect("an empty outbox");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(watch.changed());
        assert!(
            watch.take(usize::MAX, None).sweep,
            "somebody has to look for the new one"
        );
        std::fs::create_dir(&outbox).expect("an outbox");
        assert!(watch.keep(&outbox).expect("a watch"));
        std::fs::write(outbox.join("a.yaml"), "text").expect("a file");
        wait_for(&mut watch, "a.yaml");

        std::fs::rename(&outbox, root.path().join("away")).expect("a rename");
        std::fs::create_dir(&outbox).expect("an outbox");
        assert!(
            watch.keep(&outbox).expect("a watch"),
            "another one has the name"
        );
        std::fs::write(outbox.join("b.yaml"), "text").expect("a file");
        wait_for(&mut watch, "b.yaml");
        std::fs::rename(outbox.join("b.yaml"), outbox.join("c.yaml")).expect("a rename");
        wait_for(&mut watch, "c.yaml");
    }

    #[test]
    fn directories_that_change_places_are_both_watched() {
        let root = tempfile::tempdir().expect("a directory");
        let [one, other, away] = ["one", "other", "away"].map(|name| root.path().join(name));
        let (mut watch, started) = Watch::start(|_, _| true);
        started.expect("events");
        for directory in [&one, &other] {
            std::fs::create_dir(directory).expect("a directory");
            assert!(watch.keep(directory).expect("a watch"));
        }
        for (from, to) in [(&one, &away), (&other, &one), (&away, &other)] {
            std::fs::rename(from, to).expect("a rename");
        }
        for directory in [&one, &other] {
            assert!(watch.keep(directory).expect("a watch"));
        }
        for (directory, file) in [(&one, "a"), (&other, "b")] {
            std::fs::write(directory.join(file), "text").expect("a file");
            wait_for(&mut watch, file);
        }
    }

    #[test]
    fn what_is_kept_apart_has_its_hints_collected_with_the_others() {
        let root = tempfile::tempdir().expect("a directory");
        let [outbox, packets] = ["outbox", "packets"].map(|name| root.path().join(name));
        let (mut watch, started) = Watch::start(|_, _| true);
        started.expect("events");
        assert!(watch.apart.is_some());
        for directory in [&outbox, &packets] {
            std::fs::create_dir(directory).expect("a directory");
        }
        assert!(watch.keep(&outbox).expect("a watch"));
        assert!(watch.keep_apart(&packets).expect("a watch"));
        assert!(!watch.keep_apart(&packets).expect("the same watch"));
        std::fs::write(packets.join("p.yaml"), "text").expect("a file");
        wait_for(&mut watch, "p.yaml");
        std::fs::write(outbox.join("a.yaml"), "text").expect("a file");
        wait_for(&mut watch, "a.yaml");
        assert!(!Watch::blind().keep_apart(&packets).expect("no watch"));

        watch.apart = None;
        std::fs::rename(&packets, root.path().join("away")).expect("a rename");
        std::fs::create_dir(&packets).expect("a directory");
        assert!(watch.keep_apart(&packets).expect("a watch of the others"));
        std::fs::write(packets.join("q.yaml"), "text").expect("a file");
        wait_for(&mut watch, "q.yaml");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn beside_files_that_are_closed_without_a_pause_a_directory_is_watched_and_its_file_seen() {
        let root = tempfile::tempdir().expect("a directory");
        let [noisy, other] = ["noisy", "other"].map(|name| root.path().join(name));
        let (mut watch, started) = Watch::start(|_, _| true);
        started.expect("events");
        for directory in [&noisy, &other] {
            std::fs::create_dir(directory).expect("a directory");
        }
        assert!(watch.keep(&noisy).expect("a watch"));
        let names = ["a", "b"].map(|name| noisy.join(name));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    for name in &names {
                        // For a moment there is no directory.
                        let _ = std::fs::File::create(name);
                    }
                }
            });
            wait_for(&mut watch, "a");
            assert!(watch.keep(&other).expect("a watch"));
            std::fs::write(other.join("c"), "text").expect("a file");
            wait_for(&mut watch, "c");
            std::fs::rename(&noisy, root.path().join("away")).expect("a rename");
            std::fs::create_dir(&noisy).expect("a directory");
            assert!(watch.keep(&noisy).expect("a watch"));
            wait_for(&mut watch, "b");
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    /// `/proc` shows the events that the kernel was asked for; see `inotify(7)` and `proc_pid_fdinfo(5)`.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_is_asked_for_no_event_about_a_file_that_is_only_read_or_written_to() {
        const MODIFY: u32 = 0x2;
        const CLOSE_WRITE: u32 = 0x8;
        const CLOSE_NOWRITE: u32 = 0x10;
        const OPEN: u32 = 0x20;
        const MOVED_TO: u32 = 0x80;
        let outbox = tempfile::tempdir().expect("a directory");
        let (mut watch, started) = Watch::start(|_, _| true);
        started.expect("events");
        assert!(watch.keep(outbox.path()).expect("a watch"));
        let inode = outbox.path().metadata().expect("it is there").ino();
        let of_outbox = format!(" ino:{inode:x} ");
        let handles = std::fs::read_dir("/proc/self/fdinfo").expect("/proc");
        let texts = handles.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        let lines: Vec<String> = texts
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.starts_with("inotify ") && line.contains(&of_outbox))
            .collect();
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        let mask = line.split(' ').find_map(|word| word.strip_prefix("mask:"));
        let mask = u32::from_str_radix(mask.expect("a mask"), 16).expect("hexadecimal digits");
        let wanted = CLOSE_WRITE | MOVED_TO;
        let unwanted = OPEN | CLOSE_NOWRITE | MODIFY;
        assert_eq!(mask & (wanted | unwanted), wanted, "{mask:x}");
    }

    #[test]
    fn our_own_reading_wakes_nobody() {
        let open =
            Event::new(EventKind::Access(AccessKind::Open(AccessMode::Any))).add_path("/o".into());
        assert_eq!(seen(vec![open]), Seen::default());
    }
}
