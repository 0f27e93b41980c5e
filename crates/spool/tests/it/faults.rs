//! A disk that reads and writes less than was asked for, and one on which a single `stat` fails.

use std::sync::Arc;

use crate::crash::{Seen, all_is_as_if_nothing_had_happened, scenario, take_all};
use crate::daemon::{BOOT, Daemon, Workspace, run};
use spool::{DiskFault, FaultyDisk};

const EIO: i32 = 5;
const EMFILE: i32 = 24;

#[test]
fn a_disk_that_reads_and_writes_in_pieces_changes_nothing() {
    for most in [1, 7, 100, 511] {
        let workspace = scenario();
        let disk = Arc::new(FaultyDisk::new(BOOT));
        disk.set(Some(DiskFault::Short(most)));
        for _ in 0..2 {
            let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
            daemon.run().expect("a run in pieces");
        }
        let daemon = run(&workspace, BOOT);
        let context = format!("at most {most} bytes a call");
        all_is_as_if_nothing_had_happened(&workspace, &daemon, Seen::new(), &context);
    }
}

/// Starts and works; an error ends the process.
fn work(workspace: &Workspace, disk: &Arc<FaultyDisk>) -> Result<(), spool::SpoolError> {
    Daemon::start(workspace, Arc::clone(disk) as _)?.run()
}

#[test]
fn a_look_that_fails_loses_and_doubles_nothing() {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    disk.set(None);
    work(&scenario(), &disk).expect("a run without faults");
    let looks = disk.looks();
    assert!(looks > 100, "{looks} looks");
    let mut ended = 0;
    for n in 1..=looks {
        for errno in [EIO, EMFILE] {
            let workspace = scenario();
            let disk = Arc::new(FaultyDisk::new(BOOT));
            disk.set(Some(DiskFault::FailLook(n, errno)));
            let result = work(&workspace, &disk);
            ended += u64::from(result.is_err());
            if let Err(error) = result {
                assert!(error.is_retryable(), "look {n}: {error}");
            }
            let mut seen = Seen::new();
            take_all(&workspace, &mut seen);
            let daemon = run(&workspace, BOOT);
            let context = format!("look {n} of {looks} fails with {errno}");
            all_is_as_if_nothing_had_happened(&workspace, &daemon, seen, &context);
        }
    }
    assert!(ended > 0, "no look mattered");
}
