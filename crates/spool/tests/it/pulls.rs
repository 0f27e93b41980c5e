//! Snapshots of pull requests, whose directories nobody made before the first of them, and packets, which are there
//! before the message that names them.

use std::sync::Arc;

use spool::{
    Content, Delivery, DiskFault, EntryDraft, FaultyDisk, Lane, Mailbox, Spool, SpoolError,
};

use crate::daemon::{BOOT, OTHER_BOOT, Workspace, inbox, name, notice};

const SNAPSHOT: &str = "action: merged";

fn pull() -> Mailbox {
    Mailbox::PullRequest("86".to_owned())
}

/// Returns a workspace without `events/`, as another program makes one.
fn bare() -> Workspace {
    let workspace = Workspace::new(&["codex"]);
    std::fs::remove_dir_all(workspace.path("events")).expect("a directory");
    workspace
}

fn open(workspace: &Workspace, disk: Arc<FaultyDisk>) -> Result<Spool, SpoolError> {
    Spool::open(workspace.root(), disk, &mut |_| Ok(())).map(|opened| opened.spool)
}

/// Starts, commits the snapshot if the ledger has none yet, delivers it and makes it durable.
fn run(workspace: &Workspace, disk: Arc<FaultyDisk>) -> Result<(), SpoolError> {
    let mut spool = open(workspace, disk)?;
    if spool.next_seq() == 1 {
        spool.commit(1, vec![notice(pull(), "merged.yaml", SNAPSHOT)])?;
    }
    spool.deliver(0)?;
    spool.checkpoint()
}

fn shown(workspace: &Workspace) -> Vec<(String, String)> {
    workspace.show("events/pr/86").into_iter().collect()
}

#[test]
fn a_snapshot_makes_every_directory_above_it_and_syncs_each() {
    let workspace = bare();
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = open(&workspace, Arc::clone(&disk)).expect("a start");
    spool
        .commit(1, vec![notice(pull(), "merged.yaml", SNAPSHOT)])
        .expect("a commit");
    assert_eq!(spool.deliver(0).expect("a pass").delivered, 1);
    assert_eq!(
        shown(&workspace),
        [("merged.yaml".to_owned(), SNAPSHOT.to_owned())]
    );
    disk.set(None);
    spool.checkpoint().expect("a checkpoint");
    let synced = disk
        .log()
        .iter()
        .filter(|line| line.contains("sync directory"))
        .count();
    assert_eq!(
        synced,
        5,
        "events/pr/86, events/pr, events, the root, the cursors: {:#?}",
        disk.log()
    );
}

#[test]
fn a_kill_at_any_change_of_a_first_snapshot_has_no_effect() {
    let whole = Arc::new(FaultyDisk::new(BOOT));
    run(&bare(), Arc::clone(&whole)).expect("a run without faults");
    assert!(whole.changes() > 12, "only {} changes", whole.changes());
    for n in 1..=whole.changes() {
        for fault in [DiskFault::StopAfter(n), DiskFault::StopWithin(n)] {
            for boot in [BOOT, OTHER_BOOT] {
                let workspace = bare();
                let disk = Arc::new(FaultyDisk::new(BOOT));
                disk.set(Some(fault));
                assert!(
                    run(&workspace, Arc::clone(&disk)).is_err() && disk.stopped(),
                    "{fault:?}"
                );
                run(&workspace, Arc::new(FaultyDisk::new(boot))).expect("a run without faults");
                let all = [("merged.yaml".to_owned(), SNAPSHOT.to_owned())];
                assert_eq!(shown(&workspace), all, "{fault:?}: {:?}", disk.log().last());
                assert!(workspace.hidden("events/pr/86").is_empty(), "{fault:?}");
                assert_eq!(
                    spool::verify(workspace.root())
                        .expect("a whole ledger")
                        .records,
                    1,
                    "{fault:?}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_made_behind_a_link() {
    let workspace = bare();
    let elsewhere = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(elsewhere.path(), workspace.path("events")).expect("a link");
    let mut spool = open(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    spool
        .commit(1, vec![notice(pull(), "merged.yaml", SNAPSHOT)])
        .expect("a commit");
    let pass = spool.deliver(0).expect("a pass");
    assert_eq!(pass.parked[0].lane, Lane::Pulls);
    assert_eq!(
        std::fs::read_dir(elsewhere.path())
            .expect("a directory")
            .count(),
        0
    );
}

/// Returns a record with a message and the packet it names.
fn with_packet(n: usize) -> EntryDraft {
    let file = format!("packet-{n}.yaml");
    let mailbox = Mailbox::Packets("findings".to_owned());
    let packet = Delivery {
        mailbox,
        file: name(&file),
        content: Content::Text(file),
    };
    let mut draft = notice(inbox("codex"), &format!("message-{n}.yaml"), "see packet");
    draft.deliveries.push(packet);
    draft
}

#[test]
fn a_packet_is_there_before_the_message_that_names_it() {
    // Few enough for one thread, and enough that two share the lanes.
    for count in [1, 200] {
        let workspace = Workspace::new(&["codex"]);
        let disk = Arc::new(FaultyDisk::new(BOOT));
        let mut spool = open(&workspace, Arc::clone(&disk)).expect("a start");
        spool
            .commit(1, (1..=count).map(with_packet).collect())
            .expect("a commit");
        disk.set(None);
        assert_eq!(spool.deliver(0).expect("a pass").delivered, 2 * count);
        let log = disk.log();
        let of = |what: &str| -> Vec<usize> {
            let renamed = |line: &&String| line.contains("rename") && line.contains(what);
            log.iter()
                .enumerate()
                .filter(|(_, line)| renamed(line))
                .map(|(at, _)| at)
                .collect()
        };
        let (packets, messages) = (of("packet-"), of("message-"));
        assert_eq!((packets.len(), messages.len()), (count, count));
        assert!(packets.last() < messages.first(), "{count} records");
    }
}

fn pull_of(number: u32) -> Mailbox {
    Mailbox::PullRequest(number.to_string())
}

fn cursors(workspace: &Workspace) -> Vec<String> {
    let listed = std::fs::read_dir(workspace.path(".settled/cursors")).expect("the cursors");
    let names = listed.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}

/// Returns a workspace in which each of these pull requests had a snapshot.
fn with_pulls(numbers: std::ops::Range<u32>) -> Workspace {
    let workspace = bare();
    let mut spool = open(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    let drafts = numbers.map(|number| notice(pull_of(number), "merged.yaml", SNAPSHOT));
    spool.commit(1, drafts.collect()).expect("a commit");
    spool.deliver(0).expect("a pass");
    spool.checkpoint().expect("a checkpoint");
    workspace
}

#[test]
fn all_pull_requests_share_a_cursor() {
    let workspace = with_pulls(1..101);
    assert_eq!(cursors(&workspace), ["events.pr.cursor"]);
    for number in 1..101 {
        assert_eq!(workspace.show(&format!("events/pr/{number}")).len(), 1);
    }
}

#[test]
fn the_cursors_that_each_pull_request_had_become_one() {
    for boot in [BOOT, OTHER_BOOT] {
        let workspace = with_pulls(1..4);
        let own = |name: &str| workspace.path(&format!(".settled/cursors/{name}"));
        for number in 1..4 {
            std::fs::copy(
                own("events.pr.cursor"),
                own(&format!("events.pr.{number}.cursor")),
            )
            .expect("a cursor as 0.1 wrote it");
        }
        std::fs::remove_file(own("events.pr.cursor")).expect("a cursor 0.1 did not know");
        let taken = workspace.path("events/pr/2/merged.yaml");
        std::fs::remove_file(&taken).expect("somebody takes it");

        let spool = open(&workspace, Arc::new(FaultyDisk::new(boot))).expect("a start");
        drop(spool);
        assert_eq!(cursors(&workspace), ["events.pr.cursor"], "{boot}");
        assert!(
            !taken.exists(),
            "it was durable, and is not delivered again"
        );
        open(&workspace, Arc::new(FaultyDisk::new(boot))).expect("another start");
        assert!(!taken.exists(), "nor by the start after that");
    }
}

#[test]
fn what_a_pull_request_with_a_cursor_of_its_own_still_needs_is_made() {
    let workspace = with_pulls(1..4);
    let own = |name: &str| workspace.path(&format!(".settled/cursors/{name}"));
    for number in [1, 3] {
        let name = format!("events.pr.{number}.cursor");
        std::fs::copy(own("events.pr.cursor"), own(&name)).expect("a cursor as 0.1 wrote it");
    }
    std::fs::remove_file(own("events.pr.cursor")).expect("a cursor 0.1 did not know");
    for number in [2, 3] {
        std::fs::remove_file(workspace.path(&format!("events/pr/{number}/merged.yaml")))
            .expect("a snapshot");
    }
    open(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    assert!(workspace.path("events/pr/2/merged.yaml").exists());
    assert!(!workspace.path("events/pr/3/merged.yaml").exists());
    assert_eq!(cursors(&workspace), ["events.pr.cursor"]);
}

#[test]
fn a_checkpoint_follows_for_snapshots_that_were_not_durable_and_for_no_others() {
    for is_durable in [true, false] {
        let workspace = bare();
        let mut spool = open(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
        let drafts = vec![notice(pull_of(1), "merged.yaml", SNAPSHOT)];
        spool.commit(1, drafts).expect("a commit");
        spool.deliver(0).expect("a pass");
        if is_durable {
            spool.checkpoint().expect("a checkpoint");
        }
        drop(spool);
        let own = |name: &str| workspace.path(&format!(".settled/cursors/{name}"));
        for of_one in [false, true] {
            if of_one {
                std::fs::rename(own("events.pr.cursor"), own("events.pr.1.cursor"))
                    .expect("a cursor as 0.1 wrote it");
            }
            let disk = Arc::new(FaultyDisk::new(BOOT));
            let opened = Spool::open(workspace.root(), disk, &mut |_| Ok(())).expect("a start");
            assert_eq!(opened.recovery.cursors_lost, []);
            let wants = opened.spool.wants_checkpoint();
            assert_eq!(wants, !is_durable, "with a cursor of its own: {of_one}");
        }
    }
}

#[test]
fn a_cursor_that_a_kill_kept_from_its_place_is_none() {
    let workspace = with_pulls(1..4);
    let own = |name: &str| workspace.path(&format!(".settled/cursors/{name}"));
    // Taken for a single pull request's cursor, it would hide that the shared one was lost.
    std::fs::rename(own("events.pr.cursor"), own("events.pr.cursor.tmp")).expect("a cursor");
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let opened = Spool::open(workspace.root(), disk, &mut |_| Ok(())).expect("a start");
    assert_eq!(opened.recovery.cursors_lost, [Lane::Pulls]);
}
