//! Logs at the start how much was read and what was wrong with it.

pub(super) fn log(recovery: &spool::Recovery) {
    if let Some(torn) = &recovery.torn {
        tracing::warn!(
            segment = %torn.segment.display(), offset = torn.offset, bytes = torn.bytes,
            "the ledger ended in an unfinished batch; it was cut off, a copy is in .settled/torn/"
        );
    }
    for snapshot in &recovery.passed_over {
        tracing::warn!(snapshot = %snapshot.path.display(), why = %snapshot.why, "cannot use a snapshot; reading more of the ledger");
    }
    for lane in &recovery.cursors_lost {
        tracing::warn!(
            %lane,
            "its cursor was lost; looked for every file it ever got"
        );
    }
    for lane in &recovery.notes_lost {
        tracing::warn!(
            %lane,
            "its cursor was torn; looked for every file not known to be durable"
        );
    }
    for placed in &recovery.pass.redelivered {
        tracing::warn!(mailbox = %placed.mailbox, file = %placed.file, seq = placed.seq, "delivered again: cannot tell whether it had arrived before");
    }
    for placed in &recovery.pass.fixed {
        tracing::warn!(mailbox = %placed.mailbox, file = %placed.file, seq = placed.seq, "restored a file that was empty or torn");
    }
    tracing::info!(
        records = recovery.records,
        snapshot = recovery.snapshot,
        delivered = recovery.pass.delivered,
        "read the ledger"
    );
}
