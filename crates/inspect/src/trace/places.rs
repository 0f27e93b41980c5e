//! Finds a message in the directories: where a delivered file is now, and the files under an id that no record
//! mentions.

use std::io;
use std::path::Path;

use message_schema::Report;
use message_schema::id::{AgentName, MessageId};
use spool::{Digest, FileName, dirs};
use workspace::{directory, regular_file};

use super::{Certainty, LifeStep, Stage};

/// The largest file that is read, in bytes; the daemon never delivers a larger one.
const SIZE_MAX: u64 = 1 << 20;

/// The directories to which a reader may move a file of its inbox.
const TAKEN: [&str; 3] = [dirs::TAKEN, dirs::ARCHIVE, dirs::INBOX_ARCHIVE];

/// The current place of a delivered file.
#[derive(Debug)]
pub(super) enum FilePlace {
    /// In the inbox, at this path relative to the root.
    Inbox(String),
    /// In a directory where its reader put it, at this path relative to the root.
    Left(String),
    /// In none of these places.
    Gone,
    /// Unknown, because a directory cannot be read for this reason.
    Unreadable(String),
}

/// Looks for a file that record `seq` made in an inbox; only identical bytes count.
pub(super) fn of_delivered(
    root: &Path,
    agent: &str,
    file: &FileName,
    seq: u64,
    digest: &Digest,
) -> FilePlace {
    for directory in [dirs::INBOX].iter().chain(&TAKEN) {
        for name in file.variants(seq) {
            let path = format!("{}/{name}", dirs::of_agent(agent, directory));
            let full = root.join(dirs::of_agent(agent, directory)).join(&name);
            match read(&full) {
                Ok(Some(bytes)) if Digest::of(&bytes) == *digest => {
                    return if *directory == dirs::INBOX {
                        FilePlace::Inbox(path)
                    } else {
                        FilePlace::Left(path)
                    };
                }
                Ok(_) => {}
                Err(error) => {
                    return FilePlace::Unreadable(format!(
                        "{}: {error}",
                        dirs::of_agent(agent, directory)
                    ));
                }
            }
        }
    }
    FilePlace::Gone
}

/// The files under this id in outboxes, each with its agent.
pub(super) fn waiting(
    root: &Path,
    id: &MessageId,
    from: Option<&AgentName>,
) -> Vec<(String, LifeStep)> {
    let serving = match spool::is_served(root) {
        Some(true) => "in the outbox; a daemon is serving and has not judged it yet",
        Some(false) => "in the outbox, until a daemon serves",
        None => "in the outbox; cannot see whether a daemon is serving",
    };
    let step = |path| LifeStep::new(Stage::Waiting, Certainty::Yes, serving).by_file(path);
    with_id(root, dirs::OUTBOX, id, from)
        .into_iter()
        .map(|(agent, path)| (agent, step(path)))
        .collect()
}

/// The refused files whose report names this id, each with its agent.
pub(super) fn refused(
    root: &Path,
    id: &MessageId,
    from: Option<&AgentName>,
) -> Vec<(String, LifeStep)> {
    let mut found = Vec::new();
    for (agent, name, bytes) in files(root, dirs::DEAD_LETTER, from) {
        let Some(report) = Report::from_yaml(&bytes)
            .ok()
            .filter(|report| report.message_id.as_ref() == Some(id))
        else {
            continue;
        };
        let what = format!("{}: {}", report.refused, report.summary);
        let step = LifeStep::new(Stage::Refused, Certainty::Yes, what).by_file(format!(
            "{}/{name}",
            dirs::of_agent(&agent, dirs::DEAD_LETTER)
        ));
        let at = Some(report.received_at.to_string());
        found.push((
            agent,
            LifeStep {
                at,
                digest: Some(report.digest),
                ..step
            },
        ));
    }
    found
}

/// The files under this id in inboxes that no record accounts for.
pub(super) fn unproven(root: &Path, id: &MessageId) -> Vec<LifeStep> {
    let step = |(agent, path): (String, String)| {
        let what = "in the inbox without a proven sender: no record made it";
        LifeStep::new(Stage::Delivered, Certainty::Unknown, what)
            .of(&agent)
            .by_file(path)
    };
    [dirs::INBOX]
        .iter()
        .chain(&TAKEN)
        .flat_map(|directory| with_id(root, directory, id, None))
        .map(step)
        .collect()
}

fn with_id(
    root: &Path,
    directory: &str,
    id: &MessageId,
    of: Option<&AgentName>,
) -> Vec<(String, String)> {
    let is_it = |bytes: &[u8]| {
        // Most files do not contain the id at all and need not be parsed.
        String::from_utf8_lossy(bytes).contains(id.as_str())
            && message_schema::parse(bytes).is_ok_and(|message| message.id().as_ref() == Some(id))
    };
    files(root, directory, of)
        .filter(|(.., bytes)| is_it(bytes))
        .map(|(agent, name, _)| {
            let path = format!("{}/{name}", dirs::of_agent(&agent, directory));
            (agent, path)
        })
        .collect()
}

/// The readable files in this directory of each agent, or of one, with agent and name.
fn files<'a>(
    root: &'a Path,
    directory: &'a str,
    of: Option<&'a AgentName>,
) -> impl Iterator<Item = (String, FileName, Vec<u8>)> + 'a {
    let agents = directory::agents(root).unwrap_or_default();
    let agents = agents
        .into_iter()
        .filter(move |agent| of.is_none_or(|of| of == agent));
    agents.flat_map(move |agent| {
        let directory = root.join(dirs::of_agent(agent.as_str(), directory));
        let mut names: Vec<FileName> = std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .filter_map(|entry| FileName::new(entry.ok()?.file_name().into_encoded_bytes()).ok())
            .filter(|name| !name.as_bytes().starts_with(b"."))
            .collect();
        names.sort_unstable();
        names.into_iter().filter_map(move |name| {
            let bytes = read(&directory.join(&name)).ok()??;
            Some((agent.to_string(), name, bytes))
        })
    })
}

/// The bytes of a regular file; `None` if there is no such file or it is too large.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let is_absent = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    match regular_file::read(path, SIZE_MAX) {
        Err(error) if is_absent(&error) => Ok(None),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_looked_for_is_not_called_missing() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::write(root.path().join("a"), "x").expect("a file");
        let found = |name: &str| read(&root.path().join(name));
        assert_eq!(found("a").expect("a file"), Some(b"x".to_vec()));
        for absent in ["b", "a/b", "."] {
            assert_eq!(found(absent).expect(absent), None);
        }
        assert!(found(&"n".repeat(256)).is_err(), "no name is so long");
    }
}
