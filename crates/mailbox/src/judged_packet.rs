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

/// Returns the text of a message's packet, and an alert if its file differs from the ledger. Returns what the
/// file has if this user cannot read the ledger or the record is too old.
pub fn of(root: &Path, letter: &MailboxEntry) -> (Option<String>, Option<ToldAlert>) {
    let Some(packet) = &letter.packet else {
        return (None, None);
    };
    let file = regular_file::read_beneath(root, packet.as_ref(), PACKET_BYTES_MAX);
    let is_missing = matches!(&file, Err(error) if error.kind() == io::ErrorKind::NotFound);
    let file = file
        .ok()
        .flatten()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(judged) = in_ledger(root, letter) else {
        return (file, None);
    };
    let is_changed = !is_missing && file.as_ref() != Some(&judged);
    let alert = is_changed.then(|| ToldAlert {
        code: "packet_differs".to_owned(),
        message: format!(
            "{} differs from what the daemon judged; this is the packet that it judged",
            escaped(packet)
        ),
        thread: None,
    });
    (Some(judged), alert)
}

/// Returns the packet of the record that accepted these very bytes.
fn in_ledger(root: &Path, letter: &MailboxEntry) -> Option<String> {
    let digest = Digest::of(letter.text.as_bytes());
    let end = Tail::open(root, Since::End).ok()?.seq();
    let since = match end.saturating_sub(SEARCHED_MAX) {
        0 => Since::Beginning,
        seq => Since::Record(seq),
    };
    let mut found = None;
    let mut look = |entry: &spool::Entry| {
        let original = entry.original.as_ref();
        if original.and_then(|original| original.digest) == Some(digest)
            && let Ok(record) = serde_json::from_str::<Record>(entry.decision.get())
            && let Some(accepted) = record.accepted()
        {
            found.clone_from(&accepted.packet);
        }
        Ok(())
    };
    Tail::open(root, since).ok()?.read(&mut look).ok()?;
    found
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
            let bag = AgentMailboxes::new(root, &claude);
            let letters = bag.messages(MailboxPlace::Inbox).expect("a list");
            let (packet, alert) = of(root, &letters[0]);
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
        for (kind, packet) in [("judged", Some("judged")), ("pipe", None), ("link", None)] {
            put(kind);
            assert_eq!(shown(), (packet.map(str::to_owned), None), "{kind}");
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
}
