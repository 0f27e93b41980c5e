//! Judged originals are put away, and bytes that a writer wrote after they were read are new input.

use std::sync::Arc;

use spool::{DiskFault, FaultyDisk, Now, OutboxFile};

use crate::daemon::{BOOT, Daemon, LATER, Workspace, name, run, scan};

const FIRST: &str = "to codex: first";
const OTHER: &str = "to codex: other";

/// A daemon that has read `a.yaml` and not decided yet.
fn reading(workspace: &Workspace, now: Now) -> (Daemon, OutboxFile) {
    workspace.write("agents/claude/outbox/a.yaml", FIRST);
    let mut daemon = Daemon::start(workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    scan(&mut daemon.intake, &daemon.spool.view(), &daemon.agents);
    let found = daemon
        .intake
        .take(&daemon.spool.view(), now, 1)
        .found
        .pop()
        .expect("a file");
    (daemon, found)
}

fn commit(daemon: &mut Daemon, found: &OutboxFile) {
    let draft = daemon.state.decide(found, daemon.state.next);
    for committed in daemon
        .spool
        .commit(daemon.state.next, vec![draft])
        .expect("a commit")
    {
        daemon.state.apply(&committed);
    }
}

fn workspace() -> Workspace {
    Workspace::new(&["claude", "codex"])
}

/// Returns a time at which a file that was just written looks fresh, whatever the clock says.
fn fresh(workspace: &Workspace, file: &str) -> Now {
    let modified = std::fs::metadata(workspace.path(file))
        .and_then(|data| data.modified())
        .expect("a time");
    let since = modified
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    Now {
        mono: LATER.mono,
        wall: i64::try_from(since.as_millis()).expect("a time") + 10,
    }
}

#[test]
fn a_writer_that_replaced_the_file_after_it_was_read_has_written_a_new_message() {
    let workspace = workspace();
    let (mut daemon, found) = reading(&workspace, LATER);
    commit(&mut daemon, &found);
    std::fs::remove_file(workspace.path("agents/claude/outbox/a.yaml")).expect("a file");
    workspace.write("agents/claude/outbox/a.yaml", "to codex: something longer");
    let pass = daemon.spool.deliver(LATER.mono).expect("a pass");
    assert_eq!(pass.came_back, [("claude".to_owned(), name("a.yaml"))]);
    assert_eq!(
        workspace.read("agents/claude/sent/a.yaml").as_deref(),
        Some(FIRST)
    );
    daemon.run().expect("a run");
    let inbox = workspace.show("agents/codex/inbox");
    assert_eq!(inbox.get("a.yaml").map(String::as_str), Some(FIRST));
    assert_eq!(
        inbox.get("a.2.yaml").map(String::as_str),
        Some("to codex: something longer")
    );
}

#[test]
fn another_file_of_the_same_length_and_time_is_a_new_message() {
    let workspace = workspace();
    let (mut daemon, found) = reading(&workspace, LATER);
    commit(&mut daemon, &found);
    let path = |file: &str| workspace.path(&format!("agents/claude/outbox/{file}"));
    let written = std::fs::metadata(path("a.yaml")).and_then(|data| data.modified());
    assert_eq!(FIRST.len(), OTHER.len());
    std::fs::write(path("b"), OTHER).expect("a file to write");
    std::fs::File::options()
        .write(true)
        .open(path("b"))
        .and_then(|file| file.set_modified(written.expect("a time")))
        .expect("a time to set");
    std::fs::rename(path("b"), path("a.yaml")).expect("another file");
    let pass = daemon.spool.deliver(LATER.mono).expect("a pass");
    assert_eq!(pass.came_back, [("claude".to_owned(), name("a.yaml"))]);
    let read = |file| workspace.read(&format!("agents/claude/{file}"));
    assert_eq!(read("sent/a.yaml").as_deref(), Some(FIRST));
    assert_eq!(read("outbox/a.yaml").as_deref(), Some(OTHER));
}

/// A rename into a directory that was removed says that there is no such file, as one of a file that is gone does.
#[test]
fn an_original_whose_new_directory_is_gone_waits_and_is_not_read_again() {
    const ENOENT: i32 = 2;
    let workspace = workspace();
    workspace.write("agents/claude/outbox/a.yaml", FIRST);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut daemon = Daemon::start(&workspace, disk.clone()).expect("a start");
    scan(&mut daemon.intake, &daemon.spool.view(), &daemon.agents);
    let taken = daemon.intake.take(&daemon.spool.view(), LATER, 1);
    commit(&mut daemon, &taken.found[0]);
    disk.set(Some(DiskFault::FailRename(ENOENT)));
    daemon.spool.deliver(LATER.mono).expect("a pass");
    scan(&mut daemon.intake, &daemon.spool.view(), &daemon.agents);
    let again = daemon.intake.take(&daemon.spool.view(), LATER, 1);
    assert!(again.found.is_empty(), "it was judged: {:?}", again.found);
    disk.set(None);
    daemon.run().expect("a run");
    assert_eq!(
        workspace.read("agents/claude/sent/a.yaml").as_deref(),
        Some(FIRST)
    );
    let inbox = workspace.show("agents/codex/inbox");
    let names: Vec<&String> = inbox.keys().collect();
    assert_eq!(names, ["a.yaml", "notice-1.yaml"], "delivered once");
    assert!(workspace.show("agents/claude/outbox").is_empty());
}

/// Replaces the file's bytes with others of the same length, without a trace in its size and times.
fn rewrite_without_a_trace(workspace: &Workspace) {
    let path = workspace.path("agents/claude/outbox/a.yaml");
    let before = std::fs::metadata(&path)
        .and_then(|data| data.modified())
        .expect("a time");
    std::fs::write(&path, OTHER).expect("a file to write");
    let file = std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("a file");
    file.set_modified(before).expect("a time to set");
}

#[test]
fn a_fresh_file_is_compared_after_it_was_put_away_and_other_bytes_go_back() {
    for taken in [false, true] {
        let workspace = workspace();
        workspace.write("agents/claude/outbox/a.yaml", FIRST);
        let now = fresh(&workspace, "agents/claude/outbox/a.yaml");
        let mut daemon =
            Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
        daemon.intake.hint("claude", &name("a.yaml"));
        let found = daemon
            .intake
            .take(&daemon.spool.view(), now, 1)
            .found
            .pop()
            .expect("a file");
        assert!(found.stamp.fresh);
        commit(&mut daemon, &found);
        rewrite_without_a_trace(&workspace);
        if taken {
            workspace.write("agents/claude/sent/a.yaml", "to codex: older");
        }
        let pass = daemon.spool.deliver(LATER.mono).expect("a pass");
        assert_eq!(pass.came_back, [("claude".to_owned(), name("a.yaml"))]);
        assert_eq!(
            workspace.read("agents/claude/outbox/a.yaml").as_deref(),
            Some(OTHER)
        );
        let kept = if taken {
            "agents/claude/sent/a.1.yaml"
        } else {
            "agents/claude/sent/a.yaml"
        };
        assert_eq!(workspace.read(kept).as_deref(), Some(FIRST));
    }
}

#[test]
fn a_kill_between_putting_away_and_comparing_still_gives_other_bytes_back() {
    for n in 1.. {
        let workspace = workspace();
        workspace.write("agents/claude/outbox/a.yaml", FIRST);
        let now = fresh(&workspace, "agents/claude/outbox/a.yaml");
        let disk = Arc::new(FaultyDisk::new(BOOT));
        let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
        daemon.intake.hint("claude", &name("a.yaml"));
        let found = daemon
            .intake
            .take(&daemon.spool.view(), now, 1)
            .found
            .pop()
            .expect("a file");
        commit(&mut daemon, &found);
        rewrite_without_a_trace(&workspace);
        disk.set(Some(DiskFault::StopAfter(n)));
        let _ = daemon.spool.deliver(LATER.mono);
        drop(daemon);
        let context = format!("killed after change {n}: {:?}", disk.log().last());
        run(&workspace, BOOT);
        let inbox: Vec<String> = workspace.show("agents/codex/inbox").into_values().collect();
        assert_eq!(
            inbox.iter().filter(|text| *text == FIRST).count(),
            1,
            "{context}: {inbox:?}"
        );
        assert_eq!(
            inbox.iter().filter(|text| *text == OTHER).count(),
            1,
            "{context}: {inbox:?}"
        );
        let sent: Vec<String> = workspace.show("agents/claude/sent").into_values().collect();
        assert!(
            sent.contains(&FIRST.to_owned()) && sent.contains(&OTHER.to_owned()),
            "{context}: {sent:?}"
        );
        if !disk.stopped() {
            break;
        }
    }
}

#[test]
fn a_writer_that_enlarges_its_file_after_the_rename_gets_it_back_and_nobody_reads_it() {
    let workspace = workspace();
    let (mut daemon, found) = reading(&workspace, LATER);
    commit(&mut daemon, &found);
    // A kill between the rename and the comparison leaves this.
    let sent = workspace.path("agents/claude/sent/a.yaml");
    std::fs::rename(workspace.path("agents/claude/outbox/a.yaml"), &sent).expect("a rename");
    let file = std::fs::File::options().write(true).open(&sent);
    let grown = file.and_then(|file| file.set_len(1 << 40));
    grown.expect("a sparse file of a terabyte");
    let pass = daemon.spool.deliver(LATER.mono).expect("a pass");
    assert_eq!(pass.came_back, [("claude".to_owned(), name("a.yaml"))]);
    assert_eq!(
        workspace.read("agents/claude/sent/a.yaml").as_deref(),
        Some(FIRST)
    );
}

#[test]
fn while_it_waits_to_be_put_away_an_original_is_not_looked_at() {
    let workspace = workspace();
    std::fs::remove_dir(workspace.path("agents/claude/sent")).expect("a directory");
    workspace.write("agents/claude/sent", "in the way");
    workspace.write("agents/claude/outbox/a.yaml", FIRST);
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    assert_eq!(daemon.step(LATER).expect("a step").0, 1);
    assert!(daemon.spool.view().is_judged("claude", &name("a.yaml")));
    daemon.intake.hint("claude", &name("a.yaml"));
    assert_eq!(daemon.step(LATER).expect("a step").0, 0);
    drop(daemon);
    // The same after a restart; once the way is free, the file is put away.
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    assert_eq!(daemon.recovery.pass.parked.len(), 1);
    assert_eq!(daemon.step(Now { mono: 50, ..LATER }).expect("a step").0, 0);
    std::fs::remove_file(workspace.path("agents/claude/sent")).expect("what is in the way");
    daemon.run().expect("a run");
    assert_eq!(
        workspace.read("agents/claude/sent/a.yaml").as_deref(),
        Some(FIRST)
    );
    assert_eq!(daemon.spool.next_seq(), 2);
}

#[test]
fn an_unread_original_is_put_away_after_a_restart_only_if_it_is_the_same_file() {
    for replaced in [false, true] {
        let workspace = workspace();
        let outbox = workspace.path("agents/claude/outbox/a.yaml");
        std::os::unix::fs::symlink("/etc/hostname", &outbox).expect("a link");
        let disk = Arc::new(FaultyDisk::new(BOOT));
        let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
        scan(&mut daemon.intake, &daemon.spool.view(), &daemon.agents);
        let found = daemon
            .intake
            .take(&daemon.spool.view(), LATER, 1)
            .found
            .pop()
            .expect("a file");
        commit(&mut daemon, &found);
        drop(daemon);
        if replaced {
            // The new file is made before the old one goes, so that it cannot get its inode.
            workspace.write("agents/claude/outbox/a.tmp", FIRST);
            std::fs::rename(workspace.path("agents/claude/outbox/a.tmp"), &outbox).expect("a file");
        }
        let daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
        assert_eq!(outbox.symlink_metadata().is_ok(), replaced);
        assert_eq!(daemon.recovery.pass.came_back.len(), usize::from(replaced));
        let dead = workspace.path("agents/claude/dead_letter/a.yaml");
        assert_eq!(dead.symlink_metadata().is_ok(), !replaced);
    }
}

#[test]
fn an_original_whose_bytes_are_away_already_is_only_removed_from_the_outbox() {
    let workspace = workspace();
    workspace.write("agents/claude/sent/a.yaml", FIRST);
    workspace.write("agents/claude/outbox/a.yaml", FIRST);
    run(&workspace, BOOT);
    let sent = workspace.show("agents/claude/sent");
    assert_eq!(
        sent.into_iter().collect::<Vec<_>>(),
        [("a.yaml".to_owned(), FIRST.to_owned())]
    );
    assert!(workspace.show("agents/claude/outbox").is_empty());
}

#[test]
fn a_directory_that_may_not_be_moved_stays_and_its_outbox_waits_for_nothing() {
    const EACCES: i32 = 13;
    let workspace = workspace();
    let path = workspace.path("agents/claude/outbox/a.yaml");
    std::fs::create_dir(&path).expect("a directory");
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
    scan(&mut daemon.intake, &daemon.spool.view(), &daemon.agents);
    let mut found = daemon.intake.take(&daemon.spool.view(), LATER, 1).found;
    commit(&mut daemon, &found.pop().expect("the directory"));
    disk.set(Some(DiskFault::FailRename(EACCES)));
    let _ = daemon.spool.deliver(LATER.mono);
    disk.set(None);
    let lanes = daemon.spool.deliver(LATER.mono + 60_000);
    assert!(lanes.expect("a pass").parked.is_empty());
    assert_eq!(daemon.spool.waiting(), 0);
    assert!(path.is_dir());
    // It is not judged again, and the rest of the outbox goes on.
    workspace.write("agents/claude/outbox/b.yaml", FIRST);
    daemon.run().expect("a run");
    assert_eq!(daemon.spool.view().next_seq(), 3);
    let inbox = workspace.show("agents/codex/inbox");
    assert_eq!(inbox.get("b.yaml").map(String::as_str), Some(FIRST));
}

#[test]
fn a_directory_with_the_name_of_a_temporary_file_holds_up_no_delivery() {
    let workspace = workspace();
    for name in [".settled-1.tmp", ".settled-1.tmp/with", ".settled-2.tmp"] {
        let path = workspace.path("agents/codex/inbox").join(name);
        std::fs::create_dir(path).expect("a directory");
    }
    workspace.write("agents/claude/outbox/a.yaml", FIRST);
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    daemon.run().expect("a run");
    let inbox = workspace.show("agents/codex/inbox");
    assert_eq!(inbox.get("a.yaml").map(String::as_str), Some(FIRST));
}
