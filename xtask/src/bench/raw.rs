//! The physical limits: the time the file system alone takes for the same bytes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::figures::Result;

/// Appends and syncs each message separately; returns messages per second.
pub(crate) fn append_and_sync(dir: &Path, bytes: &[u8], count: u32) -> Result<f64> {
    let mut journal = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("raw.journal"))?;
    let start = Instant::now();
    for _ in 0..count {
        journal.write_all(bytes)?;
        journal.sync_data()?;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// The least work of a durable mailroom for one message: append, sync, create, rename.
pub(crate) struct Delivery {
    journal: File,
    dir: std::path::PathBuf,
    count: u32,
}

impl Delivery {
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let journal = OpenOptions::new()
            .create(true)
            .append(true)
            .open(dir.join("delivery.journal"))?;
        Ok(Self {
            journal,
            dir: dir.to_owned(),
            count: 0,
        })
    }

    pub(crate) fn deliver(&mut self, bytes: &[u8]) -> Result<Duration> {
        self.count += 1;
        let (draft, name) = (
            self.dir.join(format!(".{}.tmp", self.count)),
            self.dir.join(format!("{}.yaml", self.count)),
        );
        let start = Instant::now();
        self.journal.write_all(bytes)?;
        self.journal.sync_data()?;
        File::create_new(&draft)?.write_all(bytes)?;
        std::fs::rename(&draft, &name)?;
        Ok(start.elapsed())
    }
}

/// The files that the daemon judges in one batch, at most: one sync makes them durable.
const BATCH: usize = 256;

/// The least calls of a durable mailroom for messages that wait: each is read, appended, written into another directory
/// as `copies` files, and put away; one sync for each batch. Nothing is parsed, checked or decided. Returns messages per
/// second.
pub(crate) fn relay(dir: &Path, messages: &[String], copies: usize) -> Result<f64> {
    let [from, to, away] = ["outbox", "inbox", "sent"].map(|name| dir.join(name));
    for dir in [&from, &to, &away] {
        std::fs::create_dir(dir)?;
    }
    let name = |number: usize| format!("{number:06}.yaml");
    for (number, message) in messages.iter().enumerate() {
        std::fs::write(from.join(name(number)), message)?;
    }
    rustix::fs::sync();
    let mut journal = File::create_new(dir.join("relay.journal"))?;
    let numbers: Vec<usize> = (0..messages.len()).collect();
    let start = Instant::now();
    for batch in numbers.chunks(BATCH) {
        let read = batch
            .iter()
            .map(|number| std::fs::read(from.join(name(*number))));
        let texts = read.collect::<std::io::Result<Vec<_>>>()?;
        journal.write_all(&texts.concat())?;
        journal.sync_data()?;
        for (number, text) in batch.iter().zip(&texts) {
            for copy in 0..copies {
                let draft = to.join(format!(".{number}.tmp"));
                File::create_new(&draft)?.write_all(text)?;
                std::fs::rename(&draft, to.join(format!("{copy}.{}", name(*number))))?;
            }
            std::fs::rename(from.join(name(*number)), away.join(name(*number)))?;
        }
    }
    journal.sync_all()?;
    rustix::fs::syncfs(&journal)?;
    Ok(messages.len() as f64 / start.elapsed().as_secs_f64())
}

/// One append and sync of these bytes.
pub(crate) fn sync_once(journal: &mut File, bytes: &[u8]) -> Result<Duration> {
    let start = Instant::now();
    journal.write_all(bytes)?;
    journal.sync_data()?;
    Ok(start.elapsed())
}
