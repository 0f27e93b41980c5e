//! Old files that the ledger knows are removed, whatever their size.

use std::sync::Arc;

use spool::{Cutoff, KeptFolder, Mailbox, Old, Os, Removal, Spool, tidy};

use crate::daemon::{Workspace, notice};

/// The largest file the spool ever makes or reads, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

#[test]
fn an_old_file_of_any_size_is_known_by_its_bytes_and_removed() {
    let workspace = Workspace::new(&["claude"]);
    let mut spool = Spool::open(workspace.root(), Arc::new(Os), &mut |_| Ok(()))
        .expect("a start")
        .spool;
    let sizes = [0, 5 * 1024 + 1, 256 * 1024, LARGEST];
    let reports = sizes
        .map(|size| {
            let mailbox = Mailbox::DeadLetter("claude".to_owned());
            notice(mailbox, &format!("{size}.report.yaml"), &"x".repeat(size))
        })
        .to_vec();
    spool.commit(1, reports).expect("a commit");
    spool.deliver(0).expect("a delivery");
    spool.checkpoint().expect("a checkpoint");
    assert_eq!(
        workspace.show("agents/claude/dead_letter").len(),
        sizes.len()
    );

    let everything = Old {
        dead_letter: Some(Cutoff {
            wall_ns: i64::MAX,
            at: "9999-12-31T23:59:59.999Z".to_owned(),
        }),
        ..Old::default()
    };
    let reports = tidy(workspace.root(), &everything, Removal::Now).expect("a look");
    let report = reports
        .iter()
        .find(|report| report.folder == KeptFolder::DeadLetter)
        .expect("a report of each folder");
    assert_eq!(
        (report.gone.files, report.unknown.files),
        (sizes.len() as u64, 0),
        "{report:?}"
    );
    assert!(workspace.show("agents/claude/dead_letter").is_empty());
}
