//! The refused messages of a workspace: the files in `dead_letter/`, with the reasons from their reports, so that an
//! agent that may not read the ledger sees them too.
//!
//! `refusals` tells which of them are open; `retry` sends one again.

pub mod refusals;
pub mod retry;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use message_schema::Report;
use message_schema::id::AgentName;
use message_schema::line::escaped;
use serde::{Serialize, Serializer};
use spool::{Digest, FileName, Layout, Mailbox, SpoolError, path_text};
use workspace::index::LedgerIndex;
use workspace::refusals::{Correction, Same};
use workspace::regular_file;

use self::refusals::{OpenRefusal, raw};

/// The largest file to read, in bytes. A refused file may have any size; of a larger one only the report is read.
const SIZE_MAX: u64 = 1 << 20;

/// One refused message.
#[derive(Clone, Debug, Serialize)]
pub struct DeadLetter {
    /// The agent whose outbox it came from.
    pub agent: AgentName,
    /// Its name in `dead_letter/`; absent if only the report is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "serialize_known")]
    pub file: Option<String>,
    /// The report's name.
    #[serde(serialize_with = "serialize_shown")]
    pub report_file: String,
    /// The report on the refusal.
    pub report: Report,
    /// The later record that accepted a correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected_by: Option<u64>,
    /// The link between the refused message and its correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected_same: Option<Same>,
    /// True if somebody has to act on it; absent if the ledger cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<bool>,
}

/// Dead letters, and the places that could not be read.
#[derive(Debug)]
pub struct DeadLetters {
    /// The refused messages, the oldest refusal first.
    pub messages: Vec<DeadLetter>,
    /// The reason why the ledger could not be read; corrections are unknown then.
    pub without_ledger: Option<SpoolError>,
    /// The mailboxes that could not be read, and why.
    pub mailboxes_unread: Vec<(PathBuf, io::Error)>,
}

impl DeadLetters {
    /// Describes in sentences what could not be read.
    pub fn unread(&self) -> Vec<String> {
        let ledger = self.without_ledger.iter().map(|error| {
            format!(
                "the ledger cannot be read, so corrections are not known: {}",
                workspace::error::chain(error)
            )
        });
        let unread = self
            .mailboxes_unread
            .iter()
            .map(|(path, error)| format!("cannot read {}: {error}", path.display()));
        ledger
            .chain(unread)
            .map(|message| escaped(&message))
            .collect()
    }
}

/// Reads the dead letters of these agents.
pub fn of(root: &Path, agents: &[AgentName]) -> DeadLetters {
    let (mut messages, mut unread) = (Vec::new(), Vec::new());
    for agent in agents {
        let directory = directory(root, agent);
        match in_directory(&directory, agent) {
            Ok(found) => messages.extend(found),
            Err(error) => unread.push((directory, error)),
        }
    }
    let without_ledger = if messages.is_empty() {
        None
    } else {
        learn_fates(root, &mut messages).err()
    };
    messages.sort_by(|a, b| {
        let key = |message: &DeadLetter| {
            (
                message.report.received_at.to_string(),
                message.report_file.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    DeadLetters {
        messages,
        without_ledger,
        mailboxes_unread: unread,
    }
}

/// An agent's `dead_letter/`.
pub fn directory(root: &Path, agent: &AgentName) -> PathBuf {
    Layout::new(root).mailbox(&Mailbox::DeadLetter(agent.to_string()))
}

/// Looks up what became of each dead letter, by its agent and the name of its report. Nobody has to correct one that the
/// index does not remember: the daemon did not put it there, or its sender was refused many times since.
fn learn_fates(root: &Path, messages: &mut [DeadLetter]) -> Result<(), SpoolError> {
    let (index, _) = LedgerIndex::read(root)?;
    let named = |agent: &AgentName, report: &FileName| (agent.clone(), raw(report));
    let known = index.refusals.iter().filter_map(|(_, refusal)| {
        let report = refusal.report_file.as_ref()?;
        Some((named(&refusal.agent, report), refusal.corrected))
    });
    let corrected: HashMap<(AgentName, String), Option<Correction>> = known.collect();
    let open = refusals::open(root, &index).into_iter();
    let open = open.filter_map(|OpenRefusal { refusal, .. }| {
        Some(named(&refusal.agent, refusal.report_file.as_ref()?))
    });
    let open: HashSet<(AgentName, String)> = open.collect();
    for message in messages {
        let name = (message.agent.clone(), message.report_file.clone());
        let corrected = corrected.get(&name).copied().flatten();
        message.corrected_by = corrected.map(|correction| correction.by);
        message.corrected_same = corrected.map(|correction| correction.same);
        message.open = Some(open.contains(&name));
    }
    Ok(())
}

impl DeadLetter {
    /// Describes it to people: one line, with the summary and what became of it below.
    pub fn text(&self) -> String {
        let DeadLetter {
            agent,
            report,
            corrected_by,
            corrected_same,
            open,
            ..
        } = self;
        let file = self.name();
        let id = report
            .message_id
            .as_ref()
            .map_or_else(String::new, |id| format!("  {id}"));
        let mut text = escaped(&format!(
            "{}  {agent}/{file}  {}{id}",
            report.received_at, report.refused
        )) + "\n";
        text += &format!("  {}\n", escaped(&report.summary));
        match (corrected_by, corrected_same) {
            (Some(seq), Some(same)) => {
                text += &format!("  corrected: record {seq} accepted {}\n", same.words());
            }
            (Some(_) | None, _) if *open == Some(false) => {
                text += "  over: its file was removed, its review is closed, or its sender was refused often since\n";
            }
            (Some(_) | None, _) => {}
        }
        text
    }

    /// Its name as every command shows it, or that of its report if only that is left.
    pub fn name(&self) -> String {
        shown(self.file.as_ref().unwrap_or(&self.report_file))
    }

    /// True if `word` names this message: its file name as it is or as it is shown, with or without the extension, the name
    /// of its report, or its id.
    pub fn is_called(&self, word: &str) -> bool {
        let is_id = self
            .report
            .message_id
            .as_ref()
            .is_some_and(|id| id.as_str() == word);
        is_id
            || is_named(&self.report_file, word)
            || self
                .file
                .as_ref()
                .is_some_and(|file| is_named(file, word) || is_named(stem(file), word))
    }
}

fn is_named(name: &str, word: &str) -> bool {
    name == word || shown(name) == word
}

/// The name as every command shows it.
fn shown(name: &str) -> String {
    path_text::shown(Path::new(name))
}

fn serialize_shown<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    path_text::serialize(Path::new(name), serializer)
}

fn serialize_known<S: Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serialize_shown(name.as_deref().unwrap_or_default(), serializer)
}

fn stem(file: &str) -> &str {
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

fn in_directory(directory: &Path, agent: &AgentName) -> io::Result<Vec<DeadLetter>> {
    let listed = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    // A name that is not UTF-8 is shown lossily; nobody can type it anyway.
    let mut names = Vec::new();
    for entry in listed {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    let reports = names
        .iter()
        .filter(|name| name.contains(".report.") && name.ends_with(".yaml"));
    let mut by_stem: HashMap<&str, Vec<&String>> = HashMap::new();
    for name in names.iter().filter(|name| !name.contains(".report.")) {
        by_stem.entry(stem(name)).or_default().push(name);
    }
    let messages = reports.filter_map(|name| {
        let report = Report::from_yaml(&bytes(&directory.join(name)).ok()??).ok()?;
        let (of, _) = name.split_once(".report.")?;
        let beside = by_stem.get(of).into_iter().flatten();
        let file = beside
            .copied()
            .find(|file| is_original(directory, file, &report))
            .cloned();
        Some(DeadLetter {
            agent: agent.clone(),
            file,
            report_file: name.clone(),
            report,
            corrected_by: None,
            corrected_same: None,
            open: None,
        })
    });
    Ok(messages.collect())
}

/// True if the report beside this file is about it: so are the bytes, where the daemon read them.
fn is_original(directory: &Path, file: &str, report: &Report) -> bool {
    match bytes(&directory.join(file)) {
        Ok(Some(bytes)) => {
            report.digest == "unread" || Digest::of(&bytes).to_string() == report.digest
        }
        Ok(None) => report.digest == "unread",
        // List it: showing it says why it cannot be read.
        Err(_) => true,
    }
}

/// The bytes of a regular file; `None` if it is too large or no regular file.
fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    regular_file::read(path, SIZE_MAX)
}
