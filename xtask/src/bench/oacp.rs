//! Four concurrent writers, through the peer and through Settled, in one run: which messages arrive, which are lost or
//! duplicated, and which a reader sees half-written. Counts by reading the directories, not by asking either program.
//!
//! Calls the peer's `send` inside four Python processes, since one process per message would measure Python's start.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use settled_tests::peer::{self, VERSION};

use super::figures::Result;
use super::ground::Ground;
use super::room;

/// The number of concurrent writers.
const WRITERS: usize = 4;
/// The reader's pause between two scans of an inbox.
const REST: Duration = Duration::from_millis(10);
/// A message is lost if this much time passes without any arrival.
const PATIENCE: Duration = Duration::from_secs(15);
/// The number of delivered messages shown to `oacp validate`, and the number of timed runs of `oacp send` as a process.
const SAMPLES: usize = 5;

/// The result of either program.
struct Outcome {
    written: usize,
    /// The number of copies of each message in the inbox.
    inbox: BTreeMap<String, usize>,
    kept: usize,
    took: Duration,
    partial: usize,
}

pub(crate) fn run(ground: &Ground, messages: usize) -> Result<()> {
    let peer = peer::environment();
    let each = messages / WRITERS;
    let (sent, process) = through_the_peer(ground, peer, each)?;
    let (dropped, accepted) = through_settled(ground, peer, each)?;
    println!("{WRITERS} writers at a time, {each} messages each, of one sender to one recipient");
    println!(
        "  {:<24} {:>8} {:>9} {:>5} {:>10} {:>12} {:>11} {:>8}",
        "", "written", "delivered", "lost", "duplicated", "sender keeps", "messages/s", "partial"
    );
    for (name, outcome) in [
        (format!("oacp {VERSION}, in process"), &sent),
        ("settled".to_owned(), &dropped),
    ] {
        let delivered = outcome.inbox.len();
        let files: usize = outcome.inbox.values().sum();
        println!(
            "  {name:<24} {:>8} {delivered:>9} {:>5} {:>10} {:>12} {:>11.0} {:>8}",
            outcome.written,
            outcome.written - delivered,
            files - delivered,
            outcome.kept,
            delivered as f64 / outcome.took.as_secs_f64(),
            outcome.partial
        );
    }
    println!(
        "  `oacp send` as a process                {:>9.0} ms each, one after the other",
        process * 1e3
    );
    println!("  `oacp validate` accepts {accepted} of {SAMPLES} that settled delivered");
    println!(
        "  settled has checked, decided, recorded and synced each; oacp has checked the envelope, and synced none\n"
    );
    Ok(())
}

fn through_the_peer(ground: &Ground, peer: &Path, each: usize) -> Result<(Outcome, f64)> {
    let home = ground.fresh("oacp")?;
    done(
        oacp(peer, &home).args(["init", "demo", "--agents", "claude,codex"]),
        "oacp init",
    )?;
    let agents = home.join("projects/demo/agents");
    let (inbox, outbox) = (agents.join("codex/inbox"), agents.join("claude/outbox"));
    let outcome = write_all(peer, "send", &home, &inbox, &outbox, each)?;
    let start = Instant::now();
    for _ in 0..SAMPLES {
        let to = [
            "send", "demo", "--from", "claude", "--to", "codex", "--type", "question",
        ];
        done(
            oacp(peer, &home)
                .args(to)
                .args(["--subject", "hi", "--body", "what is it?"]),
            "oacp send",
        )?;
    }
    Ok((outcome, start.elapsed().as_secs_f64() / SAMPLES as f64))
}

fn through_settled(ground: &Ground, peer: &Path, each: usize) -> Result<(Outcome, usize)> {
    let root = ground.fresh("beside-oacp")?;
    room::init(&root)?;
    let served = room::Served::start(&root)?;
    let (outbox, inbox) = (served.outbox(), served.inbox());
    let outcome = write_all(
        peer,
        "drop",
        &outbox,
        &inbox,
        &root.join("agents/claude/sent"),
        each,
    )?;
    let accepts =
        |path: &PathBuf| done(oacp(peer, &root).arg("validate").arg(path), "oacp validate").is_ok();
    let accepted = shown(&inbox)?
        .iter()
        .take(SAMPLES)
        .filter(|path| accepts(path))
        .count();
    Ok((outcome, accepted))
}

/// Starts the writers together, reads the inbox meanwhile, and counts once nothing more arrives.
fn write_all(
    peer: &Path,
    form: &str,
    place: &Path,
    inbox: &Path,
    keeps: &Path,
    each: usize,
) -> Result<Outcome> {
    let mut writers = Writers::ready(peer, form, place, each)?;
    let is_over = AtomicBool::new(false);
    let (written, took, seen) = std::thread::scope(|scope| -> Result<_> {
        let reader = scope.spawn(|| watch(inbox, &is_over));
        let start = Instant::now();
        let written = writers.write();
        let took = written.and_then(|written| Ok((written, arrived(inbox, written, start)?)));
        is_over.store(true, Ordering::Release);
        let seen = reader.join().map_err(|_| "the reader failed")??;
        let (written, took) = took?;
        Ok((written, took, seen))
    })?;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut whole = 0;
    for path in shown(inbox)? {
        let text = std::fs::read_to_string(&path)?;
        whole = whole.max(text.lines().count());
        *numbers.entry(number_of(&text).to_owned()).or_default() += 1;
    }
    // All messages have the same number of lines; one seen with fewer was half-written.
    let partial = seen
        .values()
        .filter(|text| !text.ends_with('\n') || text.lines().count() < whole)
        .count();
    let mut kept: Vec<String> = Vec::new();
    for path in shown(keeps)? {
        kept.push(number_of(&std::fs::read_to_string(&path)?).to_owned());
    }
    kept.sort_unstable();
    kept.dedup();
    Ok(Outcome {
        written,
        inbox: numbers,
        kept: kept.len(),
        took,
        partial,
    })
}

/// Waits until the inbox has this many files, or nothing has arrived for long; returns the time of the last arrival.
fn arrived(inbox: &Path, expected: usize, start: Instant) -> Result<Duration> {
    let mut most = (0, start.elapsed());
    loop {
        let now = start.elapsed();
        let count = shown(inbox)?.len();
        if count > most.0 {
            most = (count, now);
        }
        // A peer that writes into the inbox itself has finished writing.
        if count >= expected || now.saturating_sub(most.1) > PATIENCE {
            return Ok(most.1);
        }
        std::thread::sleep(REST);
    }
}

/// Reads each file of the inbox as soon as it appears, and keeps that first content.
fn watch(inbox: &Path, is_over: &AtomicBool) -> std::io::Result<BTreeMap<PathBuf, String>> {
    let mut seen = BTreeMap::new();
    while !is_over.load(Ordering::Acquire) {
        for path in shown(inbox)? {
            if let Entry::Vacant(new) = seen.entry(path) {
                let text = std::fs::read_to_string(new.key())?;
                new.insert(text);
            }
        }
        std::thread::sleep(REST);
    }
    Ok(seen)
}

/// The messages in a directory, as any agent lists them.
fn shown(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden
            && path
                .extension()
                .is_some_and(|extension| extension == "yaml")
        {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The number in a message's body, which identifies it.
fn number_of(text: &str) -> &str {
    text.lines()
        .find_map(|line| line.strip_prefix("  pr: "))
        .unwrap_or("")
}

/// The writers, stopped at the end if still running.
struct Writers(Vec<Child>);

impl Writers {
    fn ready(peer: &Path, form: &str, place: &Path, each: usize) -> Result<Self> {
        let scripts = scripts(peer)?;
        let mut writers = Self(Vec::new());
        for writer in 0..WRITERS {
            let mut python = Command::new(peer.join("bin/python"));
            python
                .args(["-c", include_str!("writer.py")])
                .arg(&scripts)
                .arg(form)
                .arg(place);
            python.args([writer * each + 1, each].map(|number| number.to_string()));
            writers.0.push(
                python
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()?,
            );
        }
        for child in &mut writers.0 {
            let said = child.stdout.as_mut().expect("standard output is piped");
            let mut ready = [0; 6];
            said.read_exact(&mut ready)?;
        }
        Ok(writers)
    }

    /// Lets all of them write; returns the number of messages that they report.
    fn write(&mut self) -> Result<usize> {
        for child in &mut self.0 {
            child
                .stdin
                .take()
                .expect("standard input is piped")
                .write_all(b"go\n")?;
        }
        let mut written = 0;
        for child in &mut self.0 {
            let said = BufReader::new(child.stdout.take().expect("standard output is piped"));
            let line = said.lines().next().ok_or("a writer failed")??;
            written += line.parse::<usize>()?;
        }
        Ok(written)
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn oacp(peer: &Path, home: &Path) -> Command {
    let mut command = Command::new(peer.join("bin/oacp"));
    command.env("OACP_HOME", home);
    command
}

/// The directory of the module that the peer's command `send` calls.
fn scripts(peer: &Path) -> Result<PathBuf> {
    for entry in std::fs::read_dir(peer.join("lib"))? {
        let scripts = entry?.path().join("site-packages/oacp/_scripts");
        if scripts.join("send_inbox_message.py").is_file() {
            return Ok(scripts);
        }
    }
    Err("the installed oacp has no send_inbox_message.py".into())
}

fn done(command: &mut Command, what: &str) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
