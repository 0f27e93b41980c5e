//! The noisy neighbour: how a third agent, whose directories are as bad as we can make them, affects two agents that write to
//! each other, for each kind of noise beside the same two agents alone.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use settled_tests::{hostile, seed};

use super::ground::Ground;
use super::{Result, quantile, raw, room};

/// The agents: two that write to each other, an author, and its reviewer, the noisy one.
const AGENTS: &str = "ada,ben,claude,codex";

/// The number of messages measured beside each noise, and the pause between two of them.
const MESSAGES: usize = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// The head start of the noise before the measurement.
const HEAD_START: Duration = Duration::from_millis(1_500);

/// A slower message counts as this long, and the next one is written.
const GIVE_UP: Duration = Duration::from_secs(30);

/// The targets: the others' median as a multiple of their quiet median, and their 99th percentile in milliseconds.
const RATIO_MAX: f64 = 3.0;
const P99_MS_MAX: f64 = 50.0;

/// The most waiting files before the noise pauses: enough to be always there, and the disk is finite.
const WAITING_MAX: usize = 20_000;

/// The noisy agent: its workspace and outbox, and the signal to stop.
struct Noise<'a> {
    root: &'a Path,
    is_over: &'a AtomicBool,
    /// Set once what the noise needs is there.
    is_laid: &'a AtomicBool,
    number: usize,
}

type Make = fn(&mut Noise<'_>);

/// Every kind of noise, except unreadable files: root can read everything.
const NOISES: [(&str, Make); 21] = [
    ("messages that name missing packets", held),
    ("the same from the future", held_from_the_future),
    ("documents of 9 900 keys", keys),
    ("the hostile documents in turn", documents),
    ("100 000 files of one byte", one_byte),
    ("sparse files of 5 GB", sparse),
    ("files of 256 KiB and one byte", too_large),
    ("messages of 250 KiB", large),
    ("200 files that grow forever", growing),
    ("directories 60 deep", directories),
    ("symbolic links", links),
    ("FIFOs", fifos),
    ("files with two names", two_names),
    ("one message again and again", duplicates),
    ("correct messages without a pause", correct),
    ("one name replaced again and again", replaced),
    ("files made and removed", removed),
    ("8 000 packets touched in turn", packets),
    ("400 000 names that are no messages", junk),
    ("the same in an inbox", junk_in_inbox),
    ("16 000 empty files held open", held_open),
];

struct Latency {
    median_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// The time that the disk and the scheduler take for the same bytes at the same time (append, sync, create,
    /// rename): the median and the 99th percentile.
    raw_ms: f64,
    raw_p99_ms: f64,
}

pub(crate) fn run(ground: &Ground, only: &str) -> Result<()> {
    println!(
        "from close to visible in the inbox beside a noisy neighbour ({MESSAGES} messages each)"
    );
    println!(
        "  to reach: {RATIO_MAX} times the quiet median of its own run, and {P99_MS_MAX} ms at the 99th percentile"
    );
    println!("  load of the machine: {}\n", load());
    println!(
        "  {:<36} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "quiet ms", "median", "times", "quiet p99", "p99", "max", "raw quiet", "raw", "raw p99"
    );
    let (mut measured, mut over) = (0, 0);
    for (name, make) in NOISES.into_iter().filter(|(name, _)| name.contains(only)) {
        ground.clear()?;
        let (quiet, noisy) = beside(ground, make)?;
        let times = noisy.median_ms / quiet.median_ms;
        let is_over = times > RATIO_MAX || noisy.p99_ms > P99_MS_MAX;
        over += usize::from(is_over);
        measured += 1;
        println!(
            "  {name:<36} {:>9.2} {:>9.2} {times:>7.1} {:>9.1} {:>9.1} {:>9.1} {:>9.2} {:>9.2} {:>9.1}{}",
            quiet.median_ms,
            noisy.median_ms,
            quiet.p99_ms,
            noisy.p99_ms,
            noisy.max_ms,
            quiet.raw_ms,
            noisy.raw_ms,
            noisy.raw_p99_ms,
            if is_over { "  OVER" } else { "" }
        );
    }
    println!("\n  {measured} noises, {over} over a limit\n");
    Ok(())
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

/// Measures the two agents alone, and then beside the noise, in one workspace with one daemon.
fn beside(ground: &Ground, make: Make) -> Result<(Latency, Latency)> {
    let root = &ground.fresh("neighbour")?;
    let mut limit = raw::Delivery::new(&ground.fresh("neighbour-raw")?)?;
    room::init_for(root, AGENTS)?;
    std::fs::write(
        root.join("settled.toml"),
        "[limits]\nmessages_per_hour = 10000\nfiles_per_hour = 1000000\n",
    )?;
    std::fs::write(
        root.join("agents/claude/outbox/request.yaml"),
        hostile::request(),
    )?;
    let served = room::Served::start(root)?;
    let quiet = measure(root, "quiet", &mut limit)?;
    let (is_over, is_laid) = (AtomicBool::new(false), AtomicBool::new(false));
    let noisy = std::thread::scope(|scope| {
        scope.spawn(|| {
            make(&mut Noise {
                root,
                is_over: &is_over,
                is_laid: &is_laid,
                number: 0,
            });
        });
        while !is_laid.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
        }
        std::thread::sleep(HEAD_START);
        let noisy = measure(root, "noisy", &mut limit);
        is_over.store(true, Ordering::Relaxed);
        noisy
    })?;
    // The backlog is not worth waiting for.
    served.kill();
    Ok((quiet, noisy))
}

fn measure(root: &Path, lot: &str, limit: &mut raw::Delivery) -> Result<Latency> {
    let outbox = root.join("agents/ada/outbox");
    let inbox = root.join("agents/ben/inbox");
    let (mut ms, mut raw_ms) = (Vec::new(), Vec::new());
    for number in 0..MESSAGES {
        let id = format!("{lot}-{number}");
        let text = seed::note(
            "question",
            &id,
            "ada",
            "ben",
            &"What was changed, and why?\n".repeat(30),
        );
        let name = format!("{id}.yaml");
        let seen = inbox.join(&name);
        let mut file = File::create_new(outbox.join(&name))?;
        file.write_all(text.as_bytes())?;
        let closed = Instant::now();
        drop(file);
        while !seen.exists() && closed.elapsed() < GIVE_UP {
            std::thread::sleep(room::GLANCE);
        }
        ms.push(closed.elapsed().as_secs_f64() * 1e3);
        raw_ms.push(limit.deliver(text.as_bytes())?.as_secs_f64() * 1e3);
        std::thread::sleep(PAUSE);
    }
    Ok(Latency {
        median_ms: quantile(&mut ms, 0.5),
        p99_ms: quantile(&mut ms, 0.99),
        max_ms: quantile(&mut ms, 1.0),
        raw_ms: quantile(&mut raw_ms, 0.5),
        raw_p99_ms: quantile(&mut raw_ms, 0.99),
    })
}

impl Noise<'_> {
    fn outbox(&self) -> PathBuf {
        self.root.join("agents").join(hostile::AGENT).join("outbox")
    }

    /// Returns the next name until the end; pauses while very many files wait.
    fn next(&mut self) -> Option<PathBuf> {
        if self.number.is_multiple_of(1_000) {
            while !self.is_over.load(Ordering::Relaxed) && self.waiting() > WAITING_MAX {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.is_laid.store(true, Ordering::Relaxed);
        self.number += 1;
        let path = self.outbox().join(format!("{:07}.yaml", self.number));
        (!self.is_over.load(Ordering::Relaxed)).then_some(path)
    }

    fn waiting(&self) -> usize {
        std::fs::read_dir(self.outbox()).map_or(0, Iterator::count)
    }

    /// Writes one text after the other until the end.
    fn write_all(&mut self, text: impl Fn(usize) -> Vec<u8>) {
        while let Some(path) = self.next() {
            // The disk may be full, or the file already judged: both are part of the noise.
            let _ = std::fs::write(path, text(self.number));
        }
    }

    fn wait(&self) {
        self.is_laid.store(true, Ordering::Relaxed);
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn without_packet(number: usize) -> Vec<u8> {
    let body = format!(
        "findings_packet: packets/findings/none-{number}.yaml\nround: 1\nblocking_count: 0\n"
    );
    let id = format!("held-{number}");
    seed::review_message(
        "review_feedback",
        &id,
        hostile::AGENT,
        "claude",
        "86",
        &body,
    )
    .into_bytes()
}

fn held(noise: &mut Noise<'_>) {
    noise.write_all(without_packet);
}

fn held_from_the_future(noise: &mut Noise<'_>) {
    let future = SystemTime::now() + Duration::from_secs(400 * 86_400);
    while let Some(path) = noise.next() {
        let Ok(mut file) = File::create(path) else {
            continue;
        };
        let _ = file.write_all(&without_packet(noise.number));
        let _ = file.set_modified(future);
    }
}

fn keys(noise: &mut Noise<'_>) {
    let text: String = (0..9_900).map(|n| format!("key{n}: value\n")).collect();
    noise.write_all(|number| format!("id: keys-{number}\n{text}").into_bytes());
}

fn documents(noise: &mut Noise<'_>) {
    let documents = hostile::documents();
    let mut turn = documents.iter().cycle();
    while let Some(path) = noise.next() {
        let document = turn.next().expect("there are some");
        if let Some(packet) = &document.packet {
            let place = noise.root.join("packets/findings/f.yaml");
            let part = place.with_extension("part");
            let _ = std::fs::write(&part, packet).and_then(|()| std::fs::rename(part, place));
        }
        let _ = std::fs::write(path, &document.message);
    }
}

fn one_byte(noise: &mut Noise<'_>) {
    while noise.number < 100_000
        && let Some(path) = noise.next()
    {
        let _ = std::fs::write(path, "x");
    }
    noise.wait();
}

fn sparse(noise: &mut Noise<'_>) {
    while let Some(path) = noise.next() {
        let _ = File::create(path).and_then(|file| file.set_len(5_000_000_000));
    }
}

fn too_large(noise: &mut Noise<'_>) {
    while let Some(path) = noise.next() {
        // No more than a small image has room for.
        if noise.waiting() < 1_000 {
            let _ = std::fs::write(path, [b'a'; 262_145]);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn large(noise: &mut Noise<'_>) {
    let line = "all work and no play makes jack a dull boy\n";
    let body = line.repeat(19_000 / line.len());
    while let Some(path) = noise.next() {
        let id = format!("large-{}", noise.number);
        // A body has a size limit; comments have only the file's.
        let text = seed::note("question", &id, hostile::AGENT, "claude", &body);
        let text = text + &format!("# {line}").repeat(225_000 / (line.len() + 2));
        if noise.waiting() < 1_000 {
            let _ = std::fs::write(path, text);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn growing(noise: &mut Noise<'_>) {
    let mut files: Vec<File> = (0..200)
        .filter_map(|_| noise.next().and_then(|path| File::create(path).ok()))
        .collect();
    while !noise.is_over.load(Ordering::Relaxed) {
        for file in &mut files {
            let _ = file.write_all(b"# more\n");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn directories(noise: &mut Noise<'_>) {
    let deep: PathBuf = (0..60).map(|_| "d").collect();
    while let Some(path) = noise.next() {
        let _ = std::fs::create_dir_all(path.join(&deep));
        let _ = std::fs::write(path.join(&deep).join("a.yaml"), "x");
    }
}

fn links(noise: &mut Noise<'_>) {
    while let Some(path) = noise.next() {
        let _ = symlink("/etc/passwd", path);
    }
}

fn fifos(noise: &mut Noise<'_>) {
    while let Some(path) = noise.next() {
        let _ = mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0);
    }
}

fn two_names(noise: &mut Noise<'_>) {
    let other = noise.root.join("agents/codex/other-name");
    let _ = std::fs::write(&other, "x");
    while let Some(path) = noise.next() {
        // A file can have only so many names.
        if std::fs::hard_link(&other, path).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn duplicates(noise: &mut Noise<'_>) {
    let text = seed::note("question", "again", hostile::AGENT, "claude", "?");
    noise.write_all(|_| text.clone().into_bytes());
}

fn correct(noise: &mut Noise<'_>) {
    noise.write_all(|number| {
        let id = format!("q-{number}");
        seed::note("question", &id, hostile::AGENT, "claude", "?").into_bytes()
    });
}

fn replaced(noise: &mut Noise<'_>) {
    let mut names: VecDeque<PathBuf> = (0..4)
        .map(|n| noise.outbox().join(format!("same-{n}.yaml")))
        .collect();
    let part = noise.outbox().join(".part");
    while noise.next().is_some() {
        names.rotate_left(1);
        let _ = std::fs::write(&part, without_packet(noise.number))
            .and_then(|()| std::fs::rename(&part, &names[0]));
    }
}

fn removed(noise: &mut Noise<'_>) {
    while let Some(path) = noise.next() {
        let _ = std::fs::write(&path, "x").and_then(|()| std::fs::remove_file(path));
    }
}

fn packets(noise: &mut Noise<'_>) {
    let findings = noise.root.join("packets/findings");
    while noise.next().is_some() {
        let packet = findings.join(format!("{}.yaml", noise.number % 8_000));
        let file = File::options().append(true).create(true).open(packet);
        let _ = file.and_then(|mut file| file.write_all(b"x"));
    }
}

fn junk(noise: &mut Noise<'_>) {
    fill(&noise.outbox());
    noise.wait();
}

fn junk_in_inbox(noise: &mut Noise<'_>) {
    fill(&noise.outbox().with_file_name("inbox"));
    noise.wait();
}

fn fill(directory: &Path) {
    for number in 0..400_000 {
        let _ = File::create(directory.join(format!("junk-{number}")));
    }
}

fn held_open(noise: &mut Noise<'_>) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // With fewer files than that it is less noise.
    let _ = setrlimit(Resource::Nofile, raised);
    let held: Vec<File> = (0..16_000)
        .map_while(|number| File::create(noise.outbox().join(format!("{number}.yaml"))).ok())
        .collect();
    noise.wait();
    drop(held);
}
