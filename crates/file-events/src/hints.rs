//! The hints that the caller has not taken yet. The directories take turns, and a throttled directory does not wake the
//! caller.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::{Identity, IsWanted};

/// The most files of one directory with a waiting hint. Above that, its hints are dropped in favour of a listing of the
/// directory; those of others stay.
const HINTS_MAX: usize = 8192;

/// The most files of all directories with a waiting hint. Above that, all hints are dropped.
const HINTS_OF_ALL_MAX: usize = 8 * HINTS_MAX;

/// The most hints of a throttled directory that one call takes.
const THROTTLED_SHARE: usize = 32;

/// The changes since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Finished files by directory: a writer closed them, or they were renamed to that name.
    pub hints: Vec<(PathBuf, Vec<OsString>)>,
    /// Directories whose hints were dropped because they were too many.
    pub lost: Vec<PathBuf>,
    /// True if events were lost, so that only a sweep can find what happened.
    pub sweep: bool,
}

/// The news of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    /// There is none, or its directory is throttled.
    Waits,
    /// They wake the caller.
    Wakes,
}

/// The hints of each directory, and the directories that are watched.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    directories: BTreeMap<PathBuf, DirectoryHints>,
    /// The number of hints in all of them.
    count: usize,
    /// The directory whose turn was last.
    last: PathBuf,
    /// Directories whose hints were dropped.
    lost: HashSet<PathBuf>,
    /// The directories that were watched last; one whose watch has ended has no identity.
    watched: HashMap<PathBuf, Option<Identity>>,
    throttled: HashSet<PathBuf>,
    sweep: bool,
}

/// The finished files in the order they came, because messages of one sender are judged in the order it finished them. A
/// file keeps its place if it is closed again: a child of its writer may have inherited the handle.
#[derive(Debug, Default)]
struct DirectoryHints {
    order: VecDeque<OsString>,
    names: HashSet<OsString>,
}

impl Hints {
    /// Notes that the directory at this path is watched from now on; false if it is watched, or there is none.
    pub(crate) fn is_new(&mut self, directory: &Path, identity: Option<Identity>) -> bool {
        let Some(identity) = identity else {
            self.forget(directory);
            return false;
        };
        let now = Some(identity);
        let before = self.watched.insert(directory.to_owned(), now);
        before != Some(now)
    }

    /// Notes that the directory is not watched.
    pub(crate) fn forget(&mut self, directory: &Path) {
        self.watched.remove(directory);
    }

    /// Forgets every other directory, and returns these.
    pub(crate) fn retain(&mut self, is_kept: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
        let others = self.watched.extract_if(|directory, _| !is_kept(directory));
        others.map(|(directory, _)| directory).collect()
    }

    /// Notes that events were lost.
    pub(crate) fn lost_events(&mut self) -> News {
        self.sweep = true;
        News::Wakes
    }

    /// Notes that the watch ended with its directory, even if another one has its name and number by now.
    pub(crate) fn note_end(&mut self, directory: &Path) -> News {
        match self.watched.get_mut(directory).and_then(Option::take) {
            Some(_) => self.lost_events(),
            None => News::Waits,
        }
    }

    /// Notes that files of a directory were finished.
    pub(crate) fn note<'n>(
        &mut self,
        directory: &Path,
        names: impl IntoIterator<Item = &'n OsStr>,
        is_wanted: IsWanted,
    ) -> News {
        if !self.directories.contains_key(directory) {
            self.directories
                .insert(directory.to_owned(), DirectoryHints::default());
        }
        let hints = self.directories.get_mut(directory);
        let hints = hints.expect("it was there or was put in");
        let before = hints.order.len();
        let mut is_news = false;
        for name in names {
            is_news |= hints.note(name, |name| is_wanted(directory, name));
        }
        let now = hints.order.len();
        self.count += now - before;
        if now == 0 || now > HINTS_MAX {
            self.count -= now;
            self.directories.remove(directory);
        }
        if now > HINTS_MAX {
            self.lost.insert(directory.to_owned());
        }
        if self.count > HINTS_OF_ALL_MAX {
            self.count = 0;
            self.directories.clear();
            self.sweep = true;
        }
        if is_news && !self.throttled.contains(directory) {
            News::Wakes
        } else {
            News::Waits
        }
    }

    /// Takes up to `most` hints. Until the next call these directories do not wake the caller.
    pub(crate) fn take(&mut self, most: usize, throttled: HashSet<PathBuf>) -> Seen {
        self.throttled = throttled;
        Seen {
            hints: self.take_turns(most),
            lost: self.lost.drain().collect(),
            sweep: std::mem::take(&mut self.sweep),
        }
    }

    /// True if a directory that is not throttled has hints.
    pub(crate) fn has_news(&self) -> bool {
        let mut directories = self.directories.keys();
        directories.any(|directory| !self.throttled.contains(directory))
    }

    /// Takes hints from each directory in turn, beginning after the one whose turn was last.
    fn take_turns(&mut self, most: usize) -> Vec<(PathBuf, Vec<OsString>)> {
        let share = (most / self.directories.len().max(1)).max(1);
        let mut taken = Vec::new();
        let mut left = most;
        for _ in 0..self.directories.len() {
            let after = (Bound::Excluded(&self.last), Bound::Unbounded);
            let next = self.directories.range::<PathBuf, _>(after).next();
            let Some((directory, _)) = next.or_else(|| self.directories.first_key_value()) else {
                break;
            };
            self.last.clone_from(directory);
            let hints = self.directories.get_mut(&self.last).expect("it is there");
            let share = if self.throttled.contains(&self.last) {
                share.min(THROTTLED_SHARE)
            } else {
                share
            };
            let names = hints.take(share.min(left));
            if hints.order.is_empty() {
                self.directories.remove(&self.last);
            }
            left -= names.len();
            taken.push((self.last.clone(), names));
            if left == 0 {
                break;
            }
        }
        self.count -= most - left;
        taken
    }
}

impl DirectoryHints {
    /// Notes a file; false if it has a hint already or is not wanted.
    fn note(&mut self, name: &OsStr, is_wanted: impl Fn(&OsStr) -> bool) -> bool {
        let is_new = !self.names.contains(name) && is_wanted(name);
        if is_new {
            self.names.insert(name.to_owned());
            self.order.push_back(name.to_owned());
        }
        is_new
    }

    fn take(&mut self, most: usize) -> Vec<OsString> {
        let taken: Vec<_> = self.order.drain(..most.min(self.order.len())).collect();
        for name in &taken {
            self.names.remove(name);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes files by their paths; true if one of them wakes the caller.
    fn note(hints: &mut Hints, paths: &[&str]) -> bool {
        let news = paths.iter().map(|path| {
            let path = Path::new(path);
            let (directory, name) = path.parent().zip(path.file_name()).expect("a file");
            hints.note(directory, [name], |_, name| name != "junk")
        });
        news.filter(|news| *news == News::Wakes).count() > 0
    }

    fn names(seen: &Seen) -> Vec<&OsString> {
        seen.hints.iter().flat_map(|(_, names)| names).collect()
    }

    fn throttled(directory: &str) -> HashSet<PathBuf> {
        HashSet::from([directory.into()])
    }

    #[test]
    fn files_are_named_in_the_order_they_were_finished_and_keep_their_place_if_closed_again() {
        let mut hints = Hints::default();
        assert!(!note(&mut hints, &["/o/junk"]));
        assert!(!hints.has_news());
        assert!(note(&mut hints, &["/o/b", "/o/junk", "/o/a", "/o/b"]));
        let seen = hints.take(usize::MAX, HashSet::new());
        let names = ["b", "a"].map(OsString::from);
        assert_eq!(seen.hints, [("/o".into(), names.into())]);
        assert!(!seen.sweep && seen.lost.is_empty());
        assert_eq!(hints.count, 0);
    }

    #[test]
    fn a_flood_of_hints_costs_the_others_of_its_directory_and_no_other_directory() {
        let mut hints = Hints::default();
        note(&mut hints, &["/other/a", "/o/before"]);
        for number in 1..HINTS_MAX {
            note(&mut hints, &[&format!("/o/{number}")]);
        }
        assert!(hints.lost.is_empty(), "as many as there may be");
        note(&mut hints, &["/o/one more"]);
        assert_eq!(hints.count, 1, "that of the other directory");
        let seen = hints.take(usize::MAX, HashSet::new());
        assert_eq!(seen.lost, [PathBuf::from("/o")]);
        assert_eq!(names(&seen), ["a"]);
        assert!(!seen.sweep);
    }

    #[test]
    fn a_flood_in_many_directories_costs_all_hints_and_asks_for_a_sweep() {
        let mut hints = Hints::default();
        for number in 0..65_536 {
            let directory = number / HINTS_MAX;
            note(&mut hints, &[&format!("/{directory}/{number}")]);
        }
        assert!(!hints.sweep);
        note(&mut hints, &["/other/a", "/other/b"]);
        let seen = hints.take(10, HashSet::new());
        assert!(seen.sweep);
        assert_eq!(names(&seen), ["b"]);
    }

    #[test]
    fn directories_take_turns_and_none_of_their_hints_is_lost() {
        let mut hints = Hints::default();
        for number in 0..1_000 {
            note(&mut hints, &[&format!("/flood/{number}")]);
        }
        note(&mut hints, &["/a/1", "/z/1", "/z/2"]);
        let mut of_flood = Vec::new();
        for round in 1..=101 {
            assert!(hints.has_news(), "{round}");
            let seen = hints.take(10, HashSet::new());
            let taken = names(&seen).len();
            assert!(taken <= 10);
            let mut seen: BTreeMap<_, _> = seen.hints.into_iter().collect();
            let names = seen.remove(Path::new("/flood")).unwrap_or_default();
            let others = if round == 1 { 3 } else { 0 };
            assert_eq!(taken - names.len(), others, "{seen:?}");
            of_flood.extend(names);
        }
        assert!(!hints.has_news());
        let numbers = (0..1_000).map(|number| OsString::from(number.to_string()));
        assert!(of_flood.into_iter().eq(numbers), "in order");
    }

    #[test]
    fn a_throttled_directory_wakes_nobody_and_is_taken_with_whatever_else_wakes() {
        let mut hints = Hints::default();
        assert!(note(&mut hints, &["/o/1", "/o/2", "/o/3"]));
        let seen = hints.take(2, throttled("/o"));
        assert_eq!(names(&seen), ["1", "2"]);
        assert!(!hints.has_news(), "the third can wait");
        assert!(!note(&mut hints, &["/o/4"]), "and the fourth");
        assert!(note(&mut hints, &["/other/a"]));
        assert!(hints.has_news());
        let seen = hints.take(10, HashSet::new());
        assert_eq!(names(&seen), ["a", "3", "4"]);
        assert!(note(&mut hints, &["/o/5"]), "it is no longer throttled");
        for number in 6..100 {
            note(&mut hints, &[&format!("/o/{number}")]);
        }
        let seen = hints.take(100, throttled("/o"));
        assert_eq!(names(&seen).len(), THROTTLED_SHARE);
    }

    #[test]
    fn only_the_end_of_a_watched_directory_asks_for_a_sweep() {
        let mut hints = Hints::default();
        let identity = Some((1, 1, None));
        assert!(hints.is_new(Path::new("/o"), identity));
        assert!(!hints.is_new(Path::new("/o"), identity));
        assert_eq!(hints.note_end(Path::new("/other")), News::Waits);
        assert!(!hints.take(10, HashSet::new()).sweep);
        assert_eq!(hints.note_end(Path::new("/o")), News::Wakes);
        assert!(hints.take(10, HashSet::new()).sweep);
        assert_eq!(hints.note_end(Path::new("/o")), News::Waits);
        assert!(
            hints.is_new(Path::new("/o"), identity),
            "it is watched again"
        );
        assert!(hints.retain(&|_| true).is_empty());
        assert!(!hints.is_new(Path::new("/o"), identity));
        assert_eq!(hints.note_end(Path::new("/o")), News::Wakes);
        let forgotten = hints.retain(&|_| false);
        assert_eq!(forgotten, [PathBuf::from("/o")], "also if its watch ended");
        assert!(hints.is_new(Path::new("/o"), identity), "it was forgotten");
    }
}
