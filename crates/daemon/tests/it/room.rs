//! A workspace that is served only when a test says so, at times of the test's choosing.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use chrono::{DateTime, TimeDelta, Utc};
use daemon::mailroom::Mailroom;
use daemon::schedule::Wakeup;
use tempfile::TempDir;
use workspace::clock::Moment;
use workspace::directory;

use crate::scratch::scratch;

/// The time at which every test begins, in seconds since 1970: 2026-02-13T16:26:40Z.
const BEGIN: i64 = 1_771_000_000;

pub(crate) struct Room {
    root: TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        let root = scratch();
        let agents = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        directory::init(root.path(), &agents).expect("a workspace");
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a file that was finished an hour before the tests begin.
    pub(crate) fn put(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).expect("a file");
        self.finish(path, -3600);
    }

    /// Makes a file look as if it was finished at this second.
    pub(crate) fn finish(&self, path: &str, second: i64) {
        let file = File::options().write(true).open(self.path(path));
        let finished = UNIX_EPOCH + Duration::from_secs((BEGIN + second).unsigned_abs());
        file.expect("the file")
            .set_modified(finished)
            .expect("a file's time can be set");
    }

    /// Puts a message outside the review loop into an outbox.
    pub(crate) fn ask(&self, from: &str, to: &str, id: &str) {
        let text = format!(
            "id: \"{id}\"\nfrom: {from}\nto: {to}\ntype: question\npriority: P2\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"?\"\n"
        );
        self.put(&format!("agents/{from}/outbox/{id}.yaml"), &text);
    }

    /// Starts a daemon at this second, which does all its work, makes it durable, and ends.
    pub(crate) fn visit(&self, second: i64) {
        let (mut mailroom, now) = (Mailroom::open(self.root()).expect("a start").0, at(second));
        mailroom.sweep().expect("a sweep");
        while mailroom.schedule(now).at(Wakeup::Look).is_some() {
            mailroom.pass(now).expect("a pass");
        }
        mailroom.keep_deadlines(now.utc, now).expect("deadlines");
        mailroom.pass(now).expect("a pass");
        mailroom
            .look_for_changed_originals(now)
            .expect("a look at what was sent");
        mailroom.finish(now).expect("deliveries");
        mailroom.checkpoint().expect("a checkpoint");
        mailroom.close();
    }
}

pub(crate) fn at(second: i64) -> Moment {
    at_ms(second * 1_000)
}

pub(crate) fn at_ms(ms: i64) -> Moment {
    let begin = DateTime::<Utc>::from_timestamp(BEGIN, 0).expect("an instant");
    Moment {
        mono: ms.unsigned_abs(),
        utc: begin + TimeDelta::milliseconds(ms),
    }
}
