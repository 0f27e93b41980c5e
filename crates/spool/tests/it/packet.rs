//! A packet path leads to a regular file inside the workspace, or to nothing.

use std::sync::Arc;

use spool::{FaultyDisk, Now, PacketRead, Spool};

use crate::daemon::{BOOT, LATER, Workspace};

fn read(workspace: &Workspace, path: &str, limit: u64) -> PacketRead {
    read_at(workspace, path, limit, LATER)
}

fn read_at(workspace: &Workspace, path: &str, limit: u64, now: Now) -> PacketRead {
    let opened = Spool::open(workspace.root(), Arc::new(FaultyDisk::new(BOOT)), &mut |_| Ok(()));
    opened.expect("a start").spool.view().read_packet(path, limit, now).expect("an answer")
}

#[test]
fn a_finished_packet_is_read_whole() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("packets/findings/a.yaml", "findings: []");
    let whole = PacketRead::Bytes(b"findings: []".to_vec());
    assert_eq!(read(&workspace, "packets/findings/a.yaml", 12), whole);
    assert_eq!(read(&workspace, "./packets//findings/a.yaml", 12), whole);
    assert_eq!(read(&workspace, "packets/findings/a.yaml", 11), PacketRead::TooLarge);
    assert_eq!(read(&workspace, "packets/findings/b.yaml", 12), PacketRead::Missing);
    assert_eq!(read(&workspace, "nowhere/b.yaml", 12), PacketRead::Missing);
}

#[test]
fn a_packet_that_was_just_written_may_still_grow() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("packets/findings/a.yaml", "findings: []");
    let modified =
        std::fs::metadata(workspace.path("packets/findings/a.yaml")).and_then(|data| data.modified());
    let since = modified.expect("a time").duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let written = i64::try_from(since.as_millis()).expect("a time");
    let at = |age| read_at(&workspace, "packets/findings/a.yaml", 100, Now { mono: 0, wall: written + age });
    assert_eq!(at(49), PacketRead::Growing);
    assert!(matches!(at(50), PacketRead::Bytes(_)));
}

#[test]
fn no_path_leads_out_of_the_workspace_or_into_what_is_ours() {
    let workspace = Workspace::new(&["codex"]);
    workspace.write("packets/findings/a.yaml", "findings: []");
    let link =
        |target: &str, at: &str| std::os::unix::fs::symlink(target, workspace.path(at)).expect("a link");
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
        "packets/\0",
    ] {
        let answer = read(&workspace, path, 1000);
        assert!(matches!(answer, PacketRead::Unsafe(_)), "{path:?} gave {answer:?}");
    }
    let long = "x".repeat(300);
    assert!(matches!(read(&workspace, &long, 1000), PacketRead::Unsafe(_)));
}
