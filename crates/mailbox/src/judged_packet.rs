//! Finds the text of a message's packet as the daemon judged it. The packet's writer owns the file and can change it
//! afterwards.

use std::io;
use std::path::Path;

use message_schema::limit::PACKET_BYTES_MAX;
use message_schema::line::escaped;
use review::{Record, ToldAlert};
use spool::{Digest, Since, Tail};
use workspace::regular_file;

use crate::mailboxes::MailboxEntry;

/// The number of records at the end of the ledger that are searched: most messages are read soon after they came, and a
/// whole ledger takes seconds.
const SEARCHED_MAX: u64 = 1_000;

/// Returns the text of a message's packet, and an alert if its file has other bytes than the ledger, or if this user
/// cannot tell: then the text is what the file has now. A packet elsewhere than in `packets/` is not read, because the
/// reader may read more than the sender.
pub fn of(root: &Path, message: &MailboxEntry) -> (Option<String>, Option<ToldAlert>) {
    let Some(packet) = &message.packet else {
        return (None, None);
    };
    let told = |code: &str, what: String| {
        Some(ToldAlert {
            code: code.to_owned(),
            message: what,
            thread: None,
        })
    };
    let shown = escaped(packet);
    if let Err(why) = spool::check_packet_path(packet.as_ref()) {
        let what = format!("the packet `{shown}` is not shown: {why}");
        return (None, told("packet_unsafe", what));
    }
    let file = regular_file::read_beneath(root, packet.as_ref(), PACKET_BYTES_MAX);
    let is_missing = matches!(&file, Err(error) if error.kind() == io::ErrorKind::NotFound);
    let file = file
        .ok()
        .flatten()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    match in_ledger(root, message) {
        InLedger::Judged(judged) => {
            let is_changed = !is_missing && file.as_ref() != Some(&judged);
            let what = format!(
                "{shown} differs from what the daemon judged; this is the packet that it judged"
            );
            let alert = is_changed.then(|| told("packet_differs", what)).flatten();
            (Some(judged), alert)
        }
        InLedger::NotFound if file.is_some() => {
            let what = format!(
                "{shown} is shown as it is now, which may not be what the daemon judged: its writer can change it, and \
                 this user cannot compare it with the ledger"
            );
            (file, told("packet_unproven", what))
        }
        InLedger::NotFound | InLedger::WithoutPacket => (file, None),
    }
}

/// The record of a message.
enum InLedger {
    /// It has this packet.
    Judged(String),
    /// The daemon read no packet for it.
    WithoutPacket,
    /// None of the last [`SEARCHED_MAX`] records that this user can read.
    NotFound,
}

/// Returns the packet of the record that accepted these very bytes.
fn in_ledger(root: &Path, message: &MailboxEntry) -> InLedger {
    let digest = Digest::of(message.text.as_bytes());
    let mut found = InLedger::NotFound;
    let mut look = |entry: &spool::Entry| {
        let original = entry.original.as_ref();
        if original.and_then(|original| original.digest) == Some(digest)
            && let Ok(record) = serde_json::from_str::<Record>(entry.decision.get())
            && let Some(accepted) = record.accepted()
        {
            let packet = accepted.packet.clone();
            found = packet.map_or(InLedger::WithoutPacket, InLedger::Judged);
        }
        Ok(())
    };
    let tail = Tail::open(root, Since::End).and_then(|end| {
        let since = match end.seq().saturating_sub(SEARCHED_MAX) {
            0 => Since::Beginning,
            seq => Since::Record(seq),
        };
        Tail::open(root, since)?.read(&mut look)
    });
    match tail {
        Ok(_) => found,
        Err(_) => InLedger::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use message_schema::id::AgentName;
    use review::{Accepted, ContentDigest, Judgement};
    use rustix::fs::{CWD, FileType, Mode};
    use spool::{Away, EntryDraft, FileName, Original, Os, Spool};

    use super::*;
    use crate::mailboxes::{AgentMailboxes, MailboxPlace};

    const PACKET: &str = "packets/findings/p.yaml";

    /// The record that accepted this message with its packet.
    fn accepted(text: &str, packet: &str) -> EntryDraft {
        let name = FileName::new("m.yaml").expect("a name");
        let digest = Digest::of(text.as_bytes());
        let record = Record::Judged(Judgement::Accepted(Box::new(Accepted {
            from: "codex".parse().expect("a name"),
            id: "m-1".parse().expect("an id"),
            digest: ContentDigest(digest.bytes()),
            to: Vec::new(),
            kind: message_schema::envelope::MessageType::from_word("review_feedback")
                .expect("a type"),
            conversation: None,
            step: None,
            alerts: Vec::new(),
            warnings: Vec::new(),
            packet: Some(packet.to_owned()),
        })));
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "accepted".to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: Some(Original {
                outbox: "codex".to_owned(),
                file: name.clone(),
                digest: Some(digest),
                stamp: None,
                away: Away::Sent(name),
                text: None,
            }),
            deliveries: Vec::new(),
            decision: serde_json::value::to_raw_value(&record).expect("JSON"),
        }
    }

    #[test]
    fn a_packet_is_shown_as_judged_whatever_its_writer_made_of_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let (root, path) = (directory.path(), directory.path().join(PACKET));
        let [claude, codex] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        workspace::directory::init(root, &[claude.clone(), codex]).expect("a workspace");
        let text = format!("id: m-1\nrelated_packet: {PACKET}\n");
        std::fs::write(root.join("agents/claude/inbox/m.yaml"), &text).expect("a message");
        let shown = || {
            let mailboxes = AgentMailboxes::new(root, &claude);
            let messages = mailboxes.messages(MailboxPlace::Inbox).expect("a list");
            let (packet, alert) = of(root, &messages[0]);
            (packet, alert.map(|alert| alert.code))
        };
        let put = |kind: &str| {
            let _ = std::fs::remove_file(&path);
            let mode = Mode::RUSR | Mode::WUSR;
            match kind {
                "pipe" => rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a pipe"),
                "link" => std::os::unix::fs::symlink("/etc/hostname", &path).expect("a link"),
                "nothing" => {}
                text => std::fs::write(&path, text).expect("a file"),
            }
        };

        // The ledger does not have the message.
        let unproven = (
            Some("judged".to_owned()),
            Some("packet_unproven".to_owned()),
        );
        for (kind, expected) in [
            ("judged", unproven),
            ("pipe", (None, None)),
            ("link", (None, None)),
        ] {
            put(kind);
            assert_eq!(shown(), expected, "{kind}");
        }

        let opened = Spool::open(root, Arc::new(Os), &mut |_| Ok(())).expect("a spool");
        let mut spool = opened.spool;
        let record = vec![accepted(&text, "judged")];
        spool.commit(spool.next_seq(), record).expect("a commit");
        let kinds = [
            ("judged", None),
            ("other", Some("packet_differs")),
            ("pipe", Some("packet_differs")),
            ("link", Some("packet_differs")),
            ("nothing", None),
        ];
        for (kind, alert) in kinds {
            put(kind);
            let expected = (Some("judged".to_owned()), alert.map(str::to_owned));
            assert_eq!(shown(), expected, "{kind}");
        }
    }
    #[test]
    fn no_file_outside_packets_is_shown_as_a_packet() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let claude = AgentName::new("claude").expect("a name");
        workspace::directory::init(root, std::slice::from_ref(&claude)).expect("a workspace");
        for path in ["settled.toml", "packets/../settled.toml", "/etc/hostname"] {
            let text = format!("id: m-1\nrelated_packet: {path}\n");
            std::fs::write(root.join("agents/claude/inbox/m.yaml"), text).expect("a message");
            let mailboxes = AgentMailboxes::new(root, &claude);
            let messages = mailboxes.messages(MailboxPlace::Inbox).expect("a list");
            let (text, alert) = of(root, &messages[0]);
            assert_eq!(text, None, "{path}");
            assert_eq!(
                alert.map(|alert| alert.code).as_deref(),
                Some("packet_unsafe")
            );
        }
    }
}
