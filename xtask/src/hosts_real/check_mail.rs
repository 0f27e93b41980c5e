//! Checks the results of `cargo xtask hosts-real --daemon` with only `serde_json` and `sha2`, without the code that
//! wrote them.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::check::quantile;
use super::fault::Strike;
use super::mail::{AGENTS, Dropped, files};
use super::{COUNT, HOSTS};

/// The findings.
#[derive(Debug, Default)]
pub(super) struct MailReport {
    dropped: usize,
    kinds: BTreeMap<String, u64>,
    batches: u64,
    /// From the drop to the file in the inbox of another host, in microseconds.
    arrived: Vec<u64>,
    /// The host of each file, and the time it was put away after its judgement, in microseconds since 1970.
    judged: Vec<(usize, u64)>,
    /// The judged files that were accepted.
    accepted: Vec<(usize, u64)>,
    wrong: Vec<String>,
}

impl MailReport {
    pub(super) fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.dropped > 0
    }

    /// Returns all errors, one sentence each.
    pub(super) fn wrong(&self) -> &[String] {
        &self.wrong
    }

    /// For each fault the longest time, until the next fault or the end, in which no unaffected host had a file accepted.
    pub(super) fn pauses(&self, strikes: &[Strike], end: SystemTime) -> Pauses {
        let ends = strikes.iter().skip(1).map(|next| next.at).chain([end]);
        let pauses = strikes.iter().zip(ends).map(|(strike, end)| {
            let (begin, end) = (micros(strike.at), micros(end));
            let accepted = self
                .accepted
                .iter()
                .filter(|(host, at)| COUNT + host != strike.player && (begin..end).contains(at));
            let times = accepted.map(|(_, at)| *at).chain([begin, end]);
            let mut times: Vec<u64> = times.collect();
            times.sort_unstable();
            let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
            let whom = format!("{:<8} {:<11}", format!("{:?}", strike.fault), strike.whom);
            (whom, Duration::from_micros(pauses.max().unwrap_or(0)))
        });
        Pauses(pauses.collect())
    }
}

/// The longest time without an accepted file after each fault.
pub(super) struct Pauses(Vec<(String, Duration)>);

impl Pauses {
    /// The longest time that any single fault may cost.
    const MAX: Duration = Duration::from_secs(10);

    pub(super) fn are_short(&self) -> bool {
        self.0.iter().all(|(_, pause)| *pause <= Self::MAX)
    }
}

impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (whom, pause) in &self.0 {
            let seconds = pause.as_secs_f64();
            writeln!(f, "{whom} {seconds:>6.2} s without an accepted file")?;
        }
        let verdict = if self.are_short() { "all" } else { "not all" };
        writeln!(f, "{verdict} of them are within {} s", Self::MAX.as_secs())
    }
}

pub(super) fn check(keep: &Path, dropped: &[Dropped]) -> MailReport {
    let mut report = MailReport {
        dropped: dropped.len(),
        ..MailReport::default()
    };
    let ledgers = HOSTS.map(|host| ledger(&keep.join(host)));
    for (host, other) in HOSTS.iter().zip(&ledgers) {
        if *other != ledgers[0] {
            report.wrong.push(format!(
                "the ledger of {host} has {} bytes and is not that of {}, which has {}",
                other.len(),
                HOSTS[0],
                ledgers[0].len()
            ));
        }
    }
    for host in HOSTS {
        let log = std::fs::read_to_string(keep.join(format!("{host}.log"))).unwrap_or_default();
        let is_bad = |line: &&str| line.contains("panicked") || line.contains("frozen");
        let bad = log.lines().filter(is_bad);
        report
            .wrong
            .extend(bad.map(|line| format!("{host} said: {line}")));
    }
    let judged = chain(&ledgers[0], &mut report);
    let mut expected = [0; COUNT];
    for one in dropped {
        judged_once(one, &judged, &mut report);
        let is_read = one
            .to
            .is_some_and(|to| judged_as(one, &judged) == "accepted" && to < COUNT);
        match one.to {
            Some(to) if is_read => {
                expected[to] += 1;
                arrived(keep, one, to, &mut report);
                away(keep, one, "sent", &mut report);
            }
            Some(_) | None => {
                let mut records = judged.get(&key(one)).into_iter().flatten();
                let has_notice = records.any(|(_, _, has_notice)| *has_notice);
                expected[one.from] += usize::from(has_notice);
                away(keep, one, "dead_letter", &mut report);
            }
        }
    }
    for host in 0..COUNT {
        for (agent, owner) in AGENTS.into_iter().enumerate() {
            let agent_dir = keep.join(HOSTS[host]).join("agents").join(owner);
            let there = files(&agent_dir.join("inbox")).len();
            let should = if host == agent { expected[host] } else { 0 };
            if there != should {
                report.wrong.push(format!(
                    "{} has {there} files in the inbox of {}, and should have {should}",
                    HOSTS[host], owner
                ));
            }
            for (name, _) in files(&agent_dir.join("outbox")) {
                report
                    .wrong
                    .push(format!("{name} is left in an outbox of {}", HOSTS[host]));
            }
        }
    }
    report
}

/// Returns the hosts' ledger, if all have the same and all outboxes are empty.
pub(super) fn common_ledger(keep: &Path) -> Option<String> {
    let roots = HOSTS.map(|host| keep.join(host));
    let is_judged = roots.iter().all(|root| {
        let outboxes = AGENTS.map(|agent| root.join("agents").join(agent).join("outbox"));
        outboxes.iter().all(|outbox| files(outbox).is_empty())
    });
    let [first, others @ ..] = roots.map(|root| ledger(&root));
    let is_common = is_judged && others.iter().all(|other| *other == first);
    is_common.then_some(first)
}

/// Returns the whole ledger of a host.
pub(super) fn ledger(root: &Path) -> String {
    let segments = files(&root.join(".settled/ledger")).into_iter();
    segments
        .map(|(_, path)| std::fs::read_to_string(path).unwrap_or_default())
        .collect()
}

/// The records of each file, by outbox and file: the host and the kind of each record, and whether its sender gets a
/// notice. Not every one of many refusals in a row has a notice.
type Judged = BTreeMap<(String, String), Vec<(String, String, bool)>>;

/// Checks that every record follows the one before, and that times never go back.
fn chain(ledger: &str, report: &mut MailReport) -> Judged {
    let mut judged = Judged::new();
    let mut prev = format!("sha256:{}", "0".repeat(64));
    let mut last = 0;
    for (line, seq) in ledger.lines().zip(1_u64..) {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            report.wrong.push(format!("record {seq} is no JSON"));
            break;
        };
        if record["seq"] != seq || record["prev"] != *prev {
            report.wrong.push(format!("record {seq} does not follow"));
        }
        report.batches += u64::from(record["batch"] == seq);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&record["kind"]);
        *report.kinds.entry(kind.clone()).or_default() += 1;
        if let Some(outbox) = record["original"]["outbox"].as_str() {
            let file = (outbox.to_owned(), text(&record["original"]["file"]));
            let has_notice = !record["decision"]["refused"]["notice"]["sent"].is_null();
            let by = (text(&record["host"]), kind, has_notice);
            judged.entry(file).or_default().push(by);
        }
        let at = chrono::DateTime::parse_from_rfc3339(&text(&record["at"]));
        let at = at.map_or(0, |at| at.timestamp_millis());
        if at < last {
            report
                .wrong
                .push(format!("record {seq} is older than the one before"));
        }
        last = at;
        let hex = Sha256::digest(line.as_bytes());
        let hex: String = hex.iter().map(|byte| format!("{byte:02x}")).collect();
        prev = format!("sha256:{hex}");
    }
    judged
}

fn key(one: &Dropped) -> (String, String) {
    (AGENTS[one.from].to_owned(), one.file.clone())
}

fn judged_as<'a>(one: &Dropped, judged: &'a Judged) -> &'a str {
    let records = judged.get(&key(one));
    records
        .and_then(|records| records.first())
        .map_or("", |(_, kind, _)| kind)
}

/// Checks that a file has one record, by its sender's host, and that something that is not a message is refused.
fn judged_once(one: &Dropped, judged: &Judged, report: &mut MailReport) {
    let expected = if one.to.is_some() {
        "accepted"
    } else {
        "refused"
    };
    let records = judged.get(&key(one)).map_or(&[][..], Vec::as_slice);
    let is_right =
        matches!(records, [(host, kind, _)] if host == HOSTS[one.from] && kind == expected);
    if !is_right {
        report.wrong.push(format!(
            "{} of {} has the records {records:?}, and should be {expected} once",
            one.file, AGENTS[one.from]
        ));
    }
}

/// Checks that it is in its reader's inbox at home, byte for byte.
fn arrived(keep: &Path, one: &Dropped, to: usize, report: &mut MailReport) {
    let inbox = keep
        .join(HOSTS[to])
        .join("agents")
        .join(AGENTS[to])
        .join("inbox");
    let path = inbox.join(&one.file);
    match std::fs::read_to_string(&path) {
        Ok(text) if text == one.text => {
            report
                .arrived
                .push(renamed_at(&path).saturating_sub(micros(one.at)));
        }
        Ok(_) => report
            .wrong
            .push(format!("{} arrived with other bytes", one.file)),
        Err(error) => report.wrong.push(format!("{}: {error}", path.display())),
    }
    if let Some((name, text)) = &one.packet {
        let path = keep.join(HOSTS[to]).join("packets/findings").join(name);
        if !std::fs::read_to_string(&path).is_ok_and(|there| there == *text) {
            report
                .wrong
                .push(format!("{} did not come with its message", path.display()));
        }
    }
}

/// The time in microseconds since 1970.
fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

/// The time of a file's last rename, which was the last change of its inode, in microseconds since 1970.
fn renamed_at(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| {
        data.ctime().cast_unsigned() * 1_000_000 + data.ctime_nsec().cast_unsigned() / 1_000
    })
}

/// Checks that it was put away at its sender.
fn away(keep: &Path, one: &Dropped, directory: &str, report: &mut MailReport) {
    let agent = keep
        .join(HOSTS[one.from])
        .join("agents")
        .join(AGENTS[one.from]);
    let path = agent.join(directory).join(&one.file);
    if std::fs::read_to_string(&path).is_ok_and(|text| text == one.text) {
        let judged = (one.from, renamed_at(&path));
        report.judged.push(judged);
        if directory == "sent" {
            report.accepted.push(judged);
        }
    } else {
        report
            .wrong
            .push(format!("{} is not in {directory}", one.file));
    }
}

impl fmt::Display for MailReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut judged: Vec<u64> = self.judged.iter().map(|(_, at)| *at).collect();
        judged.sort_unstable();
        let took = judged.last().unwrap_or(&0) - judged.first().unwrap_or(&0);
        let pauses = judged.windows(2).map(|pair| pair[1] - pair[0]);
        writeln!(
            f,
            "{} files dropped, {} batches, records by kind {:?}, {:.1} files a second",
            self.dropped,
            self.batches,
            self.kinds,
            self.dropped as f64 / (took as f64 / 1e6).max(0.001)
        )?;
        writeln!(
            f,
            "from the drop to the file at another host: p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
            quantile(&self.arrived, 500) as f64 / 1_000.0,
            quantile(&self.arrived, 990) as f64 / 1_000.0,
            quantile(&self.arrived, 1_000) as f64 / 1_000.0
        )?;
        writeln!(
            f,
            "longest time in which no file was judged: {} ms",
            pauses.max().unwrap_or(0) / 1_000
        )?;
        write!(f, "{} things are wrong", self.wrong.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts_real::fault::Fault;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// The pauses after faults of the first broker, with files of the first host accepted and refused at these times.
    fn pauses(strikes: &[u64], accepted: &[u64], end: u64) -> (Vec<u64>, bool) {
        let strikes: Vec<Strike> = strikes
            .iter()
            .map(|seconds| Strike {
                fault: Fault::Cut,
                player: 0,
                whom: "the leader".to_owned(),
                at: at(*seconds),
            })
            .collect();
        let report = MailReport {
            accepted: accepted
                .iter()
                .map(|seconds| (0, micros(at(*seconds))))
                .collect(),
            judged: (0..end).map(|seconds| (0, micros(at(seconds)))).collect(),
            ..MailReport::default()
        };
        let pauses = report.pauses(&strikes, at(end));
        let seconds = pauses.0.iter().map(|(_, pause)| pause.as_secs()).collect();
        (seconds, pauses.are_short())
    }

    #[test]
    fn a_pause_lasts_until_the_next_accepted_file_or_the_end() {
        assert_eq!(pauses(&[10], &[11, 14, 18], 20), (vec![4], true));
        assert_eq!(pauses(&[10, 20], &[11, 22], 24), (vec![9, 2], true));
        // Nothing is accepted any more, or only refused files are judged.
        assert_eq!(pauses(&[10, 20], &[11], 40), (vec![9, 20], false));
        assert_eq!(pauses(&[10], &[], 21), (vec![11], false));
    }
}
