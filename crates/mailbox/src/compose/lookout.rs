//! Finds the daemon's decision about a message from the files alone, because an agent with a user of its own cannot
//! read the ledger. The original leaves the outbox for `sent/`, or for `dead_letter/` beside its report.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use message_schema::Report;
use message_schema::id::{AgentName, MessageId};
use spool::Layout;

use super::packet::read;
use crate::mailboxes::file_name;

/// The pause between two looks at the files.
const POLL: Duration = Duration::from_millis(10);

/// The fate of a message.
#[derive(Clone, Debug)]
pub enum MessageFate {
    /// It was accepted, or is a duplicate of an accepted one; the new path.
    Accepted(PathBuf),
    /// It was refused; the new path and the report.
    Refused(PathBuf, Box<Report>),
    /// It is in the outbox, and the command did not wait until it was judged.
    Waiting(PathBuf),
    /// Its sender used the id for another message, which is here.
    IdUsed(PathBuf),
}

/// Watches for the fate of one message. Made before the message is written, to recognize files that are older.
#[derive(Debug)]
pub struct Lookout {
    outbox: PathBuf,
    sent: PathBuf,
    dead_letter: PathBuf,
    stem: String,
    before: BTreeSet<PathBuf>,
}

impl Lookout {
    /// Watches for the fate of the message with this id.
    pub fn new(root: &Path, agent: &AgentName, id: &MessageId) -> io::Result<Self> {
        let layout = Layout::new(root);
        let file = file_name(id);
        let mut lookout = Self {
            outbox: layout.outbox(agent.as_str()).join(&file),
            sent: layout.sent(agent.as_str()),
            dead_letter: layout.dead_letter(agent.as_str()),
            stem: file.trim_end_matches(".yaml").to_owned(),
            before: BTreeSet::new(),
        };
        lookout.before = lookout
            .names(&lookout.sent)?
            .into_iter()
            .chain(lookout.names(&lookout.dead_letter)?)
            .collect();
        Ok(lookout)
    }

    /// Waits up to `patience` for the daemon's decision about this text.
    pub fn wait(&self, text: &str, patience: Duration) -> io::Result<MessageFate> {
        let start = Instant::now();
        loop {
            if let Some(verdict) = self.fate_now(text)? {
                return Ok(verdict);
            }
            if start.elapsed() >= patience {
                return Ok(MessageFate::Waiting(self.outbox.clone()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// The fate, if it is known now.
    fn fate_now(&self, text: &str) -> io::Result<Option<MessageFate>> {
        if self.outbox.symlink_metadata().is_ok() {
            return Ok(None);
        }
        for path in self.news(&self.sent)? {
            if is_text(&path, text)? {
                return Ok(Some(MessageFate::Accepted(path)));
            }
        }
        let digest = spool::Digest::of(text.as_bytes()).to_string();
        let (mut original, mut report) = (None, None);
        for path in self.news(&self.dead_letter)? {
            match Report::from_yaml(&gone_is_empty(read(&path))?) {
                Ok(found) if found.digest == digest => report = Some(found),
                Ok(_) => {}
                Err(_) if is_text(&path, text)? => original = Some(path),
                Err(_) => {}
            }
        }
        Ok(original
            .zip(report)
            .map(|(path, report)| MessageFate::Refused(path, Box::new(report))))
    }

    fn news(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = self.names(directory)?;
        names.retain(|path| !self.before.contains(path));
        Ok(names)
    }

    /// The files that the daemon may have made of this message: under its own name or with a number.
    fn names(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let listed = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed?,
        };
        let mut names: Vec<OsString> = Vec::new();
        for entry in listed {
            let name = entry?.file_name();
            if name
                .to_str()
                .is_some_and(|name| name.starts_with(&self.stem))
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names.into_iter().map(|name| directory.join(name)).collect())
    }
}

fn is_text(path: &Path, text: &str) -> io::Result<bool> {
    Ok(gone_is_empty(read(path))? == text.as_bytes())
}

/// Reads a file that disappeared since the listing as empty.
fn gone_is_empty(read: io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}
