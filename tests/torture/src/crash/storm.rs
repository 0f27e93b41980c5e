//! Random kills under load: agents write in place, in steps with pauses and by renaming, a reader empties one inbox,
//! and the daemon serves, is killed and starts again. Some kills come during starts, one after the other, so that
//! recoveries and their recoveries are killed too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use settled_tests::mailroom::{Daemon, Mailroom};
use settled_tests::{names, wait};

use super::reader::{Reader, Seen};
use super::scene::copy;
use super::trial;
use crate::checker;
use crate::dice::Dice;
use crate::messages::{self, AGENTS, Fate, Message, Mix};

/// The kills in one workspace; with a longer ledger all the time would go into reading it.
const KILLS_PER_ROOM: usize = 100;

/// The messages that each writer drops without a pause, so that whole batches are in progress.
const BURST: u64 = 8;

/// The longest pause of a slow writer, in milliseconds: longer than a file without a writer has to stay unchanged.
const PAUSE_MS: u64 = 150;

/// The most files in an outbox before its writers pause. A busy machine slows the daemon more than the writers, and the
/// kills should meet a batch in progress, not a day's backlog.
const BACKLOG: usize = 100;

/// The number of checks of the outboxes, at least 10 ms apart, before they count as stuck: a busy machine must not look
/// like a lost message.
const CLEARED_LOOKS: u32 = 6_000;

/// The counts and errors of a storm.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    /// The number of kills.
    pub kills: usize,
    /// The number of kills before the daemon had read the ledger and finished the pending work.
    pub in_recovery: usize,
    /// The number of these that followed a kill in a recovery.
    pub in_second_recovery: usize,
    /// The number of messages written.
    pub messages: usize,
    /// The number of files that arrived: taken, or still there.
    pub arrived: usize,
    /// The number of accepted messages that are nowhere.
    pub lost: usize,
    /// The number of accepted messages that arrived more than once.
    pub duplicated: usize,
    /// The number of files seen whose bytes no record names.
    pub partial: usize,
    /// All errors, each with the seed of its workspace.
    pub wrong: Vec<String>,
}

/// Kills the daemon `kills` times; calls `told` with the number of kills so far.
pub fn storm(kills: usize, seed: u64, told: &dyn Fn(usize)) -> Damage {
    let mut damage = Damage::default();
    while damage.kills < kills {
        let seed = seed.wrapping_add(damage.kills as u64);
        let wrong = damage.wrong.len();
        room(KILLS_PER_ROOM.min(kills - damage.kills), seed, &mut damage);
        damage.wrong[wrong..]
            .iter_mut()
            .for_each(|what| *what = format!("seed {seed:#x}: {what}"));
        told(damage.kills);
    }
    damage
}

/// Runs one workspace from its first message to the final check.
fn room(kills: usize, seed: u64, damage: &mut Damage) {
    let mailroom = Mailroom::at(settled_tests::scratch(), "mailroom");
    let made = mailroom.run(&["init", "--agents", &AGENTS.join(",")]);
    assert!(made.status.success(), "a workspace can be made");
    mailroom.put("settled.toml", "[limits]\nmessages_per_hour = 10000\n");
    let reader = Reader::start(mailroom.root(), Seen::default());
    let is_over = AtomicBool::new(false);
    let messages: Vec<Message> = std::thread::scope(|scope| {
        // Two writers per outbox.
        let writers: Vec<_> = (0..4)
            .map(|n| {
                let (root, is_over) = (mailroom.root(), &is_over);
                scope.spawn(move || {
                    write(
                        root,
                        AGENTS[n % 2],
                        n as u64 + 1,
                        Dice::new(seed + n as u64),
                        is_over,
                    )
                })
            })
            .collect();
        kill_all(&mailroom, kills, Dice::new(seed ^ 0xdead), damage);
        is_over.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .flat_map(|writer| writer.join().expect("a writer ends"))
            .collect()
    });
    let daemon = mailroom.serve();
    if let Some(left) = not_cleared(&mailroom) {
        let kept = std::env::temp_dir().join(format!("settled-storm-{seed:x}"));
        copy(mailroom.root(), &kept);
        settled_tests::write(kept.join("daemon.log"), &daemon.log());
        damage.wrong.push(format!(
            "{left}; a copy and the log are kept in {}",
            kept.display()
        ));
    }
    if !daemon.terminate().success() {
        damage
            .wrong
            .push("the last daemon did not end well".to_owned());
    }
    let seen = reader.stop();
    damage
        .wrong
        .extend(checker::in_between(mailroom.root(), &messages, &seen.takes));
    damage
        .wrong
        .extend(trial::verdict(mailroom.root(), &messages, &seen));
    count(mailroom.root(), &messages, &seen, damage);
}

/// Waits until every outbox is empty; returns the files of one that stays full.
fn not_cleared(mailroom: &Mailroom) -> Option<String> {
    let left = || AGENTS.map(|agent| names(mailroom.agent(agent, "outbox")));
    for _ in 0..CLEARED_LOOKS {
        if left().iter().all(Vec::is_empty) {
            return None;
        }
        wait::a_moment(Duration::from_millis(10));
    }
    Some(format!("the outboxes are not empty: {:?}", left()))
}

/// Writes messages until the end, in place or by renaming, in bursts.
fn write(root: &Path, from: &str, lot: u64, mut dice: Dice, is_over: &AtomicBool) -> Vec<Message> {
    let mut written = Vec::new();
    let supply = [Mix::Notes, Mix::Requests, Mix::Refusals].map(|mix| mix.messages(4_000, lot));
    let mut supply =
        supply.map(|messages| messages.into_iter().filter(|message| message.from == from));
    let outbox = root.join("agents").join(from).join("outbox");
    while !is_over.load(Ordering::Relaxed) {
        let is_full = names(&outbox).len() > BACKLOG;
        for _ in 0..if is_full { 0 } else { dice.roll(BURST) } {
            // Most are notes; a request also makes a brief, a refusal a report.
            let kind = [0, 0, 0, 0, 1, 2][dice.roll(6) as usize];
            let Some(message) = supply[kind].next() else {
                continue;
            };
            match dice.roll(8) {
                0..4 => messages::post(root, &message),
                4 => write_slowly(&outbox.join(&message.file), &message.text, &mut dice),
                _ => settled_tests::write(outbox.join(&message.file), &message.text),
            }
            written.push(message);
        }
        wait::a_moment(Duration::from_millis(dice.roll(120)));
    }
    written
}

/// Writes a file in place in a few steps, with pauses in which the daemon may be killed and started again.
fn write_slowly(path: &Path, text: &str, dice: &mut Dice) {
    let mut file = File::create(path).expect("a file to write");
    let goes = 2 + dice.below(6);
    for part in text.as_bytes().chunks(text.len().div_ceil(goes)) {
        file.write_all(part).expect("room");
        wait::a_moment(Duration::from_millis(dice.roll(PAUSE_MS)));
    }
}

/// Kills the daemon at several kinds of moments: during a start, several times in a row, while it works, and just after
/// it made a file.
fn kill_all(mailroom: &Mailroom, kills: usize, mut dice: Dice, damage: &mut Damage) {
    let mut in_a_row = 0;
    for n in 0..kills {
        let daemon = mailroom.spawn_serve();
        match n % 8 {
            // Short-lived starts in a row; the first may have mail to deliver.
            0..=2 => wait::a_moment(Duration::from_micros(dice.roll(12_000))),
            3 => wait::a_moment(Duration::from_micros(dice.roll(90_000))),
            4 => see_changes(|| cursor(mailroom), dice.roll(20)),
            5 => see_changes(|| names(mailroom.agent("codex", "inbox")), dice.roll(20)),
            6 => see_changes(|| ledger_size(mailroom), dice.roll(3)),
            _ => wait_until_read(&daemon, &mut dice),
        }
        let is_in_recovery = !daemon.log().contains("read the ledger");
        let status = daemon.kill();
        if status.code().is_some() {
            damage
                .wrong
                .push(format!("the daemon ended by itself: {status}"));
        }
        damage.kills += 1;
        damage.in_recovery += usize::from(is_in_recovery);
        damage.in_second_recovery += usize::from(is_in_recovery && in_a_row > 0);
        in_a_row = if is_in_recovery { in_a_row + 1 } else { 0 };
        let shown = checker::in_between(mailroom.root(), &[], &[]);
        damage.partial += shown.len();
        damage.wrong.extend(shown);
    }
}

fn cursor(mailroom: &Mailroom) -> Vec<u8> {
    std::fs::read(mailroom.root().join(".settled/cursors/codex.inbox.cursor")).unwrap_or_default()
}

fn ledger_size(mailroom: &Mailroom) -> u64 {
    let segments = settled_tests::list(mailroom.root().join(".settled/ledger"));
    segments
        .iter()
        .filter_map(|segment| segment.metadata().ok())
        .map(|data| data.len())
        .sum()
}

/// Lets the daemon serve for a while.
fn wait_until_read(daemon: &Daemon, dice: &mut Dice) {
    wait::until("the daemon to serve", || daemon.log().contains("serving"));
    wait::a_moment(Duration::from_micros(dice.roll(60_000)));
}

/// Returns as soon as it sees more than `n` changes, or gives up: in the middle of a batch, just after a note, a rename
/// or a commit.
fn see_changes<T: PartialEq>(look: impl Fn() -> T, n: u64) {
    let mut before = look();
    let mut seen = 0;
    // A bounded number of checks rather than a time.
    for _ in 0..5_000 {
        let now = look();
        seen += u64::from(now != before);
        before = now;
        if seen > n {
            return;
        }
    }
}

/// Counts from the messages alone what arrived, and how often.
fn count(root: &Path, messages: &[Message], seen: &Seen, damage: &mut Damage) {
    let mut arrived: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let lying = settled_tests::list(root.join("agents/claude/inbox"));
    let lying = lying.iter().filter_map(|path| std::fs::read(path).ok());
    for bytes in seen
        .takes
        .iter()
        .map(|take| take.bytes.clone())
        .chain(lying)
    {
        *arrived.entry(bytes).or_default() += 1;
    }
    damage.messages += messages.len();
    damage.arrived += arrived.values().sum::<usize>();
    for message in messages
        .iter()
        .filter(|message| message.fate == Fate::Accepted)
    {
        let times = arrived
            .get(message.text.as_bytes())
            .copied()
            .unwrap_or_default();
        damage.lost += usize::from(times == 0);
        damage.duplicated += usize::from(times > 1);
    }
}
