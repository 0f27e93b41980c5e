//! The agents of `cargo xtask hosts-real --daemon`: three hosts with the real daemon, one agent at home on each. They
//! write to each other, answer requests, and sometimes drop something that is not a message.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use settled_tests::binaries;

use super::net::Net;
use super::{COUNT, HOSTS, addresses};

/// The agent at home on each host.
pub(super) const AGENTS: [&str; COUNT] = ["claude", "codex", "pi"];

/// The longest time that the first join waits for the cluster.
const CLUSTER: Duration = Duration::from_secs(60);

/// The interval at which agents read their inboxes.
const LOOK: Duration = Duration::from_millis(200);

/// Three agents write more in a minute than the default limits allow in an hour.
pub(super) const LIMITS: &str =
    "\n[limits]\nmessages_per_hour = 10000\nfiles_per_hour = 100000\nopen_reviews = 10000\n";

/// A packet with one finding that blocks.
const FINDINGS: &str = "round: 1\nfindings:\n  - id: F-001\n    severity: P1\n    status: open\n    title: A handle leaks\n";

/// A file that an agent dropped.
#[derive(Clone, Debug)]
pub(super) struct Dropped {
    pub(super) file: String,
    pub(super) text: String,
    /// The packet that the message names, below `packets/findings`.
    pub(super) packet: Option<(String, String)>,
    /// The host of the sender.
    pub(super) from: usize,
    /// The reader's host; `None` if the file is refused.
    pub(super) to: Option<usize>,
    pub(super) at: SystemTime,
}

/// Makes the three workspaces and joins each to the ledger, from its own namespace.
pub(super) fn join(net: &Net, keep: &Path) -> Result<(), String> {
    for index in 0..COUNT {
        let (root, agent) = (keep.join(HOSTS[index]), AGENTS[index]);
        let root = root.to_string_lossy().into_owned();
        let log = addresses(net);
        let mut join = vec!["host", "join", &log, "--workspace", "w", "--root", &root];
        join.extend(["--as", HOSTS[index]]);
        if index == 0 {
            run(net, index, &["init", &root, "--agents", agent])?;
            // The other hosts adopt the policy.
            let config = keep.join(HOSTS[index]).join("settled.toml");
            let more = std::fs::read_to_string(&config).unwrap_or_default() + LIMITS;
            std::fs::write(&config, more).map_err(|error| error.to_string())?;
        } else {
            join.extend(["--agents", agent]);
        }
        let end = Instant::now() + CLUSTER;
        while let Err(error) = run(net, index, &join) {
            // The cluster may still be electing its leader. Joining is idempotent.
            if Instant::now() > end {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    Ok(())
}

/// Runs `settled` to its end in the namespace of a host.
pub(super) fn run(net: &Net, host: usize, words: &[&str]) -> Result<String, String> {
    let output = Command::new("ip")
        .args(["netns", "exec", &net.namespace(COUNT + host)])
        .arg(binaries::settled())
        .args(words)
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(format!("{words:?}: {}", said(&output.stderr)))
    }
}

/// Agents that write until they are stopped.
pub(super) struct Agents {
    is_enough: Arc<AtomicBool>,
    writing: JoinHandle<Result<Vec<Dropped>, String>>,
}

impl Agents {
    /// Starts the agents, each with `rate` files per second.
    pub(super) fn start(keep: &Path, rate: u64, has_reviews: bool) -> Agents {
        let is_enough = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            keep: keep.to_owned(),
            dropped: Vec::new(),
            waiting: Default::default(),
            answered: BTreeSet::new(),
            after: Vec::new(),
            number: 0,
        };
        let told = Arc::clone(&is_enough);
        let writing = std::thread::spawn(move || writer.write(rate, has_reviews, &told));
        Agents { is_enough, writing }
    }

    /// Stops the agents and returns everything they dropped.
    pub(super) fn end(self) -> Result<Vec<Dropped>, String> {
        self.is_enough.store(true, Ordering::Release);
        let ended = self.writing.join();
        ended.map_err(|_| "the agents panicked".to_owned())?
    }
}

struct Writer {
    keep: PathBuf,
    dropped: Vec<Dropped>,
    /// Files that each host's agent still has to write: its disk may be full.
    waiting: [VecDeque<Dropped>; COUNT],
    /// The mail that was answered.
    answered: BTreeSet<String>,
    /// Files to write once another file is accepted, given by its sender's host and its name.
    after: Vec<(usize, String, Dropped)>,
    number: u64,
}

/// A reviewer's answer to the request with this number. All kinds are equally frequent.
#[derive(Clone, Copy)]
enum Answer {
    Approval,
    /// One finding; the author fixes it and requests again, and the second round is an approval.
    Finding,
    /// An approval, and a second one, which is refused.
    Twice,
}

impl Answer {
    fn to(number: u64) -> Answer {
        let all = [Answer::Approval, Answer::Finding, Answer::Twice];
        all[usize::try_from(number / 5 % 3).expect("a small number")]
    }
}

impl Writer {
    fn write(
        mut self,
        rate: u64,
        has_reviews: bool,
        is_enough: &AtomicBool,
    ) -> Result<Vec<Dropped>, String> {
        let began = Instant::now();
        let mut looked = began;
        while !is_enough.load(Ordering::Acquire) {
            let due = began.elapsed().as_micros() * u128::from(rate) * COUNT as u128 / 1_000_000;
            while u128::from(self.number) < due {
                self.number += 1;
                self.write_next(has_reviews);
            }
            if has_reviews && looked.elapsed() > LOOK {
                self.go_on()?;
                looked = Instant::now();
            }
            self.drop_waiting();
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(self.dropped)
    }

    fn write_next(&mut self, has_reviews: bool) {
        let number = self.number;
        let from = usize::try_from(number % COUNT as u64).expect("a small number");
        let to = (from + 1 + usize::try_from(number / 3 % 2).expect("a small number")) % COUNT;
        let id = format!("m{number}");
        let next = match number % 20 {
            7 if has_reviews => Dropped::new(from, None, &id, "from: [\n".to_owned()),
            3 | 8 | 13 | 18 if has_reviews => request(number, 1, [from, to]),
            _ => {
                let text = message("question", [from, to], &id, None, &id);
                Dropped::new(from, Some(to), &id, text)
            }
        };
        self.waiting[from].push_back(next);
    }

    /// Answers all new review mail, and sends the files that waited for an acceptance.
    fn go_on(&mut self) -> Result<(), String> {
        for host in 0..COUNT {
            let mail = agent(&self.keep, host);
            for (name, _) in files(&mail.join("inbox")) {
                if name.starts_with('r') && self.answered.insert(name.clone()) {
                    let sent = self.dropped.iter().find(|dropped| dropped.file == name);
                    let from = sent.ok_or_else(|| format!("{name} was never sent"))?.from;
                    self.answer(host, from, &name)?;
                }
            }
            let is_accepted = |(from, file, _): &mut (usize, String, Dropped)| {
                *from == host && mail.join("sent").join(file).exists()
            };
            let next = self.after.extract_if(.., is_accepted);
            self.waiting[host].extend(next.map(|(_, _, next)| next));
        }
        Ok(())
    }

    /// Answers a request, named `rROUND-NUMBER.yaml`, or feedback, named `rf-NUMBER.yaml`.
    fn answer(&mut self, host: usize, from: usize, name: &str) -> Result<(), String> {
        let (kind, number) = name
            .strip_suffix(".yaml")
            .and_then(|stem| stem.split_once('-'))
            .ok_or_else(|| format!("{name} is no review mail"))?;
        let number: u64 = number
            .parse()
            .map_err(|_| format!("{name} has no number"))?;
        let (back, pr) = ([host, from], Some(1_000 + number));
        let approval = |id: &str| {
            let body = "quality_gate_result: pass\n  merge_ready: true";
            message("review_lgtm", back, id, pr, body)
        };
        match (kind, Answer::to(number)) {
            ("r1", Answer::Finding) => {
                let packet = format!("f{number}.yaml");
                let body = format!(
                    "findings_packet: packets/findings/{packet}\n  round: 1\n  blocking_count: 1"
                );
                let id = format!("rf-{number}");
                let text = message("review_feedback", back, &id, pr, &body);
                let mut next = Dropped::new(host, Some(from), &id, text);
                next.packet = Some((packet, FINDINGS.to_owned()));
                self.waiting[host].push_back(next);
            }
            ("rf", _) => {
                let body = format!(
                    "commit_sha: {}\n  changes_summary: Fixed.\n  round: 1\n  addressed_finding_ids: [F-001]",
                    commit(number, 2)
                );
                let id = format!("fixed-{number}");
                let text = message("review_addressed", back, &id, pr, &body);
                let fixed = Dropped::new(host, Some(from), &id, text);
                let again = request(number, 2, back);
                self.after.push((host, fixed.file.clone(), again));
                self.waiting[host].push_back(fixed);
            }
            ("r1" | "r2", answer) => {
                let id = format!("a{number}");
                let one = Dropped::new(host, Some(from), &id, approval(&id));
                if let Answer::Twice = answer {
                    let id = format!("b{number}");
                    let second = Dropped::new(host, None, &id, approval(&id));
                    self.after.push((host, one.file.clone(), second));
                }
                self.waiting[host].push_back(one);
            }
            _ => return Err(format!("{name} is no review mail")),
        }
        Ok(())
    }

    /// Renames complete files into outboxes, as long as the disks have room.
    fn drop_waiting(&mut self) {
        for (host, name) in HOSTS.into_iter().enumerate() {
            while let Some(mut next) = self.waiting[host].pop_front() {
                let root = self.keep.join(name);
                let packet = next.packet.as_ref().map_or(Ok(()), |(name, text)| {
                    whole(&root, &root.join("packets/findings").join(name), text).map(drop)
                });
                let outbox = agent(&self.keep, host).join("outbox");
                match packet.and_then(|()| whole(&root, &outbox.join(&next.file), &next.text)) {
                    Ok(at) => {
                        next.at = at;
                        self.dropped.push(next);
                    }
                    Err(_) => {
                        self.waiting[host].push_front(next);
                        break;
                    }
                }
            }
        }
    }
}

impl Dropped {
    fn new(from: usize, to: Option<usize>, id: &str, text: String) -> Dropped {
        Dropped {
            file: format!("{id}.yaml"),
            text,
            packet: None,
            from,
            to,
            at: SystemTime::UNIX_EPOCH,
        }
    }
}

fn request(number: u64, round: u8, between: [usize; 2]) -> Dropped {
    let pr = 1_000 + number;
    let body = format!(
        "pr: {pr}\n  branch: b\n  diff_summary: Says something.\n  declared_head: {}\n  max_runtime_s_reviewer: 3600",
        commit(number, round)
    );
    let id = format!("r{round}-{number}");
    let text = message("review_request", between, &id, Some(pr), &body);
    Dropped::new(between[0], Some(between[1]), &id, text)
}

/// The commit of a round.
pub(super) fn commit(number: u64, round: u8) -> String {
    format!(
        "{:040x}",
        0xabcd_0000_0000_0000 + 16 * number + u64::from(round)
    )
}

/// Writes a file beside its destination, renames it there, and returns the time. Leaves nothing behind if the disk is
/// full.
fn whole(root: &Path, place: &Path, text: &str) -> std::io::Result<SystemTime> {
    let fresh = root.join(".fresh");
    let at = SystemTime::now();
    std::fs::write(&fresh, text)
        .and_then(|()| std::fs::rename(&fresh, place))
        .map(|()| at)
}

/// The directory of the agent at home on a host.
fn agent(keep: &Path, host: usize) -> PathBuf {
    keep.join(HOSTS[host]).join("agents").join(AGENTS[host])
}

fn message(kind: &str, [from, to]: [usize; 2], id: &str, pr: Option<u64>, body: &str) -> String {
    let pr = pr.map_or_else(String::new, |pr| format!("related_pr: \"{pr}\"\n"));
    format!(
        "id: \"{id}\"\nfrom: {}\nto: {}\ntype: {kind}\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\n{pr}subject: \"{kind}\"\nbody: |\n  {body}\n",
        AGENTS[from], AGENTS[to]
    )
}

/// Returns the finished files of a directory, by name.
pub(super) fn files(directory: &Path) -> Vec<(String, PathBuf)> {
    let listed = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let named = listed.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path())
    });
    let mut files: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
    files.sort();
    files
}
