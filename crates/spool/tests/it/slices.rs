//! A delivery beside other work makes a slice of the owed files, short lanes first.

use std::sync::Arc;

use spool::{Content, Delivery, FaultyDisk, Mailbox, Spool};

use crate::daemon::{BOOT, Workspace, inbox, name, notice};

fn open(workspace: &Workspace) -> Spool {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    Spool::open(workspace.root(), disk, &mut |_| Ok(()))
        .expect("a start")
        .spool
}

#[test]
fn a_mailbox_that_is_owed_one_file_does_not_wait_for_one_that_is_owed_hundreds() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut spool = open(&workspace);
    spool.limit_slices(16);
    // Ledger order, alphabetical order and size order would all give the wrong answer.
    let mut drafts: Vec<_> = (0..500)
        .map(|n| notice(inbox("claude"), &format!("n-{n:03}.yaml"), "again"))
        .collect();
    drafts.push(notice(inbox("codex"), "once.yaml", "once"));
    spool.commit(1, drafts).expect("a commit");
    let made = spool.deliver_slice(0).expect("a pass").delivered;
    assert!(workspace.path("agents/codex/inbox/once.yaml").exists());
    assert!((2..=64).contains(&made), "{made} files in a slice");
    assert_eq!(spool.next_delivery(), Some(0), "the rest is not forgotten");
    while spool.waiting() > 0 {
        spool.deliver_slice(0).expect("a pass");
    }
    assert_eq!(workspace.show("agents/claude/inbox").len(), 500);
    assert_eq!(spool.next_delivery(), None);
}

#[test]
fn of_many_mailboxes_those_that_wait_longest_come_first() {
    let names: Vec<String> = (0..40).map(|n| format!("a-{n:02}")).collect();
    let agents: Vec<&str> = names.iter().map(String::as_str).collect();
    let workspace = Workspace::new(&agents);
    let mut spool = open(&workspace);
    spool.limit_slices(4);
    let backwards = agents.iter().rev();
    let drafts = backwards.map(|agent| notice(inbox(agent), "n.yaml", "hello"));
    spool.commit(1, drafts.collect()).expect("a commit");
    for served in 1..=10 {
        spool.deliver_slice(0).expect("a pass");
        let is_there = |agent: &&str| {
            let path = format!("agents/{agent}/inbox/n.yaml");
            workspace.path(&path).exists()
        };
        let there: Vec<&str> = agents.iter().rev().copied().filter(is_there).collect();
        assert_eq!(there.len(), 4 * served);
        assert!(agents.iter().rev().take(4 * served).eq(&there));
    }
    assert_eq!(spool.waiting(), 0);
}

#[test]
fn a_message_does_not_overtake_its_packet_in_a_slice() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    spool.limit_slices(8);
    let drafts = (0..200).map(|n| {
        let mut draft = notice(inbox("codex"), &format!("m-{n:03}.yaml"), "see the packet");
        draft.deliveries.push(Delivery {
            mailbox: Mailbox::Packets("briefs".to_owned()),
            file: name(&format!("m-{n:03}.yaml")),
            content: Content::Text("the packet".to_owned()),
        });
        draft
    });
    spool.commit(1, drafts.collect()).expect("a commit");
    while spool.waiting() > 0 {
        spool.deliver_slice(0).expect("a pass");
        let packets = workspace.show("packets/briefs");
        for message in workspace.show("agents/codex/inbox").keys() {
            assert!(packets.contains_key(message), "{message} came too early");
        }
    }
    assert_eq!(workspace.show("agents/codex/inbox").len(), 200);
}

#[test]
fn an_agent_floods_once_its_messages_are_owed_as_many_files() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut spool = open(&workspace);
    let of_codex = |n: usize| {
        let mut draft = notice(inbox("claude"), &format!("n-{n}.yaml"), "hello");
        draft.original = Some(spool::Original {
            outbox: "codex".to_owned(),
            file: name(&format!("n-{n}.yaml")),
            stamp: None,
            digest: None,
            text: None,
            away: spool::Away::Sent(name(&format!("n-{n}.yaml"))),
        });
        draft
    };
    let mut drafts: Vec<_> = (0..10).map(of_codex).collect();
    // Nobody sent these.
    drafts.extend((0..50).map(|n| notice(inbox("codex"), &format!("d-{n}.yaml"), "late")));
    spool.commit(1, drafts).expect("a commit");
    assert_eq!(Vec::from_iter(spool.flooding(20)), ["codex"]);
    assert!(spool.flooding(21).is_empty());
    spool.deliver(0).expect("a pass");
    assert!(spool.flooding(1).is_empty());
}
