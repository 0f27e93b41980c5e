//! The faults of `cargo xtask hosts-real`, and their repair.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;

use super::disk::Disks;
use super::net::Net;
use super::player::{Player, broker_name, monitor};
use super::{Args, COUNT, HOSTS, clock, minutes};

/// The interval between two faults, and their duration.
const EVERY: Duration = Duration::from_secs(2);
const LASTS_MS: Range<u64> = 500..6_000;

/// The duration of a single fault, and the time without faults after it.
const LASTS_ALONE_MS: u64 = 6_000;
const APART: Duration = Duration::from_secs(12);

/// The error of a clock in seconds, ahead or behind.
const OFF_S: Range<u64> = 3..121;

/// The time a broker whose disk was freed has before it is restarted.
const BROKER_RECOVERS: Duration = Duration::from_secs(2);

/// A fault of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// Its link is down.
    Cut,
    /// It is stopped.
    Stopped,
    /// It is killed and restarted later.
    Killed,
    /// Its disk is full.
    Full,
    /// Its clock is wrong.
    Clock,
}

/// The possible faults of a broker, and of a host that is a daemon or only the loop of the log's contract.
const OF_BROKER: &[Fault] = &[Fault::Cut, Fault::Stopped, Fault::Killed, Fault::Full];
const OF_DAEMON: &[Fault] = &[
    Fault::Cut,
    Fault::Stopped,
    Fault::Killed,
    Fault::Full,
    Fault::Clock,
];
const OF_LOOP: &[Fault] = &[Fault::Cut, Fault::Stopped, Fault::Killed];

/// The processes, and everything that happened to them.
pub(super) struct FaultStage<'s> {
    pub(super) net: &'s Net,
    pub(super) disks: &'s Disks,
    pub(super) keep: &'s Path,
    pub(super) players: &'s mut [Player],
    pub(super) ongoing: Vec<Ongoing>,
    /// Every fault so far.
    pub(super) all: Vec<Strike>,
    /// Brokers that did not recover from a full disk before they were restarted.
    pub(super) restarted: Vec<String>,
    /// Processes that ended by themselves and were restarted.
    pub(super) ended: Vec<String>,
}

/// One fault.
pub(super) struct Strike {
    pub(super) fault: Fault,
    /// The affected process, and its role.
    pub(super) player: usize,
    pub(super) whom: String,
    pub(super) at: SystemTime,
}

pub(super) struct Ongoing {
    player: usize,
    fault: Fault,
    until: Instant,
}

impl FaultStage<'_> {
    /// Injects faults until the time is over, then repairs all. At most one broker is down at a time, so that a
    /// majority remains, and any number of hosts.
    pub(super) fn play(&mut self, args: &Args) -> Result<(), String> {
        let mut chance = Chance(args.seed);
        let end = Instant::now() + minutes(args.minutes);
        while Instant::now() < end {
            self.mend(Instant::now())?;
            self.look_for_ended()?;
            let player = chance.below(2 * COUNT as u64);
            let player = usize::try_from(player).expect("a small number");
            let is_broker_away = self.ongoing.iter().any(|one| one.player < COUNT);
            let is_away = self.ongoing.iter().any(|one| one.player == player);
            let is_second_broker = player < COUNT && is_broker_away;
            if !(is_away || is_second_broker) {
                let possible = match (player < COUNT, args.daemon) {
                    (true, _) => OF_BROKER,
                    (false, true) => OF_DAEMON,
                    (false, false) => OF_LOOP,
                };
                let fault = chance.below(possible.len() as u64);
                let fault = possible[usize::try_from(fault).expect("a small number")];
                let lasts = LASTS_MS.start + chance.below(LASTS_MS.end - LASTS_MS.start);
                self.strike(player, fault, lasts, &mut chance, "")?;
            }
            std::thread::sleep(EVERY);
        }
        self.mend(end + Duration::from_secs(3600))?;
        self.look_for_ended()
    }

    /// Injects each fault separately, on a leader, a follower and a host, with a time without faults after each.
    pub(super) fn play_one_by_one(&mut self, args: &Args) -> Result<(), String> {
        let mut chance = Chance(args.seed);
        for fault in OF_DAEMON {
            let leader = leader(self.net)?;
            let brokers = [("the leader", leader), ("a follower", (leader + 1) % COUNT)];
            let host = ("a host", COUNT + COUNT - 1);
            for (whom, player) in brokers.into_iter().chain([host]) {
                if player < COUNT && !OF_BROKER.contains(fault) {
                    continue;
                }
                self.strike(player, *fault, LASTS_ALONE_MS, &mut chance, whom)?;
                std::thread::sleep(Duration::from_millis(LASTS_ALONE_MS));
                self.mend(Instant::now())?;
                std::thread::sleep(APART);
                self.look_for_ended()?;
            }
        }
        Ok(())
    }

    fn strike(
        &mut self,
        player: usize,
        fault: Fault,
        lasts: u64,
        chance: &mut Chance,
        whom: &str,
    ) -> Result<(), String> {
        let until = Instant::now() + Duration::from_millis(lasts);
        let at = SystemTime::now();
        let name = self.players[player].name.clone();
        let mut how = String::new();
        match fault {
            Fault::Cut => self.net.cut(player)?,
            Fault::Stopped => self.players[player].signal(Signal::STOP),
            Fault::Killed => {
                self.players[player].signal(Signal::KILL);
                self.players[player].wait();
            }
            Fault::Full => self.disks.fill(player)?,
            Fault::Clock => {
                let off = OFF_S.start + chance.below(OFF_S.end - OFF_S.start);
                let off = off.cast_signed() * if chance.below(2) == 0 { 1 } else { -1 };
                clock::set(self.keep, &name, off)?;
                how = format!(", {off:+} s");
            }
        }
        println!("{name} {fault:?}{how} for {lasts} ms");
        self.all.push(Strike {
            fault,
            player,
            whom: whom.to_owned(),
            at,
        });
        self.ongoing.push(Ongoing {
            player,
            fault,
            until,
        });
        Ok(())
    }

    fn mend(&mut self, now: Instant) -> Result<(), String> {
        let over: Vec<Ongoing> = self
            .ongoing
            .extract_if(.., |one| one.until <= now)
            .collect();
        for Ongoing { player, fault, .. } in over {
            match fault {
                Fault::Cut => self.net.reconnect(player)?,
                Fault::Stopped => self.players[player].signal(Signal::CONT),
                Fault::Killed => self.players[player].start()?,
                Fault::Full => {
                    self.disks.free(player)?;
                    if player < COUNT {
                        self.start_again_if_unwell(player)?;
                    }
                }
                Fault::Clock => clock::set(self.keep, HOSTS[player - COUNT], 0)?,
            }
        }
        Ok(())
    }

    /// Restarts a broker that stopped writing: it does not try again by itself, and a restart is its operator's job.
    fn start_again_if_unwell(&mut self, broker: usize) -> Result<(), String> {
        let address = monitor(self.net, broker);
        let end = Instant::now() + BROKER_RECOVERS;
        while Instant::now() < end {
            if settled_host::monitoring::healthz(&address).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let player = &mut self.players[broker];
        println!(
            "{} is started again: it does not write any more",
            player.name
        );
        player.signal(Signal::KILL);
        player.wait();
        self.restarted.push(player.name.clone());
        player.start()
    }

    /// Restarts processes that ended by themselves, as a service manager does.
    fn look_for_ended(&mut self) -> Result<(), String> {
        for player in self.players.iter_mut() {
            if let Some(status) = player.ended() {
                println!("{} ended by itself: {status}", player.name);
                self.ended.push(format!("{}: {status}", player.name));
                player.wait();
                player.start()?;
            }
        }
        Ok(())
    }
}

/// Returns the broker that leads the stream.
fn leader(net: &Net) -> Result<usize, String> {
    let pages = (0..COUNT).map(|index| settled_host::monitoring::jsz(&monitor(net, index)));
    for page in pages.flatten() {
        let streams = page["account_details"].as_array().into_iter().flatten();
        let mut streams = streams
            .filter_map(|account| account["stream_detail"].as_array())
            .flatten();
        let leader = streams.find_map(|stream| stream["cluster"]["leader"].as_str());
        if let Some(index) = (0..COUNT).find(|index| leader == Some(broker_name(*index).as_str())) {
            return Ok(index);
        }
    }
    Err("no broker says who leads the stream".to_owned())
}

/// SplitMix64: the same seed gives the same faults.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}
