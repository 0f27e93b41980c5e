//! What stands in the way and only an operator can mend: told once in the log, and in `settled status` as
//! long as it lasts. What is known here decides nothing; lost, it is told again.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use spool::{Layout, SpoolError};

/// The file in `.settled`.
const FILE: &str = "troubles.json";

/// More than so many at a time are not told: they have one cause.
const TOLD_MAX: usize = 1_000;

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An outbox belongs to another user than the config names for its agent.
    OutboxOwner,
    /// A file or directory may not be read by the daemon.
    Unreadable,
    /// A file in an inbox that no record made and whose sender nothing proves.
    SenderUnproven,
}

/// One trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// What kind.
    pub kind: Kind,
    /// Where, as a full path.
    pub path: PathBuf,
    /// What is wrong and what would mend it, in one sentence.
    pub what: String,
}

/// The troubles of a workspace.
#[derive(Debug, Default)]
pub struct Troubles {
    root: PathBuf,
    known: BTreeMap<(Kind, PathBuf), Trouble>,
    is_changed: bool,
}

/// Reads what the daemon last noted; nothing if there is nothing to be read.
pub fn noted(root: &Path) -> Vec<Trouble> {
    let text = std::fs::read(Layout::new(root).own().join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

impl Troubles {
    /// Those that were told before.
    pub fn open(root: &Path) -> Self {
        let known = noted(root)
            .into_iter()
            .map(|trouble| ((trouble.kind, trouble.path.clone()), trouble));
        Self {
            root: root.to_owned(),
            known: known.collect(),
            is_changed: false,
        }
    }

    /// Tells one, if it was not told yet.
    pub fn tell(&mut self, trouble: Trouble) {
        let key = (trouble.kind, trouble.path.clone());
        let is_known = self.known.get(&key) == Some(&trouble);
        if is_known || (self.known.len() >= TOLD_MAX && !self.known.contains_key(&key)) {
            return;
        }
        tracing::warn!(path = %trouble.path.display(), "{}", trouble.what);
        self.known.insert(key, trouble);
        self.is_changed = true;
    }

    /// Tells that something may not be read; false if the error is another one.
    pub fn tell_unreadable(&mut self, error: &SpoolError) -> bool {
        let SpoolError::Io { path, source, .. } = error else {
            return false;
        };
        if source.kind() != io::ErrorKind::PermissionDenied {
            return false;
        }
        let uid = rustix::process::geteuid().as_raw();
        let what = format!(
            "the daemon (uid {uid}) may not read this; it is tried again: let its owner run with umask 022, \
             `chmod a+r` it, or run `settled init --separate-users` for directories"
        );
        self.tell(Trouble {
            kind: Kind::Unreadable,
            path: path.clone(),
            what,
        });
        true
    }

    /// Forgets those that are over.
    pub fn review(&mut self, is_over: impl Fn(&Trouble) -> bool) {
        let before = self.known.len();
        self.known.retain(|_, trouble| !is_over(trouble));
        self.is_changed |= self.known.len() != before;
    }

    /// Notes them for `settled status` and for the next start.
    pub fn keep(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let own = Layout::new(&self.root).own();
        let (file, temporary) = (own.join(FILE), own.join(format!("{FILE}.tmp")));
        let all: Vec<&Trouble> = self.known.values().collect();
        let text = serde_json::to_string_pretty(&all).expect("text keys and plain values are JSON");
        let written = std::fs::write(&temporary, text + "\n")
            .and_then(|()| std::fs::rename(&temporary, &file));
        if let Err(error) = written {
            tracing::debug!(%error, "what only an operator can mend cannot be noted; it is told again");
        }
    }
}

/// Whether something is still there and still may not be read.
pub fn is_unreadable(path: &Path) -> bool {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("the flags of an opening are few");
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(path: &str) -> Trouble {
        Trouble {
            kind: Kind::SenderUnproven,
            path: path.into(),
            what: "it is so".to_owned(),
        }
    }

    #[test]
    fn what_was_told_is_known_after_a_restart_and_forgotten_when_it_is_over() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let mut troubles = Troubles::open(root.path());
        troubles.tell(trouble("/a"));
        troubles.tell(trouble("/b"));
        troubles.keep();
        let mut again = Troubles::open(root.path());
        again.tell(trouble("/a"));
        assert!(!again.is_changed, "it was told before");
        again.review(|trouble| trouble.path == Path::new("/a"));
        again.keep();
        assert_eq!(noted(root.path()), [trouble("/b")]);
    }

    #[test]
    fn a_flood_of_troubles_is_bounded() {
        let mut troubles = Troubles::default();
        (0..=TOLD_MAX).for_each(|n| troubles.tell(trouble(&n.to_string())));
        assert_eq!(troubles.known.len(), TOLD_MAX);
    }
}
