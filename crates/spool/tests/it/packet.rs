//! A packet path leads to a regular file inside the workspace, or to nothing.

use std::sync::Arc;

use spool::{FaultyDisk, Now, PacketRead, Spool};

use crate::daemon::{BOOT, LATER, Workspace, make_fifo, name};

fn read(workspace: &Workspace, path: &str, limit: u64) -> PacketRead {
    read_at(workspace, path, limit, LATER)
}

fn read_at(workspace: &Workspace, path: &str, limit: u64, now: Now) -> PacketRead {
    open(workspace)
        .view()
        .read_packet(path, limit, None, now)
        .expect("an answer")
}

fn open(workspace: &Workspace) -> Spool {
    Spool::open(
        workspace.root(),
        Arc::new(FaultyDisk::new(BOOT)),
        &mut |_| Ok(()),
    )
    .expect("a start")
    .spool
}

const PACKET: &str = "packets/findings/a.yaml";

/// Returns the packet's modification time, in milliseconds since 1970.
fn written(workspace: &Workspace) -> i64 {
    let modified = std::fs::metadata(workspace.path(PACKET)).and_then(|data| data.modified());
    let since = modified
        .expect("a time")
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    i64::try_from(since.as_millis()).expect("a time")
}

#[test]
fn a_finished_packet_is_read_whole() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("packets/findings/a.yaml", "findings: []");
    let whole = PacketRead::Bytes(b"findings: []".to_vec());
    assert_eq!(read(&workspace, "packets/findings/a.yaml", 12), whole);
    assert_eq!(read(&workspace, "./packets//findings/a.yaml", 12), whole);
    assert_eq!(
        read(&workspace, "packets/findings/a.yaml", 11),
        PacketRead::TooLarge
    );
    assert_eq!(
        read(&workspace, "packets/findings/b.yaml", 12),
        PacketRead::Missing
    );
    assert_eq!(
        read(&workspace, "packets/nowhere/b.yaml", 12),
        PacketRead::Missing
    );
}

#[test]
fn a_packet_nobody_saw_closed_may_still_grow_for_half_a_second() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write(PACKET, "findings: []");
    let written = written(&workspace);
    let at = |age| {
        read_at(
            &workspace,
            PACKET,
            100,
            Now {
                mono: 0,
                wall: written + age,
            },
        )
    };
    assert_eq!(at(499), PacketRead::Growing);
    assert!(matches!(at(500), PacketRead::Bytes(_)));
}

#[test]
fn a_packet_that_was_seen_closed_is_whole_at_once_until_it_is_changed_again() {
    let workspace = Workspace::new(&["codex"]);
    let spool = open(&workspace);
    workspace.write(PACKET, "findings: []");
    spool.hint_packet("findings", &name("a.yaml"));
    let now = Now {
        mono: 0,
        wall: written(&workspace),
    };
    let read = |path| {
        spool
            .view()
            .read_packet(path, 100, None, now)
            .expect("an answer")
    };
    assert!(matches!(read(PACKET), PacketRead::Bytes(_)));
    assert!(matches!(
        read("./packets//findings/a.yaml"),
        PacketRead::Bytes(_)
    ));
    workspace.write(PACKET, "findings: [{id: F-1}]");
    assert_eq!(
        read(PACKET),
        PacketRead::Growing,
        "its second writer has not closed it"
    );
}

#[test]
fn a_packet_that_was_seen_closed_and_not_looked_at_is_whole_if_nobody_has_it_open() {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let opened = Spool::open(workspace.root(), disk.clone(), &mut |_| Ok(()));
    let spool = opened.expect("a start").spool;
    workspace.write(PACKET, "findings: []");
    let read = |mono| {
        let wall = written(&workspace);
        spool
            .view()
            .read_packet(PACKET, 100, None, Now { mono, wall })
            .expect("an answer")
    };
    disk.set(None);
    spool.note_packet("findings", &name("a.yaml"));
    assert_eq!(disk.looks(), 0, "the note costs no call");
    assert!(matches!(read(0), PacketRead::Bytes(_)));

    let writer = std::fs::File::options()
        .append(true)
        .open(workspace.path(PACKET))
        .expect("the packet");
    spool.note_packet("findings", &name("a.yaml"));
    assert_eq!(read(0), PacketRead::Open, "a second writer has it open");
    assert_eq!(read(60_000), PacketRead::Open, "however long it pauses");
    drop(writer);
    disk.hide_writers();
    spool.note_packet("findings", &name("a.yaml"));
    assert_eq!(read(0), PacketRead::Growing, "nobody knows");
    assert_eq!(read(499), PacketRead::Growing);
    assert!(matches!(read(500), PacketRead::Bytes(_)));
}

#[test]
fn a_packet_that_a_writer_has_open_is_not_read_whoever_closed_or_renamed_it() {
    let workspace = Workspace::new(&["codex"]);
    let spool = open(&workspace);
    workspace.write("packets/findings/.a.tmp", "findings: [");
    let draft = workspace.path("packets/findings/.a.tmp");
    let writer = std::fs::File::options().append(true).open(&draft);
    let mut writer = writer.expect("a draft");
    std::fs::rename(&draft, workspace.path(PACKET)).expect("its place");
    let read = || {
        let wall = written(&workspace) + 60_000;
        let now = Now { mono: 60_000, wall };
        spool
            .view()
            .read_packet(PACKET, 100, None, now)
            .expect("an answer")
    };
    spool.hint_packet("findings", &name("a.yaml"));
    assert_eq!(read(), PacketRead::Open, "the rename was seen");
    let other = std::fs::File::options()
        .append(true)
        .open(workspace.path(PACKET));
    drop(other.expect("the packet"));
    spool.hint_packet("findings", &name("a.yaml"));
    assert_eq!(read(), PacketRead::Open, "the close of another was seen");
    std::io::Write::write_all(&mut writer, b"]").expect("its end");
    drop(writer);
    assert_eq!(read(), PacketRead::Bytes(b"findings: []".to_vec()));
}

#[test]
fn a_packet_from_the_future_is_whole_once_it_was_still_for_half_a_second() {
    let workspace = Workspace::new(&["codex"]);
    let spool = open(&workspace);
    workspace.write(PACKET, "findings: []");
    let wall = written(&workspace) - 3_600_000;
    let at = |mono| {
        spool
            .view()
            .read_packet(PACKET, 100, None, Now { mono, wall })
            .expect("an answer")
    };
    assert_eq!(at(1_000), PacketRead::Growing);
    assert_eq!(at(1_499), PacketRead::Growing);
    assert!(matches!(at(1_500), PacketRead::Bytes(_)));
}

#[test]
fn no_path_leads_out_of_the_workspace_or_into_what_is_ours() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("packets/findings/a.yaml", "findings: []");
    workspace.write("agents/codex/outbox/private.yaml", "findings: []");
    workspace.write("agents/codex/inbox/private.yaml", "findings: []");
    let link = |target: &str, at: &str| {
        std::os::unix::fs::symlink(target, workspace.path(at)).expect("a link");
    };
    link("/etc/hostname", "packets/findings/link.yaml");
    link("a.yaml", "packets/findings/near.yaml");
    link("findings", "packets/door");
    for path in [
        "",
        "/etc/hostname",
        "../x",
        "packets/../../x",
        "packets/findings/../findings/a.yaml",
        "packets/findings/link.yaml",
        "packets/findings/near.yaml",
        "packets/door/a.yaml",
        "packets/findings/a.yaml/b",
        "packets/findings",
        ".settled/lock",
        "./.settled/lock",
        "settled.toml",
        "agents/codex/outbox/private.yaml",
        "agents/codex/inbox/private.yaml",
        "./agents/codex/inbox/private.yaml",
        "packets/../agents/codex/inbox/private.yaml",
        "packets/./../.settled/lock",
        "nowhere/b.yaml",
        "packets",
        "packets/",
        "Packets/findings/a.yaml",
        "packets/\0",
    ] {
        let answer = read(&workspace, path, 1000);
        assert!(
            matches!(answer, PacketRead::Unsafe(_)),
            "{path:?} gave {answer:?}"
        );
    }
    let long = "x".repeat(300);
    assert!(matches!(
        read(&workspace, &long, 1000),
        PacketRead::Unsafe(_)
    ));
}

#[test]
fn what_is_neither_a_file_nor_readable_blocks_nobody() {
    let workspace = Workspace::new(&["codex"]);
    let fifo = workspace.path("packets/findings/fifo.yaml");
    make_fifo(&fifo);
    std::os::unix::net::UnixListener::bind(workspace.path("packets/findings/socket.yaml"))
        .expect("a socket");
    for file in ["fifo.yaml", "socket.yaml"] {
        let answer = read(&workspace, &format!("packets/findings/{file}"), 1000);
        assert!(
            matches!(answer, PacketRead::Unsafe(_)),
            "{file} gave {answer:?}"
        );
    }
}

#[test]
fn no_packet_is_read_through_a_directory_that_becomes_a_link_meanwhile() {
    const READS: usize = 10_000;
    let workspace = Workspace::new(&["codex"]);
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("a.yaml"), "canary").expect("a file");
    workspace.write(PACKET, "findings: []");
    let spool = open(&workspace);
    let (door, aside) = (
        workspace.path("packets/findings"),
        workspace.path("packets/aside"),
    );
    let link = workspace.path("packets/link");
    std::os::unix::fs::symlink(outside.path(), &link).expect("a link");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (mut whole, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                for (from, to) in [
                    (&door, &aside),
                    (&link, &door),
                    (&door, &link),
                    (&aside, &door),
                ] {
                    std::fs::rename(from, to).expect("only we rename here");
                }
            }
        });
        for _ in 0..READS {
            match spool
                .view()
                .read_packet(PACKET, 100, None, LATER)
                .expect("an answer")
            {
                PacketRead::Bytes(bytes) => {
                    assert_eq!(bytes, b"findings: []", "it was read from elsewhere");
                    whole += 1;
                }
                PacketRead::Missing | PacketRead::Unsafe(_) => refused += 1,
                other @ (PacketRead::Growing
                | PacketRead::Open
                | PacketRead::Linked
                | PacketRead::TooLarge
                | PacketRead::OfAnother(_)) => {
                    panic!("{other:?}")
                }
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(
        whole > 0 && refused > 0,
        "{whole} were read and {refused} refused: nothing raced"
    );
}

#[test]
fn a_packet_with_a_second_name_is_not_read_until_that_is_gone() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("elsewhere", "findings: []");
    std::fs::hard_link(workspace.path("elsewhere"), workspace.path(PACKET)).expect("a link");
    assert_eq!(read(&workspace, PACKET, 100), PacketRead::Linked);
    std::fs::remove_file(workspace.path("elsewhere")).expect("the first name");
    assert!(matches!(
        read(&workspace, PACKET, 100),
        PacketRead::Bytes(_)
    ));
}

#[test]
fn what_is_no_regular_file_is_not_even_opened() {
    let workspace = Workspace::new(&["codex"]);
    let at = workspace.path(PACKET);
    make_fifo(&at);
    // Somebody who opens the other end waits until this one is opened.
    let other_end = std::thread::spawn({
        let at = at.clone();
        move || std::fs::File::options().write(true).open(at).map(drop)
    });
    let spool = open(&workspace);
    for _ in 0..1_000 {
        let answer = spool
            .view()
            .read_packet(PACKET, 100, None, LATER)
            .expect("an answer");
        assert_eq!(
            answer,
            PacketRead::Unsafe("it is not a regular file".into())
        );
    }
    assert!(!other_end.is_finished(), "it was opened");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let _this_end = rustix::fs::open(&at, flags, rustix::fs::Mode::empty()).expect("a FIFO");
    other_end
        .join()
        .expect("a thread")
        .expect("both ends are open");
}
