//! The independent reader: reads the directories after a run, without a line of the daemon's code, and lists what is
//! inconsistent.
//!
//! The daemon has to satisfy: the chain is intact; every message has exactly the records that its fate requires; every
//! file that a record names is in its place or was taken, complete, exactly once; every original is where its record
//! says; and nothing else is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use settled_tests::ledger::digest;

use crate::messages::{Fate, Message};
use crate::taker::{Take, name_of, visible};

/// The data that the checker needs besides the directories.
#[derive(Debug)]
pub struct Case<'a> {
    /// The workspace, which no daemon serves any more.
    pub root: &'a Path,
    /// Every message written.
    pub messages: &'a [Message],
    /// Everything that readers took from their inboxes.
    pub takes: &'a [Take],
    /// True if a file may arrive a second time, as after a power cut.
    pub may_repeat: bool,
}

/// Checks everything and returns the errors.
pub fn check(case: &Case<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let records = match records(case.root) {
        Ok(records) => records,
        Err(what) => return vec![what],
    };
    fates(case, &records, &mut wrong);
    wrong.extend(arrivals(case.root, &records, case.takes, case.may_repeat));
    originals(case, &records, &mut wrong);
    leftovers(case.root, &mut wrong);
    wrong
}

/// Checks a workspace whose daemon was just killed: every file that an agent sees or took is complete and named by a
/// record that was written before it.
pub fn in_between(root: &Path, messages: &[Message], takes: &[Take]) -> Vec<String> {
    let mut known: BTreeSet<(String, Vec<u8>)> = BTreeSet::new();
    for record in whole_lines(root) {
        known.extend(
            made_by(&record)
                .into_iter()
                .map(|(mailbox, _, bytes)| (mailbox, bytes)),
        );
    }
    let mut wrong = Vec::new();
    let mut see = |mailbox: String, file: &str, bytes: Vec<u8>| {
        let length = bytes.len();
        // Agents write findings there themselves, and refused originals are beside their reports.
        let is_findings = mailbox == "packets/findings"
            && messages.iter().any(|message| message.text.contains(file));
        let is_original = mailbox.ends_with("/dead_letter") && !file.contains(".report");
        if !is_findings && !is_original && !known.contains(&(mailbox.clone(), bytes)) {
            wrong.push(format!(
                "{file} shows in {mailbox} with {length} bytes that no record names"
            ));
        }
    };
    for take in takes {
        see(
            format!("{}/inbox", take.agent),
            &take.file,
            take.bytes.clone(),
        );
    }
    for mailbox in mailboxes(root) {
        for path in places(&mailbox)
            .iter()
            .flat_map(|place| visible(&root.join(place)))
        {
            // Its reader may have taken it meanwhile.
            if let Ok(bytes) = std::fs::read(&path) {
                see(mailbox.clone(), &name_of(&path), bytes);
            }
        }
    }
    wrong
}

/// Every directory in which the daemon makes files.
fn mailboxes(root: &Path) -> Vec<String> {
    let mut mailboxes = ["findings", "handoff", "briefs"]
        .map(|folder| format!("packets/{folder}"))
        .to_vec();
    for agent in settled_tests::names(root.join("agents")) {
        mailboxes.extend(["inbox", "dead_letter"].map(|directory| format!("{agent}/{directory}")));
    }
    mailboxes.extend(
        settled_tests::names(root.join("events/pr"))
            .iter()
            .map(|pr| format!("events/pr/{pr}")),
    );
    mailboxes
}

/// The records of a ledger whose last line may be incomplete.
fn whole_lines(root: &Path) -> Vec<Value> {
    let mut records = Vec::new();
    for segment in visible(&root.join(".settled/ledger")) {
        let bytes = std::fs::read(&segment).unwrap_or_default();
        let whole = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.ends_with(b"\n"));
        records.extend(whole.filter_map(|line| serde_json::from_slice(line).ok()));
    }
    records
}

/// The files that a record makes: mailbox, name and bytes.
fn made_by(record: &Value) -> Vec<(String, String, Vec<u8>)> {
    let mut made = Vec::new();
    for delivery in record["deliveries"].as_array().into_iter().flatten() {
        let text = if delivery["content"] == "original" {
            record["original"]["text"].as_str()
        } else {
            delivery["content"]["text"].as_str()
        };
        // A delivery without a text removes a file.
        let Some(text) = text else { continue };
        let word = |key: &str| delivery[key].as_str().unwrap_or_default().to_owned();
        made.push((word("mailbox"), word("file"), text.as_bytes().to_vec()));
    }
    made
}

/// Reads every record of a ledger that nobody writes, and checks its chain and numbers.
pub fn records(root: &Path) -> Result<Vec<Value>, String> {
    let mut records = Vec::new();
    let mut prev = format!("sha256:{}", "0".repeat(64));
    for segment in visible(&root.join(".settled/ledger")) {
        let name = segment.display();
        let bytes = std::fs::read(&segment).map_err(|error| format!("{name}: {error}"))?;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            return Err(format!("{name} ends in half a line"));
        }
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let record: Value =
                serde_json::from_slice(line).map_err(|error| format!("{name}: {error}"))?;
            if record["prev"] != prev.as_str() || record["seq"] != records.len() as u64 + 1 {
                return Err(format!(
                    "{name}: the chain is broken before record {}",
                    record["seq"]
                ));
            }
            prev = format!("sha256:{}", digest(line));
            records.push(record);
        }
    }
    Ok(records)
}

/// Checks that the daemon recorded each of these orders once and removed its file.
pub fn orders(root: &Path, ids: &[&str]) -> Vec<String> {
    let records = records(root).unwrap_or_default();
    let mut wrong = Vec::new();
    for id in ids {
        let times = records
            .iter()
            .filter(|record| record["id"] == *id && record["original"].is_null())
            .count();
        if times != 1 {
            wrong.push(format!("the order {id} was heard {times} times"));
        }
    }
    let left = visible(&root.join(".settled/orders"));
    wrong.extend(
        left.iter()
            .map(|path| format!("the order {} is still there", name_of(path))),
    );
    wrong
}

/// Returns the lines of a ledger, valid or not.
pub fn lines(root: &Path) -> Vec<Vec<u8>> {
    let segments = visible(&root.join(".settled/ledger")).into_iter();
    let bytes: Vec<u8> = segments
        .flat_map(|segment| std::fs::read(segment).unwrap_or_default())
        .collect();
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Checks that every message has exactly the record that its fate requires.
fn fates(case: &Case<'_>, records: &[Value], wrong: &mut Vec<String>) {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for record in records {
        let file = record["original"]["file"].as_str().unwrap_or_default();
        kinds
            .entry(file)
            .or_default()
            .push(record["kind"].as_str().unwrap_or_default());
    }
    for message in case.messages {
        let found = kinds.remove(message.file.as_str()).unwrap_or_default();
        let expected = match message.fate {
            Fate::Accepted => ["accepted"],
            Fate::Refused => ["refused"],
            Fate::Duplicate => ["duplicate"],
        };
        if found != expected {
            wrong.push(format!(
                "{}: its records are {found:?}, expected {expected:?}",
                message.file
            ));
        }
    }
    for (file, kinds) in kinds.into_iter().filter(|(file, _)| !file.is_empty()) {
        wrong.push(format!("records {kinds:?} of {file}, which nobody wrote"));
    }
}

/// Checks that every file that a record names is there or was taken, complete and once, and that nothing else is there.
pub fn arrivals(root: &Path, records: &[Value], takes: &[Take], may_repeat: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut wanted: BTreeMap<(String, Vec<u8>), Vec<String>> = BTreeMap::new();
    let mut mailboxes: Vec<String> = Vec::new();
    for (mailbox, file, bytes) in records.iter().flat_map(made_by) {
        mailboxes.push(mailbox.clone());
        wanted.entry((mailbox, bytes)).or_default().push(file);
    }
    mailboxes.sort_unstable();
    mailboxes.dedup();
    let mut found: BTreeMap<(String, Vec<u8>), Vec<String>> = BTreeMap::new();
    for take in takes {
        let mailbox = format!("{}/inbox", take.agent);
        found
            .entry((mailbox, take.bytes.clone()))
            .or_default()
            .push(take.file.clone());
    }
    for mailbox in &mailboxes {
        for directory in places(mailbox) {
            for path in visible(&root.join(&directory)) {
                // A refused original is beside its report.
                let is_original =
                    mailbox.ends_with("/dead_letter") && !name_of(&path).contains(".report");
                let Ok(bytes) = std::fs::read(&path) else {
                    continue;
                };
                // Agents write findings of their own beside the daemon's.
                let is_theirs = mailbox == "packets/findings"
                    && !wanted.contains_key(&(mailbox.clone(), bytes.clone()));
                if !is_original && !is_theirs {
                    found
                        .entry((mailbox.clone(), bytes))
                        .or_default()
                        .push(name_of(&path));
                }
            }
        }
    }
    for (key, files) in &wanted {
        let times = found.remove(key).map_or(0, |found| found.len());
        if times < files.len() || (times > files.len() && !may_repeat) {
            wrong.push(format!(
                "{files:?} in {} {times} times, expected {}",
                key.0,
                files.len()
            ));
        }
    }
    for ((mailbox, bytes), files) in found {
        wrong.push(format!(
            "{files:?} in {mailbox} with {} bytes that no record names",
            bytes.len()
        ));
    }
    wrong
}

/// The directories that may hold the files of a mailbox, relative to the root.
fn places(mailbox: &str) -> Vec<String> {
    match mailbox.split_once('/') {
        Some((agent, "inbox")) => vec![
            format!("agents/{agent}/inbox"),
            format!("agents/{agent}/archive"),
        ],
        Some((agent, "dead_letter")) => vec![format!("agents/{agent}/dead_letter")],
        Some(_) | None => vec![mailbox.to_owned()],
    }
}

/// Checks that every judged original is where its record says, and that no outbox holds anything.
fn originals(case: &Case<'_>, records: &[Value], wrong: &mut Vec<String>) {
    for message in case.messages {
        let agent = case.root.join("agents").join(message.from);
        let record = records
            .iter()
            .find(|record| record["original"]["file"] == message.file.as_str());
        let Some(away) = record.and_then(|record| record["original"]["away"].as_str()) else {
            continue;
        };
        match std::fs::read(agent.join(away)) {
            Ok(bytes) if bytes == message.text.as_bytes() => {}
            Ok(bytes) => wrong.push(format!(
                "{away} of {} holds {} other bytes",
                message.from,
                bytes.len()
            )),
            Err(error) => wrong.push(format!("{away} of {}: {error}", message.from)),
        }
        if agent.join("outbox").join(&message.file).exists() {
            wrong.push(format!(
                "{} is still in the outbox of {}",
                message.file, message.from
            ));
        }
    }
}

/// Checks that no temporary file is left.
pub(crate) fn leftovers(root: &Path, wrong: &mut Vec<String>) {
    for agent in settled_tests::list(root.join("agents")) {
        for directory in ["inbox", "outbox", "sent", "dead_letter", "archive"] {
            let names = settled_tests::names(agent.join(directory));
            for name in names.iter().filter(|name| name.starts_with(".settled-")) {
                wrong.push(format!("{name} is left in {}/{directory}", name_of(&agent)));
            }
        }
    }
}
