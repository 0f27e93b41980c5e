//! Reads the alerts about a message for its sender and its reader: what the daemon changed, limited or noticed. They
//! are beside the briefs, because an agent with a user of its own cannot read the ledger.

use std::path::Path;

use review::ToldAlert;

use crate::compose::packet::read;

/// Returns the alerts about the message in this file; none if it cannot be read.
pub fn about_file(root: &Path, message: &Path) -> Vec<ToldAlert> {
    read(message).map_or_else(|_| Vec::new(), |message| about(root, &message))
}

/// Returns the alerts about this message.
pub fn about(root: &Path, message: &[u8]) -> Vec<ToldAlert> {
    let path = root.join(judgement::alerts_file::path(message));
    read(&path).map_or_else(|_| Vec::new(), |bytes| judgement::alerts_file::read(&bytes))
}
