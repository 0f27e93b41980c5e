//! The machine below the workspace: its disk, its clock, its events.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use notify::{RecursiveMode, Watcher as _};
use spool::{HostName, Layout, Since, Tail};
use workspace::heartbeat::CLOCKS_APART_MAX;
use workspace::operator_alerts::{self, AlertKind};
use workspace::orders;

use super::{CheckContext, CheckOutcome, Checked};

/// Fewer free bytes or inodes than this are a problem, although a busy day of messages needs far less.
const BYTES_MIN: u64 = 100 * 1024 * 1024;
const INODES_MIN: u64 = 10_000;

/// 2020-01-01: a clock before this is wrong.
const EARLIEST: i64 = 1_577_836_800;

/// File systems on which a lock, a rename or an event is not what it is on a local disk.
#[cfg(target_os = "linux")]
const DOUBTFUL: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x786f_4256, "VirtualBox shared folder"),
];

/// Checks that the file system is not one of the doubtful kinds.
#[cfg(target_os = "linux")]
pub(super) fn file_system(case: &CheckContext<'_>) -> Checked {
    let found = rustix::fs::statfs(case.root)
        .map_err(|error| format!("cannot find out the kind of the file system: {error}"))?;
    // The type of the field differs between processors; the number has 32 bits.
    let kind = u32::try_from(i128::from(found.f_type) & 0xffff_ffff).unwrap_or_default();
    let doubtful = DOUBTFUL.iter().find(|(number, _)| *number == kind);
    Ok(vec![match doubtful {
        Some((_, name)) => CheckOutcome::wrong(
            format!("the workspace is on {name}, where locks, renames and events are unreliable"),
            "move the workspace to a local disk",
        ),
        None => CheckOutcome::ok(format!("a local kind (0x{kind:x})")),
    }])
}

/// Other systems number the kinds differently.
#[cfg(not(target_os = "linux"))]
pub(super) fn file_system(_: &CheckContext<'_>) -> Checked {
    Ok(vec![CheckOutcome::note(
        "doctor does not check the kind of the file system on this system",
    )])
}

/// Checks the free space, in bytes and in inodes.
pub(super) fn room(case: &CheckContext<'_>) -> Checked {
    let disk = rustix::fs::statvfs(case.root)
        .map_err(|error| format!("cannot find out the free space: {error}"))?;
    let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    Ok(free(bytes, inodes(disk.f_files, disk.f_favail)))
}

/// The number of files that still fit; `None` for a file system without a fixed number, which reports 0 of 0.
fn inodes(all: u64, free: u64) -> Option<u64> {
    (all > 0).then_some(free)
}

/// Says whether so many free bytes and inodes are enough; `None` if any number of files fits.
fn free(bytes: u64, inodes: Option<u64>) -> Vec<CheckOutcome> {
    let mib = bytes / (1024 * 1024);
    let mut said = Vec::new();
    if bytes < BYTES_MIN {
        said.push(CheckOutcome::wrong(
            format!("{mib} MiB are free"),
            "free some space; `settled gc` removes old files",
        ));
    }
    if let Some(inodes) = inodes
        && inodes < INODES_MIN
    {
        said.push(CheckOutcome::wrong(
            format!("{inodes} more files fit"),
            "remove files; `settled gc` removes old files",
        ));
    }
    if said.is_empty() {
        said.push(CheckOutcome::ok(format!("{mib} MiB are free")));
    }
    said
}

/// Checks that the clock is plausible.
pub(super) fn clock(case: &CheckContext<'_>) -> Checked {
    if case.now.timestamp() < EARLIEST {
        return Ok(vec![CheckOutcome::wrong(
            format!("the clock says {}", case.now),
            "set the clock",
        )]);
    }
    let mut alerts = operator_alerts::read(case.root).into_iter();
    if let Some(alert) = alerts.find(|alert| alert.kind == AlertKind::HostClock) {
        // Several hosts share the ledger, and the daemon knows whose clock differs.
        let is_ours = alert.what.contains("this host's");
        return Ok(vec![if is_ours {
            CheckOutcome::wrong(alert.what, "set the clock")
        } else {
            CheckOutcome::note(alert.what)
        }]);
    }
    let Ok(last) = last_record(case) else {
        return Ok(vec![CheckOutcome::note(
            "cannot compare the clock with the ledger, which cannot be read",
        )]);
    };
    Ok(vec![match last {
        Some((at, None)) if at > case.now => CheckOutcome::wrong(
            format!(
                "the clock is {} s behind the last record: deadlines wait for it",
                (at - case.now).num_seconds()
            ),
            "set the clock",
        ),
        Some((at, Some(host))) if at - case.now > CLOCKS_APART_MAX => CheckOutcome::wrong(
            format!(
                "the clock is {} s behind the last record, of host {host}: deadlines wait for it",
                (at - case.now).num_seconds()
            ),
            "compare the clocks of the two hosts and set the one that is wrong",
        ),
        Some(_) | None => CheckOutcome::ok("not behind the last record"),
    }])
}

/// The time of a record, and the host that it names.
type RecordTime = (DateTime<Utc>, Option<HostName>);

fn last_record(case: &CheckContext<'_>) -> Result<Option<RecordTime>, spool::SpoolError> {
    let end = Tail::open(case.root, Since::End)?.seq();
    let mut last = None;
    Tail::open(case.root, Since::Record(end.saturating_sub(1)))?.read(&mut |entry| {
        let at = DateTime::parse_from_rfc3339(&entry.at)?.to_utc();
        last = Some((at, entry.host.clone()));
        Ok(())
    })?;
    Ok(last)
}

/// Checks that the directories can be watched, by watching each.
pub(super) fn events(case: &CheckContext<'_>) -> Checked {
    let layout = Layout::new(case.root);
    let mut directories: Vec<PathBuf> = case
        .agents
        .iter()
        .map(|agent| layout.outbox(agent.as_str()))
        .collect();
    directories.extend([
        layout.packets(spool::dirs::FINDINGS),
        orders::directory(case.root),
    ]);
    let count = directories.len();
    let limits = limits();
    let fix = "raise fs.inotify.max_user_instances and fs.inotify.max_user_watches with sysctl; until then the sweep finds files, but later";
    let mut watcher = match notify::recommended_watcher(|_: notify::Result<notify::Event>| ()) {
        Ok(watcher) => watcher,
        Err(error) => {
            return Ok(vec![CheckOutcome::wrong(
                format!("file system events are not available{limits}: {error}"),
                fix,
            )]);
        }
    };
    // An agent cannot watch the daemon's directories and need not.
    let own =
        |directory: &PathBuf| rustix::fs::access(directory, rustix::fs::Access::READ_OK).is_ok();
    for directory in directories.iter().filter(|directory| own(directory)) {
        // The check `workspace` reports a missing directory, and the daemon watches no link.
        let is_there = directory.symlink_metadata().is_ok_and(|data| data.is_dir());
        if is_there && let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
            let what = format!(
                "{count} directories need a watch{limits}, and {} cannot get one: {error}",
                directory.display()
            );
            return Ok(vec![CheckOutcome::wrong(what, fix)]);
        }
    }
    Ok(vec![CheckOutcome::ok(format!(
        "{count} directories can be watched{limits}"
    ))])
}

/// The kernel's limits, where they can be read.
fn limits() -> String {
    let read = |name| std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok();
    match (read("max_user_watches"), read("max_user_instances")) {
        (Some(watches), Some(instances)) => {
            format!(
                " (at most {} watches and {} watchers a user)",
                watches.trim(),
                instances.trim()
            )
        }
        (Some(_), None) | (None, Some(_)) | (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_a_hundred_mebibytes_or_ten_thousand_files_is_too_little() {
        const MIB: u64 = 1 << 20;
        for (bytes, inodes, expected) in [
            (100 * MIB, None, "ok 100 MiB are free"),
            (100 * MIB, Some(10_000), "ok 100 MiB are free"),
            (100 * MIB - 1, None, "wrong 99 MiB are free"),
            (3 * MIB, Some(10_000), "wrong 3 MiB are free"),
            (200 * MIB, Some(9_999), "wrong 9999 more files fit"),
            (0, Some(0), "wrong 0 MiB are free, wrong 0 more files fit"),
        ] {
            let said = free(bytes, inodes);
            let said = said
                .iter()
                .map(|it| format!("{} {}", it.state.word(), it.what));
            assert_eq!(said.collect::<Vec<_>>().join(", "), expected);
        }
        assert_eq!(inodes(0, 0), None, "any number of files fits");
        assert_eq!(inodes(5, 0), Some(0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limits_on_watching_are_those_of_the_kernel() {
        let limit = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}"));
            text.expect("a limit").trim().to_owned()
        };
        let (watches, watchers) = (limit("max_user_watches"), limit("max_user_instances"));
        let expected = format!(" (at most {watches} watches and {watchers} watchers a user)");
        assert_eq!(limits(), expected);
    }
}
