//! Raises alerts for what the mailroom cannot fix itself: outboxes with the wrong owner, files it may not read, and
//! mail from unknown senders.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use review::{Event, SentDiffers};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use spool::{FileName, Lane, Layout, Parked, SpoolError, dirs};
use workspace::clock::Moment;
use workspace::operator_alerts::{Alert, AlertKind, is_unreadable};

use super::{Mailroom, Pass};
use crate::batch::OpenBatch;
use crate::unknown_sender::ScanContext;

impl Mailroom {
    /// Alerts the operator to outboxes whose owner is not the configured user, and clears alerts whose cause is gone.
    pub(super) fn check_alert_conditions(&mut self) {
        let users = self.config.users();
        let layout = self.spool.layout();
        let mut mismatches = Vec::new();
        for (agent, user) in users {
            let path = layout.outbox(agent.as_str());
            let Some(owner) = path
                .symlink_metadata()
                .ok()
                .map(|data| data.uid())
                .filter(|uid| *uid != user)
            else {
                continue;
            };
            let what = format!(
                "this outbox belongs to uid {owner}, and settled.toml says that {agent} is uid {user}: its owner can \
                 remove and withhold what {agent} sends; `settled init --separate-users` fixes it"
            );
            mismatches.push(Alert {
                kind: AlertKind::OutboxOwner,
                path,
                what,
            });
        }
        let unwritable: Vec<PathBuf> = self
            .spool
            .parked()
            .iter()
            .map(|parked| unwritable(parked, layout).path)
            .collect();
        let alerts = &mut self.docket.alerts;
        let unread = alerts.take_unread();
        alerts.clear(|alert| match alert.kind {
            AlertKind::OutboxOwner => !mismatches.contains(alert),
            AlertKind::Unreadable => !unread.contains(&alert.path) && !is_unreadable(&alert.path),
            AlertKind::Unwritable => !unwritable.contains(&alert.path),
            AlertKind::SharedLedger | AlertKind::HostClock => false,
            AlertKind::SenderUnproven | AlertKind::SentDiffers => {
                alert.path.symlink_metadata().is_err()
            }
        });
        for alert in mismatches {
            alerts.raise(alert);
        }
        alerts.save();
    }

    /// Alerts the operator to mailboxes that could not be written.
    pub(super) fn alert_unwritable(&mut self, parked: &[Parked]) {
        for parked in parked {
            let alert = unwritable(parked, self.spool.layout());
            let known = self.docket.alerts.known(alert.kind, &alert.path);
            // If the operator repaired the directory after the failed write and before this look at it, the known alert
            // names what helped, and this one does not.
            let is_mended = known.is_some_and(|known| {
                alert.what.ends_with(UNKNOWN_FIX) && known.what.starts_with(&failure_of(parked))
            });
            if !is_mended {
                self.docket.alerts.raise(alert);
            }
        }
        self.docket.alerts.save();
    }

    /// Scans the inboxes for files of unknown senders. Only the timed sweep does this: a file has to be found by two
    /// scans, so that its original has time to arrive.
    pub fn look_for_unknown_senders(&mut self, moment: Moment) {
        let agents = std::sync::Arc::clone(self.docket.agents());
        let end = self.sweeping.step_end();
        let mut context = ScanContext {
            known_deliveries: &self.docket.known_deliveries,
            alerts: &mut self.docket.alerts,
            now: moment.spool(),
            end,
        };
        self.unknown_senders.scan(
            &agents,
            &self.spool.view(),
            self.spool.layout(),
            &mut context,
        );
        self.docket.alerts.save();
    }

    /// Records each accepted original that its writer changed in `sent/`, which notifies its sender. Alerts the
    /// operator.
    pub fn look_for_changed_originals(&mut self, moment: Moment) -> Result<(), SpoolError> {
        let changed = self
            .growing
            .changed(&self.root, &self.spool.view(), moment)?;
        let mut batch = OpenBatch::default();
        for differs in &changed {
            let event = Event::SentDiffers(differs.clone());
            let record = self.judge_event(&event, None, moment);
            self.add(&mut batch, record, moment);
        }
        self.commit(batch, moment, &mut Pass::default())?;
        self.growing.forget(&changed);
        for SentDiffers { agent, file, seq } in changed {
            // The record has the name as text; the file has the bytes.
            let name: FileName = file.parse().expect("the spool named the file");
            let what = format!(
                "sent_differs: {agent} changed this file after it was judged; its recipients have the bytes of record {seq}. \
                 {agent} has a notice: once it has sent the message again, remove the file"
            );
            self.docket.alerts.raise(Alert {
                kind: AlertKind::SentDiffers,
                path: self.spool.layout().sent(agent.as_str()).join(&name),
                what,
            });
        }
        self.docket.alerts.save();
        Ok(())
    }
}

/// The alert about a lane that waits, at the directory that holds it up.
fn unwritable(parked: &Parked, layout: &Layout) -> Alert {
    let needed = match &parked.lane {
        Lane::Mailbox(mailbox) => vec![layout.mailbox(mailbox)],
        Lane::Pulls => vec![layout.root().join(dirs::PULLS)],
        Lane::Outbox(agent) => vec![
            layout.outbox(agent),
            layout.sent(agent),
            layout.dead_letter(agent),
        ],
    };
    let uid = rustix::process::geteuid().as_raw();
    let closed = needed
        .iter()
        .find_map(|path| Some((path.clone(), obstacle(path)?)));
    let (path, fix) = match closed {
        Some((path, Obstacle::NoDirectory)) => (path, "put a directory there".to_owned()),
        Some((path, Obstacle::Denied)) => (path, format!("let the daemon (uid {uid}) write to it")),
        Some((path, Obstacle::ReadOnly)) => (path, "mount it for writing".to_owned()),
        None => (needed[0].clone(), UNKNOWN_FIX.to_owned()),
    };
    Alert {
        kind: AlertKind::Unwritable,
        path,
        what: failure_of(parked) + &fix,
    }
}

/// The fix where nothing is found to be wrong with the directory.
const UNKNOWN_FIX: &str = "free some space, or fix what the error names";

/// The beginning of the alert about a lane that waits.
fn failure_of(parked: &Parked) -> String {
    format!("cannot write to a mailbox; will retry: {}: ", parked.why)
}

/// The obstacle that keeps the daemon from writing to a directory.
enum Obstacle {
    NoDirectory,
    Denied,
    ReadOnly,
}

fn obstacle(path: &Path) -> Option<Obstacle> {
    if !path.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        return Some(Obstacle::NoDirectory);
    }
    match access(path, Access::WRITE_OK | Access::EXEC_OK) {
        Err(Errno::ROFS) => Some(Obstacle::ReadOnly),
        Err(_) => Some(Obstacle::Denied),
        Ok(()) => None,
    }
}

#[cfg(test)]
mod tests {
    use message_schema::id::AgentName;
    use spool::Mailbox;

    use super::*;

    #[test]
    fn a_directory_that_was_mended_before_the_look_at_it_keeps_the_words_of_its_alert() {
        let root = tempfile::tempdir().expect("a directory");
        let agent = AgentName::new("codex").expect("a name");
        workspace::directory::init(root.path(), &[agent]).expect("a workspace");
        let mut mailroom = Mailroom::open(root.path()).expect("a start").0;
        let parked = |why: &str| Parked {
            lane: Lane::Mailbox(Mailbox::Inbox("codex".to_owned())),
            why: why.to_owned(),
            retry_at: 0,
            waiting: 1,
        };
        let path = root.path().join("agents/codex/inbox");
        let mut told = |parked| {
            mailroom.alert_unwritable(&[parked]);
            let alert = mailroom.docket.alerts.known(AlertKind::Unwritable, &path);
            alert.expect("an alert").what.clone()
        };
        std::fs::remove_dir(&path).expect("an empty directory");
        let first = told(parked("no such directory"));
        assert!(
            first.ends_with(": no such directory: put a directory there"),
            "{first}"
        );
        std::fs::create_dir(&path).expect("the directory again");
        assert_eq!(told(parked("no such directory")), first);
        let full = told(parked("no space left"));
        assert!(full.contains(": no space left: free some space"), "{full}");
    }
}
