//! The required outcome of the writers' acts. It knows only these rules of the daemon: a file is read once it is
//! finished, an id is accepted once, an accepted message arrives once, and anything else is refused with a report.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use settled_tests::ledger::digest;

use super::served::Seen;
use crate::checker;
use crate::taker::{Take, visible};

/// The verdict that the writer of a text can expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted: the text is correct.
    Good,
    /// Refused: the text is wrong.
    Bad,
    /// Either, depending on something that the model does not know.
    Any,
}

/// The content of a file between two changes by its writer.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) id: String,
    pub(super) to: Vec<&'static str>,
    pub(super) bytes: Vec<u8>,
    pub(super) verdict: Verdict,
    /// The time from which the daemon may take it for finished.
    pub(super) from: u64,
    /// The time at which its writer changed or removed it.
    pub(super) until: u64,
    /// The text of its packet, if the daemon must have read one.
    pub(super) packet: Option<String>,
}

/// One name in one outbox, with all versions of its file.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) agent: &'static str,
    pub(super) file: String,
    pub(super) versions: Vec<Version>,
    /// True if its writer removed it, so that its last version may or may not have been read.
    pub(super) is_withdrawn: bool,
    /// True if it is not a regular file.
    pub(super) is_unfit: bool,
    /// True if its writer had it open and kept writing, wherever the file was by then.
    pub(super) was_open: bool,
}

impl Item {
    /// Returns the current version.
    pub(super) fn last(&self) -> &Version {
        self.versions.last().expect("a name begins with a version")
    }

    /// Ends the last version now and begins another.
    pub(super) fn change(&mut self, now: u64, version: Version) {
        self.versions
            .last_mut()
            .expect("a name begins with a version")
            .until = now;
        self.versions.push(version);
    }

    fn named(&self) -> String {
        format!("{}/outbox/{}", self.agent, self.file)
    }
}

/// Everything known about a case at its end.
pub(super) struct Case<'a> {
    pub(super) root: &'a Path,
    pub(super) items: &'a [Item],
    pub(super) records: &'a [Seen],
    pub(super) takes: &'a [Take],
    pub(super) orders: &'a [String],
    pub(super) agents: &'a [&'static str],
}

/// Lists the errors.
pub(super) fn check(case: &Case<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let values = match checker::records(case.root) {
        Ok(values) => values,
        Err(what) => return vec![what],
    };
    if values.len() != case.records.len() {
        wrong.push(format!(
            "{} records, of which {} were seen",
            values.len(),
            case.records.len()
        ));
    }
    wrong.extend(checker::arrivals(case.root, &values, case.takes, false));
    checker::leftovers(case.root, &mut wrong);
    let orders: Vec<&str> = case.orders.iter().map(String::as_str).collect();
    wrong.extend(checker::orders(case.root, &orders));
    let accepted = accepted(case.records, &mut wrong);
    let came = came(case);
    let mut of_files: BTreeMap<(&str, &str), Vec<&Seen>> = BTreeMap::new();
    for seen in case.records {
        let original = &seen.record["original"];
        if let (Some(outbox), Some(file)) = (original["outbox"].as_str(), original["file"].as_str())
        {
            of_files.entry((outbox, file)).or_default().push(seen);
        }
    }
    for item in case.items {
        let records = of_files
            .remove(&(item.agent, item.file.as_str()))
            .unwrap_or_default();
        let judged = judge(item, &records, &accepted, &mut wrong);
        put_away(case.root, item, &judged, &mut wrong);
        arrived(&came, item, &judged, &mut wrong);
    }
    for (outbox, file) in of_files.into_keys() {
        wrong.push(format!(
            "a record of {outbox}/outbox/{file}, which nobody wrote"
        ));
    }
    wrong
}

/// The accepted messages by sender and id: the number of the record, and its digest.
type Accepted = BTreeMap<(String, String), (u64, String)>;

fn accepted(records: &[Seen], wrong: &mut Vec<String>) -> Accepted {
    let mut accepted = Accepted::new();
    for Seen { record, .. } in records
        .iter()
        .filter(|seen| seen.record["kind"] == "accepted")
    {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (word(&record["original"]["outbox"]), word(&record["id"]));
        let what = (
            record["seq"].as_u64().unwrap_or_default(),
            digest_of(record),
        );
        if let Some((before, _)) = accepted.insert(key.clone(), what) {
            wrong.push(format!(
                "{key:?} was accepted by record {before} and again by {}",
                record["seq"]
            ));
        }
    }
    accepted
}

fn digest_of(record: &Value) -> String {
    let digest = record["original"]["digest"].as_str().unwrap_or_default();
    digest.trim_start_matches("sha256:").to_owned()
}

/// A record and the version it is about.
type Judged<'a> = Vec<(&'a Seen, &'a Version)>;

/// Checks that each record matches a version that was finished at the time, that each version has at most one record,
/// and that the last version has one.
fn judge<'a>(
    item: &'a Item,
    records: &[&'a Seen],
    accepted: &Accepted,
    wrong: &mut Vec<String>,
) -> Judged<'a> {
    let mut judged = Judged::new();
    let mut left: Vec<&Version> = item.versions.iter().collect();
    for seen in records {
        let digest_of = digest_of(&seen.record);
        let is_it = |version: &&Version| {
            let is_timely = version.from <= seen.at && seen.at <= version.until;
            is_timely && (item.is_unfit || digest(&version.bytes) == digest_of)
        };
        // Search from the end: of two versions with the same bytes, the later may have replaced the earlier before
        // either was read.
        let Some(at) = left.iter().rposition(is_it) else {
            wrong.push(format!(
                "{}: record {} at {} ms, {}, is of a text that was not finished then; finished were {:?}",
                item.named(),
                seen.record["seq"],
                seen.at,
                seen.record["kind"],
                item.versions.iter().map(|version| (version.from, version.until, version.bytes.len())).collect::<Vec<_>>()
            ));
            continue;
        };
        let version = left.remove(at);
        fits(item, version, seen, accepted, wrong);
        judged.push((seen, version));
    }
    let is_last_judged = judged
        .iter()
        .any(|(_, version)| std::ptr::eq(*version, item.last()));
    // Bytes that the writer appended after the judgement are not a message.
    let went_on_elsewhere = item.was_open && !judged.is_empty();
    if !is_last_judged && !item.is_withdrawn && !went_on_elsewhere {
        wrong.push(format!(
            "{}: no record says what became of it",
            item.named()
        ));
    }
    judged
}

/// Checks that a record may judge a version this way.
fn fits(item: &Item, version: &Version, seen: &Seen, accepted: &Accepted, wrong: &mut Vec<String>) {
    let record = &seen.record;
    let kind = record["kind"].as_str().unwrap_or_default();
    let (seq, own) = (
        record["seq"].as_u64().unwrap_or_default(),
        digest_of(record),
    );
    let other = accepted.get(&(item.agent.to_owned(), version.id.clone()));
    let is_right = match (kind, version.verdict) {
        ("accepted", Verdict::Good | Verdict::Any) | ("refused", Verdict::Bad | Verdict::Any) => {
            true
        }
        ("duplicate", _) => other.is_some_and(|(first, digest)| *first < seq && *digest == own),
        ("refused", Verdict::Good) => other.is_some_and(|(_, digest)| *digest != own),
        _ => false,
    };
    if !is_right {
        wrong.push(format!(
            "{}: {kind} by record {seq}, expected {:?}; {}",
            item.named(),
            version.verdict,
            why(record)
        ));
    }
    if let Some(packet) = version.packet.as_ref().filter(|_| kind == "accepted") {
        let text = Value::from(packet.as_str()).to_string();
        if !record.to_string().contains(&text) {
            wrong.push(format!(
                "{}: record {seq} does not have its whole packet",
                item.named()
            ));
        }
    }
    let reports = record["deliveries"].as_array().into_iter().flatten();
    let reports = reports
        .filter(|made| made["mailbox"] == format!("{}/dead_letter", item.agent))
        .count();
    if reports != usize::from(kind == "refused") {
        wrong.push(format!(
            "{}: {kind} by record {seq} with {reports} reports",
            item.named()
        ));
    }
}

fn why(record: &Value) -> String {
    let reports = record["deliveries"].as_array().into_iter().flatten();
    let texts = reports.filter_map(|made| made["content"]["text"].as_str());
    let line = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("summary"))
            .map(str::to_owned)
    };
    texts.filter_map(line).next().unwrap_or_default()
}

/// Checks that the file judged last is where its record says, with the judged bytes, and that nothing is left in the
/// outbox.
fn put_away(root: &Path, item: &Item, judged: &Judged<'_>, wrong: &mut Vec<String>) {
    let agent = root.join("agents").join(item.agent);
    if agent
        .join("outbox")
        .join(&item.file)
        .symlink_metadata()
        .is_ok()
    {
        wrong.push(format!("{} is still in the outbox", item.named()));
    }
    let Some((seen, version)) = judged.last() else {
        return;
    };
    let is_simple = item.versions.len() == 1 && !item.is_withdrawn;
    let away = seen.record["original"]["away"].as_str().unwrap_or_default();
    let path = agent.join(away);
    if item.is_unfit {
        if is_simple && path.symlink_metadata().is_err() {
            wrong.push(format!("{}: {away} does not exist", item.named()));
        }
    } else if is_simple && std::fs::read(&path).ok().as_ref() != Some(&version.bytes) {
        wrong.push(format!(
            "{}: {away} has other bytes, or is gone",
            item.named()
        ));
    }
}

/// The number of times each text reached each agent: taken, in the inbox or archived.
type Came = BTreeMap<(String, Vec<u8>), usize>;

fn came(case: &Case<'_>) -> Came {
    let mut came = Came::new();
    for take in case.takes {
        *came
            .entry((take.agent.clone(), take.bytes.clone()))
            .or_default() += 1;
    }
    for agent in case.agents {
        let places = ["inbox", "archive"].into_iter();
        let lying =
            places.flat_map(|place| visible(&case.root.join("agents").join(agent).join(place)));
        for bytes in lying.filter_map(|path| std::fs::read(path).ok()) {
            *came.entry(((*agent).to_owned(), bytes)).or_default() += 1;
        }
    }
    came
}

/// Checks that each recipient of an accepted message has its bytes once.
fn arrived(came: &Came, item: &Item, judged: &Judged<'_>, wrong: &mut Vec<String>) {
    let good = judged.iter().filter(|(seen, version)| {
        seen.record["kind"] == "accepted" && version.verdict == Verdict::Good
    });
    for (_, version) in good {
        for to in &version.to {
            let times = came.get(&((*to).to_owned(), version.bytes.clone()));
            let times = times.copied().unwrap_or_default();
            if times != 1 {
                wrong.push(format!("{}: it came to {to} {times} times", item.named()));
            }
        }
    }
}
