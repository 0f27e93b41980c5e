//! The file that tells both sides what the daemon changed, limited or observed about an accepted message. Its name
//! contains the message's digest, so that a reader of the message finds it from any mailbox.

use review::{Accepted, ContentDigest, ToldAlert};
use serde::{Deserialize, Serialize};
use spool::{Content, Delivery, Digest, FileName, Mailbox, dirs};

use crate::used_names::{NameScope, UsedNames};

/// The version of the file's format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct AlertsFile {
    schema_version: u32,
    message: String,
    from: String,
    r#type: String,
    alerts: Vec<ToldAlert>,
}

/// Returns the path, relative to the workspace, of the alerts about the message with these bytes.
pub fn path(message: &[u8]) -> String {
    let folder = dirs::of_packets(dirs::BRIEFS);
    format!(
        "{folder}/{}",
        name(&ContentDigest(Digest::of(message).bytes()))
    )
}

/// Reads the alerts from their file; none if the file is of another version.
pub fn read(bytes: &[u8]) -> Vec<ToldAlert> {
    serde_json::from_slice::<AlertsFile>(bytes)
        .ok()
        .filter(|file| file.schema_version == VERSION)
        .map_or_else(Vec::new, |file| file.alerts)
}

/// Returns the file of an accepted message's alerts; `None` without alerts. The same bytes are accepted only once, so
/// its name is free.
pub(crate) fn of(accepted: &Accepted, seq: u64, names: &mut UsedNames) -> Option<Delivery> {
    if accepted.alerts.is_empty() {
        return None;
    }
    let alerts = AlertsFile {
        schema_version: VERSION,
        message: accepted.id.to_string(),
        from: accepted.from.to_string(),
        r#type: accepted.kind.to_string(),
        alerts: accepted.alerts.iter().map(ToldAlert::from).collect(),
    };
    let text = serde_json::to_string_pretty(&alerts).expect("text keys and plain values are JSON");
    let mailbox = Mailbox::Packets(dirs::BRIEFS.to_owned());
    let wanted =
        FileName::new(name(&accepted.digest)).expect("a word and a digest are a file name");
    let file = names.choose(NameScope::Mailbox(&mailbox), &wanted, seq);
    Some(Delivery {
        mailbox,
        file,
        content: Content::Text(text + "\n"),
    })
}

fn name(digest: &ContentDigest) -> String {
    format!("alerts_{digest}.json")
}
