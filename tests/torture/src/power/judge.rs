//! Checks a workspace whose power was cut, before and after the daemon recovered it, against the promise: nothing
//! accepted is missing, nothing is partial, a repeated delivery has the same bytes and is named, the ledger ends at a
//! record, and its torn end is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use settled_tests::ledger::digest;

use super::history::{History, directory};
use crate::checker;
use crate::messages::{Fate, Message};
use crate::taker::{name_of, visible};

/// The files after the power cut, before any recovery.
#[derive(Clone, Debug, Default)]
pub struct Before {
    segments: BTreeMap<String, Vec<u8>>,
    /// The paths of the files in the inboxes, relative to the root.
    inboxes: BTreeSet<String>,
}

/// The daemon's report on its recovery.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The files it delivered again: the record's number and the file's name.
    pub again: Vec<(usize, String)>,
    /// The offset at which it cut the ledger, and the number of bytes cut.
    pub torn: Option<(u64, u64)>,
}

/// One power cut and the recovery from it.
pub struct Scene<'a> {
    /// The recovered workspace.
    pub root: &'a Path,
    /// The interrupted run.
    pub history: &'a History,
    /// The position of the cut.
    pub at: usize,
    /// The files after the cut.
    pub before: &'a Before,
    /// The daemon's report on its recovery.
    pub said: &'a Said,
}

/// Reads the files after a cut.
pub fn look(root: &Path) -> Before {
    let mut before = Before::default();
    for segment in visible(&root.join(".settled/ledger")) {
        before.segments.insert(
            name_of(&segment),
            std::fs::read(&segment).unwrap_or_default(),
        );
    }
    for agent in settled_tests::list(root.join("agents")) {
        for path in visible(&agent.join("inbox")) {
            before.inboxes.insert(format!(
                "agents/{}/inbox/{}",
                name_of(&agent),
                name_of(&path)
            ));
        }
    }
    before
}

/// A file, by directory and bytes.
type NamedBytes = (String, Vec<u8>);

/// Checks everything and returns the errors.
pub fn judge(scene: &Scene<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let records = match checker::records(scene.root) {
        Ok(records) => records,
        Err(what) => return vec![what],
    };
    ledger(scene, &mut wrong);
    meaning(scene, &records, &mut wrong);
    deliveries(scene, &records, &mut wrong);
    originals(scene, &records, &mut wrong);
    checker::leftovers(scene.root, &mut wrong);
    wrong
}

/// Checks that the promised records are all there unchanged, and that later ones were kept if complete and put into
/// `.settled/torn/` if not.
fn ledger(scene: &Scene<'_>, wrong: &mut Vec<String>) {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for segment in visible(&scene.root.join(".settled/ledger")) {
        let bytes = std::fs::read(&segment).unwrap_or_default();
        lines.extend(
            bytes
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec),
        );
        let Some(found) = scene.before.segments.get(&name_of(&segment)) else {
            continue;
        };
        let good = whole_lines(found, &mut lines_before(scene, &name_of(&segment)));
        if !bytes.starts_with(&found[..good]) {
            wrong.push(format!(
                "{} lost whole records in the recovery",
                segment.display()
            ));
        }
        torn(scene, &found[good..], good, wrong);
    }
    let promised = scene.history.promised(scene.at);
    let kept = lines
        .iter()
        .zip(&scene.history.ledger)
        .take_while(|(now, then)| now == then)
        .count();
    if kept < promised {
        wrong.push(format!(
            "{kept} records are left as they were, {promised} had been promised"
        ));
    }
}

/// The digest of the last line before a segment.
fn lines_before(scene: &Scene<'_>, name: &str) -> String {
    let earlier = scene.before.segments.range(..name.to_owned()).rev();
    let last = earlier
        .flat_map(|(_, bytes)| bytes.rsplit(|byte| *byte == b'\n'))
        .find(|line| !line.is_empty());
    format!("sha256:{}", last.map_or_else(|| "0".repeat(64), digest))
}

/// The number of bytes in complete, chained lines.
fn whole_lines(bytes: &[u8], prev: &mut String) -> usize {
    let mut good = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some((b'\n', text)) = line.split_last() else {
            break;
        };
        let Ok(record) = serde_json::from_slice::<Value>(text) else {
            break;
        };
        if record["prev"] != prev.as_str() {
            break;
        }
        *prev = format!("sha256:{}", digest(text));
        good += line.len();
    }
    good
}

fn torn(scene: &Scene<'_>, tail: &[u8], offset: usize, wrong: &mut Vec<String>) {
    if tail.is_empty() {
        return;
    }
    let named = Some((offset as u64, tail.len() as u64));
    if scene.said.torn != named {
        wrong.push(format!(
            "the torn tail {named:?} was named as {:?}",
            scene.said.torn
        ));
    }
    let copies = settled_tests::list(scene.root.join(".settled/torn"));
    if !copies
        .iter()
        .any(|copy| std::fs::read(copy).is_ok_and(|copy| copy == tail))
    {
        wrong.push(format!(
            "no copy of the torn tail of {} bytes was kept",
            tail.len()
        ));
    }
}

/// Checks that records are about messages that were written and are complete, and that each id is accepted once.
fn meaning(scene: &Scene<'_>, records: &[Value], wrong: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    for record in records {
        let original = &record["original"];
        let Some(file) = original["file"].as_str() else {
            continue;
        };
        let Some(message) = message(scene, file) else {
            wrong.push(format!("a record of {file}, which nobody wrote"));
            continue;
        };
        let is_whole =
            original["digest"] == format!("sha256:{}", digest(message.text.as_bytes())).as_str();
        match (record["kind"].as_str().unwrap_or_default(), message.fate) {
            ("accepted", Fate::Accepted | Fate::Duplicate) if is_whole => {
                if !ids.insert(message.id.clone()) {
                    wrong.push(format!("{} was accepted twice", message.id));
                }
            }
            ("duplicate", Fate::Accepted | Fate::Duplicate) if is_whole => {}
            ("refused", Fate::Refused) => {}
            // A writer that does not sync may find its file torn, and the daemon then judges that.
            ("refused", Fate::Accepted | Fate::Duplicate) if !is_whole => {}
            (kind, fate) => wrong.push(format!(
                "{file}, {fate:?}, is {kind}; judged whole: {is_whole}"
            )),
        }
    }
}

fn message<'a>(scene: &Scene<'a>, file: &str) -> Option<&'a Message> {
    scene
        .history
        .messages
        .iter()
        .find(|message| message.file == file)
}

/// Checks that every file that a record names is there completely or was taken by its reader, and that the log names
/// repeated ones.
fn deliveries(scene: &Scene<'_>, records: &[Value], wrong: &mut Vec<String>) {
    let mut wanted: BTreeMap<NamedBytes, Vec<(usize, String)>> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        for delivery in record["deliveries"].as_array().into_iter().flatten() {
            let text = if delivery["content"] == "original" {
                record["original"]["text"].as_str()
            } else {
                delivery["content"]["text"].as_str()
            };
            let Some(text) = text else { continue };
            let place = directory(delivery["mailbox"].as_str().unwrap_or_default());
            let file = delivery["file"].as_str().unwrap_or_default().to_owned();
            wanted
                .entry((place, text.as_bytes().to_vec()))
                .or_default()
                .push((index + 1, file));
        }
    }
    let mut found = found(scene, wrong);
    let taken = scene.history.taken(scene.at);
    for ((place, bytes), files) in &wanted {
        let there = found
            .remove(&(place.clone(), bytes.clone()))
            .unwrap_or_default();
        let is_taken =
            |agent: &str, take: &[u8]| *place == format!("agents/{agent}/inbox") && take == bytes;
        let took = taken
            .iter()
            .filter(|take| is_taken(&take.agent, &take.bytes))
            .count();
        if there.len() > files.len() || there.len() + took < files.len() {
            let times = there.len();
            wrong.push(format!(
                "{place}: {files:?} is there {times} times and was taken {took} times"
            ));
        }
        let came_back = |name: &&String| !scene.before.inboxes.contains(&format!("{place}/{name}"));
        for name in there.iter().filter(came_back).filter(|_| took > 0) {
            if !scene
                .said
                .again
                .iter()
                .any(|(seq, _)| files.iter().any(|(of, _)| of == seq))
            {
                wrong.push(format!(
                    "{place}/{name} came again after it was taken, and nobody says so"
                ));
            }
        }
    }
    for ((place, bytes), names) in found {
        wrong.push(format!(
            "{place}: {names:?} with {} bytes that no record names",
            bytes.len()
        ));
    }
    let durable = scene.history.checkpointed(scene.at);
    for (seq, file) in scene.said.again.iter().filter(|(seq, _)| *seq <= durable) {
        wrong.push(format!(
            "{file} of record {seq} was delivered again after a checkpoint"
        ));
    }
}

/// Lists the files in the places that records deliver to, apart from refused originals.
fn found(scene: &Scene<'_>, wrong: &mut Vec<String>) -> BTreeMap<NamedBytes, Vec<String>> {
    let mut places = vec![
        "packets/briefs".to_owned(),
        "packets/findings".to_owned(),
        "packets/handoff".to_owned(),
    ];
    for agent in settled_tests::names(scene.root.join("agents")) {
        places.extend(
            ["inbox", "archive", "dead_letter"].map(|name| format!("agents/{agent}/{name}")),
        );
    }
    let mut found: BTreeMap<NamedBytes, Vec<String>> = BTreeMap::new();
    for place in places {
        for path in visible(&scene.root.join(&place)) {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let name = name_of(&path);
            if !place.ends_with("/dead_letter") || name.contains(".report") {
                found.entry((place.clone(), bytes)).or_default().push(name);
                continue;
            }
            let is_of = |message: &Message| is_whole_or_remains(&bytes, message.text.as_bytes());
            if !scene.history.messages.iter().any(is_of) {
                wrong.push(format!(
                    "{place}/{name} holds {} bytes that nobody wrote",
                    bytes.len()
                ));
            }
        }
    }
    found
}

/// Checks that the original of every accepted message is complete in `sent/` (it may be torn if the ledger has no
/// copy), and that no outbox has a judged file.
fn originals(scene: &Scene<'_>, records: &[Value], wrong: &mut Vec<String>) {
    for record in records {
        let original = &record["original"];
        let (Some(file), Some(away)) = (original["file"].as_str(), original["away"].as_str())
        else {
            continue;
        };
        let Some(message) = message(scene, file) else {
            continue;
        };
        let agent = scene.root.join("agents").join(message.from);
        let found = std::fs::read(agent.join(away));
        let is_accepted = record["kind"] == "accepted";
        let is_kept = match &found {
            Ok(bytes) if is_accepted => bytes == message.text.as_bytes(),
            Ok(bytes) => is_whole_or_remains(bytes, message.text.as_bytes()),
            Err(_) => !is_accepted,
        };
        if !is_kept {
            let found = found.map(|bytes| bytes.len());
            wrong.push(format!(
                "{away} of {} ({}): {found:?} bytes",
                message.from, record["kind"]
            ));
        }
        if agent.join("outbox").join(file).exists() {
            wrong.push(format!("{file} is still in the outbox of {}", message.from));
        }
    }
}

/// True if a power cut can leave `found` of `bytes`: everything, a prefix, or zeros for what was lost.
fn is_whole_or_remains(found: &[u8], bytes: &[u8]) -> bool {
    found.len() <= bytes.len()
        && found
            .iter()
            .zip(bytes)
            .all(|(found, byte)| found == byte || *found == 0)
}

/// Returns every file of a workspace except cursors and lock, which may change unnoticed.
pub fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for path in settled_tests::list(&directory) {
            let name = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            if path.is_dir() && name != ".settled/cursors" {
                waiting.push(path);
            } else if path.is_file() && name != ".settled/lock" {
                files.insert(name, std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    files
}

/// Names the changes that a second recovery should not have made: it may only note that somebody took something.
pub fn changed(
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> Option<String> {
    let differs = |path: &&String| match (before.get(*path), after.get(*path)) {
        (Some(before), Some(after)) if path.starts_with(".settled/ledger/") => {
            let added = after.strip_prefix(&before[..]).unwrap_or(b"damaged");
            let is_quiet = |line: &[u8]| {
                let record: Value = serde_json::from_slice(line).unwrap_or_default();
                record.is_object()
                    && record["original"].is_null()
                    && record["deliveries"] == Value::Array(Vec::new())
            };
            !added
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
                .all(is_quiet)
        }
        (before, after) => before != after,
    };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).filter(differs).collect();
    (!names.is_empty()).then(|| format!("a second recovery changes {names:?}"))
}
