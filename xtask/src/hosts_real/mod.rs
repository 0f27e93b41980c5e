//! `cargo xtask hosts-real`: three brokers and three hosts, each in a network namespace of its own, while links are cut,
//! processes are stopped and killed; and a look at what is left.
//!
//! A host is the loop of a log's contract and nothing else: append behind the end it has folded, follow, and judge again
//! what was moved. So what is tested is the log in the stream, with real servers, a real network and real kills. With
//! `--daemon` a host is the real daemon with a workspace, and agents write, review and refuse.

mod check;
mod check_mail;
mod host;
mod mail;
mod net;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use rustix::process::{Pid, Signal, kill_process};

pub(crate) use host::{HostArgs, serve};

use self::net::Net;

/// So many brokers, and so many hosts.
const COUNT: usize = 3;

/// The names of the hosts.
const HOSTS: [&str; COUNT] = ["tower", "laptop", "ci"];

/// The interval between two new faults, and their duration.
const EVERY: Duration = Duration::from_secs(2);
const LASTS_MS: std::ops::Range<u64> = 500..6_000;

/// The time without faults at the end, so that all hosts can catch up.
const PEACE: Duration = Duration::from_secs(20);

/// Let three hosts share a ledger in real brokers while links are cut and processes are stopped and killed
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// How many minutes something goes wrong
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// What all chance is made from
    #[arg(long, value_name = "S", default_value_t = 20_261_124)]
    seed: u64,
    /// How many items each host has a second
    #[arg(long, value_name = "N", default_value_t = 20)]
    rate: u64,
    /// Let nothing go wrong
    #[arg(long)]
    calm: bool,
    /// Let each host be the real daemon, with an agent that writes, reviews and drops what is no message
    #[arg(long)]
    daemon: bool,
    /// Let the agents of `--daemon` write questions alone, for figures
    #[arg(long, requires = "daemon")]
    questions: bool,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = "target/hosts-real")]
    keep: PathBuf,
}

/// Runs it; whether nothing was wrong.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let keep = std::path::absolute(&args.keep).map_err(|error| error.to_string())?;
    let _ = std::fs::remove_dir_all(&keep);
    std::fs::create_dir_all(&keep).map_err(|error| format!("{}: {error}", keep.display()))?;
    let net = Net::make(2 * COUNT)?;
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
            Player::daemon(&net, &keep, index)
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
    let faults = if args.calm {
        std::thread::sleep(minutes(args.minutes));
        Vec::new()
    } else {
        play(&net, &mut players, args)?
    };
    println!("{} faults; now peace for {PEACE:?}", faults.len());
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
    std::thread::sleep(PEACE);
    if args.daemon {
        println!(
            "{}",
            mail::run(
                &net,
                0,
                &[
                    "host",
                    "list",
                    "--root",
                    &keep.join(HOSTS[0]).to_string_lossy()
                ]
            )?
        );
    }
    for player in &mut players[COUNT..] {
        player.signal(Signal::TERM);
        player.wait();
    }
    drop(players);
    if let Some(dropped) = dropped {
        let report = check_mail::check(&keep, &dropped);
        println!("{report}");
        return Ok(report.is_good());
    }
    let report = check::check(&keep)?;
    println!("{report}");
    Ok(report.is_good())
}

fn minutes(minutes: f64) -> Duration {
    Duration::from_secs_f64(60.0 * minutes)
}

fn addresses(net: &Net) -> String {
    let brokers = (0..COUNT).map(|index| format!("nats://{}:4222", net.address(index)));
    brokers.collect::<Vec<_>>().join(",")
}

/// One process in its namespace.
struct Player {
    name: String,
    command: Vec<String>,
    log: PathBuf,
    namespace: String,
    process: Option<Child>,
}

impl Player {
    fn broker(net: &Net, keep: &Path, index: usize) -> Result<Player, String> {
        let name = format!("n{}", index + 1);
        let routes: Vec<String> = (0..COUNT)
            .map(|index| format!("\"nats://{}:6222\"", net.address(index)))
            .collect();
        let address = net.address(index);
        let config = format!(
            "server_name: {name}\nlisten: \"{address}:4222\"\nhttp: \"{address}:8222\"\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always }}\n\
             cluster {{ name: ledgers, listen: \"{address}:6222\", routes: [{}] }}\n",
            keep.join(&name).display(),
            routes.join(", ")
        );
        let file = keep.join(format!("{name}.conf"));
        std::fs::write(&file, config).map_err(|error| error.to_string())?;
        let program = settled_tests::broker::program();
        Ok(Player {
            command: vec![
                program.display().to_string(),
                "--config".to_owned(),
                file.display().to_string(),
            ],
            log: keep.join(format!("{name}.log")),
            namespace: net.namespace(index),
            name,
            process: None,
        })
    }

    fn host(net: &Net, keep: &Path, index: usize, rate: u64) -> Player {
        let name = HOSTS[index].to_owned();
        let directory = keep.join(&name);
        let program = std::env::current_exe().expect("this program has a path");
        let words = [
            &program.display().to_string(),
            "hosts-real-host",
            "--name",
            &name,
            "--servers",
            &addresses(net),
            "--directory",
            &directory.display().to_string(),
            "--rate",
            &rate.to_string(),
        ];
        Player {
            command: words.map(str::to_owned).to_vec(),
            log: keep.join(format!("{name}.log")),
            namespace: net.namespace(COUNT + index),
            name,
            process: None,
        }
    }

    fn daemon(net: &Net, keep: &Path, index: usize) -> Player {
        let name = HOSTS[index].to_owned();
        let program = settled_tests::binaries::directory().join("settled-host");
        let root = keep.join(&name).display().to_string();
        let program = program.display().to_string();
        Player {
            command: [&program, "--root", &root, "serve"]
                .map(str::to_owned)
                .to_vec(),
            log: keep.join(format!("{name}.log")),
            namespace: net.namespace(COUNT + index),
            name,
            process: None,
        }
    }

    fn start(&mut self) -> Result<(), String> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(|error| error.to_string())?;
        let again = log.try_clone().map_err(|error| error.to_string())?;
        // `ip netns exec` becomes the program, so that signals reach it.
        let process = Command::new("ip")
            .args(["netns", "exec", &self.namespace])
            .args(&self.command)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again)
            .spawn()
            .map_err(|error| format!("ip: {error}"))?;
        self.process = Some(process);
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        let id = self.process.as_ref().map(Child::id);
        let id = id.and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            let _ = kill_process(id, signal);
        }
    }

    fn wait(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.wait();
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        self.signal(Signal::KILL);
        self.wait();
    }
}

/// A fault of one of them.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Its link is down.
    Cut,
    /// It is stopped.
    Stopped,
    /// It is killed, and started again later.
    Killed,
}

struct Ongoing {
    player: usize,
    fault: Fault,
    until: Instant,
}

/// Lets things go wrong until the time is over, then mends all. At most one broker is away at a time, so that a majority
/// is there, and any number of hosts.
fn play(net: &Net, players: &mut [Player], args: &Args) -> Result<Vec<(usize, Fault)>, String> {
    let mut chance = args.seed;
    let mut draw = |below: u64| {
        // SplitMix64: the same seed, the same faults.
        chance = chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    };
    let end = Instant::now() + minutes(args.minutes);
    let (mut ongoing, mut all): (Vec<Ongoing>, Vec<(usize, Fault)>) = (Vec::new(), Vec::new());
    while Instant::now() < end {
        mend(net, players, &mut ongoing, Instant::now())?;
        let player = usize::try_from(draw(2 * COUNT as u64)).expect("a small number");
        let is_broker_away = ongoing.iter().any(|one| one.player < COUNT);
        let is_away = ongoing.iter().any(|one| one.player == player);
        let is_second_broker = player < COUNT && is_broker_away;
        if !(is_away || is_second_broker) {
            let fault = [Fault::Cut, Fault::Stopped, Fault::Killed]
                [usize::try_from(draw(3)).expect("a small number")];
            let lasts = LASTS_MS.start + draw(LASTS_MS.end - LASTS_MS.start);
            let until = Instant::now() + Duration::from_millis(lasts);
            println!("{} {fault:?} for {lasts} ms", players[player].name);
            match fault {
                Fault::Cut => net.cut(player, true)?,
                Fault::Stopped => players[player].signal(Signal::STOP),
                Fault::Killed => {
                    players[player].signal(Signal::KILL);
                    players[player].wait();
                }
            }
            all.push((player, fault));
            ongoing.push(Ongoing {
                player,
                fault,
                until,
            });
        }
        std::thread::sleep(EVERY);
    }
    mend(net, players, &mut ongoing, end + Duration::from_secs(3600))?;
    Ok(all)
}

fn mend(
    net: &Net,
    players: &mut [Player],
    ongoing: &mut Vec<Ongoing>,
    now: Instant,
) -> Result<(), String> {
    for Ongoing { player, fault, .. } in ongoing.extract_if(.., |one| one.until <= now) {
        match fault {
            Fault::Cut => net.cut(player, false)?,
            Fault::Stopped => players[player].signal(Signal::CONT),
            Fault::Killed => players[player].start()?,
        }
    }
    Ok(())
}
