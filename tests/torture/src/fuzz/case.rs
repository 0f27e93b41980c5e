//! One case: the acts of the writers, the readers, the clock and the disk, in an order made from its number. `outboxes`
//! has what the writers do in their outboxes.

mod outboxes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::names;
use spool::{DiskFault, Layout};

use self::outboxes::{Half, Open};
use super::model::{self, Item, Verdict};
use super::reviews::Reviews;
use super::served::Served;
use super::{Counts, tree};
use crate::checker;
use crate::dice::Dice;
use crate::messages::{Fate, Message};
use crate::taker::{self, Take};

/// The agents that exist from the start, and one that joins later and only writes.
const AGENTS: [&str; 4] = ["ada", "ben", "cleo", "dan"];
const LATE: &str = "eve";

/// The longest time that an agent's flood may delay or refuse its other review messages, in milliseconds.
pub(super) const FLOODED_MS: u64 = 20_000;

/// The errors of the disk: EIO and ENOSPC.
const ERRORS: [i32; 2] = [5, 28];

/// The phases of a review that only a person or another request leaves.
const FINAL: [&str; 3] = ["approved", "escalated", "closed"];

/// Everything but the daemon.
pub(super) struct Hands<'a> {
    pub(super) dice: Dice,
    pub(super) served: Served,
    pub(super) items: Vec<Item>,
    pub(super) orders: Vec<String>,
    /// The time of each agent's last flood.
    pub(super) flooded: BTreeMap<&'static str, u64>,
    root: PathBuf,
    agents: Vec<&'static str>,
    open: Vec<Open>,
    halves: Vec<Half>,
    takes: Vec<Take>,
    packets: Vec<String>,
    blocked: Vec<&'static str>,
    has_watcher: bool,
    hides_writers: bool,
    number: u64,
    log: &'a mut Vec<String>,
}

/// Runs the case; returns the counts and the errors.
pub(super) fn run(seed: u64, mailroom: &Mailroom, log: &mut Vec<String>) -> (Counts, Vec<String>) {
    let root = mailroom.root();
    Layout::init(root, &AGENTS).expect("a workspace can be made");
    let mut dice = Dice::new(seed);
    // From a small seed the generator's first numbers are small.
    for _ in 0..8 {
        dice.any();
    }
    let records = [5, 40, 20_000][dice.below(3)];
    mailroom.put(
        "settled.toml",
        &format!(
            "[limits]\nmessages_per_hour = 10000\nfiles_per_hour = 100000\n[ledger]\nsnapshot_records = {records}\n"
        ),
    );
    for directory in ["elsewhere", "nobody"] {
        std::fs::create_dir(root.join(directory)).expect("a directory");
    }
    let hides_writers = dice.roll(4) == 0;
    let mut hands = Hands {
        served: Served::new(root, hides_writers),
        has_watcher: dice.roll(3) > 0,
        dice,
        items: Vec::new(),
        orders: Vec::new(),
        flooded: BTreeMap::new(),
        root: root.to_owned(),
        agents: AGENTS.to_vec(),
        open: Vec::new(),
        halves: Vec::new(),
        takes: Vec::new(),
        packets: Vec::new(),
        blocked: Vec::new(),
        hides_writers,
        number: 0,
        log,
    };
    let mut reviews = Reviews::default();
    hands.served.work(10);
    for _ in 0..30 + hands.dice.roll(60) {
        hands.step(&mut reviews);
    }
    hands.end();
    let mut wrong = std::mem::take(&mut hands.served.wrong);
    wrong.extend(model::check(&model::Case {
        root,
        items: &hands.items,
        records: &hands.served.ledger.records,
        takes: &hands.takes,
        orders: &hands.orders,
        agents: &hands.agents,
    }));
    wrong.extend(verdict_of_commands(mailroom));
    (hands.counts(reviews.opened()), wrong)
}

/// Checks that every review ended and that the ledger verifies.
fn verdict_of_commands(mailroom: &Mailroom) -> Vec<String> {
    let mut wrong = Vec::new();
    let status = mailroom.status();
    for review in status["reviews"].as_array().into_iter().flatten() {
        let phase = review["phase"].as_str().unwrap_or_default();
        if !FINAL.contains(&phase) {
            wrong.push(format!("after eight days a review is {phase}: {review}"));
        }
    }
    let verified = mailroom.run(&["ledger", "verify"]);
    if !verified.status.success() {
        wrong.push(format!("ledger verify: {}", said(&verified)));
    }
    wrong
}

impl Hands<'_> {
    fn step(&mut self, reviews: &mut Reviews) {
        match self.dice.roll(100) {
            0..14 => self.write_whole(),
            14..20 => self.write_unfit(),
            20..26 => self.write_broken(),
            26..33 => self.begin_open(),
            33..38 => self.go_on_open(),
            38..43 => self.write_half(),
            43..47 => self.go_on_half(),
            47..50 => self.replace(),
            50..52 => self.remove(),
            52..55 => self.repeat(),
            55..68 => reviews.step(self),
            68..70 => self.order(),
            70..76 => self.read_mail(),
            76..78 => self.block_inbox(),
            78 => self.come_late(),
            79 if self.dice.roll(3) == 0 => self.flood(),
            80..86 => self.strike(),
            86..89 => self.kill(),
            89..91 => self.restart(),
            91 => self.set_clock(),
            92 => self.sleep(),
            _ => {}
        }
        let pause = [0, 1, 20, 60, 300, 600, 2_500, 6_000, 35_000][self.dice.below(9)];
        if pause > 0 {
            self.note(&format!("work {pause} ms"));
            self.work(pause);
        }
    }

    pub(super) fn work(&mut self, ms: u64) {
        let killed = self.served.kills;
        self.served.work(ms);
        if self.served.kills > killed {
            self.look_after_kill();
        }
    }

    /// Checks after a kill that every visible file is complete and named by a record.
    fn look_after_kill(&mut self) {
        let packets = Message {
            from: AGENTS[0],
            to: AGENTS[1],
            file: String::new(),
            id: String::new(),
            text: self.packets.join("\n"),
            fate: Fate::Accepted,
        };
        let wrong = checker::in_between(&self.root, &[packets], &self.takes);
        self.served.wrong.extend(wrong);
    }

    pub(super) fn now(&self) -> u64 {
        self.served.time.passed
    }

    pub(super) fn note(&mut self, what: &str) {
        self.log
            .push(format!("{:>9} {what}", self.served.time.passed));
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    pub(super) fn two_agents(&mut self) -> (&'static str, &'static str) {
        let from = self.dice.below(AGENTS.len());
        let to = (from + 1 + self.dice.below(AGENTS.len() - 1)) % AGENTS.len();
        (AGENTS[from], AGENTS[to])
    }

    /// Gives the daemon an order as a runner or a person does, perhaps twice.
    fn order(&mut self) {
        let number = self.next_number();
        let id = format!("order-{number}");
        let pr = 1 + self.dice.roll(number);
        let event = match self.dice.roll(4) {
            0 | 1 => format!(r#"{{"turns": {{"pr": "{pr}", "count": 1}}}}"#),
            2 => format!(r#"{{"pull": {{"pr": "{pr}", "action": "opened"}}}}"#),
            _ => format!(
                r#"{{"person": {{"pr": "{pr}", "by": "ann", "reason": "once more", "act": "reopen"}}}}"#
            ),
        };
        let text = format!(
            r#"{{"schema_version": 1, "id": "{id}", "asked_at": "2026-02-13T10:20:00Z", "event": {event}}}"#
        );
        let orders = self.root.join(".settled/orders");
        for name in [id.clone(), format!("{id}-copy")]
            .into_iter()
            .take(1 + self.dice.below(2))
        {
            tree::rename_in(
                &orders.join(format!("{name}.json")),
                text.as_bytes(),
                self.served.time.of_day(),
            );
        }
        self.note(&format!("the order {id}: {event}"));
        self.orders.push(id);
    }

    /// An agent takes all its mail or one message, or archives one.
    fn read_mail(&mut self) {
        let agent = AGENTS[self.dice.below(AGENTS.len())];
        if self.blocked.contains(&agent) {
            return;
        }
        let agent_dir = self.root.join("agents").join(agent);
        let mail = taker::visible(&agent_dir.join("inbox"));
        let way = self.dice.roll(3);
        match mail.first() {
            None => {}
            Some(_) if way == 0 => taker::take_all(&self.root, agent, &mut self.takes),
            Some(one) if way == 1 => {
                let (bytes, file) = (
                    std::fs::read(one).expect("it is there"),
                    taker::name_of(one),
                );
                std::fs::remove_file(one).expect("it is there");
                self.takes.push(Take {
                    agent: agent.to_owned(),
                    file,
                    bytes,
                });
            }
            Some(one) => {
                let archive = agent_dir.join("archive");
                let target = archive.join(taker::name_of(one));
                if !target.exists() {
                    std::fs::create_dir_all(&archive).expect("a directory");
                    std::fs::rename(one, target).expect("both lie on one file system");
                }
            }
        }
        self.note(&format!("{agent} reads its mail, way {way}"));
    }

    /// Replaces an inbox by a link, or restores it.
    fn block_inbox(&mut self) {
        let agent = AGENTS[self.dice.below(AGENTS.len())];
        if self.blocked.contains(&agent) {
            self.unblock(agent);
            return;
        }
        let inbox = self.root.join("agents").join(agent).join("inbox");
        if !inbox.is_dir() {
            return;
        }
        std::fs::rename(&inbox, inbox.with_extension("aside")).expect("a rename");
        std::os::unix::fs::symlink(self.root.join("nobody"), &inbox).expect("a link");
        self.blocked.push(agent);
        self.note(&format!("the inbox of {agent} is a link"));
    }

    fn unblock(&mut self, agent: &'static str) {
        let inbox = self.root.join("agents").join(agent).join("inbox");
        std::fs::remove_file(&inbox).expect("it is a link");
        std::fs::rename(inbox.with_extension("aside"), &inbox).expect("a rename");
        self.blocked.retain(|blocked| *blocked != agent);
        self.note(&format!("the inbox of {agent} is its own again"));
    }

    fn come_late(&mut self) {
        if self.agents.contains(&LATE) {
            return;
        }
        for directory in ["inbox", "outbox"] {
            std::fs::create_dir_all(self.root.join("agents").join(LATE).join(directory))
                .expect("a directory");
        }
        self.agents.push(LATE);
        self.note("eve comes");
    }

    /// Makes the disk fail or kill the daemon soon.
    fn strike(&mut self) {
        let n = 1 + self.dice.roll(80);
        let error = ERRORS[self.dice.below(ERRORS.len())];
        let fault = match self.dice.roll(10) {
            0..4 => DiskFault::StopAfter(n),
            4..7 => DiskFault::StopWithin(n),
            7 => DiskFault::Fail(n, error),
            8 => DiskFault::FailWithin(n, error),
            _ => DiskFault::Short(1 + self.dice.below(200)),
        };
        self.note(&format!("{fault:?}"));
        self.served.strike(fault);
    }

    /// Kills the daemon now, and its successors during their recovery.
    fn kill(&mut self) {
        let faults: Vec<DiskFault> = (0..self.dice.roll(4))
            .map(|_| {
                let n = 1 + self.dice.roll(30);
                if self.dice.roll(2) == 0 {
                    DiskFault::StopAfter(n)
                } else {
                    DiskFault::StopWithin(n)
                }
            })
            .collect();
        self.note(&format!("kill, then {faults:?}"));
        self.served.kill(faults);
        self.look_after_kill();
    }

    fn restart(&mut self) {
        self.note("stop");
        self.served.stop();
    }

    /// Sets the time of day. After a step forward, files look older than they are, so a half-written one may be read.
    fn set_clock(&mut self) {
        let by = [-600_000, -4_000, 4_000, 600_000][self.dice.below(4)];
        self.note(&format!("the clock is set by {by} ms"));
        self.served.set_clock(by);
        let now = self.now();
        for item in &mut self.items {
            let last = item.versions.last_mut().expect("it has one");
            last.from = last.from.min(now);
            if !last.id.starts_with("note-")
                && !self.served.ledger.has_accepted(item.agent, &item.file)
            {
                last.verdict = Verdict::Any;
            }
        }
    }

    fn sleep(&mut self) {
        let ms = [3_000, 40_000, 7_200_000][self.dice.below(3)];
        self.note(&format!("asleep for {ms} ms"));
        self.served.sleep(ms);
    }

    /// Lets everybody finish, without further faults, and lets eight days pass.
    fn end(&mut self) {
        self.note("the end begins");
        while !self.open.is_empty() {
            self.go_on(0, true);
        }
        for agent in self.blocked.clone() {
            self.unblock(agent);
        }
        self.served.have_peace();
        self.served.kill([]);
        self.work(45_000);
        for _ in 0..40 {
            self.served.sleep(5 * 3_600_000);
            self.work(4_500);
        }
        self.served.stop();
        let through_links = names(self.root.join("nobody"));
        if !through_links.is_empty() {
            let what = format!("through a link it made {through_links:?}");
            self.served.wrong.push(what);
        }
    }

    fn counts(&self, reviews: u64) -> Counts {
        let records = &self.served.ledger.records;
        let of_kind = |kind: &str| {
            records
                .iter()
                .filter(|seen| seen.record["kind"] == kind)
                .count() as u64
        };
        Counts {
            files: self.items.len() as u64,
            records: records.len() as u64,
            accepted: of_kind("accepted"),
            refused: of_kind("refused"),
            reviews,
            kills: self.served.kills,
            in_recovery: self.served.in_recovery,
            faults: self.served.failures,
            hours: self.served.time.passed / 3_600_000,
        }
    }
}
