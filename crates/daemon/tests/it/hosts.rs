//! Several hosts share one ledger. Whatever the log loses, delays or repeats, every file is judged once, every mirror
//! has the same bytes, and every message arrives at its reader's home. A host that breaks the rules freezes the others.

mod changes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::TimeDelta;
use daemon::mailroom::{Mailroom, Sharing, Standing};
use daemon::serve::serve_shared_once;
use fleet::Fleet;
use log_suite::{Dice, ModelLog, Shared, Weather};
use spool::log::{Appended, Batch, Head, HostKeys, HostName, Local, Log, LogError, Ring, Signed};
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
        let Standing::Frozen { why, .. } = self.standing() else {
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

    fn standing(&self) -> Standing {
        let mailroom = self.mailroom.as_ref().expect("it was started");
        mailroom.standing().expect("it shares a ledger").clone()
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
    let standings: Vec<Standing> = hosts.iter().map(Host::standing).collect();
    panic!("it does not come to rest: {standings:?}");
}

/// A promise that the log breaks once, in the middle of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breach {
    Nothing,
    /// It forgets batches that it had acknowledged.
    LostTail,
    /// It shows hosts two histories.
    Fork,
}

impl Breach {
    fn happens(self, log: &Shared, seed: u64) {
        match self {
            Breach::Nothing => {}
            Breach::LostTail => log.lose_tail(1 + usize::from(seed.is_multiple_of(3))),
            Breach::Fork => log.split(),
        }
    }
}

/// A message that was sent: the host of its reader, and its text.
type Sent = BTreeMap<String, (usize, String)>;

/// Sends messages, restarts hosts and changes the weather, all by the seed.
fn storm(seed: u64, log: &Shared, hosts: &mut [Host], breach: Breach) -> (Sent, i64) {
    let mut dice = Dice::new(seed);
    let mut sent = Sent::new();
    let mut ms = 0;
    let breaks_at = 15 + seed % 40;
    for step in 0..60 {
        if step == breaks_at {
            breach.happens(log, seed);
        }
        ms += i64::try_from(dice.below(1_500)).expect("a small number");
        let number = dice.below(hosts.len());
        match dice.below(10) {
            0..=3 => {
                let to = dice.below(hosts.len());
                let (from, to_agent) = (HOSTS[number].1, HOSTS[to].1);
                let id = format!("msg-{seed}-{step}");
                let text = question(from, to_agent, &id);
                hosts[number].put(&format!("{id}.yaml"), &text);
                if from != to_agent {
                    sent.insert(id, (to, text));
                }
            }
            4 => {
                let name = format!("broken-{step}.yaml");
                hosts[number].put(&name, "from: [\n");
            }
            5 => hosts[number].start(log),
            _ => hosts[number].pass(ms),
        }
    }
    (sent, ms)
}

/// The inboxes that contain a message: the host's number and the agent, once for each copy.
fn found<'a>(hosts: &'a [Host], text: &'a str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for host in hosts {
        for (_, agent) in HOSTS {
            let inbox = host.path(&format!("agents/{agent}/inbox"));
            for name in names(&inbox) {
                if fs::read_to_string(inbox.join(&name)).is_ok_and(|there| there == *text) {
                    found.push((host.number, agent));
                }
            }
        }
    }
    found
}

fn bytes_of(batches: &[Signed]) -> Vec<u8> {
    let bytes = batches.iter().map(|signed| signed.batch.bytes());
    bytes.collect::<Vec<_>>().concat()
}

/// Checks that no file is judged twice and that times do not go back, even if a host's clock is wrong.
fn is_in_order(entries: &[Entry], seed: u64) {
    let mut judged = BTreeSet::new();
    for entry in entries {
        if let Some(original) = &entry.original {
            let file = (original.outbox.clone(), original.file.to_string());
            assert!(
                judged.insert(file),
                "seed {seed}: record {} judges a file twice",
                entry.seq
            );
        }
    }
    assert!(
        entries.is_sorted_by_key(|entry| entry.at.clone()),
        "seed {seed}"
    );
}

/// Checks that every host follows, that every message is in its reader's inbox once and nowhere else, and that the log
/// and the mirrors have the same bytes.
fn all_agree(hosts: &[Host], log: &Shared, sent: &Sent, seed: u64) {
    let in_log = bytes_of(&log.batches());
    for host in hosts {
        assert_eq!(host.standing(), Standing::InStep, "seed {seed}");
        assert_eq!(
            String::from_utf8_lossy(&host.ledger()),
            String::from_utf8_lossy(&in_log),
            "seed {seed}"
        );
    }
    is_in_order(&hosts[0].entries(), seed);
    for (id, (to, text)) in sent {
        let expected = [(*to, HOSTS[*to].1)];
        assert_eq!(found(hosts, text), expected, "seed {seed}: {id}");
    }
}

/// Makes one run: a storm, then fair weather, then all checks.
fn run(seed: u64) {
    let log = Shared::new(seed, Weather::STORM);
    let mut hosts = started(&log);
    let (sent, mut ms) = storm(seed, &log, &mut hosts, Breach::Nothing);
    log.set_weather(Weather::default());
    settle(&mut hosts, &mut ms);
    all_agree(&hosts, &log, &sent, seed);
}

/// Lets every host work until nothing has changed for a while.
fn rest(hosts: &mut [Host], ms: &mut i64) {
    let mut quiet = 0;
    let mut before = Vec::new();
    for _ in 0..400 {
        *ms += 1_000;
        hosts.iter_mut().for_each(|host| host.pass(*ms));
        let now: Vec<_> = hosts
            .iter()
            .map(|host| (host.ledger(), host.standing()))
            .collect();
        quiet = if now == before { quiet + 1 } else { 0 };
        if quiet == 5 {
            return;
        }
        before = now;
    }
    let standings: Vec<Standing> = hosts.iter().map(Host::standing).collect();
    panic!("it does not come to rest: {standings:?}");
}

/// Makes one run in which the log breaks its promise: each host follows what it is shown, or is frozen and says why. If
/// the log did not continue without the lost records, they are put back from a mirror and all hosts agree again.
fn run_broken(seed: u64, breach: Breach) -> &'static str {
    let log = Shared::new(seed, Weather::STORM);
    let mut hosts = started(&log);
    let (mut sent, mut ms) = if seed.is_multiple_of(2) {
        storm(seed, &log, &mut hosts, breach)
    } else {
        // Every host has every record, so each that reads the log freezes, and none appends after the lost tail.
        let (sent, mut ms) = storm(seed, &log, &mut hosts, Breach::Nothing);
        log.set_weather(Weather::default());
        settle(&mut hosts, &mut ms);
        breach.happens(&log, seed);
        (sent, ms)
    };
    log.set_weather(Weather::default());
    for (number, (_, from)) in HOSTS.into_iter().enumerate() {
        let to = (number + 1) % HOSTS.len();
        let id = format!("late-{number}");
        let text = question(from, HOSTS[to].1, &id);
        hosts[number].put(&format!("{id}.yaml"), &text);
        sent.insert(id, (to, text));
        if seed % 5 == number as u64 {
            hosts[number].start(&log);
        }
    }
    rest(&mut hosts, &mut ms);
    let mut frozen = 0;
    for host in &hosts {
        let (mirror, shown) = (host.ledger(), bytes_of(&log.shown_to(host.handle)));
        match host.standing() {
            Standing::InStep => assert!(mirror == shown, "seed {seed}: it follows something else"),
            Standing::Frozen { why, .. } => {
                frozen += 1;
                assert!(why.contains(BY_THE_LOG), "seed {seed}: {why}");
            }
            other @ (Standing::Waiting { .. } | Standing::Outdated { .. }) => {
                panic!("seed {seed}: {other:?}")
            }
        }
        let entries = host.entries();
        is_in_order(&entries, seed);
        // Every file in an inbox has a record on this host, frozen or not, and is there once.
        let known: BTreeSet<_> = entries
            .iter()
            .filter_map(|entry| entry.id.clone())
            .collect();
        for (id, (to, text)) in &sent {
            let here = found(std::slice::from_ref(host), text);
            let may_be = usize::from(*to == host.number && known.contains(id));
            assert_eq!(here.len(), may_be, "seed {seed}: {id} on {}", host.number);
        }
    }
    if frozen == 0 {
        return "nobody had it";
    }
    // The log continued without it if some mirror is no continuation of the log or of another mirror.
    let mut all: Vec<Vec<u8>> = hosts.iter().map(Host::ledger).collect();
    all.push(bytes_of(&log.batches()));
    all.sort_by_key(Vec::len);
    let is_continued = all.windows(2).all(|pair| pair[1].starts_with(&pair[0]));
    if breach == Breach::Fork || !is_continued {
        return "frozen";
    }
    let longest = hosts.iter_mut().max_by_key(|host| host.ledger().len());
    let longest = longest.expect("three hosts");
    // As `settled host republish` does.
    longest.mailroom = None;
    let disk = Arc::new(spool::Os);
    let name = HOSTS[longest.number].0.parse().expect("a host's name");
    let mut local = Local::open(longest.root.path(), disk, name).expect("a ledger");
    let mut put = log.connect();
    let end = put.head().expect("the end");
    for signed in local.follow(end).expect("the lost batches") {
        assert_eq!(put.append(&signed), Ok(Appended::Committed), "seed {seed}");
    }
    drop(local);
    hosts.iter_mut().for_each(|host| host.start(&log));
    settle(&mut hosts, &mut ms);
    all_agree(&hosts, &log, &sent, seed);
    "put back"
}

/// The number of seeds and the first one; the long form sets both.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str, else_: u64| {
        std::env::var(name).map_or(else_, |text| text.parse().expect("a number"))
    };
    let first = number("HOSTS_FIRST_SEED", 0);
    first..first + number("HOSTS_SEEDS", usual)
}

#[test]
#[expect(clippy::print_stdout, reason = "the long form says how often")]
fn three_hosts_on_a_log_that_breaks_its_promise_agree_or_freeze() {
    let mut ends: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for seed in seeds(12) {
        for (name, breach) in [("lost tail", Breach::LostTail), ("fork", Breach::Fork)] {
            *ends.entry((name, run_broken(seed, breach))).or_default() += 1;
        }
    }
    // Every ending occurred; the long form prints how often.
    println!("{ends:?}");
    for end in [
        ("lost tail", "put back"),
        ("lost tail", "frozen"),
        ("fork", "frozen"),
    ] {
        assert!(ends.contains_key(&end), "{ends:?}");
    }
}

#[test]
fn three_hosts_in_a_storm_judge_every_file_once_and_agree() {
    seeds(12).for_each(run);
}

#[test]
fn cut_off_a_host_accepts_nothing_says_so_and_catches_up() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let nothing = Weather {
        unreachable: 100,
        ..Weather::default()
    };
    log.set_weather(nothing);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    for _ in 0..5 {
        ms += 1_000;
        hosts[0].pass(ms);
    }
    assert!(matches!(hosts[0].standing(), Standing::Waiting { .. }));
    assert!(hosts[0].entries().is_empty());
    assert_eq!(names(&hosts[0].path("agents/claude/outbox")), ["a.yaml"]);
    let told = fs::read_to_string(hosts[0].path(".settled/alerts.json")).expect("alerts");
    assert!(
        told.contains("waiting for the shared ledger since"),
        "{told}"
    );
    log.set_weather(Weather::default());
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["a.yaml"]);
    let told = fs::read_to_string(hosts[0].path(".settled/alerts.json")).expect("alerts");
    assert!(!told.contains("waiting"), "{told}");
}

#[test]
fn hosts_hear_of_each_other_without_a_record() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let records = hosts[0].entries().len();
    for _ in 0..3 {
        ms += 10_000;
        // In one round only the hosts that pass later hear the first; a second round reaches all.
        for _ in 0..2 {
            hosts.iter_mut().for_each(|host| host.pass(ms));
        }
    }
    let heard = |host: &Host| {
        let heard = workspace::heartbeat::read(host.root.path()).into_iter();
        let said = heard.map(|heard| {
            let clock = heard.clock_ahead().num_seconds();
            let state = &heard.state;
            (
                state.host.to_string(),
                state.standing.clone(),
                state.seq,
                heard.behind,
                clock,
            )
        });
        said.collect::<Vec<_>>()
    };
    let in_step = "in_step".to_owned();
    let of = |host: &str, clock| (host.to_owned(), in_step.clone(), 1, 0, clock);
    assert_eq!(heard(&hosts[1]), [of("box", -135), of("tower", -90)]);
    // A heartbeat that no host has signed is ignored.
    let forged = HostState {
        host: "box".parse().expect("a name"),
        version: "9.9.9".to_owned(),
        seq: 9,
        standing: in_step.clone(),
        at: hosts[2].moment(ms + 5_000).utc,
        started: hosts[2].moment(ms).utc,
        number: 9,
    };
    let forged = workspace::heartbeat::written(&forged, "w", &Named("tower"));
    log.connect().send_heartbeat(forged);
    hosts[1].pass(ms + 1_000);
    assert_eq!(heard(&hosts[1])[0], of("box", -135));
    assert_eq!(hosts[0].entries().len(), records);
}

#[test]
fn a_host_is_heard_after_its_clock_was_set_back_and_nothing_is_heard_twice() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let last = |host: &Host| {
        let mut heard = workspace::heartbeat::read(host.root.path()).into_iter();
        let of_box = heard.find(|heard| heard.state.host.as_str() == "box");
        of_box.expect("a heartbeat").state
    };
    let speak = |hosts: &mut [Host], ms: &mut i64| {
        *ms += 10_000;
        hosts[2].pass(*ms);
        hosts[1].pass(*ms);
        last(&hosts[1])
    };
    let before = speak(&mut hosts, &mut ms);
    hosts[2].off_ms -= 3_600_000;
    let back = speak(&mut hosts, &mut ms);
    assert!(back.at < before.at, "{back:?} after {before:?}");
    hosts[2].start(&log);
    let again = speak(&mut hosts, &mut ms);
    assert_ne!(again.started, back.started, "it is another run");
    for recorded in [&before, &back, &again] {
        let bytes = workspace::heartbeat::written(recorded, "w", &Named("box"));
        log.connect().send_heartbeat(bytes);
        let heard_at = |host: &Host| fs::read(host.path(".settled/hosts.json")).expect("a file");
        let known = heard_at(&hosts[1]);
        hosts[1].pass(ms + 1_000);
        assert_eq!(heard_at(&hosts[1]), known, "{recorded:?} was heard twice");
    }
}

#[test]
fn a_log_that_lost_what_it_acknowledged_freezes_whoever_has_it() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let mut ms = 0;
    for id in ["msg-a", "msg-b"] {
        hosts[0].put(&format!("{id}.yaml"), &question("claude", "codex", id));
        settle(&mut hosts, &mut ms);
    }
    log.lose_tail(1);
    ms += 2_000;
    hosts[1].put("c.yaml", &question("codex", "claude", "msg-c"));
    hosts[1].pass(ms);
    hosts[1].pass(ms + 2_000);
    let standing = hosts[1].standing();
    assert!(
        matches!(standing, Standing::Frozen { seq: 2, .. }),
        "{standing:?}"
    );
    assert_eq!(names(&hosts[1].path("agents/codex/outbox")), ["c.yaml"]);
    // The lost tail simply continues the log: once it is put back from a mirror, the next start ends the freeze.
    let tail = Batch::read(
        {
            let ledger = hosts[1].ledger();
            let begin = ledger
                .iter()
                .position(|byte| *byte == b'\n')
                .expect("a line")
                + 1;
            ledger[begin..].to_vec()
        },
        log.batches()[0].batch.head(),
    );
    let signed = Signed::new(
        tail.expect("a batch"),
        "w",
        "tower".parse().expect("a name"),
        &Named("tower"),
    );
    log.connect().append(&signed).expect("an append");
    hosts[1].start(&log);
    settle(&mut hosts, &mut ms);
    assert_eq!(hosts[1].standing(), Standing::InStep);
}

/// Changes a record of an honest batch, signs the batch as its host, and returns the standing of a host that sees it.
fn lied(signer: &'static str, change: impl FnOnce(&mut Entry)) -> Standing {
    let honest = Shared::new(1, Weather::default());
    let mut tower = Host::new(0);
    tower.start(&honest);
    tower.put("a.yaml", &question("claude", "codex", "msg-a"));
    for ms in [1_000, 2_000] {
        tower.pass(ms);
    }
    let honest = honest.batches();
    assert_eq!(honest.len(), 1, "one batch of one record");
    let first = &honest[0].batch;
    let mut entry = (*first.entries()[0]).clone();
    change(&mut entry);
    let mut bytes = entry.to_line();
    bytes.push(b'\n');
    let batch = Batch::read(bytes, first.after()).expect("a batch");
    let signed = Signed::new(batch, "w", "tower".parse().expect("a name"), &Named(signer));
    let log = Shared::new(1, Weather::default());
    log.connect().append(&signed).expect("an append");
    let mut laptop = Host::new(1);
    laptop.start(&log);
    for ms in [1_000, 2_000] {
        laptop.pass(ms);
    }
    let is_delivered = !names(&laptop.path("agents/codex/inbox")).is_empty();
    let standing = laptop.standing();
    assert_eq!(is_delivered, standing == Standing::InStep, "{standing:?}");
    assert_eq!(laptop.entries().is_empty(), standing != Standing::InStep);
    standing
}

#[test]
fn an_honest_record_is_taken_over() {
    assert_eq!(lied("tower", |_| {}), Standing::InStep);
}

#[test]
fn a_record_that_does_not_follow_freezes_the_others_and_names_the_rule() {
    type Lie = (&'static str, &'static str, fn(&mut Entry));
    let lies: [Lie; 10] = [
        ("another key", "signature", |_| {}),
        ("another host's name", "another host than signed", |entry| {
            entry.host = Some("laptop".parse().expect("a name"));
        }),
        ("another id", "rules decide", |entry| {
            entry.decision = changed(entry, "msg-a", "msg-b");
        }),
        ("another's outbox", "at home elsewhere", |entry| {
            entry.original.as_mut().expect("an original").outbox = "codex".to_owned();
        }),
        ("another recipient", "rules decide", |entry| {
            entry.decision = changed(entry, "codex", "pi");
        }),
        ("another text", "rules decide", |entry| {
            let original = entry.original.as_mut().expect("an original");
            original.text = original
                .text
                .as_ref()
                .map(|text| text.replace("Which?", "Who?"));
        }),
        ("no text", "without its text", |entry| {
            entry.original.as_mut().expect("an original").text = None;
            entry.deliveries.clear();
        }),
        (
            "a response refused for nothing",
            "costs the reviewer",
            |entry| {
                let refused =
                    r#"{"refused":{"from":"claude","code":"feedback_empty","notice":"never"}}"#;
                entry.kind = "refused".to_owned();
                entry.decision =
                    serde_json::value::RawValue::from_string(refused.to_owned()).expect("JSON");
                entry.original.as_mut().expect("an original").text = None;
                entry.deliveries.clear();
            },
        ),
        ("another file", "makes the files", |entry| {
            entry.deliveries[0].content = Content::Text("forged".to_owned());
        }),
        ("one file more", "makes the files", |entry| {
            let mut more = entry.deliveries[0].clone();
            more.mailbox = "pi/inbox".parse().expect("a mailbox");
            entry.deliveries.push(more);
        }),
    ];
    for (lie, rule, change) in lies {
        let signer = if lie == "another key" { "box" } else { "tower" };
        let standing = lied(signer, change);
        let Standing::Frozen { seq: 1, why } = &standing else {
            panic!("{lie}: {standing:?}");
        };
        assert!(why.contains(rule), "{lie}: {why}");
    }
}

#[test]
fn a_record_of_newer_rules_asks_for_an_upgrade() {
    let standing = lied("tower", |entry| entry.rules = Some(review::RULES + 1));
    assert!(
        matches!(standing, Standing::Outdated { .. }),
        "{standing:?}"
    );
}

fn changed(entry: &Entry, from: &str, to: &str) -> Box<serde_json::value::RawValue> {
    let text = entry.decision.get().replace(from, to);
    assert_ne!(text, entry.decision.get());
    serde_json::value::RawValue::from_string(text).expect("JSON")
}

/// The time that the reviewer of a P1 request has to pick it up, in milliseconds.
const PICK_UP_MS: i64 = 24 * 3_600 * 1_000;

fn review_message(from: &str, to: &str, kind: &str, body: &str) -> String {
    format!(
        "id: \"{kind}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
    )
}

/// Three hosts with a review of pull request 86 from claude's host to codex's, and about when it was opened.
fn with_an_open_review() -> (Vec<Host>, i64) {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let body = "pr: 86\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: 600";
    let request = review_message("claude", "codex", "review_request", body);
    hosts[0].put("review_request.yaml", &request);
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    (hosts, ms)
}

#[test]
fn a_review_goes_over_two_hosts_and_a_third_one_follows_it() {
    let (mut hosts, mut ms) = with_an_open_review();
    assert_eq!(
        names(&hosts[1].path("agents/codex/inbox")),
        ["review_request.yaml"]
    );
    assert!(names(&hosts[0].path("agents/codex/inbox")).is_empty());
    let body = "quality_gate_result: pass\n  merge_ready: true";
    hosts[1].put(
        "lgtm.yaml",
        &review_message("codex", "claude", "review_lgtm", body),
    );
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[0].path("agents/claude/inbox")), ["lgtm.yaml"]);
    for host in &hosts {
        assert_eq!(host.standing(), Standing::InStep);
        let kinds: Vec<String> = host.entries().into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, ["accepted", "accepted"]);
    }
}

fn fire(host: &mut Host, ms: i64) {
    host.pass(ms);
    let moment = host.moment(ms);
    let kept = host.mailroom().keep_deadlines(moment.utc, moment);
    kept.expect("deadlines");
}

fn fired_by(hosts: &[Host]) -> Vec<String> {
    let entries = hosts[2].entries();
    let fired = entries.iter().filter(|entry| entry.kind == "deadline");
    fired
        .map(|entry| {
            let host = entry.host.as_ref().expect("a host");
            let is_away = entry.decision.get().contains("\"home_away\":true");
            format!("{host}{}", if is_away { ", away" } else { "" })
        })
        .collect()
}

#[test]
fn a_deadline_is_fired_where_its_agent_is_at_home_and_elsewhere_after_a_grace() {
    // codex is at home on the laptop, whose clock is 90 s ahead; the tower's is right.
    let (mut hosts, opened) = with_an_open_review();
    let due = opened + PICK_UP_MS;
    fire(&mut hosts[0], due + 30_000);
    assert!(fired_by(&hosts).is_empty());
    fire(&mut hosts[1], due);
    let mut ms = due + 31_000;
    settle(&mut hosts, &mut ms);
    assert_eq!(fired_by(&hosts), ["laptop"]);

    let (mut hosts, opened) = with_an_open_review();
    let due = opened + PICK_UP_MS;
    fire(&mut hosts[0], due + 61_000);
    let mut ms = due + 62_000;
    settle(&mut hosts, &mut ms);
    assert_eq!(fired_by(&hosts), ["tower, away"]);
    for host in &hosts {
        assert_eq!(host.standing(), Standing::InStep);
    }
}

/// Catching up syncs once for each batch and once for all signatures that came with them.
#[test]
fn a_host_that_catches_up_syncs_each_batch_once() {
    const BATCHES: usize = 12;
    let log = Shared::new(1, Weather::default());
    let mut tower = Host::new(0);
    tower.start(&log);
    for ms in (0..).step_by(1_000).take(BATCHES) {
        let id = format!("msg-{ms}");
        tower.put(&format!("{id}.yaml"), &question("claude", "pi", &id));
        tower.pass(ms);
    }
    assert_eq!(log.batches().len(), BATCHES);
    let laptop = Host::new(1);
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_shared_on(
        laptop.root.path(),
        Arc::clone(&disk) as _,
        sharing("laptop", Box::new(log.connect())),
    );
    let mut mailroom = opened.expect("a start").0;
    disk.set(None);
    mailroom.pass(laptop.moment(20_000)).expect("a pass");
    assert_eq!(laptop.ledger(), tower.ledger());
    let changes = disk.log();
    let syncs = changes.iter().filter(|change| change.ends_with(" sync "));
    assert_eq!(syncs.count(), BATCHES + 1, "{changes:#?}");
}

/// A log that loses its answers to the appends with these numbers.
struct Unanswered {
    log: ModelLog,
    appends: usize,
    lost: &'static [usize],
}

impl Log for Unanswered {
    fn head(&mut self) -> Result<Head, LogError> {
        self.log.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        let appended = self.log.append(batch)?;
        self.appends += 1;
        if self.lost.contains(&(self.appends - 1)) {
            return Ok(Appended::Unknown("no answer in time".to_owned()));
        }
        Ok(appended)
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.log.follow(from)
    }

    fn ring(&mut self, ring: Ring) {
        self.log.ring(ring);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
}

/// There are more files than one batch takes. Where the log's answer was lost, their records come back from it; in the
/// second case the answer to the next batch is lost in the same pass.
#[test]
fn serving_once_counts_what_it_judged_though_answers_of_the_log_are_lost() {
    const REFUSED: usize = 300;
    for lost in [&[][..], &[0], &[0, 2], &[1]] {
        let log = Shared::new(1, Weather::default());
        let tower = Host::new(0);
        for number in 0..REFUSED {
            tower.put(&format!("broken-{number}.yaml"), "from: [\n");
        }
        tower.put("a.yaml", &question("claude", "codex", "msg-a"));
        let unanswered = Unanswered {
            log: log.connect(),
            appends: 0,
            lost,
        };
        let sharing = sharing("tower", Box::new(unanswered));
        let served = serve_shared_once(tower.root.path(), sharing, 0).expect("a run");
        assert_eq!(served.standing, Standing::InStep, "{lost:?}");
        let tally = served.tally;
        assert_eq!((tally.accepted, tally.refused), (1, REFUSED), "{lost:?}");
        assert_eq!(tower.entries().len(), REFUSED + 1, "{lost:?}");
        // This host does not count what another host judged.
        let laptop = Host::new(1);
        let sharing = self::sharing("laptop", Box::new(log.connect()));
        let end = log.batches().last().expect("a batch").batch.head().seq;
        let served = serve_shared_once(laptop.root.path(), sharing, end).expect("a run");
        assert_eq!(served.tally, daemon::serve::Tally::default(), "{lost:?}");
        assert_eq!(laptop.ledger(), tower.ledger(), "{lost:?}");
    }
}
