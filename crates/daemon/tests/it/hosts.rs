//! Several hosts share one ledger. Whatever the log loses, delays or repeats, every file is judged once, every mirror
//! has the same bytes, and every message arrives at its reader's home. A host that breaks the rules freezes the others.

mod changes;
mod clocks;
mod deadlines;
mod following;
mod heartbeats;
mod lies;
mod storms;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::TimeDelta;
use daemon::mailroom::{Mailroom, Sharing, SharingState};
use daemon::serve::serve_shared_once;
use fleet::Fleet;
use log_suite::{Appends, Dice, ModelLog, Shared, Weather};
use spool::log::{Appended, Batch, HostKeys, HostName, Local, Log, Signed};
use spool::{Content, Digest, Entry, FaultyDisk};
use tempfile::TempDir;
use workspace::clock::Moment;
use workspace::config;
use workspace::directory;
use workspace::heartbeat::HostState;

use crate::room::at_ms;
use crate::scratch::scratch;

/// Each host and the agent at home on it.
const HOSTS: [(&str, &str); 3] = [("tower", "claude"), ("laptop", "codex"), ("box", "pi")];

/// The error of each host's clock, in milliseconds.
const OFF_MS: [i64; 3] = [0, 90_000, -45_000];

/// The beginning of the reason that a host gives when its ledger does not fit the log.
const BY_THE_LOG: &str = "this host has";

/// A part of the reason that a host gives when another host has another history.
const BY_A_HOST: &str = "different histories";

/// Signs with a key that is the host's name.
struct Named(&'static str);

fn sign(key: &str, bytes: &[u8]) -> Vec<u8> {
    Digest::of(&[key.as_bytes(), bytes].concat())
        .bytes()
        .to_vec()
}

impl HostKeys for Named {
    fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        sign(self.0, bytes)
    }

    fn is_signed(&self, key: &str, bytes: &[u8], signature: &[u8]) -> bool {
        sign(key, bytes) == signature
    }
}

fn fleet() -> Fleet {
    let mut fleet = Fleet::default();
    for (host, agent) in HOSTS {
        let name: HostName = host.parse().expect("a host's name");
        fleet
            .join(name.clone(), host.to_owned())
            .expect("a new host");
        let agent = agent.parse().expect("an agent's name");
        fleet.claim(agent, name).expect("a free agent");
    }
    fleet
}

fn sharing(host: &'static str, log: Box<dyn Log>) -> Sharing {
    Sharing {
        workspace: "w".to_owned(),
        host: host.parse().expect("a host's name"),
        fleet: fleet(),
        policy: String::new(),
        log,
        keys: Box::new(Named(host)),
        key: host.to_owned(),
        join: format!("settled host join ./ledger.git --as {host}"),
    }
}

struct Host {
    root: TempDir,
    number: usize,
    mailroom: Option<Mailroom>,
    /// The log, and the number of its handle to it.
    log: Option<Shared>,
    handle: usize,
    is_frozen: bool,
    /// The error of its clock, in milliseconds.
    off_ms: i64,
}

impl Host {
    fn new(number: usize) -> Host {
        let root = scratch();
        // Every agent has a mailbox here, but only one is at home.
        let agents = HOSTS.map(|(_, agent)| agent.parse().expect("an agent's name"));
        directory::init(root.path(), &agents).expect("a workspace");
        let mailroom = None;
        Host {
            root,
            number,
            mailroom,
            log: None,
            handle: 0,
            is_frozen: false,
            off_ms: OFF_MS[number],
        }
    }

    /// Starts the host, or restarts it after a kill.
    fn start(&mut self, log: &Shared) {
        self.mailroom = None;
        self.log = Some(log.clone());
        let (host, _) = HOSTS[self.number];
        let log = log.connect();
        self.handle = log.number();
        let sharing = Sharing {
            policy: self.policy(),
            ..sharing(host, Box::new(log))
        };
        let opened = Mailroom::open_shared(self.root.path(), sharing);
        self.mailroom = Some(opened.expect("a start").0);
        self.is_frozen = false;
        self.assert_a_freeze_has_a_reason();
    }

    /// The shared part of this host's `settled.toml`.
    fn policy(&self) -> String {
        let path = self.path(config::FILE);
        let text = fs::read_to_string(&path).expect("a config");
        config::shared_part(&text, &path).expect("a valid config")
    }

    fn moment(&self, ms: i64) -> Moment {
        let mut moment = at_ms(ms);
        moment.utc += TimeDelta::milliseconds(self.off_ms);
        moment
    }

    fn mailroom(&mut self) -> &mut Mailroom {
        self.mailroom.as_mut().expect("it was started")
    }

    /// Sweeps its outboxes and makes a pass.
    fn pass(&mut self, ms: i64) {
        let moment = self.moment(ms);
        let mailroom = self.mailroom();
        mailroom.sweep().expect("a sweep");
        match mailroom.pass(moment) {
            Ok(_) | Err(spool::SpoolError::NotTaken { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        self.assert_a_freeze_has_a_reason();
    }

    /// Checks that a host which the log freezes has a ledger that the log does not continue. That may change later: a
    /// host that waited for an answer sends the lost batch again, and a late batch arrives in either history.
    fn assert_a_freeze_has_a_reason(&mut self) {
        let SharingState::Frozen { why, .. } = self.sharing_state() else {
            self.is_frozen = false;
            return;
        };
        if !self.is_frozen && why.contains(BY_THE_LOG) {
            let log = self.log.as_ref().expect("it was started");
            let shown = bytes_of(&log.shown_to(self.handle));
            assert!(
                !shown.starts_with(&self.ledger()),
                "frozen for nothing: {why}"
            );
        }
        self.is_frozen = true;
    }

    fn sharing_state(&self) -> SharingState {
        let mailroom = self.mailroom.as_ref().expect("it was started");
        mailroom
            .sharing_state()
            .expect("it shares a ledger")
            .clone()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn ledger(&self) -> Vec<u8> {
        let mut segments = names(&self.path(".settled/ledger"));
        segments.sort();
        let read = |name: &String| fs::read(self.path(".settled/ledger").join(name));
        segments
            .iter()
            .flat_map(|name| read(name).expect("a segment"))
            .collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let ledger = self.ledger();
        let lines = ledger
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| Entry::from_line(line).expect("a record"))
            .collect()
    }

    fn put(&self, file: &str, text: &str) {
        let agent = HOSTS[self.number].1;
        let path = self.path(&format!("agents/{agent}/outbox/{file}"));
        fs::write(&path, text).expect("a file");
        let finished = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_770_000_000);
        let file = fs::File::options()
            .write(true)
            .open(&path)
            .expect("the file");
        file.set_modified(finished)
            .expect("a file's time can be set");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let listed = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = listed.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

fn question(from: &str, to: &str, id: &str) -> String {
    format!(
        "id: \"{id}\"\nfrom: {from}\nto: {to}\ntype: question\npriority: P2\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"{id}\"\n"
    )
}

fn started(log: &Shared) -> Vec<Host> {
    let mut hosts: Vec<Host> = (0..HOSTS.len()).map(Host::new).collect();
    hosts.iter_mut().for_each(|host| host.start(log));
    hosts
}

/// Lets every host work until nothing changes any more.
fn settle(hosts: &mut [Host], ms: &mut i64) {
    let mut before = Vec::new();
    for _ in 0..400 {
        *ms += 1_000;
        hosts.iter_mut().for_each(|host| host.pass(*ms));
        let now: Vec<Vec<u8>> = hosts.iter().map(Host::ledger).collect();
        let is_done = hosts.iter().all(|host| {
            let agent = HOSTS[host.number].1;
            names(&host.path(&format!("agents/{agent}/outbox"))).is_empty()
        });
        if is_done && now == before && now.windows(2).all(|pair| pair[0] == pair[1]) {
            return;
        }
        before = now;
    }
    let states: Vec<SharingState> = hosts.iter().map(Host::sharing_state).collect();
    panic!("it does not come to rest: {states:?}");
}

fn bytes_of(batches: &[Signed]) -> Vec<u8> {
    let bytes = batches.iter().map(|signed| signed.batch.bytes());
    bytes.collect::<Vec<_>>().concat()
}

fn review_message(from: &str, to: &str, kind: &str, body: &str) -> String {
    format!(
        "id: \"{kind}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
    )
}
