//! Every kind of noise that the third agent makes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use settled_tests::{crowd, hostile, seed};

/// The most waiting files before the noise pauses: enough to be always there, and the disk is finite.
const WAITING_MAX: usize = 20_000;

/// The noisy agent: its workspace and outbox, and the signal to stop.
pub(super) struct Noise<'a> {
    root: &'a Path,
    is_over: &'a AtomicBool,
    /// Set once what the noise needs is there.
    is_laid: &'a AtomicBool,
    number: usize,
}

pub(super) type Make = fn(&mut Noise<'_>);

/// Every kind of noise. Not here: unreadable files, because root can read everything, and orders, because agents that are
/// users of their own cannot give any.
pub(super) const NOISES: [(&str, Make); 30] = [
    ("messages that name missing packets", held),
    ("the same from the future", held_from_the_future),
    ("documents of 9 900 keys", keys),
    ("the hostile documents in turn", documents),
    ("100 000 files of one byte", one_byte),
    ("sparse files of 5 GB", sparse),
    ("files of 256 KiB and one byte", too_large),
    ("messages of 250 KiB", large),
    ("900 files written to without a pause", growing),
    ("directories 60 deep", directories),
    ("symbolic links", links),
    ("FIFOs", fifos),
    ("files with two names", two_names),
    ("one message again and again", duplicates),
    ("correct messages without a pause", correct),
    ("correct requests without a pause", requests),
    ("one name replaced again and again", replaced),
    ("two files renamed without a pause", renamed),
    ("one file renamed to ever new names", renamed_anew),
    ("two files closed without a pause", closed),
    ("5 000 files closed in turn", closed_in_turn),
    ("files made and removed", removed),
    ("8 000 packets touched in turn", packets),
    ("400 000 names that are no messages", junk),
    ("the same in an inbox", junk_in_inbox),
    ("16 000 empty files held open", held_open),
    ("sockets and devices in turn", special),
    ("half messages, the rest later", halves),
    ("names of any bytes, 255 long", odd_names),
    ("the outbox a link, and back", linked_outbox),
];

impl<'a> Noise<'a> {
    pub(super) fn new(root: &'a Path, is_over: &'a AtomicBool, is_laid: &'a AtomicBool) -> Self {
        Self {
            root,
            is_over,
            is_laid,
            number: 0,
        }
    }

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

    /// Returns the number of files that it wrote and that are no longer in its outbox.
    pub(super) fn taken(&self) -> usize {
        self.number.saturating_sub(self.waiting())
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
    crowd::without_packet(hostile::AGENT, number).into_bytes()
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

/// The files begin as whole messages, and are never closed.
fn growing(noise: &mut Noise<'_>) {
    let mut files = Vec::new();
    while files.len() < 900
        && let Some(path) = noise.next()
    {
        let text = without_packet(noise.number);
        files.extend(File::create(path).and_then(|mut file| {
            file.write_all(&text)?;
            Ok(file)
        }));
    }
    while !noise.is_over.load(Ordering::Relaxed) {
        for file in &mut files {
            let _ = file.write_all(b"#");
        }
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

fn requests(noise: &mut Noise<'_>) {
    noise.write_all(|number| {
        let (id, pr) = (format!("r-{number}"), number.to_string());
        let body = format!("pr: {pr}\nbranch: x\ndiff_summary: y");
        let kind = "review_request";
        seed::review_message(kind, &id, hostile::AGENT, "claude", &pr, &body).into_bytes()
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

fn renamed(noise: &mut Noise<'_>) {
    let names: Vec<PathBuf> = (0..4).map_while(|_| noise.next()).collect();
    let [a, b, c, d] = &names[..] else {
        return;
    };
    while !noise.is_over.load(Ordering::Relaxed) {
        // The daemon may have taken them.
        for (from, to) in [(a, b), (c, d), (b, a), (d, c)] {
            if std::fs::rename(from, to).is_err() {
                let _ = std::fs::write(to, without_packet(noise.number));
            }
        }
    }
}

fn renamed_anew(noise: &mut Noise<'_>) {
    let Some(mut from) = noise.next() else {
        return;
    };
    while let Some(to) = noise.next() {
        if std::fs::rename(&from, &to).is_err() {
            let _ = std::fs::write(&to, without_packet(noise.number));
        }
        from = to;
    }
}

fn closed(noise: &mut Noise<'_>) {
    close(noise, 2);
}

fn closed_in_turn(noise: &mut Noise<'_>) {
    close(noise, 5_000);
}

fn close(noise: &mut Noise<'_>, count: usize) {
    let names: Vec<PathBuf> = (0..count).map_while(|_| noise.next()).collect();
    let text = without_packet(noise.number);
    while !noise.is_over.load(Ordering::Relaxed) {
        for name in &names {
            if File::options().append(true).open(name).is_err() {
                let _ = std::fs::write(name, &text);
            }
        }
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

fn special(noise: &mut Noise<'_>) {
    while let Some(path) = noise.next() {
        let (kind, device) = match noise.number % 3 {
            0 => (FileType::Socket, 0),
            1 => (FileType::CharacterDevice, makedev(1, 5)),
            _ => (FileType::BlockDevice, makedev(7, 0)),
        };
        let _ = mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), device);
    }
}

/// Writes many halves, closed, and each one's rest half a second after it.
fn halves(noise: &mut Noise<'_>) {
    let mut begun: VecDeque<(PathBuf, Vec<u8>)> = VecDeque::new();
    while let Some(path) = noise.next() {
        let id = format!("half-{}", noise.number);
        let text = seed::note("question", &id, hostile::AGENT, "claude", "?").into_bytes();
        let (first, rest) = text.split_at(text.len() / 2);
        let _ = std::fs::write(&path, first);
        begun.push_back((path, rest.to_vec()));
        if begun.len() >= 500 {
            let (path, rest) = begun.pop_front().expect("there are some");
            let file = File::options().append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(&rest));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn odd_names(noise: &mut Noise<'_>) {
    while noise.next().is_some() {
        let mut name = format!("{:0>9}\n", noise.number).into_bytes();
        name.resize(250, b'\xff');
        name.extend(b".yaml");
        let _ = std::fs::write(noise.outbox().join(OsString::from_vec(name)), "x");
    }
}

fn linked_outbox(noise: &mut Noise<'_>) {
    let outbox = noise.outbox();
    let away = outbox.with_file_name("away");
    while let Some(path) = noise.next() {
        let _ = std::fs::write(path, "x");
        if std::fs::rename(&outbox, &away).is_ok() {
            let _ = symlink(&away, &outbox);
            std::thread::sleep(Duration::from_millis(1));
            let _ = std::fs::remove_file(&outbox);
        }
        let _ = std::fs::rename(&away, &outbox);
        std::thread::sleep(Duration::from_millis(1));
    }
}
