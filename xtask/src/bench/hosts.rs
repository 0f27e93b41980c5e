//! Several hosts on three brokers that sync before they acknowledge, on loopback, beside a bare client of the same
//! brokers: from a file on one host to a file on another, messages per second, a host that catches up, and an idle one.

use std::error::Error as _;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use rustix::process::{Pid, Signal, kill_process};
use settled_tests::broker::Broker;

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::{idle, room};

/// The time for which the bare client appends, before and after.
const BARE: Duration = Duration::from_secs(8);

/// Messages per second from one host to the other.
const RATE: u32 = 50;
const STEADY: Duration = Duration::from_secs(30);

/// The number of messages one after the other, and of those waiting at once.
const IN_A_ROW: usize = 500;
const AT_ONCE: usize = 5_000;

/// The time limit for any arrival.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(ground: &Ground, records: usize, idle_s: u64) -> Result<()> {
    room::build_package("settled-host")?;
    let dir = ground.fresh("hosts")?;
    let brokers = Broker::cluster(&dir);
    let bare_before = bare(&brokers)?;
    {
        let pair = Pair::join(&dir, &brokers, "pair")?;
        let (tower, laptop) = (pair.serve(0)?, pair.serve(1)?);
        latency(&pair)?;
        let in_a_row = in_a_row(&pair)?;
        let at_once = at_once(&pair)?;
        let bare_after = bare(&brokers)?;
        println!("accepted a second, for one workspace");
        let bare = f64::midpoint(bare_before, bare_after);
        println!(
            "  bare client, each behind the one before {bare:>9.0} /s   before {bare_before:.0}, after {bare_after:.0}"
        );
        println!(
            "  settled, each behind the one before     {in_a_row:>9.0} /s   {:.2} times",
            in_a_row / bare
        );
        println!(
            "  settled, {AT_ONCE} waiting at once        {at_once:>9.0} /s   {:.2} times   to reach: 200 /s, 0.6 times\n",
            at_once / bare
        );
        drop((tower, laptop));
    }
    at_rest(ground, &dir, &brokers, idle_s)?;
    catch_up(&dir, &brokers, records)
}

/// Measures only a new host that takes over this many records.
pub(crate) fn join_long(ground: &Ground, records: usize) -> Result<()> {
    room::build_package("settled-host")?;
    let dir = ground.fresh("hosts")?;
    let brokers = Broker::cluster(&dir);
    catch_up(&dir, &brokers, records)
}

/// Appends per second by a bare client, each after the previous one's acknowledgement, on its own stream like ours.
fn bare(brokers: &[Broker]) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let servers = brokers.iter().map(|broker| broker.url().parse());
    let servers = servers.collect::<std::result::Result<Vec<async_nats::ServerAddr>, _>>()?;
    runtime.block_on(async {
        let client = async_nats::connect(servers).await?;
        let context = async_nats::jetstream::new(client);
        let config = Config {
            name: "BARE".to_owned(),
            subjects: vec!["bare".to_owned()],
            storage: StorageType::File,
            num_replicas: brokers.len(),
            ..Config::default()
        };
        let mut stream = made(&context, &config).await?;
        let mut last = stream.info().await?.state.last_sequence;
        let payload = vec![b'x'; room::Kind::Question.message(1).len()];
        let (began, mut count) = (Instant::now(), 0_u32);
        while began.elapsed() < BARE {
            let message = PublishMessage::build()
                .payload(payload.clone().into())
                .expected_last_subject_sequence(last);
            match context.send_publish("bare", message).await?.await {
                Ok(acknowledged) => {
                    last = acknowledged.sequence;
                    count += 1;
                }
                Err(error) if is_behind(&error) => {
                    last = stream.info().await?.state.last_sequence;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(f64::from(count) / began.elapsed().as_secs_f64())
    })
}

/// Makes the stream once the cluster has a leader for it: one that was just started has none yet.
async fn made(context: &Context, config: &Config) -> Result<Stream> {
    let began = Instant::now();
    loop {
        match context.get_or_create_stream(config.clone()).await {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => tokio::time::sleep(room::GLANCE).await,
        }
    }
}

/// True if the leader refused a message because of the one before, which it may have acknowledged only just now.
fn is_behind(error: &PublishError) -> bool {
    let refused = error.source().and_then(|source| source.downcast_ref());
    refused.is_some_and(|refused: &async_nats::jetstream::Error| {
        let code = refused.error_code();
        code == ErrorCode::STREAM_WRONG_LAST_SEQUENCE
            || code == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT
    })
}

/// Two hosts of one ledger: claude lives on the first, codex on the second.
struct Pair {
    roots: [PathBuf; 2],
}

impl Pair {
    fn join(dir: &Path, brokers: &[Broker], workspace: &str) -> Result<Pair> {
        let roots = ["tower", "laptop"].map(|host| dir.join(workspace).join(host));
        room::init_for(&roots[0], "claude")?;
        std::fs::write(roots[0].join("settled.toml"), LIMITS)?;
        join(&roots[0], brokers, workspace, "tower", &[])?;
        join(
            &roots[1],
            brokers,
            workspace,
            "laptop",
            &["--agents", "codex"],
        )?;
        Ok(Pair { roots })
    }

    fn serve(&self, host: usize) -> Result<Serving> {
        Serving::start(&self.roots[host])
    }

    fn outbox(&self) -> PathBuf {
        self.roots[0].join("agents/claude/outbox")
    }

    fn sent(&self) -> PathBuf {
        self.roots[0].join("agents/claude/sent")
    }

    fn inbox(&self) -> PathBuf {
        self.roots[1].join("agents/codex/inbox")
    }

    /// Renames a message into the outbox, and returns the time.
    fn drop(&self, name: &str, text: &str) -> Result<SystemTime> {
        let fresh = self.roots[0].join(".fresh");
        std::fs::write(&fresh, text)?;
        let at = SystemTime::now();
        std::fs::rename(&fresh, self.outbox().join(name))?;
        Ok(at)
    }
}

/// More than one agent may write in an hour by default.
const LIMITS: &str =
    "[limits]\nmessages_per_hour = 10000\nfiles_per_hour = 1000000\nopen_reviews = 1000000\n";

fn join(root: &Path, brokers: &[Broker], workspace: &str, host: &str, more: &[&str]) -> Result<()> {
    let urls: Vec<String> = brokers.iter().map(Broker::url).collect();
    let urls = urls.join(",");
    let mut words = vec![
        "host",
        "join",
        &urls,
        "--workspace",
        workspace,
        "--as",
        host,
    ];
    words.extend(more);
    settled(root, &words)
}

fn settled(root: &Path, words: &[&str]) -> Result<()> {
    let output = Command::new(room::settled())
        .args(words)
        .arg("--root")
        .arg(root)
        .env("SETTLED_LOG", "warn")
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// A daemon of a host; dropping the value stops it.
struct Serving(Child);

impl Serving {
    fn start(root: &Path) -> Result<Serving> {
        let mut child = Command::new(room::settled().with_file_name("settled-host"))
            .arg("--root")
            .arg(root)
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut log = child.stderr.take().expect("standard error is piped");
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while !text.contains("serving") {
            let count = log.read(&mut bytes)?;
            if count == 0 {
                return Err(format!("the daemon did not start: {text}").into());
            }
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        // Keep reading, or the daemon blocks once the pipe is full.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(Serving(child))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Measures from the drop on one host to the inbox of the other, at a steady rate.
fn latency(pair: &Pair) -> Result<()> {
    let (began, mut dropped) = (Instant::now(), Vec::new());
    while began.elapsed() < STEADY {
        let number = dropped.len();
        let name = format!("steady-{number:06}.yaml");
        dropped.push((name.clone(), pair.drop(&name, &question(number, "steady"))?));
        let next = Duration::from_secs(1) / RATE * u32::try_from(dropped.len())?;
        std::thread::sleep(next.saturating_sub(began.elapsed()));
    }
    let inbox = pair.inbox();
    let mut took = Vec::new();
    for (name, at) in &dropped {
        let path = inbox.join(name);
        wait_for(|| path.exists(), name)?;
        // The rename into the inbox was the last change of the inode.
        let data = std::fs::metadata(&path)?;
        let made = Duration::new(data.ctime().cast_unsigned(), 0)
            + Duration::from_nanos(data.ctime_nsec().cast_unsigned());
        let made = SystemTime::UNIX_EPOCH + made;
        took.push(made.duration_since(*at).unwrap_or_default().as_secs_f64() * 1e3);
    }
    println!(
        "from the drop on one host to the file on another ({} at {RATE} a second)",
        took.len()
    );
    println!(
        "  median                              {:>9.1} ms   to reach: 25 ms",
        quantile(&mut took, 0.5)
    );
    println!(
        "  p99                                 {:>9.1} ms   to reach: 100 ms",
        quantile(&mut took, 0.99)
    );
    println!(
        "  longest                             {:>9.1} ms\n",
        quantile(&mut took, 1.0)
    );
    Ok(())
}

/// Messages per second, each written once the one before is accepted.
fn in_a_row(pair: &Pair) -> Result<f64> {
    let (sent, began) = (pair.sent(), Instant::now());
    for number in 0..IN_A_ROW {
        let name = format!("row-{number:06}.yaml");
        pair.drop(&name, &question(number, "row"))?;
        wait_for(|| sent.join(&name).exists(), &name)?;
    }
    Ok(IN_A_ROW as f64 / began.elapsed().as_secs_f64())
}

/// Accepted messages per second while many wait.
fn at_once(pair: &Pair) -> Result<f64> {
    let (sent, inbox) = (pair.sent(), pair.inbox());
    let began = Instant::now();
    for number in 0..AT_ONCE {
        pair.drop(&format!("once-{number:06}.yaml"), &question(number, "once"))?;
    }
    let outbox = pair.outbox();
    while !is_empty(&outbox) {
        if began.elapsed() > PATIENCE {
            return Err(format!("the outbox is not empty after {PATIENCE:?}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = began.elapsed().as_secs_f64();
    let last = format!("once-{:06}.yaml", AT_ONCE - 1);
    wait_for(
        || sent.join(&last).exists() && inbox.join(&last).exists(),
        &last,
    )?;
    Ok(AT_ONCE as f64 / took)
}

fn question(number: usize, what: &str) -> String {
    let question = room::Kind::Question.message(number);
    question.replace("id: msg-", &format!("id: {what}-"))
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut listed| listed.next().is_none())
}

fn wait_for(mut holds: impl FnMut() -> bool, what: &str) -> Result<()> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what}: not within {PATIENCE:?}").into());
        }
        std::thread::sleep(room::GLANCE);
    }
    Ok(())
}

/// Measures an idle host beside an idle daemon without a shared ledger.
fn at_rest(ground: &Ground, dir: &Path, brokers: &[Broker], seconds: u64) -> Result<()> {
    let alone = ground.fresh("alone")?;
    room::init(&alone)?;
    let pair = Pair::join(dir, brokers, "rest")?;
    let alone = room::Served::start(&alone)?;
    let hosts = [pair.serve(0)?, pair.serve(1)?];
    // Skip the first sweeps and heartbeats.
    std::thread::sleep(Duration::from_secs(12));
    let all = [alone.pid(), hosts[0].pid(), hosts[1].pid()];
    let processor = || {
        all.iter()
            .map(|pid| idle::processor_s(*pid))
            .collect::<Result<Vec<_>>>()
    };
    let before = processor()?;
    std::thread::sleep(Duration::from_secs(seconds));
    let after = processor()?;
    println!("at rest, {seconds} s                          processor   resident memory");
    let base = idle::resident_kib(all[0])? / 1024.0;
    for (index, what) in ["alone", "one of two hosts", "the other"]
        .into_iter()
        .enumerate()
    {
        let used = (after[index] - before[index]) / seconds as f64;
        let memory = idle::resident_kib(all[index])? / 1024.0;
        println!(
            "  {what:<34} {:>9.2} % {memory:>12.1} MiB   {:+.1} MiB",
            100.0 * used,
            memory - base
        );
    }
    println!("  to reach                                1.00 %                    +10.0 MiB\n");
    Ok(())
}

/// Measures a new host that takes over an existing ledger: it judges every record again.
fn catch_up(dir: &Path, brokers: &[Broker], records: usize) -> Result<()> {
    let root = dir.join("long/tower");
    // A tenth are reviews with an approval, the rest questions, spread over enough agents for the limits.
    let reviews = records / 10;
    let questions = records - 2 * reviews;
    let asking = questions.div_ceil(room::QUESTIONS_MAX);
    let names: Vec<String> = (0..asking).map(|number| format!("asks-{number}")).collect();
    room::init_for(&root, &format!("claude,codex,{}", names.join(",")))?;
    std::fs::write(root.join("settled.toml"), LIMITS)?;
    join(&root, brokers, "long", "tower", &[])?;
    for number in 0..questions {
        let from = &names[number / room::QUESTIONS_MAX];
        let text = question(number, "q").replace("from: claude", &format!("from: {from}"));
        std::fs::write(
            root.join(format!("agents/{from}/outbox/q-{number:06}.yaml")),
            text,
        )?;
    }
    for pr in 1..=reviews {
        std::fs::write(
            root.join(format!("agents/claude/outbox/r-{pr:06}.yaml")),
            room::request(pr),
        )?;
    }
    settled(&root, &["serve", "--once"])?;
    for pr in 1..=reviews {
        std::fs::write(
            root.join(format!("agents/codex/outbox/a-{pr:06}.yaml")),
            room::approval(pr),
        )?;
    }
    settled(&root, &["serve", "--once"])?;
    let (lines, batches) = counted(&root)?;
    let new = dir.join("long/new");
    rustix::fs::sync();
    let began = Instant::now();
    join(&new, brokers, "long", "new", &["--agents", "pi"])?;
    let joined = began.elapsed().as_secs_f64();
    let (has, _) = counted(&new)?;
    println!(
        "a new host joins a ledger of {lines} records in {batches} batches, a tenth of them reviews"
    );
    println!("  joined, with {has} records            {joined:>9.2} s   to reach: 10 s");
    println!();
    Ok(())
}

/// Counts the records of a ledger, and their batches.
fn counted(root: &Path) -> Result<(usize, usize)> {
    let (mut lines, mut batches) = (0, 0);
    for segment in std::fs::read_dir(root.join(".settled/ledger"))? {
        for line in std::fs::read_to_string(segment?.path())?.lines() {
            let record: serde_json::Value = serde_json::from_str(line)?;
            lines += 1;
            batches += usize::from(record["batch"] == record["seq"]);
        }
    }
    Ok((lines, batches))
}
