//! A workspace on a real directory and the smallest possible daemon on it, for the tests of this room.
//!
//! The daemon's rules: a message is `to <agent>: <text>`; one that says `bad` is refused, one whose bytes were accepted
//! before is a duplicate. Each accepted message makes an inbox file, a notice beside it and a packet, all in one record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use spool::{
    Away, Body, Content, Delivery, Digest, Disk, Entry, EntryDraft, FaultyDisk, FileName, Intake,
    Layout, Mailbox, Now, Opened, Original, OutboxFile, Pass, Recovery, Spool, SpoolError, View,
};

pub(crate) const BOOT: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";
pub(crate) const OTHER_BOOT: &str = "ffffffff-0000-4000-8000-0123456789ab";
/// Long after every file of a test was written, so that all of them count as finished.
pub(crate) const LATER: Now = Now {
    mono: 1_000_000,
    wall: i64::MAX / 2_000_000,
};

pub(crate) struct Workspace {
    dir: tempfile::TempDir,
}

impl Workspace {
    pub(crate) fn new(agents: &[&str]) -> Workspace {
        // These tests create thousands of small trees; memory is faster.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let dir = dir.expect("a directory");
        Layout::init(dir.path(), agents).expect("a tree");
        Workspace { dir }
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        std::fs::write(self.path(relative), text).expect("a file to write");
    }

    pub(crate) fn read(&self, relative: &str) -> Option<String> {
        std::fs::read(self.path(relative))
            .ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the visible files of a directory, as names and texts.
    pub(crate) fn show(&self, relative: &str) -> BTreeMap<String, String> {
        let mut shown = BTreeMap::new();
        for entry in std::fs::read_dir(self.path(relative))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && entry.path().is_file() {
                let bytes = std::fs::read(entry.path()).expect("a file to read");
                shown.insert(name, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        shown
    }

    pub(crate) fn hidden(&self, relative: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(relative))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.')).collect()
    }
}

/// Makes a FIFO without another process: it would hold the files open that other tests are writing, and the daemon asks the
/// kernel about those.
pub(crate) fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
}

pub(crate) fn name(text: &str) -> FileName {
    FileName::new(text).expect("a name")
}

pub(crate) fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

/// Returns a record that makes one file in one mailbox.
pub(crate) fn notice(mailbox: Mailbox, file: &str, text: &str) -> EntryDraft {
    EntryDraft {
        at: "2026-02-13T10:00:00.000Z".to_owned(),
        kind: "notice".to_owned(),
        rules: 1,
        review: None,
        id: None,
        original: None,
        deliveries: vec![Delivery {
            mailbox,
            file: name(file),
            content: Content::Text(text.to_owned()),
        }],
        decision: json("null"),
    }
}

pub(crate) fn inbox(agent: &str) -> Mailbox {
    Mailbox::Inbox(agent.to_owned())
}

/// The state of the ledger: the fold that a daemon keeps.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) accepted: BTreeSet<Digest>,
    pub(crate) names: BTreeSet<(String, FileName)>,
    /// The number of times each original was judged, by kind and digest.
    pub(crate) judged: BTreeMap<(String, String), u32>,
    pub(crate) next: u64,
}

impl State {
    pub(crate) fn apply(&mut self, entry: &Entry) {
        self.next = entry.seq + 1;
        for delivery in &entry.deliveries {
            self.names
                .insert((delivery.mailbox.to_string(), delivery.file.clone()));
        }
        if let Some(original) = &entry.original {
            if entry.kind == "accepted" {
                self.accepted.extend(original.digest);
            }
            let what = original
                .digest
                .map_or_else(|| original.file.to_string(), |digest| digest.to_string());
            *self.judged.entry((entry.kind.clone(), what)).or_default() += 1;
        }
    }

    fn free_name(&mut self, place: &str, file: &FileName, seq: u64) -> FileName {
        let free = if self.names.contains(&(place.to_owned(), file.clone())) {
            file.numbered(seq)
        } else {
            file.clone()
        };
        self.names.insert((place.to_owned(), free.clone()));
        free
    }

    /// Decides about one file, as record `seq`.
    pub(crate) fn decide(&mut self, found: &OutboxFile, seq: u64) -> EntryDraft {
        let (text, digest) = match &found.body {
            Body::Message { bytes, digest } => {
                (String::from_utf8_lossy(bytes).into_owned(), Some(*digest))
            }
            Body::Unfit(unfit) => (format!("bad: {unfit}"), None),
        };
        let recipient = text
            .strip_prefix("to ")
            .and_then(|rest| rest.split_once(':'))
            .map(|(agent, _)| agent.to_owned());
        let duplicate = digest.is_some_and(|digest| self.accepted.contains(&digest));
        let (kind, away, kept, deliveries) = match recipient {
            Some(_) if duplicate => (
                "duplicate",
                Away::Sent(found.file.clone()),
                None,
                Vec::new(),
            ),
            Some(agent) if !text.contains("bad") => {
                let file = self.free_name(&format!("{agent}/inbox"), &found.file, seq);
                let brief = name(&format!("brief-{seq}.yaml"));
                let told = name(&format!("notice-{seq}.yaml"));
                let deliveries = vec![
                    Delivery {
                        mailbox: inbox(&agent),
                        file,
                        content: Content::Original,
                    },
                    Delivery {
                        mailbox: inbox(&agent),
                        file: told,
                        content: Content::Text(format!("notice of {text}")),
                    },
                    Delivery {
                        mailbox: Mailbox::Packets("briefs".to_owned()),
                        file: brief,
                        content: Content::Text(format!("brief of {text}")),
                    },
                ];
                self.accepted.extend(digest);
                (
                    "accepted",
                    Away::Sent(found.file.clone()),
                    Some(text),
                    deliveries,
                )
            }
            Some(_) | None => {
                let mailbox = Mailbox::DeadLetter(found.agent.clone());
                let content = Content::Text(format!("report on {text}"));
                let report = Delivery {
                    mailbox,
                    file: found.file.report(),
                    content,
                };
                (
                    "refused",
                    Away::DeadLetter(found.file.clone()),
                    None,
                    vec![report],
                )
            }
        };
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: kind.to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: Some(Original {
                outbox: found.agent.clone(),
                file: found.file.clone(),
                digest,
                stamp: Some(found.stamp),
                away,
                text: kept,
            }),
            deliveries,
            decision: json("{}"),
        }
    }
}

/// The daemon: one process from its start to its end.
pub(crate) struct Daemon {
    pub(crate) spool: Spool,
    pub(crate) intake: Intake,
    pub(crate) state: State,
    pub(crate) recovery: Recovery,
    pub(crate) agents: Vec<String>,
}

impl Daemon {
    pub(crate) fn start(workspace: &Workspace, disk: Arc<dyn Disk>) -> Result<Daemon, SpoolError> {
        let mut state = State {
            next: 1,
            ..State::default()
        };
        let opened = Spool::open(workspace.root(), disk, &mut |entry| {
            state.apply(entry);
            Ok(())
        })?;
        Daemon::of(workspace, state, opened)
    }

    /// Starts from a snapshot, if there is one of use.
    pub(crate) fn resume(workspace: &Workspace, disk: Arc<dyn Disk>) -> Result<Daemon, SpoolError> {
        let mut state = State::default();
        let opened = Spool::resume(workspace.root(), disk, &mut state)?;
        Daemon::of(workspace, state, opened)
    }

    fn of(workspace: &Workspace, state: State, opened: Opened) -> Result<Daemon, SpoolError> {
        let agents = Layout::known_agents(workspace.root())?;
        let intake = Intake::new(256 * 1024, spool::QUIET_MS);
        Ok(Daemon {
            spool: opened.spool,
            intake,
            state,
            recovery: opened.recovery,
            agents,
        })
    }

    /// Scans, decides and commits once, and returns the number of judged files.
    pub(crate) fn judge(&mut self, now: Now) -> Result<usize, SpoolError> {
        if let Some(error) = scan(&mut self.intake, &self.spool.view(), &self.agents).pop() {
            return Err(error);
        }
        let mut taken = self.intake.take(&self.spool.view(), now, 256);
        if let Some(error) = taken.errors.pop() {
            return Err(error);
        }
        let mut scratch = self.state.clone();
        let drafts = (self.state.next..)
            .zip(&taken.found)
            .map(|(seq, found)| scratch.decide(found, seq))
            .collect();
        for committed in self.spool.commit(self.state.next, drafts)? {
            self.state.apply(&committed);
        }
        Ok(taken.found.len())
    }

    /// Judges and delivers once, and returns the number of judged files.
    pub(crate) fn step(&mut self, now: Now) -> Result<(usize, Pass), SpoolError> {
        let judged = self.judge(now)?;
        Ok((judged, self.spool.deliver(now.mono)?))
    }

    /// Works until there is nothing to do, then makes it durable.
    pub(crate) fn run(&mut self) -> Result<(), SpoolError> {
        let mut now = LATER;
        for _ in 0..20 {
            let (judged, pass) = self.step(now)?;
            now.mono += 60_000;
            if judged == 0 && pass.came_back.is_empty() && self.spool.waiting() == 0 {
                return self.spool.checkpoint();
            }
        }
        panic!("never at rest: {:?}", self.spool.parked());
    }
}

/// Starts on a disk of this boot and works until there is nothing to do.
pub(crate) fn run(workspace: &Workspace, boot: &str) -> Daemon {
    let mut daemon = Daemon::start(workspace, Arc::new(FaultyDisk::new(boot))).expect("a start");
    daemon.run().expect("a run without faults");
    daemon
}

/// Scans the outboxes of these agents as the daemon does. Returns the outboxes that could not be listed, as errors.
pub(crate) fn scan(intake: &mut Intake, view: &View<'_>, agents: &[String]) -> Vec<SpoolError> {
    intake.keep(&|agent| agents.iter().any(|known| known == agent));
    let mut scan = |agent| match intake.list(view, agent)? {
        Some(mut listing) => intake.list_on(view, &mut listing, &mut || false).map(drop),
        None => Ok(()),
    };
    let scanned = agents.iter().map(|agent| scan(agent));
    scanned.filter_map(Result::err).collect()
}
