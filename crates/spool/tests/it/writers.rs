//! Random writers against a naive model: every finished file is taken exactly once, with exactly its last bytes; no
//! unfinished file is taken; nothing is lost.
//!
//! The writers work on real files, the clock is a number, and hints come as inotify sends them, or not at all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use spool::{Body, FaultyDisk, Intake, Now, OutboxFile, Spool};

use crate::daemon::{BOOT, Workspace, name, scan};

const CASES: u32 = 2_500;
const AGENTS: [&str; 2] = ["claude", "codex"];
const NAMES: [&str; 3] = ["a.yaml", "b.yml", "c.json"];
/// The start of the clock, in milliseconds since 1970.
const START: u64 = 1_770_000_000_000;
/// The pauses of a writer that nobody watches: its file must not look finished.
const STEADY_MS: u64 = 40;
/// The time given to a judged file that is given back, in milliseconds.
const GIVEN_MS: u64 = 500;

/// An outbox and a name in it, by index.
type Place = (usize, usize);

/// One action of a writer, or a pause in which the daemon runs.
#[derive(Clone, Debug)]
enum Deed {
    /// Opens the file, empty, and writes the first bytes.
    Create(Place),
    Append(Place),
    Truncate(Place),
    Close(Place),
    /// Opens the file again at its end.
    Reopen(Place),
    /// Writes a hidden file, and renames it to the name, over whatever has it.
    RenameIn(Place),
    /// Writes a hidden file, links it to the name if that is free, and removes the first name.
    LinkIn(Place),
    Unlink(Place),
    /// Renames a closed file to another name of the outbox, over whatever has it.
    RenameTo(Place, usize),
    /// Renames a closed file to a name that is no message's.
    RenameAway(Place),
    /// Lets time pass, then runs the daemon, which may sweep and may give back what it takes.
    Pause {
        ms: u64,
        sweeps: bool,
        gives_back: bool,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    let place = || (0..AGENTS.len(), 0..NAMES.len());
    prop_oneof![
        4 => place().prop_map(Deed::Create),
        4 => place().prop_map(Deed::Append),
        1 => place().prop_map(Deed::Truncate),
        5 => place().prop_map(Deed::Close),
        2 => place().prop_map(Deed::Reopen),
        2 => place().prop_map(Deed::RenameIn),
        1 => place().prop_map(Deed::LinkIn),
        1 => place().prop_map(Deed::Unlink),
        1 => (place(), 0..NAMES.len()).prop_map(|(place, to)| Deed::RenameTo(place, to)),
        1 => place().prop_map(Deed::RenameAway),
        6 => (1..2_500_u64, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(ms, sweeps, gives_back)| Deed::Pause { ms, sweeps, gives_back }),
    ]
}

/// The file under a name: its bytes, and its writer while it has one.
struct NamedFile {
    bytes: Vec<u8>,
    writer: Option<File>,
}

/// The world of one case.
struct World<'a> {
    workspace: &'a Workspace,
    spool: &'a Spool,
    intake: Intake,
    /// True if the watcher reports what it sees.
    is_watched: bool,
    ms: u64,
    written: u64,
    taken: u64,
    /// The naive model: the files that a listing of the outboxes shows.
    entries: BTreeMap<Place, NamedFile>,
}

impl<'a> World<'a> {
    fn new(workspace: &'a Workspace, spool: &'a Spool, is_watched: bool) -> World<'a> {
        let intake = Intake::new(1_000_000, spool::QUIET_MS);
        World {
            workspace,
            spool,
            intake,
            is_watched,
            ms: 0,
            written: 0,
            taken: 0,
            entries: BTreeMap::new(),
        }
    }

    fn path(&self, place: Place) -> PathBuf {
        self.hidden(place, NAMES[place.1])
    }

    fn hidden(&self, place: Place, file: &str) -> PathBuf {
        self.workspace
            .path(&format!("agents/{}/outbox/{file}", AGENTS[place.0]))
    }

    fn hint(&mut self, place: Place) {
        if self.is_watched {
            self.intake.hint(AGENTS[place.0], &name(NAMES[place.1]));
        }
    }

    /// Appends bytes no one else writes, and dates the file.
    fn write(&mut self, file: &mut File) -> Vec<u8> {
        self.written += 1;
        let bytes = format!("{};", self.written).into_bytes();
        file.write_all(&bytes).expect("room");
        self.date(file);
        bytes
    }

    fn date(&self, file: &File) {
        file.set_modified(UNIX_EPOCH + Duration::from_millis(START + self.ms))
            .expect("a time");
    }

    fn is_closed(&self, place: Place) -> bool {
        self.entries
            .get(&place)
            .is_some_and(|entry| entry.writer.is_none())
    }

    fn act(&mut self, deed: &Deed) {
        match *deed {
            Deed::Create(place) => {
                if self
                    .entries
                    .get(&place)
                    .is_some_and(|entry| entry.writer.is_some())
                {
                    return;
                }
                let mut file = File::create(self.path(place)).expect("a file");
                let bytes = self.write(&mut file);
                self.entries.insert(
                    place,
                    NamedFile {
                        bytes,
                        writer: Some(file),
                    },
                );
            }
            Deed::Append(place) => {
                let Some(mut entry) = self.entries.remove(&place) else {
                    return;
                };
                if let Some(file) = &mut entry.writer {
                    let bytes = self.write(file);
                    entry.bytes.extend(bytes);
                }
                self.entries.insert(place, entry);
            }
            Deed::Truncate(place) => {
                let Some(mut entry) = self.entries.remove(&place) else {
                    return;
                };
                if entry.writer.take().is_some() {
                    // As `: > file` and a new writer do it, and never left empty: an empty file follows rules of its
                    // own.
                    let mut file = File::create(self.path(place)).expect("a file");
                    entry.bytes = self.write(&mut file);
                    entry.writer = Some(file);
                }
                self.entries.insert(place, entry);
            }
            Deed::Close(place) => {
                let closed = self
                    .entries
                    .get_mut(&place)
                    .and_then(|entry| entry.writer.take());
                if closed.is_some() {
                    self.hint(place);
                }
            }
            Deed::Reopen(place) => {
                if self.is_closed(place) {
                    let mut file = File::options()
                        .append(true)
                        .open(self.path(place))
                        .expect("a file");
                    let more = self.write(&mut file);
                    let entry = self.entries.get_mut(&place).expect("it is closed");
                    entry.bytes.extend(more);
                    entry.writer = Some(file);
                }
            }
            Deed::RenameIn(place) => {
                let bytes = self.lay_hidden(place);
                std::fs::rename(self.hidden(place, ".x"), self.path(place)).expect("a rename");
                self.entries.insert(
                    place,
                    NamedFile {
                        bytes,
                        writer: None,
                    },
                );
                self.hint(place);
            }
            Deed::LinkIn(place) => {
                if !self.entries.contains_key(&place) {
                    let bytes = self.lay_hidden(place);
                    std::fs::hard_link(self.hidden(place, ".x"), self.path(place)).expect("a link");
                    std::fs::remove_file(self.hidden(place, ".x")).expect("a file");
                    self.entries.insert(
                        place,
                        NamedFile {
                            bytes,
                            writer: None,
                        },
                    );
                }
            }
            Deed::Unlink(place) => {
                if self.entries.remove(&place).is_some() {
                    std::fs::remove_file(self.path(place)).expect("a file");
                }
            }
            Deed::RenameTo(place, to) => {
                if self.is_closed(place) && place.1 != to {
                    let entry = self.entries.remove(&place).expect("it is closed");
                    std::fs::rename(self.path(place), self.path((place.0, to))).expect("a rename");
                    self.entries.insert((place.0, to), entry);
                    self.hint((place.0, to));
                }
            }
            Deed::RenameAway(place) => {
                if self.is_closed(place) {
                    self.entries.remove(&place);
                    std::fs::rename(self.path(place), self.hidden(place, "away.txt"))
                        .expect("a rename");
                }
            }
            Deed::Pause {
                ms,
                sweeps,
                gives_back,
            } => self.pause(ms, sweeps, gives_back),
        }
    }

    fn lay_hidden(&mut self, place: Place) -> Vec<u8> {
        let mut file = File::create(self.hidden(place, ".x")).expect("a file");
        self.write(&mut file)
    }

    /// Time passes, and the daemon looks. A writer nobody watches keeps writing meanwhile.
    fn pause(&mut self, ms: u64, sweeps: bool, gives_back: bool) {
        let open: Vec<Place> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.writer.is_some())
            .map(|(place, _)| *place)
            .collect();
        if self.is_watched || open.is_empty() {
            self.ms += ms;
        } else {
            open.into_iter()
                .for_each(|place| self.act(&Deed::Append(place)));
            self.ms += ms.min(STEADY_MS);
        }
        if sweeps || !self.is_watched {
            let agents = AGENTS.map(str::to_owned);
            assert!(scan(&mut self.intake, &self.spool.view(), &agents).is_empty());
        }
        let wall = i64::try_from(START + self.ms).expect("a time");
        let taken = self.intake.take(
            &self.spool.view(),
            Now {
                mono: self.ms,
                wall,
            },
            1_000,
        );
        assert!(taken.errors.is_empty(), "{:?}", taken.errors);
        for found in taken.found {
            self.check(&found, gives_back);
        }
    }

    /// Checks that the model has the taken file, finished, with these bytes; then puts it away or gives it back.
    fn check(&mut self, found: &OutboxFile, gives_back: bool) {
        let agent = AGENTS
            .iter()
            .position(|agent| *agent == found.agent)
            .expect("one of ours");
        let file = NAMES
            .iter()
            .position(|file| *file == found.file.to_string())
            .expect("one of ours");
        let place = (agent, file);
        let entry = self
            .entries
            .get(&place)
            .unwrap_or_else(|| panic!("{place:?} was taken and is not there"));
        assert!(
            entry.writer.is_none(),
            "{place:?} was taken from its writer"
        );
        let Body::Message { bytes, .. } = &found.body else {
            panic!("{found:?}")
        };
        assert_eq!(
            bytes.escape_ascii().to_string(),
            entry.bytes.escape_ascii().to_string(),
            "{place:?}"
        );
        if gives_back {
            self.intake.give_time(found, self.ms + GIVEN_MS);
            return;
        }
        self.entries.remove(&place);
        self.taken += 1;
        std::fs::remove_file(self.path(place)).expect("a file");
    }

    /// The writers go home, and the daemon has all the time it may take.
    fn end(&mut self) {
        for agent in 0..AGENTS.len() {
            (0..NAMES.len()).for_each(|file| self.act(&Deed::Close((agent, file))));
        }
        for _ in 0..3 {
            self.pause(31_000, true, false);
        }
        let left: Vec<&Place> = self.entries.keys().collect();
        assert!(left.is_empty(), "{left:?} were never taken");
        assert_eq!(
            self.intake.next_wakeup(),
            None,
            "something is still waited for"
        );
    }
}

#[test]
fn what_writers_finish_is_taken_once_with_its_last_bytes_and_what_they_do_not_never() {
    let workspace = Workspace::new(&AGENTS);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let spool = Spool::open(workspace.root(), disk, &mut |_| Ok(()))
        .expect("a start")
        .spool;
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let taken = std::cell::Cell::new(0);
    proptest!(config, |(is_watched in any::<bool>(), deeds in prop::collection::vec(deed(), 1..40))| {
        for agent in AGENTS {
            let outbox = workspace.path(&format!("agents/{agent}/outbox"));
            std::fs::remove_dir_all(&outbox).expect("an outbox");
            std::fs::create_dir(&outbox).expect("an outbox");
        }
        let mut world = World::new(&workspace, &spool, is_watched);
        deeds.iter().for_each(|deed| world.act(deed));
        world.end();
        taken.set(taken.get() + world.taken);
    });
    assert!(
        taken.get() > u64::from(CASES),
        "the writers hardly finished anything: {}",
        taken.get()
    );
}
