//! Three hosts and a log by seeds: one that loses, delays and repeats, and one that breaks its promise.

use super::*;

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
        assert_eq!(host.sharing_state(), SharingState::InStep, "seed {seed}");
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
            .map(|host| (host.ledger(), host.sharing_state()))
            .collect();
        quiet = if now == before { quiet + 1 } else { 0 };
        // Each host has heard each other one by then.
        if quiet == 12 {
            return;
        }
        before = now;
    }
    let states: Vec<SharingState> = hosts.iter().map(Host::sharing_state).collect();
    panic!("it does not come to rest: {states:?}");
}

/// The end of a run in which hosts have different histories and none of them is frozen.
const UNNOTICED: &str = "unnoticed";

/// True if each of these ledgers continues each shorter one.
fn are_one_history(ledgers: &mut [Vec<u8>]) -> bool {
    ledgers.sort_by_key(Vec::len);
    ledgers.windows(2).all(|pair| pair[1].starts_with(&pair[0]))
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
        match host.sharing_state() {
            SharingState::InStep => {
                assert!(mirror == shown, "seed {seed}: it follows something else");
            }
            SharingState::Frozen { why, .. } => {
                frozen += 1;
                let is_known = [BY_THE_LOG, BY_A_HOST].iter().any(|by| why.contains(by));
                assert!(is_known, "seed {seed}: {why}");
            }
            other @ (SharingState::Waiting { .. } | SharingState::Outdated { .. }) => {
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
            // A host does not deliver records that it took over just before it learned of another history.
            let is_held = matches!(host.sharing_state(), SharingState::Frozen { why, .. } if why.contains(BY_A_HOST));
            let is_right = here.len() == may_be || (is_held && here.is_empty());
            assert!(is_right, "seed {seed}: {id} on {}: {here:?}", host.number);
        }
    }
    let mut all: Vec<Vec<u8>> = hosts.iter().map(Host::ledger).collect();
    if frozen == 0 {
        return if are_one_history(&mut all) {
            "nobody had it"
        } else {
            UNNOTICED
        };
    }
    // The log continued without it if some mirror is no continuation of the log or of another mirror.
    all.push(bytes_of(&log.batches()));
    let is_continued = are_one_history(&mut all);
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
    let unnoticed = ends.keys().any(|(_, end)| *end == UNNOTICED);
    assert!(!unnoticed, "{ends:?}");
}

#[test]
fn three_hosts_in_a_storm_judge_every_file_once_and_agree() {
    seeds(12).for_each(run);
}
