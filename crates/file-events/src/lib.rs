//! Watches directories for hints that a writer has finished a message or packet. Hints make delivery fast, the sweep makes
//! it certain: a lost or false hint costs time, never a message.

mod changes;
mod hints;
mod queue;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

pub use changes::Changes;
pub use hints::Seen;
use hints::{Hints, News};
pub use notify::Error;
use queue::Queue;
use tokio::sync::Notify;

/// Watches directories.
pub struct Watch {
    queue: Option<Queue>,
    collector: Arc<Collector>,
    /// Directories that could not be watched at the last try.
    unwatched: HashSet<PathBuf>,
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

/// Decides whether a file of a directory may ever matter; the watcher's thread asks, so that other files wake no caller.
pub type IsWanted = fn(&Path, &OsStr) -> bool;

/// The place in which the watcher's thread collects hints.
#[derive(Debug)]
struct Collector {
    hints: Mutex<Hints>,
    wakeup: Notify,
    is_wanted: IsWanted,
}

impl Watch {
    /// Starts watching for files that are wanted. Without events (exhausted watches, unusual file systems) the sweep does
    /// all the work, and the error says why delivery is slower.
    pub fn start(is_wanted: IsWanted) -> (Self, Result<(), Error>) {
        let mut watch = Self {
            collector: Arc::new(Collector::new(is_wanted)),
            ..Self::blind()
        };
        let started = Queue::start(&watch.collector).map(|queue| watch.queue = Some(queue));
        (watch, started)
    }

    /// A watch that never sees anything.
    pub fn blind() -> Self {
        Self {
            queue: None,
            collector: Arc::new(Collector::new(|_, _| true)),
            unwatched: HashSet::new(),
        }
    }

    /// Watches the directory at this path, also if another one has taken its place; costs one look if nothing changed.
    /// True if the watch is new: the next sweep finds what was written before. A directory that is missing, is a link,
    /// or cannot be watched is left to the sweep, and the next call tries again; only the first failure is an error.
    pub fn keep(&mut self, directory: &Path) -> Result<bool, Error> {
        let Some(queue) = &mut self.queue else {
            return Ok(false);
        };
        // The thread that reads events waits for the lock, so it is not held during the look.
        let identity = identity_of(directory);
        if !self.collector.hints().is_new(directory, identity) {
            if identity.is_none() {
                queue.forget(directory);
            }
            return Ok(false);
        }
        let watched = queue.watch(directory);
        if watched.is_ok() {
            self.unwatched.remove(directory);
            return Ok(true);
        }
        self.collector.hints().forget(directory);
        if self.unwatched.insert(directory.to_owned()) {
            watched?;
        }
        Ok(false)
    }

    /// Forgets every other directory, so that a directory that gets its old path back is watched again.
    pub fn retain(&mut self, is_kept: impl Fn(&Path) -> bool) {
        self.unwatched.retain(|directory| is_kept(directory));
        let forgotten = self.collector.hints().retain(&is_kept);
        if let Some(queue) = &mut self.queue {
            for directory in forgotten {
                queue.forget(&directory);
            }
        }
    }

    /// Waits until the watcher has seen something.
    pub async fn changed(&self) {
        self.collector.wakeup.notified().await;
    }

    /// Takes at most `most` of the hints seen so far, of each directory its share, and wakes again for the others. The
    /// removal of a watched directory needs a sweep.
    ///
    /// Until the next call, which the caller schedules, the throttled directories do not wake it. Otherwise a program that
    /// touches its files without a pause would wake the caller without a pause, and leave no core to others.
    pub fn take(&mut self, most: usize, throttled: HashSet<PathBuf>) -> Seen {
        let mut hints = self.collector.hints();
        let seen = hints.take(most, throttled);
        if hints.has_news() {
            self.collector.wakeup.notify_one();
        }
        seen
    }
}

impl Collector {
    fn new(is_wanted: IsWanted) -> Self {
        Self {
            hints: Mutex::default(),
            wakeup: Notify::new(),
            is_wanted,
        }
    }

    fn hints(&self) -> MutexGuard<'_, Hints> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the watcher's thread, whose queue overflows if this is slow: it only takes notes, and wakes the caller if
    /// they are news.
    fn note(&self, take: impl FnOnce(&mut Hints) -> News) {
        if take(&mut self.hints()) == News::Wakes {
            self.wakeup.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().expect("a runtime")
    }

    /// Makes directories and watches them.
    fn watched<const N: usize>(root: &Path, names: [&str; N]) -> (Watch, [PathBuf; N]) {
        let (mut watch, started) = Watch::start(|_, name| name != "junk");
        started.expect("events");
        let directories = names.map(|name| root.join(name));
        for directory in &directories {
            std::fs::create_dir(directory).expect("a directory");
            assert!(watch.keep(directory).expect("a watch"));
        }
        (watch, directories)
    }

    /// Waits for a hint about this file, forever if none comes; earlier files may wake it late.
    fn wait_for(watch: &mut Watch, file: &str) {
        let runtime = runtime();
        loop {
            let seen = watch.take(usize::MAX, HashSet::new());
            let has = |file| {
                let mut names = seen.hints.iter().flat_map(|(_, names)| names);
                names.any(|name| name == file)
            };
            assert!(!has("junk"));
            if has(file) {
                break;
            }
            runtime.block_on(watch.changed());
        }
    }

    #[test]
    fn a_directory_made_again_is_watched_again() {
        let root = tempfile::tempdir().expect("a directory");
        let (mut watch, [outbox]) = watched(root.path(), ["outbox"]);
        assert!(!watch.keep(&outbox).expect("the same watch"));
        std::fs::remove_dir(&outbox).expect("an empty outbox");
        runtime().block_on(watch.changed());
        let seen = watch.take(usize::MAX, HashSet::new());
        assert!(seen.sweep, "somebody has to look for the new one");
        assert!(!watch.keep(&outbox).expect("nothing to watch"));
        std::fs::create_dir(&outbox).expect("an outbox");
        assert!(watch.keep(&outbox).expect("a watch"));
        std::fs::write(outbox.join("junk"), "text").expect("a file");
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
    fn a_directory_that_was_renamed_and_is_back_is_watched_if_it_was_forgotten_meanwhile() {
        let root = tempfile::tempdir().expect("a directory");
        let (mut watch, [ada, other]) = watched(root.path(), ["ada", "other"]);
        let zed = root.path().join("zed");
        std::fs::rename(&ada, &zed).expect("a rename");
        assert!(watch.keep(&zed).expect("a watch"));
        watch.retain(|directory| directory != ada);
        std::fs::write(zed.join("a"), "text").expect("a file");
        wait_for(&mut watch, "a");
        std::fs::rename(&zed, &ada).expect("a rename");
        assert!(watch.keep(&ada).expect("a watch"));
        watch.retain(|directory| directory != zed);
        assert!(!watch.keep(&other).expect("the same watch"));
        std::fs::write(ada.join("b"), "text").expect("a file");
        let seen = loop {
            runtime().block_on(watch.changed());
            let seen = watch.take(usize::MAX, HashSet::new());
            if !seen.hints.is_empty() {
                break seen;
            }
        };
        assert_eq!(seen.hints, [(ada, vec!["b".into()])]);
    }

    #[test]
    fn hints_that_are_left_wake_again_but_for_those_of_a_throttled_directory() {
        use std::pin::pin;
        use std::task::{Context, Waker};

        let mut watch = Watch::blind();
        let note = |watch: &Watch, path: &str| {
            let (directory, name) = path.rsplit_once('/').expect("a file");
            let note = |hints: &mut Hints| {
                hints.note(Path::new(directory), [OsStr::new(name)], |_, _| true)
            };
            watch.collector.note(note);
        };
        let wakes = |watch: &Watch| {
            let mut context = Context::from_waker(Waker::noop());
            pin!(watch.changed()).poll(&mut context).is_ready()
        };
        assert!(!wakes(&watch), "nothing was seen");
        note(&watch, "/o/a");
        note(&watch, "/o/b");
        note(&watch, "/o/c");
        assert!(wakes(&watch) && !wakes(&watch));
        watch.take(1, HashSet::new());
        assert!(wakes(&watch), "two are left");
        watch.take(1, HashSet::from(["/o".into()]));
        assert!(!wakes(&watch), "the third can wait");
        note(&watch, "/o/d");
        assert!(!wakes(&watch), "and the fourth");
    }

    #[test]
    fn directories_that_change_places_are_both_watched() {
        let root = tempfile::tempdir().expect("a directory");
        let (mut watch, [one, other]) = watched(root.path(), ["one", "other"]);
        let away = root.path().join("away");
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

    #[cfg(target_os = "linux")]
    #[test]
    fn beside_files_that_are_closed_without_a_pause_a_directory_is_watched_and_its_file_seen() {
        let root = tempfile::tempdir().expect("a directory");
        let (mut watch, [noisy]) = watched(root.path(), ["noisy"]);
        let other = root.path().join("other");
        std::fs::create_dir(&other).expect("a directory");
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

    /// The test starts itself in a user namespace, which has a limit of its own.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_could_not_be_watched_is_an_error_once_and_is_watched_when_it_can_be() {
        const LIMIT: &str = "/proc/sys/user/max_inotify_watches";
        const INSIDE: &str = "SETTLED_TEST_IN_NAMESPACE";
        if std::env::var_os(INSIDE).is_none() {
            let name = std::thread::current().name().map(str::to_owned);
            let inside = std::process::Command::new("unshare")
                .args(["--user", "--map-root-user"])
                .arg(std::env::current_exe().expect("this program"))
                .args(["--exact", &name.expect("the test's name")])
                .env(INSIDE, "1")
                .output();
            let inside = inside.expect("unshare");
            assert!(inside.status.success(), "{inside:?}");
            return;
        }
        std::fs::write(LIMIT, "1").expect("a limit");
        let root = tempfile::tempdir().expect("a directory");
        let (mut watch, [_outbox]) = watched(root.path(), ["outbox"]);
        let other = root.path().join("other");
        std::fs::create_dir(&other).expect("a directory");
        assert!(watch.keep(&other).is_err());
        assert!(!watch.keep(&other).expect("only the first is an error"));
        std::fs::write(LIMIT, "2").expect("a limit");
        assert!(watch.keep(&other).expect("a watch"));
        std::fs::write(other.join("a"), "text").expect("a file");
        wait_for(&mut watch, "a");
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
        let root = tempfile::tempdir().expect("a directory");
        let (_watch, [outbox]) = watched(root.path(), ["outbox"]);
        let [line] = &watches_of(&outbox)[..] else {
            panic!("one watch");
        };
        let mask = line.split(' ').find_map(|word| word.strip_prefix("mask:"));
        let mask = u32::from_str_radix(mask.expect("a mask"), 16).expect("hexadecimal digits");
        let wanted = CLOSE_WRITE | MOVED_TO;
        let unwanted = OPEN | CLOSE_NOWRITE | MODIFY;
        assert_eq!(mask & (wanted | unwanted), wanted, "{mask:x}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_is_moved_away_leaves_no_watch_behind() {
        let root = tempfile::tempdir().expect("a directory");
        let (mut watch, [missed, forgotten]) = watched(root.path(), ["missed", "forgotten"]);
        for directory in [&missed, &forgotten] {
            let away = directory.with_extension("away");
            std::fs::rename(directory, &away).expect("a rename");
            assert_eq!(watches_of(&away).len(), 1);
        }
        assert!(!watch.keep(&missed).expect("nothing to watch"));
        watch.retain(|directory| directory != forgotten);
        for directory in [missed, forgotten] {
            assert!(watches_of(&directory.with_extension("away")).is_empty());
        }
    }

    /// Returns the lines of this process's watches on a directory.
    #[cfg(target_os = "linux")]
    fn watches_of(directory: &Path) -> Vec<String> {
        let inode = directory.metadata().expect("it is there").ino();
        let of_outbox = format!(" ino:{inode:x} ");
        let handles = std::fs::read_dir("/proc/self/fdinfo").expect("/proc");
        let texts = handles.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        texts
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.starts_with("inotify ") && line.contains(&of_outbox))
            .collect()
    }
}
