//! Keeps conditions that only an operator can fix. Each is logged once and listed by `settled status` while it lasts.
//! They decide nothing: if their file is lost, the daemon logs them again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use message_schema::limit::MESSAGE_BYTES_MAX;
use rustix::fs::{StatVfs, StatVfsMountFlags};
use serde::{Deserialize, Serialize};
use spool::{Layout, SpoolError, dirs, path_text};

use crate::regular_file;

/// The file in `.settled`.
const FILE: &str = "alerts.json";

/// The most alerts of one kind about the mailboxes of one agent, or about everything outside the mailboxes; more than
/// this have a common cause. Each agent has its own: it can fill its mailboxes with what raises alerts, and must not
/// hide those about others.
const ALERTS_MAX: usize = 100;

/// The kind of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// An outbox does not belong to the user that the config names for its agent.
    OutboxOwner,
    /// The daemon cannot read a file or directory.
    Unreadable,
    /// The daemon cannot write to a mailbox, so mail waits for it.
    Unwritable,
    /// No record made a file in an inbox, so its sender is unknown.
    SenderUnproven,
    /// An accepted message was changed in its sender's `sent/` after it was judged.
    SentDiffers,
    /// This host cannot follow the ledger that several hosts share.
    SharedLedger,
    /// The clocks of two hosts that share the ledger differ.
    HostClock,
}

/// A condition that an operator has to fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Its kind.
    pub kind: AlertKind,
    /// The full path of what it is about.
    #[serde(with = "spool::path_text")]
    pub path: PathBuf,
    /// The problem and its fix, in one sentence.
    pub what: String,
}

/// The alerts of a workspace.
#[derive(Debug, Default)]
pub struct Alerts {
    root: PathBuf,
    known: BTreeMap<(AlertKind, PathBuf), Alert>,
    /// The number of known alerts of each kind about the mailboxes of each agent, or outside them.
    counts: BTreeMap<(AlertKind, Option<OsString>), usize>,
    /// The paths that could not be read since the last call of `take_unread`.
    unread: BTreeSet<PathBuf>,
    is_changed: bool,
}

/// Reads the alerts that the daemon saved last, none if there is no readable file, and adds one if the file system takes no
/// more: then the daemon cannot save it.
pub fn read(root: &Path) -> Vec<Alert> {
    let mut alerts = saved(root);
    alerts.extend(out_of_room(root));
    alerts
}

fn saved(root: &Path) -> Vec<Alert> {
    serde_json::from_slice(&regular_file::read_saved(root, FILE)).unwrap_or_default()
}

/// The alert that the workspace's file system takes no more messages.
fn out_of_room(root: &Path) -> Option<Alert> {
    let disk = rustix::fs::statvfs(root).ok()?;
    no_room(&disk).map(|what| Alert {
        kind: AlertKind::Unwritable,
        path: root.to_owned(),
        what: what.to_owned(),
    })
}

/// Returns the reason a file system does not take one message of the largest size; `None` if it does.
fn no_room(disk: &StatVfs) -> Option<&'static str> {
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Some("the file system of the workspace is read-only: mount it for writing")
    } else if disk.f_bavail.saturating_mul(disk.f_frsize) < MESSAGE_BYTES_MAX {
        Some(
            "the file system of the workspace is full: free some space; `settled gc` removes old files",
        )
    } else if disk.f_files > 0 && disk.f_favail == 0 {
        Some(
            "no more files fit into the file system of the workspace: remove some; `settled gc` removes old ones",
        )
    } else {
        None
    }
}

/// Finds the alert that the daemon cannot write to this agent's inbox.
pub fn of_inbox<'a>(alerts: &'a [Alert], agent: &str) -> Option<&'a Alert> {
    let inbox = dirs::of_agent(agent, dirs::INBOX);
    alerts
        .iter()
        .find(|alert| alert.kind == AlertKind::Unwritable && alert.path.ends_with(&inbox))
}

/// True if the daemon cannot follow the ledger that several hosts share.
pub fn is_cut_off(root: &Path) -> bool {
    let mut alerts = read(root).into_iter();
    alerts.any(|alert| alert.kind == AlertKind::SharedLedger)
}

impl Alerts {
    /// Opens with the alerts of the last run, which are already logged.
    pub fn open(root: &Path) -> Self {
        let known = saved(root)
            .into_iter()
            .map(|alert| ((alert.kind, alert.path.clone()), alert));
        let mut alerts = Self {
            root: root.to_owned(),
            known: known.collect(),
            ..Self::default()
        };
        alerts.count();
        alerts
    }

    /// Returns the known alert of this kind about a path.
    pub fn known(&self, kind: AlertKind, path: &Path) -> Option<&Alert> {
        self.known.get(&(kind, path.to_owned()))
    }

    /// Raises an alert and logs it, unless it is already known. False if the list of such alerts is
    /// full: the alert is then in no list, and the caller has to raise it again.
    pub fn raise(&mut self, alert: Alert) -> bool {
        let key = (alert.kind, alert.path.clone());
        let known = self.known.get(&key);
        if known == Some(&alert) {
            return true;
        }
        if known.is_none() {
            let kind_and_owner = self.kind_and_owner(&alert);
            let count = self.counts.entry(kind_and_owner).or_default();
            if *count >= ALERTS_MAX {
                return false;
            }
            *count += 1;
            if *count == ALERTS_MAX {
                let path = path_text::shown(&alert.path);
                tracing::warn!(
                    path,
                    "there are {ALERTS_MAX} alerts like this; no more are raised until some are over"
                );
            }
        }
        tracing::warn!(path = %path_text::shown(&alert.path), "{}", alert.what);
        self.known.insert(key, alert);
        self.is_changed = true;
        true
    }

    /// The alert's kind and the agent whose mailboxes its path is in.
    fn kind_and_owner(&self, alert: &Alert) -> (AlertKind, Option<OsString>) {
        let within = alert.path.strip_prefix(self.root.join(dirs::AGENTS)).ok();
        let owner = within.and_then(|within| within.iter().next());
        (alert.kind, owner.map(OsStr::to_owned))
    }

    fn count(&mut self) {
        let mut counts = BTreeMap::new();
        for alert in self.known.values() {
            *counts.entry(self.kind_and_owner(alert)).or_default() += 1;
        }
        self.counts = counts;
    }

    /// Raises an alert for a path that the daemon cannot read; false for an error that no path has.
    pub fn raise_unreadable(&mut self, error: &SpoolError) -> bool {
        let SpoolError::Io { path, source, .. } = error else {
            return false;
        };
        let kind = source.kind();
        if kind == io::ErrorKind::NotFound {
            return false;
        }
        let why = if kind == io::ErrorKind::PermissionDenied {
            "let its owner run with umask 022, `chmod a+r` it, or run `settled init --separate-users` for directories"
                .to_owned()
        } else if kind == io::ErrorKind::WouldBlock {
            "another program holds a lease on it".to_owned()
        } else {
            source.to_string()
        };
        let uid = rustix::process::geteuid().as_raw();
        // Two kinds of look at one path may fail in two ways: the first one stays, so that they do not log in turn.
        let is_known = self
            .known
            .contains_key(&(AlertKind::Unreadable, path.clone()));
        let is_listed = is_known
            || self.raise(Alert {
                kind: AlertKind::Unreadable,
                path: path.clone(),
                what: format!("the daemon (uid {uid}) cannot read this and will retry: {why}"),
            });
        if is_listed {
            self.unread.insert(path.clone());
        }
        true
    }

    /// Returns the paths that could not be read since the last call: their alerts are not over, however the next look
    /// at them ends.
    pub fn take_unread(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.unread)
    }

    /// Clears the alerts for which `is_over` is true.
    pub fn clear(&mut self, is_over: impl Fn(&Alert) -> bool) {
        let before = self.known.len();
        self.known.retain(|_, alert| !is_over(alert));
        if self.known.len() != before {
            self.is_changed = true;
            self.count();
        }
    }

    /// Saves the alerts for `settled status` and for the next start.
    pub fn save(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let own = Layout::new(&self.root).own();
        let (file, temporary) = (own.join(FILE), own.join(format!("{FILE}.tmp")));
        let all: Vec<&Alert> = self.known.values().collect();
        let text = serde_json::to_string_pretty(&all).expect("text keys and plain values are JSON");
        let written = std::fs::write(&temporary, text + "\n")
            .and_then(|()| std::fs::rename(&temporary, &file));
        if let Err(error) = written {
            tracing::debug!(%error, "cannot save the operator alerts; the next start logs them again");
        }
    }
}

/// True if the path still exists and the daemon still cannot open it.
pub fn is_unreadable(path: &Path) -> bool {
    regular_file::open(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn alert(path: &str) -> Alert {
        Alert {
            kind: AlertKind::SenderUnproven,
            path: path.into(),
            what: "it is so".to_owned(),
        }
    }

    #[test]
    fn a_file_system_has_no_room_if_it_is_read_only_full_or_out_of_names() {
        let disk = rustix::fs::statvfs("/").expect("a file system");
        let fits = StatVfs {
            f_flag: StatVfsMountFlags::empty(),
            f_frsize: 4_096,
            f_bavail: MESSAGE_BYTES_MAX / 4_096,
            f_files: 10,
            f_favail: 1,
            ..disk
        };
        assert_eq!(no_room(&fits), None);
        let numbers_no_files = StatVfs {
            f_files: 0,
            f_favail: 0,
            ..fits
        };
        assert_eq!(no_room(&numbers_no_files), None, "btrfs");
        let read_only = StatVfsMountFlags::RDONLY;
        for (disk, why) in [
            (
                StatVfs {
                    f_flag: read_only,
                    ..fits
                },
                "read-only",
            ),
            (
                StatVfs {
                    f_bavail: fits.f_bavail - 1,
                    ..fits
                },
                "is full",
            ),
            (
                StatVfs {
                    f_favail: 0,
                    ..fits
                },
                "no more files fit",
            ),
        ] {
            assert!(
                no_room(&disk).is_some_and(|what| what.contains(why)),
                "{why}"
            );
        }
    }

    #[test]
    fn an_alert_survives_a_restart_and_is_cleared_when_its_condition_is_over() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let mut alerts = Alerts::open(root.path());
        alerts.raise(alert("/a"));
        alerts.raise(alert("/b"));
        alerts.save();
        let mut again = Alerts::open(root.path());
        again.raise(alert("/a"));
        assert!(!again.is_changed, "the first run raised it");
        again.clear(|alert| alert.path == Path::new("/a"));
        again.save();
        assert_eq!(read(root.path()), [alert("/b")]);
    }

    #[test]
    fn an_alert_about_a_name_that_is_not_utf_8_is_saved_and_found_again() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let name = OsStr::from_bytes(b"agents/a/inbox/\xff\n.yaml");
        let odd = Alert {
            path: root.path().join(name),
            ..alert("/")
        };
        let mut alerts = Alerts::open(root.path());
        alerts.raise(odd.clone());
        alerts.save();
        assert_eq!(read(root.path()), [odd]);
        let text = std::fs::read_to_string(root.path().join(".settled/alerts.json"));
        let text = text.expect("the saved alerts");
        assert!(text.contains("agents/a/inbox/%FF%0A.yaml\""), "{text}");
    }

    #[test]
    fn a_flood_of_alerts_about_one_agent_is_bounded_and_hides_no_others() {
        let mut alerts = Alerts {
            root: "/w".into(),
            ..Alerts::default()
        };
        let of = |agent: &str, n: usize| alert(&format!("/w/agents/{agent}/inbox/{n}.yaml"));
        assert!((0..ALERTS_MAX).all(|n| alerts.raise(of("evil", n))));
        assert!(!alerts.raise(of("evil", ALERTS_MAX)));
        assert_eq!(alerts.known.len(), ALERTS_MAX);
        assert!(alerts.raise(of("evil", 0)), "it is known");
        assert!(alerts.raise(of("codex", 0)), "another agent");
        assert!(alerts.raise(alert("/w/packets")), "in no mailbox");
        let other_kind = Alert {
            kind: AlertKind::Unreadable,
            ..of("evil", ALERTS_MAX)
        };
        assert!(alerts.raise(other_kind));
        alerts.clear(|alert| alert.path.ends_with("7.yaml"));
        assert!(alerts.raise(of("evil", ALERTS_MAX)), "there is room again");
        assert!(!alerts.raise(of("evil", ALERTS_MAX + 1)), "for one");
    }

    fn of_kind(kind: AlertKind, path: &str) -> Alert {
        Alert {
            kind,
            ..alert(path)
        }
    }

    #[test]
    fn an_inbox_that_cannot_be_written_and_a_lost_ledger_are_found_among_the_alerts() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let saved = [
            of_kind(AlertKind::Unreadable, "/w/agents/codex/inbox"),
            of_kind(AlertKind::Unwritable, "/w/agents/codex/inbox"),
            of_kind(AlertKind::Unwritable, "/w/agents/claude/dead_letter"),
        ];
        assert_eq!(of_inbox(&saved, "codex"), Some(&saved[1]));
        for agent in ["claude", "dex", "pi"] {
            assert_eq!(of_inbox(&saved, agent), None, "{agent}");
        }
        let mut alerts = Alerts::open(root.path());
        saved
            .into_iter()
            .for_each(|alert| assert!(alerts.raise(alert)));
        alerts.save();
        assert!(!is_cut_off(root.path()));
        alerts.raise(of_kind(AlertKind::SharedLedger, "/w/.settled"));
        alerts.save();
        assert!(is_cut_off(root.path()));
    }

    #[test]
    fn a_path_that_cannot_be_read_is_told_once_with_what_helps() {
        let mut alerts = Alerts::default();
        let error = |path: &str, kind: io::ErrorKind| SpoolError::Io {
            operation: "open",
            path: path.into(),
            source: kind.into(),
        };
        for (path, kind, said) in [
            ("/a", io::ErrorKind::PermissionDenied, "umask 022"),
            ("/b", io::ErrorKind::WouldBlock, "holds a lease"),
            ("/c", io::ErrorKind::TimedOut, "timed out"),
        ] {
            assert!(alerts.raise_unreadable(&error(path, kind)), "{path}");
            let alert = &alerts.known[&(AlertKind::Unreadable, path.into())];
            assert!(alert.what.contains(said), "{}", alert.what);
        }
        assert!(!alerts.raise_unreadable(&error("/d", io::ErrorKind::NotFound)));
        assert!(!alerts.raise_unreadable(&SpoolError::Sequence {
            expected: 1,
            next: 2
        }));
        assert_eq!(alerts.known.len(), 3);
        assert_eq!(
            alerts.take_unread(),
            ["/a", "/b", "/c"].map(PathBuf::from).into()
        );

        // It fails in another way: the first words stay, and the alert is not over.
        assert!(alerts.raise_unreadable(&error("/a", io::ErrorKind::WouldBlock)));
        let alert = &alerts.known[&(AlertKind::Unreadable, "/a".into())];
        assert!(alert.what.contains("umask 022"), "{}", alert.what);
        assert_eq!(alerts.take_unread(), [PathBuf::from("/a")].into());
        assert_eq!(alerts.take_unread(), [].into());
    }

    #[test]
    fn a_path_beyond_the_bound_of_alerts_is_not_remembered_as_unread() {
        let mut alerts = Alerts::default();
        let error = |n: usize| SpoolError::Io {
            operation: "open",
            path: format!("/{n}").into(),
            source: io::ErrorKind::TimedOut.into(),
        };
        assert!((0..=ALERTS_MAX).all(|n| alerts.raise_unreadable(&error(n))));
        let unread = alerts.take_unread();
        assert_eq!(unread.len(), ALERTS_MAX);
        assert!(!unread.contains(Path::new(&format!("/{ALERTS_MAX}"))));
    }

    #[test]
    fn alerts_that_did_not_change_are_not_saved_again() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join(".settled")).expect("a directory");
        let mut alerts = Alerts::open(root.path());
        alerts.raise(alert("/a"));
        alerts.save();
        std::fs::remove_file(root.path().join(".settled").join(FILE)).expect("saved");
        alerts.raise(alert("/a"));
        alerts.clear(|alert| alert.path == Path::new("/b"));
        alerts.save();
        assert_eq!(read(root.path()), []);
        alerts.clear(|alert| alert.path == Path::new("/a"));
        alerts.raise(alert("/b"));
        alerts.save();
        assert_eq!(read(root.path()), [alert("/b")]);
    }

    #[test]
    fn a_path_is_unreadable_if_it_is_there_and_cannot_be_opened() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        std::fs::write(at("file"), "").expect("a file");
        std::os::unix::fs::symlink("file", at("link")).expect("a link");
        for (name, is_so) in [("file", false), ("missing", false), ("link", true)] {
            assert_eq!(is_unreadable(&at(name)), is_so, "{name}");
        }
    }
}
