//! Judges the same files again on a single host, in the order of the shared ledger, each at the time of its record.
//! Every record has to be the same, and so has the output of `settled status` and `settled gate check` on every host.

use std::fmt;
use std::path::Path;
use std::process::Command;

use chrono::{DateTime, Utc};
use daemon::mailroom::Mailroom;
use message_schema::id::AgentName;
use serde_json::Value;
use settled_tests::binaries;
use spool::FileName;
use workspace::clock::Moment;
use workspace::directory;

use super::mail::{AGENTS, Dropped, LIMITS};
use super::{COUNT, HOSTS, check_mail};

/// The workspace of the single host.
const ONE: &str = "one-host";

/// The passes within which a file has to be judged, and the time between two of them, in milliseconds: the file of a broken
/// message rests, because its writer may not be done. Only this clock goes on; a record's time is that of the ledger.
const PASSES: usize = 20;
const PASS_MS: u64 = 500;

/// The fields of a record that do not depend on its host or disk.
const SAME: [&str; 6] = ["at", "kind", "rules", "review", "id", "deliveries"];

/// The result of the comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    records: usize,
    reviews: usize,
    gates: usize,
    wrong: Vec<String>,
}

impl Comparison {
    pub(super) fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.records > 0
    }

    /// Returns all differences, one sentence each.
    pub(super) fn wrong(&self) -> &[String] {
        &self.wrong
    }
}

/// Judges everything again and compares.
pub(super) fn judge_again(keep: &Path, dropped: &[Dropped]) -> Result<Comparison, String> {
    let mut comparison = Comparison::default();
    let theirs = records(&keep.join(HOSTS[0]))?;
    let root = keep.join(ONE);
    let agents: [AgentName; COUNT] = AGENTS.map(|name| name.parse().expect("an agent's name"));
    directory::init(&root, &agents).map_err(|error| error.to_string())?;
    std::fs::write(root.join("settled.toml"), LIMITS).map_err(|error| error.to_string())?;
    let mut host = OneHost::open(&root)?;
    for record in &theirs {
        if let Err(why) = host.judge(record, dropped) {
            comparison
                .wrong
                .push(format!("record {}: {why}", record["seq"]));
            break;
        }
    }
    host.mailroom
        .finish(host.now)
        .map_err(|error| error.to_string())?;
    host.mailroom.close();
    for (ours, theirs) in records(&root)?.iter().zip(&theirs) {
        comparison.records += 1;
        if theirs["original"].is_null() && is_of_hosts(theirs) {
            continue;
        }
        if told(ours) != told(theirs) {
            let (ours, theirs) = (told(ours), told(theirs));
            comparison.wrong.push(format!(
                "one host records\n  {ours}\nand the hosts\n  {theirs}"
            ));
        }
    }
    compare_commands(keep, &root, &mut comparison)?;
    Ok(comparison)
}

fn records(root: &Path) -> Result<Vec<Value>, String> {
    let ledger = check_mail::ledger(root);
    let lines = ledger.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{}: {error}", root.display()))
}

/// True for a record about the hosts themselves, which a single host does not have.
fn is_of_hosts(record: &Value) -> bool {
    !record["decision"]["happened"]["event"]["host"].is_null()
}

/// The parts of a record that are the same on every host. A notice has a random id, and only a shared ledger has copies
/// of packets.
fn told(record: &Value) -> Value {
    let mut told: serde_json::Map<String, Value> = SAME
        .iter()
        .map(|&field| (field.to_owned(), record[field].clone()))
        .collect();
    if let Some(Value::Array(deliveries)) = told.get_mut("deliveries") {
        deliveries.retain(|delivery| delivery["mailbox"] != "packets/findings");
    }
    let mut original = record["original"].clone();
    let mut decision = record["decision"].clone();
    if let Some(original) = original.as_object_mut() {
        original.remove("stamp");
    }
    if let Some(happened) = decision["happened"].as_object_mut() {
        happened.remove("home_away");
    }
    let notice = decision
        .pointer("/refused/notice/sent/id")
        .and_then(Value::as_str);
    let notice = notice.unwrap_or("settled-").to_owned();
    told.insert("original".to_owned(), original);
    told.insert("decision".to_owned(), decision);
    let text = Value::Object(told).to_string();
    let text = text.replace(&notice, "settled-");
    serde_json::from_str(&text).expect("it was JSON")
}

/// A single host, at the instants of the ledger.
struct OneHost {
    mailroom: Mailroom,
    now: Moment,
}

impl OneHost {
    fn open(root: &Path) -> Result<OneHost, String> {
        let (mailroom, _) = Mailroom::open(root).map_err(|error| error.to_string())?;
        let utc = DateTime::UNIX_EPOCH;
        Ok(OneHost {
            mailroom,
            now: Moment { mono: 0, utc },
        })
    }

    /// Makes the next record from the same input as the hosts did.
    fn judge(&mut self, record: &Value, dropped: &[Dropped]) -> Result<(), String> {
        let at = record["at"].as_str().unwrap_or_default();
        let at = at
            .parse::<DateTime<Utc>>()
            .map_err(|error| format!("{at}: {error}"))?;
        let passed = (at - self.now.utc).num_milliseconds();
        self.now = Moment {
            utc: at,
            mono: self.now.mono + passed.unsigned_abs(),
        };
        if is_of_hosts(record) {
            // A placeholder, so that the following records keep their numbers.
            let (seq, to) = (&record["seq"], AGENTS[1]);
            let text = format!(
                "id: \"host-{seq}\"\nfrom: {}\nto: {to}\ntype: question\npriority: P3\n\
                 created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"A host\"\nbody: \"?\"\n",
                AGENTS[0]
            );
            return self.judge_file(record, AGENTS[0], &format!("host-{seq}.yaml"), &text);
        }
        let Some(outbox) = record["original"]["outbox"].as_str() else {
            let kept = self.mailroom.keep_deadlines(at, self.now);
            kept.map_err(|error| error.to_string())?;
            return self.has(record);
        };
        let file = record["original"]["file"].as_str().unwrap_or_default();
        let mut known = dropped.iter();
        let known = known.find(|one| AGENTS[one.from] == outbox && one.file == file);
        let known = known.ok_or_else(|| format!("{file} was never dropped"))?;
        if let Some((name, text)) = &known.packet {
            self.put(&format!("packets/findings/{name}"), text)?;
            self.mailroom.hint_packet(&file_name(name)?);
        }
        self.judge_file(record, outbox, file, &known.text)
    }

    fn judge_file(
        &mut self,
        record: &Value,
        outbox: &str,
        file: &str,
        text: &str,
    ) -> Result<(), String> {
        self.put(&format!("agents/{outbox}/outbox/{file}"), text)?;
        // The clock stands still, so only an event can say that the writer is done.
        self.mailroom.hint(outbox, &file_name(file)?);
        let failed = |error: spool::SpoolError| error.to_string();
        for _ in 0..PASSES {
            self.mailroom.sweep().map_err(failed)?;
            self.mailroom.pass(self.now).map_err(failed)?;
            if self.has(record).is_ok() {
                break;
            }
            self.now.mono += PASS_MS;
        }
        self.has(record)
    }

    fn has(&self, record: &Value) -> Result<(), String> {
        let head = self.mailroom.head().seq;
        if record["seq"] == head {
            return Ok(());
        }
        Err(format!(
            "one host ends with record {head}, behind {}",
            told(record)
        ))
    }

    fn put(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.mailroom.root().join(path);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn file_name(name: &str) -> Result<FileName, String> {
    name.parse()
        .map_err(|_| format!("{name} is no file's name"))
}

/// Compares what each host and the single one say about every review.
fn compare_commands(keep: &Path, one: &Path, comparison: &mut Comparison) -> Result<(), String> {
    let hosts = HOSTS.map(|host| (host, keep.join(host)));
    let reviews = |root: &Path| -> Result<Vec<Value>, String> {
        let status = settled(root, &["status", "--all"])?;
        let reviews = status["data"]["reviews"].as_array();
        Ok(reviews.cloned().unwrap_or_default())
    };
    let expected = reviews(one)?;
    comparison.reviews = expected.len();
    for (host, root) in &hosts {
        let theirs = reviews(root)?;
        if theirs.len() != expected.len() {
            comparison.wrong.push(format!(
                "{host} has {} reviews, and one host {}",
                theirs.len(),
                expected.len()
            ));
        }
        for (theirs, ours) in theirs.iter().zip(&expected) {
            if theirs != ours {
                comparison
                    .wrong
                    .push(format!("{host} says\n  {theirs}\nand one host\n  {ours}"));
            }
        }
    }
    // Only a sample, because each takes a command.
    let some = expected
        .iter()
        .step_by(expected.len().div_ceil(GATES_MAX).max(1));
    for review in some {
        comparison.gates += 1;
        let pr = review["pr"].to_string();
        let pr = pr.trim_matches('"');
        let asked = [
            "gate",
            "check",
            pr,
            "--head",
            review["head"].as_str().unwrap_or("abcdef1"),
        ];
        let ours = settled(one, &asked)?;
        for (host, root) in &hosts {
            let theirs = settled(root, &asked)?;
            if theirs != ours {
                comparison.wrong.push(format!(
                    "{host} answers {asked:?} with\n  {theirs}\nand one host\n  {ours}"
                ));
            }
        }
    }
    Ok(())
}

/// The most pull requests whose gate is checked on every host.
const GATES_MAX: usize = 100;

fn settled(root: &Path, words: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(binaries::settled());
    let output = command
        .args(words)
        .arg("--json")
        .arg("--root")
        .arg(root)
        .output();
    let output = output.map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{words:?}: {error}"))
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "one host alone, in the ledger's order: {} records, {} reviews and {} gates compared with each host's",
            self.records, self.reviews, self.gates
        )?;
        write!(f, "{} differences", self.wrong.len())
    }
}
