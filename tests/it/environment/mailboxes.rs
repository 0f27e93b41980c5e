//! Directories that are removed, or replaced by a link or a file, under a running daemon.

use std::os::unix::fs::symlink;
use std::path::Path;

use settled_tests::{names, wait};
use settled_torture::faults::Serving;
use settled_torture::messages::{Message, Mix};

use super::{adds_up, cleared, mailroom, once, post};

/// The change to a directory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Removed,
    Linked,
    File,
}

/// Moves the directory away and puts something else in its place; returns the target of a link.
fn change(root: &Path, path: &str, how: Change) -> tempfile::TempDir {
    let elsewhere = settled_tests::scratch();
    std::fs::rename(root.join(path), root.join("aside")).expect("a rename");
    match how {
        Change::Removed => {}
        Change::Linked => symlink(elsewhere.path(), root.join(path)).expect("a link"),
        Change::File => settled_tests::write(root.join(path), "no directory"),
    }
    elsewhere
}

fn undo(root: &Path, path: &str, how: Change) {
    if how != Change::Removed {
        std::fs::remove_file(root.join(path)).expect("what was put there");
    }
    std::fs::rename(root.join("aside"), root.join(path)).expect("a rename");
}

/// One row: after the change the daemon says `says` and waits, and continues once it is undone.
fn waits(path: &str, how: Change, says: &str) {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    let mut messages = post(root, Mix::Requests, 2, 1);
    cleared(root);
    let elsewhere = change(root, path, how);
    // Without an outbox its owner cannot post.
    let can_post =
        root.join("agents/claude/outbox").is_dir() && !path.starts_with("agents/claude/outbox");
    if can_post && path != "agents/claude" {
        messages.extend(post(root, Mix::Requests, 2, 2));
    }
    serving.says(says);
    assert_eq!(
        names(elsewhere.path()),
        [""; 0],
        "{path}, {how:?}: something was written elsewhere"
    );
    undo(root, path, how);
    messages.extend(post(root, Mix::Requests, 2, 3));
    cleared(root);
    settled(root, &messages);
    let (code, said) = serving.terminate();
    assert_eq!(code, Some(0), "{path}, {how:?}: {said}");
    adds_up(root, &messages);
}

/// Waits until every delivery to codex and its briefs are there.
fn settled(root: &Path, messages: &[Message]) {
    for place in ["agents/codex/inbox", "packets/briefs"] {
        let place = root.join(place);
        let shown = || {
            names(&place)
                .iter()
                .filter(|name| !name.starts_with('.'))
                .count()
        };
        wait::until(
            &format!("{} files in {}", messages.len(), place.display()),
            || shown() == messages.len(),
        );
    }
}

#[test]
fn a_mailbox_replaced_by_a_link_or_a_file_waits_and_nothing_is_written_elsewhere() {
    let mailbox = "cannot write to a mailbox; will retry";
    std::thread::scope(|scope| {
        for path in ["agents/codex/inbox", "agents/claude/sent", "packets/briefs"] {
            for how in [Change::Linked, Change::File] {
                scope.spawn(move || waits(path, how, mailbox));
            }
        }
    });
}

#[test]
fn an_outbox_replaced_by_a_link_or_a_file_is_not_read_and_waits() {
    std::thread::scope(|scope| {
        for how in [Change::Linked, Change::File] {
            scope.spawn(move || {
                waits(
                    "agents/claude/outbox",
                    how,
                    "cannot read this and will retry",
                );
            });
        }
        scope.spawn(|| waits("agents/codex", Change::Linked, "will retry"));
    });
}

#[test]
fn the_directory_of_all_agents_moved_away_is_waited_for() {
    waits("agents", Change::Removed, "the sweep failed; will retry");
}

#[test]
fn a_mailbox_that_is_removed_is_made_again() {
    for path in [
        "agents/codex/inbox",
        "agents/claude/sent",
        "packets/briefs",
        "agents/claude/archive",
    ] {
        let mailroom = mailroom();
        let root = mailroom.root();
        let serving = Serving::at(root);
        let _ = post(root, Mix::Requests, 0, 1);
        if root.join(path).exists() {
            std::fs::remove_dir_all(root.join(path)).expect("a directory to remove");
        }
        let messages = post(root, Mix::Requests, 2, 1);
        cleared(root);
        settled(root, &messages);
        assert_eq!(serving.terminate().0, Some(0));
        adds_up(root, &messages);
    }
}

#[test]
fn an_outbox_that_is_removed_and_made_again_is_served_again() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    let outbox = mailroom.agent("claude", "outbox");
    std::fs::remove_dir(&outbox).expect("an empty outbox");
    // Other mailboxes go on.
    let mut messages: Vec<Message> = Mix::Notes.messages(4, 1);
    messages.retain(|message| message.from == "codex");
    messages
        .iter()
        .for_each(|message| settled_torture::messages::post(root, message));
    cleared(root);
    assert!(
        !outbox.exists(),
        "owning an outbox proves the sender: the daemon makes none"
    );
    std::fs::create_dir(&outbox).expect("an outbox");
    messages.extend(post(root, Mix::Notes, 4, 2));
    cleared(root);
    assert_eq!(serving.terminate().0, Some(0));
    adds_up(root, &messages);
}

#[test]
fn a_workspace_that_is_moved_away_is_served_no_longer() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let serving = Serving::at(root);
    let messages = post(root, Mix::Notes, 3, 1);
    cleared(root);
    let aside = root.with_extension("aside");
    std::fs::rename(root, &aside).expect("a rename");
    let (code, said) = serving.ended();
    assert_eq!(code, Some(6), "{said}");
    assert!(
        said.contains("was removed or moved away while it was served"),
        "{said}"
    );
    assert!(!root.exists(), "something was made where it was");
    assert_eq!(once(&aside).0, Some(0));
    adds_up(&aside, &messages);
}

#[test]
fn a_mailbox_that_became_a_link_makes_no_failure_of_the_end() {
    let mailroom = mailroom();
    let root = mailroom.root();
    let elsewhere = settled_tests::scratch();
    let serving = Serving::at(root);
    let mut messages: Vec<Message> = Mix::Notes.messages(6, 1);
    messages.retain(|message| message.to == "codex");
    messages
        .iter()
        .for_each(|message| settled_torture::messages::post(root, message));
    cleared(root);
    // Files just made there are not durable yet, and cannot become so now.
    let inbox = mailroom.agent("codex", "inbox");
    std::fs::rename(&inbox, inbox.with_extension("aside")).expect("a rename");
    symlink(elsewhere.path(), &inbox).expect("a link");
    let (code, said) = serving.terminate();
    assert_eq!(code, Some(0), "{said}");
    std::fs::remove_file(&inbox).expect("a link");
    std::fs::rename(inbox.with_extension("aside"), &inbox).expect("a rename");
    adds_up(root, &messages);
}
