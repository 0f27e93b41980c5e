//! What the log says of a start: how much was read, and what of it was not as it should have been.

pub(super) fn tell(recovery: &spool::Recovery) {
    if let Some(torn) = &recovery.torn {
        tracing::warn!(
            segment = %torn.segment.display(), offset = torn.offset, bytes = torn.bytes,
            "the ledger ended in an unfinished batch; it was cut off, a copy is in .settled/torn/"
        );
    }
    for snapshot in &recovery.passed_over {
        tracing::warn!(snapshot = %snapshot.path.display(), why = %snapshot.why, "a snapshot is of no use; more of the ledger is read");
    }
    for lane in &recovery.cursors_lost {
        tracing::warn!(
            ?lane,
            "its cursor was lost; every file it ever got was looked for"
        );
    }
    for lane in &recovery.notes_lost {
        tracing::warn!(
            ?lane,
            "its cursor was torn; what is not known to be durable was looked for"
        );
    }
    for placed in &recovery.pass.redelivered {
        tracing::warn!(mailbox = %placed.mailbox, file = %placed.file, seq = placed.seq, "delivered again: whether it had arrived before could not be told");
    }
    for placed in &recovery.pass.mended {
        tracing::warn!(mailbox = %placed.mailbox, file = %placed.file, seq = placed.seq, "found empty or torn and made whole again");
    }
    tracing::info!(
        records = recovery.records,
        snapshot = recovery.snapshot,
        delivered = recovery.pass.delivered,
        "the ledger is read"
    );
}
