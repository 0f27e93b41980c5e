//! Each directory follows the ledger by itself: one that cannot be written holds up no other.

use std::sync::Arc;

use spool::{DiskFault, FaultyDisk, FileName, Lane, Mailbox, Now, PresenceMemory, Spool};

use crate::daemon::{BOOT, Workspace, inbox, name, notice};

/// Long before anything in the tests, so that no directory's times prove anything.
const NOW: Now = Now { mono: 0, wall: 0 };

fn open(workspace: &Workspace) -> Spool {
    Spool::open(
        workspace.root(),
        Arc::new(FaultyDisk::new(BOOT)),
        &mut |_| Ok(()),
    )
    .expect("a start")
    .spool
}

fn commit(spool: &mut Spool, mailbox: Mailbox, file: &str, text: &str) {
    let next = spool.next_seq();
    spool
        .commit(next, vec![notice(mailbox, file, text)])
        .expect("a commit");
}

#[test]
fn a_mailbox_that_cannot_be_written_is_parked_and_tried_again_later_and_later() {
    let workspace = Workspace::new(&["claude", "codex"]);
    std::fs::remove_dir(workspace.path("agents/codex/inbox")).expect("an empty inbox");
    workspace.write("agents/codex/inbox", "in the way");
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    commit(&mut spool, inbox("codex"), "b.yaml", "second");
    commit(&mut spool, inbox("claude"), "c.yaml", "third");
    let mut now = 1_000;
    let mut pauses = Vec::new();
    for _ in 0..11 {
        let pass = spool.deliver(now).expect("a pass");
        let parked = &pass.parked[0];
        assert_eq!(
            (&parked.lane, parked.waiting),
            (&Lane::Mailbox(inbox("codex")), 2)
        );
        pauses.push(parked.retry_at - now);
        assert!(
            spool
                .deliver(parked.retry_at - 1)
                .expect("a pass")
                .parked
                .is_empty(),
            "tried too early"
        );
        now = spool.next_delivery().expect("a time");
    }
    assert_eq!(
        pauses,
        [
            100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000
        ]
    );
    assert_eq!(workspace.show("agents/claude/inbox").len(), 1);

    std::fs::remove_file(workspace.path("agents/codex/inbox")).expect("what is in the way");
    let pass = spool.deliver(now).expect("a pass");
    assert_eq!(
        (pass.delivered, spool.parked().len(), spool.next_delivery()),
        (2, 0, None)
    );
    let shown = workspace.show("agents/codex/inbox");
    assert_eq!(
        shown.into_iter().collect::<Vec<_>>(),
        [
            ("a.yaml".into(), "first".into()),
            ("b.yaml".into(), "second".into())
        ]
    );
}

#[test]
fn missing_directories_of_known_agents_are_made_again_and_those_of_unknown_ones_never() {
    let workspace = Workspace::new(&["codex"]);
    std::fs::remove_dir(workspace.path("agents/codex/inbox")).expect("an inbox");
    std::fs::remove_dir_all(workspace.path("packets")).expect("packets");
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    commit(
        &mut spool,
        Mailbox::Packets("briefs".to_owned()),
        "b.yaml",
        "second",
    );
    commit(&mut spool, inbox("nobody"), "c.yaml", "third");
    let pass = spool.deliver(0).expect("a pass");
    assert_eq!(pass.delivered, 2);
    assert_eq!(pass.parked[0].lane, Lane::Mailbox(inbox("nobody")));
    assert!(!workspace.path("agents/nobody").exists());
    // An empty directory of that name is no agent yet.
    std::fs::create_dir(workspace.path("agents/nobody")).expect("a directory");
    assert_eq!(spool.deliver(1_000).expect("a pass").delivered, 0);
    assert!(!workspace.path("agents/nobody/inbox").exists());
    std::fs::create_dir(workspace.path("agents/nobody/outbox")).expect("a directory");
    assert_eq!(spool.deliver(2_000).expect("a pass").delivered, 1);
}

#[test]
fn all_but_the_outbox_of_a_known_agent_is_made_again() {
    let workspace = Workspace::new(&["codex"]);
    for directory in ["outbox", "sent", "archive"] {
        std::fs::remove_dir(workspace.path(&format!("agents/codex/{directory}")))
            .expect("a directory");
    }
    let spool = open(&workspace);
    let made = spool.make_mailboxes("codex").expect("mailboxes");
    assert_eq!(
        made,
        ["agents/codex/sent", "agents/codex/archive"].map(std::path::PathBuf::from)
    );
    assert!(spool.make_mailboxes("nobody").is_err());
    assert!(
        !workspace.path("agents/codex/outbox").exists()
            && !workspace.path("agents/nobody").exists()
    );
}

#[test]
fn an_inbox_that_is_a_link_to_elsewhere_gets_nothing() {
    let workspace = Workspace::new(&["codex"]);
    std::fs::remove_dir(workspace.path("agents/codex/inbox")).expect("an inbox");
    std::os::unix::fs::symlink(
        workspace.path("events"),
        workspace.path("agents/codex/inbox"),
    )
    .expect("a link");
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    assert_eq!(spool.deliver(0).expect("a pass").parked.len(), 1);
    assert!(workspace.show("events").is_empty());
}

#[test]
fn the_same_bytes_under_the_name_are_the_delivery_and_other_bytes_are_left_alone() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("agents/codex/inbox/a.yaml", "first");
    workspace.write("agents/codex/inbox/b.yaml", "somebody else's");
    std::os::unix::fs::symlink("/etc/hostname", workspace.path("agents/codex/inbox/c.yaml"))
        .expect("a link");
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    commit(&mut spool, inbox("codex"), "b.yaml", "second");
    commit(&mut spool, inbox("codex"), "c.yaml", "third");
    spool.deliver(0).expect("a pass");
    let shown = workspace.show("agents/codex/inbox");
    let text = |file: &str| shown.get(file).map(String::as_str);
    assert_eq!(text("a.yaml"), Some("first"));
    assert_eq!(text("a.1.yaml"), None);
    assert_eq!(text("b.yaml"), Some("somebody else's"));
    assert_eq!(text("b.2.yaml"), Some("second"));
    assert_eq!(text("c.3.yaml"), Some("third"));
    assert!(workspace.hidden("agents/codex/inbox").is_empty());
}

#[test]
fn several_files_of_one_record_in_one_mailbox_all_arrive() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    let mut draft = notice(inbox("codex"), "a.yaml", "first");
    draft.deliveries.push(
        notice(inbox("codex"), "b.yaml", "second")
            .deliveries
            .remove(0),
    );
    draft.deliveries.push(
        notice(inbox("codex"), "a.yaml", "third")
            .deliveries
            .remove(0),
    );
    spool.commit(1, vec![draft]).expect("a commit");
    assert_eq!(spool.deliver(0).expect("a pass").delivered, 3);
    let texts: Vec<String> = workspace.show("agents/codex/inbox").into_values().collect();
    assert_eq!(texts, ["third", "first", "second"]);
}

#[test]
fn a_cursor_removed_while_we_run_is_made_again() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    spool.deliver(0).expect("a pass");
    std::fs::remove_file(workspace.path(".settled/cursors/codex.inbox.cursor")).expect("a cursor");
    commit(&mut spool, inbox("codex"), "b.yaml", "second");
    assert_eq!(spool.deliver(0).expect("a pass").delivered, 1);
    drop(spool);
    std::fs::remove_file(workspace.path("agents/codex/inbox/a.yaml")).expect("a file");
    open(&workspace);
    assert_eq!(
        workspace.show("agents/codex/inbox").len(),
        1,
        "delivered again"
    );
}

#[test]
fn a_checkpoint_that_fails_stops_the_spool() {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()))
        .expect("a start")
        .spool;
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    spool.deliver(0).expect("a pass");
    disk.set(Some(spool::DiskFault::Fail(1, 5)));
    let error = spool.checkpoint().expect_err("a failed sync");
    assert!(!error.is_retryable(), "{error}");
    assert!(matches!(
        spool.checkpoint(),
        Err(spool::SpoolError::Stopped { .. })
    ));
}

#[test]
fn a_large_checkpoint_syncs_the_file_system_once() {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()))
        .expect("a start")
        .spool;
    let syncs = |count: u64, spool: &mut Spool| {
        let next = spool.next_seq();
        let drafts = (next..next + count)
            .map(|seq| notice(inbox("codex"), &format!("{seq}.yaml"), "text"))
            .collect();
        spool.commit(next, drafts).expect("a commit");
        spool.deliver(0).expect("a pass");
        disk.set(None);
        spool.checkpoint().expect("a checkpoint");
        disk.log()
            .iter()
            .filter(|line| line.contains("sync"))
            .count()
    };
    // Two files, their directory, the cursor, and the directory of the new cursor.
    assert_eq!(syncs(2, &mut spool), 5);
    if cfg!(target_os = "linux") {
        assert_eq!(syncs(500, &mut spool), 2);
    }
    assert_eq!(syncs(0, &mut spool), 0);
}

#[test]
fn a_kill_while_a_failed_delivery_is_repeated_loses_nothing() {
    for m in 1.. {
        let workspace = Workspace::new(&["codex"]);
        let disk = Arc::new(FaultyDisk::new(BOOT));
        let mut spool = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()))
            .expect("a start")
            .spool;
        commit(&mut spool, inbox("codex"), "a.yaml", "first");
        // The file is complete and `prepared` is noted, but its rename fails.
        disk.set(Some(DiskFault::FailRename(5)));
        assert_eq!(spool.deliver(0).expect("a pass").parked.len(), 1);
        disk.set(Some(DiskFault::StopAfter(m)));
        let _ = spool.deliver(1_000);
        drop(spool);
        let spool = open(&workspace);
        assert_eq!(spool.waiting(), 0);
        let shown = workspace.show("agents/codex/inbox");
        let context = format!(
            "killed after change {m} of the second try: {:?}",
            disk.log().last()
        );
        assert_eq!(
            shown.into_iter().collect::<Vec<_>>(),
            [("a.yaml".to_owned(), "first".to_owned())],
            "{context}"
        );
        if !disk.stopped() {
            break;
        }
    }
}

#[test]
fn whatever_fails_once_in_a_lane_is_done_in_its_next_turn() {
    for n in 1.. {
        let workspace = Workspace::new(&["codex"]);
        let disk = Arc::new(FaultyDisk::new(BOOT));
        let mut spool = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()))
            .expect("a start")
            .spool;
        commit(&mut spool, inbox("codex"), "a.yaml", "first");
        disk.set(Some(DiskFault::Fail(n, 5)));
        let failed = spool.deliver(0).expect("a pass").parked.len();
        if disk.changes() < n {
            assert_eq!(failed, 0);
            break;
        }
        let context = format!("failed: {:?}", disk.log().last());
        assert_eq!(failed, 1, "{context}");
        disk.set(None);
        spool.deliver(1_000).expect("a pass");
        assert!(
            spool.parked().is_empty() && spool.waiting() == 0,
            "{context}"
        );
        drop(spool);
        std::fs::remove_file(workspace.path("agents/codex/inbox/a.yaml"))
            .expect("one file, delivered once");
        open(&workspace);
        assert!(workspace.show("agents/codex/inbox").is_empty(), "{context}");
    }
}

#[test]
fn a_file_has_left_once_it_was_delivered_and_is_gone() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("agents/codex/inbox/b.yaml", "of another origin");
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    commit(&mut spool, inbox("codex"), "b.yaml", "second");
    let left = |spool: &Spool, file: &str, seq| {
        let file = file.parse().expect("a name");
        spool
            .presence(&mut PresenceMemory::default(), NOW)
            .has_left(&inbox("codex"), &file, seq)
            .expect("a look")
    };
    assert!(!left(&spool, "a.yaml", 1), "it has not even come");
    spool.deliver(0).expect("a pass");
    assert!(!left(&spool, "a.yaml", 1) && !left(&spool, "b.yaml", 2));

    std::fs::remove_file(workspace.path("agents/codex/inbox/a.yaml")).expect("the reader takes it");
    assert!(left(&spool, "a.yaml", 1));
    std::fs::remove_file(workspace.path("agents/codex/inbox/b.yaml")).expect("another file");
    assert!(
        !left(&spool, "b.yaml", 2),
        "it is there under its numbered name"
    );
    std::fs::remove_dir_all(workspace.path("agents/codex/inbox")).expect("a mailbox");
    assert!(
        !left(&spool, "a.yaml", 1),
        "a mailbox that is gone was not read"
    );
}

#[test]
fn whether_a_file_has_left_is_told_the_same_of_many_as_of_one() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    let files: Vec<FileName> = (1..=200).map(|n| name(&format!("{n}.yaml"))).collect();
    let drafts = files
        .iter()
        .map(|file| notice(inbox("codex"), &file.to_string(), "text"))
        .collect();
    // Its delivery gets a number and stays when the other file is removed.
    workspace.write("agents/codex/inbox/150.yaml", "of another origin");
    spool.commit(1, drafts).expect("a commit");
    spool.deliver(0).expect("a pass");
    let taken = [3, 63, 64, 65, 200];
    for n in taken.into_iter().chain([150]) {
        std::fs::remove_file(workspace.path(&format!("agents/codex/inbox/{n}.yaml")))
            .expect("a file");
    }
    let mut memory = PresenceMemory::default();
    let mut presence = spool.presence(&mut memory, NOW);
    let left = (1..).zip(&files).filter(|(seq, file)| {
        presence
            .has_left(&inbox("codex"), file, *seq)
            .expect("a look")
    });
    assert_eq!(left.map(|(seq, _)| seq).collect::<Vec<u64>>(), taken);
}

#[test]
fn a_mailbox_that_looks_as_it_did_is_not_listed_again_and_a_take_shows_at_once() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    spool.deliver(0).expect("a pass");
    let mut memory = PresenceMemory::default();
    let mut left = |spool: &Spool, file: &str, seq, second: u64| {
        let mono = second * 1_000;
        let wall = now_ms() + 3_600_000 + i64::try_from(mono).expect("a short test");
        let mut presence = spool.presence(&mut memory, Now { mono, wall });
        let left = presence.has_left(&inbox("codex"), &name(file), seq);
        presence.remember();
        left.expect("a look")
    };
    assert!(!left(&spool, "a.yaml", 1, 0));
    // A name that never existed: only the memory can say that it does.
    assert!(!left(&spool, "gone.yaml", 1, 2), "nothing has changed");
    assert!(
        left(&spool, "gone.yaml", 2, 4),
        "of a later record nothing is known"
    );
    assert!(
        left(&spool, "gone.yaml", 1, 6),
        "one was missing, so nothing is remembered"
    );
    assert!(!left(&spool, "a.yaml", 1, 8));
    assert!(
        left(&spool, "gone.yaml", 1, 39),
        "a memory is believed for half a minute"
    );
    assert!(!left(&spool, "a.yaml", 1, 40));
    std::fs::remove_file(workspace.path("agents/codex/inbox/a.yaml")).expect("the reader takes it");
    assert!(left(&spool, "a.yaml", 1, 42));
}

#[test]
fn a_mailbox_that_changed_just_now_is_looked_at_again() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    spool.deliver(0).expect("a pass");
    let mut memory = PresenceMemory::default();
    let mut left = |file: &str| {
        let wall = now_ms() + 1_000;
        let mut presence = spool.presence(&mut memory, Now { mono: 0, wall });
        let left = presence.has_left(&inbox("codex"), &name(file), 1);
        presence.remember();
        left.expect("a look")
    };
    assert!(
        !left("a.yaml") && left("gone.yaml"),
        "its times prove nothing yet"
    );
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.expect("a time after 1970").as_millis()).expect("a time of our days")
}

#[test]
fn a_file_whose_rename_failed_and_whose_directory_was_replaced_is_not_taken_for_delivered() {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()))
        .expect("a start")
        .spool;
    commit(&mut spool, inbox("codex"), "a.yaml", "first");
    disk.set(Some(DiskFault::FailRename(5)));
    assert_eq!(spool.deliver(0).expect("a pass").parked.len(), 1);
    std::fs::remove_dir_all(workspace.path("agents/codex/inbox")).expect("an inbox");
    disk.set(None);
    assert_eq!(spool.deliver(1_000).expect("a pass").delivered, 1);
    assert_eq!(workspace.show("agents/codex/inbox").len(), 1);
}

#[test]
fn what_was_prepared_before_a_file_failed_is_delivered_and_the_lane_rests() {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()))
        .expect("a start")
        .spool;
    let drafts = ["a.yaml", "b.yaml", "c.yaml"].map(|file| notice(inbox("codex"), file, "text"));
    spool.commit(1, drafts.to_vec()).expect("a commit");
    // Two notes, then a file is made and written, and the next one cannot be made.
    disk.set(Some(DiskFault::Fail(5, 28)));
    let pass = spool.deliver(0).expect("a pass");
    assert_eq!(
        (pass.delivered, pass.parked.len()),
        (1, 1),
        "{:#?}",
        disk.log()
    );
    assert_eq!(
        workspace
            .show("agents/codex/inbox")
            .into_keys()
            .collect::<Vec<_>>(),
        ["a.yaml"]
    );
    assert_eq!(spool.deliver(1_000).expect("a pass").delivered, 2);
}
