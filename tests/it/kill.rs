//! The daemon killed at any instant, again and again, while agents write and read. What the
//! ledger accepted arrives once, what was written is accepted once, and nothing else appears.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use settled_tests::mailroom::Mailroom;
use settled_tests::{ledger, list, names, read, seed, wait};

/// How often the daemon is killed.
const KILLS: u32 = 40;

/// Messages of each of the two writers.
const MESSAGES: u32 = 600;

/// How many messages a writer drops without a pause, so that whole batches are being delivered
/// when the daemon is killed.
const BURST: u32 = 30;

/// A small generator, so that a failing run can be had again from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What an agent took out of its inbox: how often each file's bytes were seen.
type Taken = BTreeMap<String, usize>;

/// Drops messages in the ways agents do: in place, or renamed in.
fn write_all(mailroom: &Mailroom, from: &str, to: &str, dice: &mut Dice) -> Vec<String> {
    (0..MESSAGES)
        .map(|n| {
            let id = format!("{from}-{n:04}");
            let body = "line\n".repeat(dice.roll(40) as usize) + &id;
            let text = seed::note("notification", &id, from, to, &body);
            let file = format!("{id}.yaml");
            if dice.roll(2) == 0 {
                mailroom.post(from, &file, &text);
            } else {
                let outbox = mailroom.agent(from, "outbox");
                let temporary = outbox.join(format!("{id}.tmp"));
                settled_tests::write(&temporary, &text);
                std::fs::rename(temporary, outbox.join(&file)).expect("a rename");
            }
            if n % BURST == 0 {
                wait::a_moment(Duration::from_millis(dice.roll(400)));
            }
            text
        })
        .collect()
}

/// Reads and deletes whatever lies in an inbox, as an agent that needs no archive does.
fn take_all(mailroom: &Mailroom, agent: &str, taken: &mut Taken) {
    for path in visible(mailroom, agent) {
        *taken.entry(read(&path)).or_default() += 1;
        std::fs::remove_file(&path).expect("only this reader takes from this inbox");
    }
}

/// What an agent sees in its inbox: no dotfiles.
fn visible(mailroom: &Mailroom, agent: &str) -> Vec<PathBuf> {
    let is_shown =
        |path: &PathBuf| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
    list(mailroom.agent(agent, "inbox")).into_iter().filter(is_shown).collect()
}

/// Kills the daemon at forty moments: while it starts, while it works, and when it was just seen
/// making a file for a reader that takes it at once.
fn kill_again_and_again(mailroom: &Mailroom, dice: &mut Dice) {
    for n in 0..KILLS {
        // Some mail piles up, so that the daemon has its hands full when it is back.
        wait::a_moment(Duration::from_micros(dice.roll(30_000)));
        let daemon = mailroom.spawn_serve();
        match n % 4 {
            0 => wait::a_moment(Duration::from_micros(dice.roll(30_000))),
            1 => wait::a_moment(Duration::from_micros(dice.roll(90_000))),
            2 => {
                let cursor = mailroom.root().join(".settled/cursors/codex.inbox.cursor");
                see_changes(|| std::fs::read(&cursor).unwrap_or_default(), dice.roll(20));
            }
            _ => see_changes(|| names(mailroom.agent("codex", "inbox")), dice.roll(20)),
        }
        let status = daemon.kill();
        assert!(status.code().is_none(), "the daemon ended by itself before it was killed: {status}");
    }
}

/// Returns as soon as it saw the n-th change, or when there are no more: in the middle of
/// delivering a batch, just after a note or just after a rename.
fn see_changes<T: PartialEq>(look: impl Fn() -> T, n: u64) {
    let mut before = look();
    let mut seen = 0;
    // A bounded number of looks instead of a time.
    for _ in 0..20_000 {
        let now = look();
        seen += u64::from(now != before);
        before = now;
        if seen > n {
            return;
        }
    }
}

#[test]
fn forty_kills_lose_nothing_and_repeat_nothing() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[limits]\nmessages_per_hour = 10000\n");
    let seed = 0x5e77_1ed0_2026_1121;
    let written_all = AtomicBool::new(false);
    let mut taken = Taken::new();

    let (by_claude, by_codex) = thread::scope(|scope| {
        let claude = scope.spawn(|| write_all(&mailroom, "claude", "codex", &mut Dice(seed)));
        let codex = scope.spawn(|| write_all(&mailroom, "codex", "claude", &mut Dice(seed + 1)));
        // Codex empties its inbox all the while; claude lets its mail lie.
        let reader = scope.spawn(|| {
            let mut taken = Taken::new();
            while !written_all.load(Ordering::Relaxed) {
                take_all(&mailroom, "codex", &mut taken);
            }
            taken
        });
        kill_again_and_again(&mailroom, &mut Dice(seed + 2));
        let written = (claude.join().expect("the writer"), codex.join().expect("the writer"));
        written_all.store(true, Ordering::Relaxed);
        taken = reader.join().expect("the reader");
        written
    });

    let daemon = mailroom.serve();
    mailroom.cleared("claude");
    mailroom.cleared("codex");
    assert!(daemon.terminate().success());
    take_all(&mailroom, "codex", &mut taken);

    let accepted = ledger::accepted(&ledger::records(mailroom.root()));
    assert_eq!(accepted.len(), by_claude.len() + by_codex.len(), "accepted ids");
    let mut lying = Taken::new();
    for path in visible(&mailroom, "claude") {
        *lying.entry(read(path)).or_default() += 1;
    }
    assert_eq!((taken.len(), lying.len()), (by_claude.len(), by_codex.len()), "messages that arrived");
    for (from, texts, arrived) in [("claude", &by_claude, &taken), ("codex", &by_codex, &lying)] {
        for text in texts {
            let id = seed::id(text);
            assert_eq!(accepted.get(id), Some(&1), "{id} in the ledger (seed {seed:#x})");
            assert_eq!(arrived.get(text), Some(&1), "{id} in the inbox (seed {seed:#x})");
            let sent = mailroom.agent(from, "sent").join(format!("{id}.yaml"));
            assert_eq!(&read(sent), text, "{id} in sent/ (seed {seed:#x})");
        }
    }
    for agent in ["claude", "codex"] {
        assert_eq!(names(mailroom.agent(agent, "dead_letter")), [""; 0], "nothing was refused");
        for directory in ["inbox", "outbox", "sent"] {
            let left: Vec<String> = names(mailroom.agent(agent, directory));
            assert!(!left.iter().any(|name| name.starts_with('.')), "{directory} of {agent} holds {left:?}");
        }
    }
    let verified = mailroom.run(&["ledger", "verify"]);
    assert!(verified.status.success());
}
