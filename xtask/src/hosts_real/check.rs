//! Checks the results of `cargo xtask hosts-real` with only `serde_json` and `sha2`, without the code that wrote them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::HOSTS;

/// The findings of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    records: usize,
    batches: usize,
    items: BTreeMap<String, u64>,
    wrong: Vec<String>,
    /// In milliseconds: from an item's arrival to its acceptance, and to its arrival at another host.
    accepted: Vec<u64>,
    arrived: Vec<u64>,
    /// The longest time without an acceptance on any host, in milliseconds.
    silence: u64,
    seconds: f64,
}

impl Report {
    pub(super) fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.records > 0
    }

    /// Returns all errors, one sentence each.
    pub(super) fn wrong(&self) -> &[String] {
        &self.wrong
    }
}

/// Returns the hosts' mirror, if all have the same.
pub(super) fn common_mirror(keep: &Path) -> Option<String> {
    let read = |name| std::fs::read_to_string(keep.join(name).join("mirror.jsonl")).ok();
    let [first, others @ ..] = HOSTS.map(read);
    others.iter().all(|other| *other == first).then_some(first?)
}

pub(super) fn check(keep: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    let read = |name: &str, file: &str| {
        let path = keep.join(name).join(file);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mirrors = HOSTS.map(|name| read(name, "mirror.jsonl"));
    let [first, others @ ..] = mirrors;
    let first = first?;
    for (name, other) in HOSTS[1..].iter().zip(others) {
        let other = other?;
        if other != first {
            report.wrong.push(format!(
                "the mirror of {name} has {} bytes and differs from that of {}, which has {}",
                other.len(),
                HOSTS[0],
                first.len()
            ));
        }
    }
    chain(&first, &mut report);
    let mut commits = Vec::new();
    for name in HOSTS {
        for line in read(name, "notes")?.lines() {
            let mut words = line.split(' ');
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            let at = number().ok_or_else(|| format!("{name}: {line}"))?;
            match words.next() {
                Some("accepted") => {
                    commits.push(at);
                    report
                        .accepted
                        .extend(words.next().and_then(|ms| ms.parse::<u64>().ok()));
                }
                Some("arrived") => {
                    report
                        .arrived
                        .extend(words.next().and_then(|ms| ms.parse::<u64>().ok()));
                }
                Some(_) | None => {}
            }
        }
        let log = std::fs::read_to_string(keep.join(format!("{name}.log")));
        for line in log.unwrap_or_default().lines() {
            report.wrong.push(format!("{name} said: {line}"));
        }
    }
    commits.sort_unstable();
    let gaps = commits.windows(2).map(|pair| pair[1] - pair[0]);
    report.silence = gaps.max().unwrap_or(0);
    if let (Some(first), Some(last)) = (commits.first(), commits.last()) {
        report.seconds = (last - first) as f64 / 1_000.0;
    }
    Ok(report)
}

/// Checks that every record follows the one before, and that every item of a host is there once and in order.
fn chain(mirror: &str, report: &mut Report) {
    let mut prev = format!("sha256:{}", "0".repeat(64));
    for (line, seq) in mirror.lines().zip(1_u64..) {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            report.wrong.push(format!("record {seq} is no JSON"));
            return;
        };
        if record["seq"] != seq || record["prev"] != *prev {
            report.wrong.push(format!("record {seq} does not follow"));
        }
        if record["batch"] == seq {
            report.batches += 1;
        }
        let id = record["id"].as_str().unwrap_or_default();
        let (host, item) = id.split_once(':').unwrap_or_default();
        let last = report.items.entry(host.to_owned()).or_default();
        if item.parse() != Ok(*last + 1) || record["host"] != host {
            report
                .wrong
                .push(format!("record {seq} is {id} after {host}:{last}"));
        }
        *last += 1;
        let hex: String = Sha256::digest(line.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        prev = format!("sha256:{hex}");
        report.records += 1;
    }
}

/// Returns a quantile of unsorted values; 0 if there are none.
pub(super) fn quantile(values: &[u64], per_mille: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * per_mille / 1_000).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} records in {} batches, {:?}, {:.0} a second",
            self.records,
            self.batches,
            self.items,
            self.records as f64 / self.seconds.max(0.001)
        )?;
        for (what, values) in [
            ("accepted", &self.accepted),
            ("at another host", &self.arrived),
        ] {
            writeln!(
                f,
                "{what}: p50 {} ms, p99 {} ms, longest {} ms",
                quantile(values, 500),
                quantile(values, 990),
                quantile(values, 1_000)
            )?;
        }
        writeln!(
            f,
            "longest time without anything accepted: {} ms",
            self.silence
        )?;
        write!(f, "{} things are wrong", self.wrong.len())
    }
}
