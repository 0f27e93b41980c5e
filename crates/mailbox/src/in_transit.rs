//! Mail in transit: the ledger has it, but its file is not in the inbox yet.

use std::path::Path;

use message_schema::id::AgentName;
use spool::{Folded, Mailbox, Since, Tail};

/// True if a record that `folded` covers sends this agent a file that is not in its inbox yet. If not, a caller that
/// lists the inbox afterwards finds everything that these records delivered, unless it was taken.
///
/// A snapshot replaces only records whose files were delivered, so only later records count. If a cursor cannot tell,
/// as after a reboot, the file counts as delivered: the daemon checks that at its start.
pub fn has_any(root: &Path, agent: &AgentName, folded: &Folded) -> bool {
    let inbox = Mailbox::Inbox(agent.to_string());
    let mut last = None;
    let begin = match folded.snapshot {
        Some(seq) => Since::Record(seq),
        None => Since::Beginning,
    };
    let read = Tail::open(root, begin).and_then(|mut tail| {
        tail.read(&mut |entry| {
            let to_inbox = entry.deliveries.iter();
            let count = to_inbox.filter(|made| made.mailbox == inbox).count();
            if let Some(n) = count.checked_sub(1)
                && entry.seq <= folded.verified.records
            {
                last = Some((entry.seq, u32::try_from(n).unwrap_or(u32::MAX)));
            }
            Ok(())
        })
    });
    // The next call, or another command, deals with a ledger that cannot be read.
    let Some((seq, n)) = last.filter(|_| read.is_ok()) else {
        return false;
    };
    spool::has_delivered(root, &inbox, seq, n) == Some(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spool::{Content, Delivery, EntryDraft, FileName, Os, Spool};

    use super::*;

    fn draft(to: &str) -> EntryDraft {
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "accepted".to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: None,
            deliveries: vec![Delivery {
                mailbox: Mailbox::Inbox(to.to_owned()),
                file: FileName::new("q.yaml").expect("a name"),
                content: Content::Text("text".to_owned()),
            }],
            decision: serde_json::value::to_raw_value(&()).expect("JSON"),
        }
    }

    #[test]
    fn mail_is_in_transit_from_its_record_to_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let [claude, codex] = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        workspace::directory::init(root, &[claude.clone(), codex.clone()]).expect("a workspace");
        let opened = Spool::open(root, Arc::new(Os), &mut |_| Ok(())).expect("a spool");
        let mut spool = opened.spool;
        let folded = || Folded {
            verified: spool::verify(root).expect("a ledger"),
            snapshot: None,
            passed_over: Vec::new(),
        };
        let before = folded();
        assert!(!has_any(root, &claude, &before));
        spool
            .commit(spool.next_seq(), vec![draft("claude")])
            .expect("a commit");
        assert!(has_any(root, &claude, &folded()));
        assert!(!has_any(root, &codex, &folded()));
        // A caller that has not seen the record knows of no mail.
        assert!(!has_any(root, &claude, &before));
        spool.deliver(0).expect("a delivery");
        assert!(!has_any(root, &claude, &folded()));
    }
}
