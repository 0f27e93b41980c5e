//! The agents of `cargo xtask hosts-real --daemon`: three hosts with the real daemon, one agent at home on each. They write
//! to each other, answer requests for reviews, and now and then drop what is no message.

use std::collections::BTreeSet;
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

/// How long the first join waits for the cluster.
const CLUSTER: Duration = Duration::from_secs(60);

/// How often the agents look into their inboxes.
const LOOK: Duration = Duration::from_millis(200);

/// Three agents write more in a minute than any does in an hour.
const LIMITS: &str = "\n[limits]\nmessages_per_hour = 10000\n";

/// What an agent dropped.
#[derive(Clone, Debug)]
pub(super) struct Dropped {
    pub(super) file: String,
    pub(super) text: String,
    /// The host of the sender.
    pub(super) from: usize,
    /// The host of the reader; nothing if it is no message.
    pub(super) to: Option<usize>,
    pub(super) at: SystemTime,
}

/// Makes the three workspaces and lets each join, from its own namespace.
pub(super) fn join(net: &Net, keep: &Path) -> Result<(), String> {
    for index in 0..COUNT {
        let (root, agent) = (keep.join(HOSTS[index]), AGENTS[index]);
        let root = root.to_string_lossy().into_owned();
        let log = addresses(net);
        let mut join = vec!["host", "join", &log, "--workspace", "w", "--root", &root];
        join.extend(["--as", HOSTS[index]]);
        if index == 0 {
            run(net, index, &["init", &root, "--agents", agent])?;
            // The other hosts take the policy over.
            let config = keep.join(HOSTS[index]).join("settled.toml");
            let more = std::fs::read_to_string(&config).unwrap_or_default() + LIMITS;
            std::fs::write(&config, more).map_err(|error| error.to_string())?;
        } else {
            join.extend(["--agents", agent]);
        }
        let end = Instant::now() + CLUSTER;
        while let Err(error) = run(net, index, &join) {
            // The cluster may still choose its leader. Joining can be run again.
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

/// Agents that write until they are told that it is enough.
pub(super) struct Agents {
    is_enough: Arc<AtomicBool>,
    writing: JoinHandle<Result<Vec<Dropped>, String>>,
}

impl Agents {
    /// Starts them: so many files a second from each.
    pub(super) fn start(keep: &Path, rate: u64, has_reviews: bool) -> Agents {
        let is_enough = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            keep: keep.to_owned(),
            dropped: Vec::new(),
            answered: BTreeSet::new(),
            number: 0,
        };
        let told = Arc::clone(&is_enough);
        let writing = std::thread::spawn(move || writer.write(rate, has_reviews, &told));
        Agents { is_enough, writing }
    }

    /// Ends them, and gives all that they dropped.
    pub(super) fn end(self) -> Result<Vec<Dropped>, String> {
        self.is_enough.store(true, Ordering::Release);
        let ended = self.writing.join();
        ended.map_err(|_| "the agents panicked".to_owned())?
    }
}

struct Writer {
    keep: PathBuf,
    dropped: Vec<Dropped>,
    /// The requests that have their answer.
    answered: BTreeSet<String>,
    number: u64,
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
                self.drop_next(has_reviews)?;
            }
            if has_reviews && looked.elapsed() > LOOK {
                self.answer()?;
                looked = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(self.dropped)
    }

    fn drop_next(&mut self, has_reviews: bool) -> Result<(), String> {
        let number = self.number;
        let from = usize::try_from(number % COUNT as u64).expect("a small number");
        let to = (from + 1 + usize::try_from(number / 3 % 2).expect("a small number")) % COUNT;
        let id = format!("m{number}");
        match number % 20 {
            7 if has_reviews => self.drop(from, None, &id, "from: [\n".to_owned()),
            3 | 13 if has_reviews => {
                let pr = 1_000 + number;
                let body = format!(
                    "pr: {pr}\n  branch: b\n  diff_summary: Says something.\n  max_runtime_s_reviewer: 600"
                );
                let text = message("review_request", [from, to], &id, Some(pr), &body);
                self.drop(from, Some(to), &format!("request-{id}"), text)
            }
            _ => {
                let text = message("question", [from, to], &id, None, &id);
                self.drop(from, Some(to), &id, text)
            }
        }
    }

    /// Answers every request that arrived since the last look.
    fn answer(&mut self) -> Result<(), String> {
        for host in 0..COUNT {
            let inbox = self.keep.join(HOSTS[host]).join("agents");
            let inbox = inbox.join(AGENTS[host]).join("inbox");
            for (name, _) in files(&inbox) {
                let Some(id) = name.strip_prefix("request-").map(str::to_owned) else {
                    continue;
                };
                if !self.answered.insert(id.clone()) {
                    continue;
                }
                let asked = self.dropped.iter().find(|dropped| dropped.file == name);
                let asked = asked.ok_or_else(|| format!("{name} was never sent"))?.from;
                let id = id.trim_end_matches(".yaml");
                let number: u64 = id.trim_start_matches('m').parse().expect("a number");
                let body = "quality_gate_result: pass\n  merge_ready: true";
                let answer = format!("a{number}");
                let pr = Some(1_000 + number);
                let text = message("review_lgtm", [host, asked], &answer, pr, body);
                self.drop(host, Some(asked), &answer, text)?;
            }
        }
        Ok(())
    }

    /// Renames a file into an outbox, whole.
    fn drop(
        &mut self,
        from: usize,
        to: Option<usize>,
        name: &str,
        text: String,
    ) -> Result<(), String> {
        let file = format!("{name}.yaml");
        let root = self.keep.join(HOSTS[from]);
        let fresh = self.keep.join(format!("{file}.fresh"));
        let outbox = root.join("agents").join(AGENTS[from]).join("outbox");
        std::fs::write(&fresh, &text).map_err(|error| error.to_string())?;
        let at = SystemTime::now();
        std::fs::rename(&fresh, outbox.join(&file)).map_err(|error| error.to_string())?;
        self.dropped.push(Dropped {
            file,
            text,
            from,
            to,
            at,
        });
        Ok(())
    }
}

fn message(kind: &str, [from, to]: [usize; 2], id: &str, pr: Option<u64>, body: &str) -> String {
    let pr = pr.map_or_else(String::new, |pr| format!("related_pr: \"{pr}\"\n"));
    format!(
        "id: \"{id}\"\nfrom: {}\nto: {}\ntype: {kind}\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\n{pr}subject: \"{kind}\"\nbody: |\n  {body}\n",
        AGENTS[from], AGENTS[to]
    )
}

/// The finished files of a directory, by name.
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
