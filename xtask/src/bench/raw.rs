//! The physical limits: the time the file system alone takes for the same bytes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Result;

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

/// One append and sync of these bytes.
pub(crate) fn sync_once(journal: &mut File, bytes: &[u8]) -> Result<Duration> {
    let start = Instant::now();
    journal.write_all(bytes)?;
    journal.sync_data()?;
    Ok(start.elapsed())
}
