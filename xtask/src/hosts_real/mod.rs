//! `cargo xtask hosts-real`: three brokers and three hosts, each in its own network namespace and on its own small
//! disk, while links are cut and processes are stopped and killed; and a check of the result.
//!
//! A host is only the loop of a log's contract: append after the end it has folded, follow, and judge again what was
//! rejected. So this tests the log in the stream, with real servers, a real network and real kills. With `--daemon` a
//! host is the real daemon with a workspace, agents write, review and are refused, disks fill up and clocks are wrong;
//! and a single host judges the same files once more in the order of the ledger.

mod check;
mod check_mail;
mod clock;
mod disk;
mod fault;
mod host;
mod mail;
mod net;
mod one_host;
mod player;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use clap::Args as ClapArgs;
use rustix::process::Signal;

pub(crate) use host::{HostArgs, serve};

use self::disk::Disks;
use self::fault::{Fault, FaultStage, Strike};
use self::net::Net;
use self::player::Player;

/// The number of brokers, and of hosts.
const COUNT: usize = 3;

/// The names of the hosts.
const HOSTS: [&str; COUNT] = ["tower", "laptop", "ci"];

/// The time without faults in which all hosts have to catch up, even on a busy machine.
const CAUGHT_UP: Duration = Duration::from_secs(180);

/// The time without a change of any ledger before the hosts count as caught up; deliveries finish meanwhile.
const PEACE: Duration = Duration::from_secs(10);

/// The most errors to print.
const TOLD: usize = 20;

/// Share a ledger in real brokers among three hosts; cut links, stop and kill processes
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Minutes of faults
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// Seed of the random choices
    #[arg(long, value_name = "S", default_value_t = 20_261_124)]
    seed: u64,
    /// Items per second of each host
    #[arg(long, value_name = "N", default_value_t = 20)]
    rate: u64,
    /// Inject no fault
    #[arg(long)]
    calm: bool,
    /// Run the real daemon on each host, with an agent that writes, reviews and drops invalid files
    #[arg(long)]
    daemon: bool,
    /// Inject each fault of `--daemon` alone; fail if nothing is accepted for 10 s
    #[arg(long, requires = "daemon", conflicts_with_all = ["calm", "minutes"])]
    single: bool,
    /// Have the agents of `--daemon` write only questions, for figures
    #[arg(long, requires = "daemon")]
    questions: bool,
    /// Directory for all data
    #[arg(long, value_name = "DIR", default_value = "target/hosts-real")]
    keep: PathBuf,
}

/// Runs it; returns true if nothing was wrong.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let keep = std::path::absolute(&args.keep).map_err(|error| error.to_string())?;
    // The disks of an interrupted run.
    disk::unmount_all(&keep);
    let _ = std::fs::remove_dir_all(&keep);
    std::fs::create_dir_all(&keep).map_err(|error| format!("{}: {error}", keep.display()))?;
    let net = Net::make(2 * COUNT)?;
    let disks = Disks::mount(&keep)?;
    let mut players = Vec::new();
    for index in 0..COUNT {
        players.push(Player::broker(&net, &keep, index)?);
    }
    for player in &mut players {
        player.start()?;
    }
    if args.daemon {
        mail::join(&net, &keep)?;
    } else {
        host::make_stream(&addresses(&net))?;
    }
    for index in 0..COUNT {
        players.push(if args.daemon {
            Player::daemon(&net, &keep, index)?
        } else {
            Player::host(&net, &keep, index, args.rate)
        });
    }
    for player in &mut players[COUNT..] {
        player.start()?;
    }
    let agents = args
        .daemon
        .then(|| mail::Agents::start(&keep, args.rate, !args.questions));
    let mut stage = FaultStage {
        net: &net,
        disks: &disks,
        keep: &keep,
        players: &mut players,
        ongoing: Vec::new(),
        all: Vec::new(),
        restarted: Vec::new(),
        ended: Vec::new(),
    };
    if args.calm {
        std::thread::sleep(minutes(args.minutes));
    } else if args.single {
        stage.play_one_by_one(args)?;
    } else {
        stage.play(args)?;
    }
    let FaultStage {
        all,
        restarted,
        ended,
        ..
    } = stage;
    let end = SystemTime::now();
    println!("{}; now peace", told(&all, &restarted, &ended));
    let dropped = match agents {
        Some(agents) => Some(agents.end()?),
        None => {
            for name in HOSTS {
                let enough = keep.join(name).join("enough");
                std::fs::write(enough, "").map_err(|error| error.to_string())?;
            }
            None
        }
    };
    let ledger = || match args.daemon {
        true => check_mail::common_ledger(&keep),
        false => check::common_mirror(&keep),
    };
    let has_caught_up = catch_up(ledger);
    if args.daemon {
        let root = keep.join(HOSTS[0]);
        let list = ["host", "list", "--root", &root.to_string_lossy()];
        println!("{}", mail::run(&net, 0, &list)?);
    }
    for player in &mut players[COUNT..] {
        player.signal(Signal::TERM);
        player.wait();
    }
    drop(players);
    let Some(dropped) = dropped else {
        let report = check::check(&keep)?;
        println!("{report}");
        tell_wrong(&keep, "wrong", report.wrong())?;
        return Ok(report.is_good() && has_caught_up);
    };
    let report = check_mail::check(&keep, &dropped);
    println!("{report}");
    tell_wrong(&keep, "wrong", report.wrong())?;
    let pauses = args.single.then(|| report.pauses(&all, end));
    if let Some(pauses) = &pauses {
        print!("{pauses}");
    }
    let same = one_host::judge_again(&keep, &dropped)?;
    println!("{same}");
    tell_wrong(&keep, "differences", same.wrong())?;
    let are_short = pauses.is_none_or(|pauses| pauses.are_short());
    Ok(report.is_good() && same.is_good() && has_caught_up && are_short)
}

/// Waits until all hosts have the same ledger and nothing is left to judge, and prints the time that took. `ledger`
/// returns their ledger once it is the same.
fn catch_up(ledger: impl Fn() -> Option<String>) -> bool {
    let began = Instant::now();
    let mut same: Option<(usize, Instant)> = None;
    while began.elapsed() < CAUGHT_UP {
        let now = ledger().map(|ledger| ledger.len());
        match (now, same) {
            (Some(bytes), Some((before, since))) if bytes == before => {
                if since.elapsed() > PEACE {
                    let took = since.duration_since(began);
                    println!("all hosts had caught up after {:.1} s", took.as_secs_f64());
                    return true;
                }
            }
            (now, _) => same = now.map(|bytes| (bytes, Instant::now())),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    println!("WRONG: the hosts have not caught up after {CAUGHT_UP:?}");
    false
}

/// Prints the first errors; a file has all of them.
fn tell_wrong(keep: &Path, name: &str, wrong: &[String]) -> Result<(), String> {
    for wrong in wrong.iter().take(TOLD) {
        println!("WRONG: {wrong}");
    }
    if wrong.len() > TOLD {
        let path = keep.join(name);
        println!(
            "WRONG: {} more, all in {}",
            wrong.len() - TOLD,
            path.display()
        );
        std::fs::write(&path, wrong.join("\n")).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The number of faults of each kind, and the restarted processes.
fn told(all: &[Strike], restarted: &[String], ended: &[String]) -> String {
    let mut counts: BTreeMap<Fault, usize> = BTreeMap::new();
    for strike in all {
        *counts.entry(strike.fault).or_default() += 1;
    }
    format!(
        "{} faults {counts:?}, brokers started again after their disk was full: {}, ended by themselves: {ended:?}",
        all.len(),
        restarted.len()
    )
}

fn minutes(minutes: f64) -> Duration {
    Duration::from_secs_f64(60.0 * minutes)
}

fn addresses(net: &Net) -> String {
    let brokers = (0..COUNT).map(|index| format!("nats://{}:4222", net.address(index)));
    brokers.collect::<Vec<_>>().join(",")
}
