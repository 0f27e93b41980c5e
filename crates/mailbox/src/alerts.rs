//! The alerts about a message, for its sender and for its reader: what the daemon changed, limited or saw. They are
//! beside the briefs, because an agent with a user of its own cannot read the ledger.

use std::path::Path;

use review::ToldAlert;

use crate::compose::packet::read;

/// Returns the alerts about the message with these bytes.
pub fn about(root: &Path, message: &[u8]) -> Vec<ToldAlert> {
    let path = root.join(judgement::alerts_file::path(message));
    read(&path).map_or_else(|_| Vec::new(), |bytes| judgement::alerts_file::read(&bytes))
}
