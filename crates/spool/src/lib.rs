//! Where the bytes lie and whether they are safe: intake, ledger, delivery, recovery.
