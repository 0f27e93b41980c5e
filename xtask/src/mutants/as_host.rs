//! `cargo xtask mutants --as-host`: three hosts share a ledger on a real broker, and one of them is a mutant. It signs
//! and appends its wrong records, the broker accepts them, and both sound hosts have to freeze at the first.
//!
//! Compares each record of a sound host with what three sound hosts record, so a wrong record that it accepts is found
//! whatever it says.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use settled_tests::binaries;
use settled_tests::broker::Broker;

use super::mutant::Mutant;
use super::with_changes;

/// The hosts, each with the agent at home there; the last one is the mutant.
const HOSTS: [(&str, &str); 3] = [("tower", "claude"), ("laptop", "codex"), ("ci", "pi")];
const AUTHOR: usize = 0;
const MUTANT: usize = 2;

/// The mutants whose fault the story below triggers.
const MUTANTS: [&str; 8] = [
    "accepted-twice",
    "approval-of-any-commit",
    "feedback-of-nothing",
    "last-round-reply",
    "one-more-round",
    "refused-for-nothing",
    "silence-resolves-all",
    "stance-count",
];

/// Mutants that no other host can notice, and why.
const UNSEEN: [(&str, &str); 5] = [
    (
        "anybodys-file",
        "no record says whose file it was: only the host that read it could see",
    ),
    (
        "any-host",
        "it breaks the wall around a command, and records what the command answered as ever",
    ),
    (
        "commit-after-delivery",
        "it breaks the order of two steps on one disk, and both are done",
    ),
    (
        "abbreviated-approval",
        "it breaks `gate check`, which reads a verdict and records nothing",
    ),
    (
        "remarks-dropped",
        "a record has its warnings from the rules, and not from what it drops",
    ),
];

/// The time limit of a step.
const PATIENCE: Duration = Duration::from_secs(60);

/// The commits of the two rounds, and another one.
const FIRST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const SECOND: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const OTHER: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// A file that an agent drops, with its packet.
struct Step {
    host: usize,
    name: &'static str,
    text: String,
    packet: Option<&'static str>,
}

/// Plays the mutants; returns true if each was noticed. `copy` is a copy of the sources to break.
pub(super) fn run(root: &Path, copy: &Path, only: &[String]) -> Result<bool, String> {
    let place = copy.join("target/as-host");
    let sound = build(copy, &place.join("sound"))?;
    let workspaces = place.join("workspaces");
    let expected = Play::new(&workspaces, &sound, (MUTANT, &sound))?.reference()?;
    let mut survivors = 0;
    println!(
        "| mutant | what goes wrong there | at home there | at | who froze | record, and the rule |\n|---|---|---|---|---|---|"
    );
    let is_asked = |mutant: &Mutant| {
        let is_named = |word: &String| mutant.name.contains(word.as_str());
        MUTANTS.contains(&mutant.name.as_str()) && (only.is_empty() || only.iter().any(is_named))
    };
    for mutant in Mutant::all(root)?.iter().filter(|mutant| is_asked(mutant)) {
        let broken = with_changes(copy, mutant, || build(copy, &place.join(&mutant.name)))?;
        // A mutant that freezes at a sound record has recorded nothing wrong yet. So it also takes the place of the
        // host that makes that record.
        let mut is_noticed = false;
        for index in [MUTANT, AUTHOR] {
            let played = Play::new(&workspaces, &sound, (index, &broken))
                .and_then(|play| play.until_noticed(&expected));
            let (step, who, rule) = match &played {
                Ok(Noticed::BySound { step, rule }) => (*step, "both sound hosts", rule.as_str()),
                Ok(Noticed::ByItself { step, rule }) => {
                    (*step, "the mutant; nothing of it was wrong", rule.as_str())
                }
                Ok(Noticed::Never) => ("the end", "**nobody**", "no record was wrong"),
                Err(error) => ("", "**not as expected**", error.as_str()),
            };
            let (name, what, agent) = (&mutant.name, &mutant.what, HOSTS[index].1);
            println!("| {name} | {what} | {agent} | {step} | {who} | {rule} |");
            is_noticed = matches!(played, Ok(Noticed::BySound { .. }));
            if !matches!(played, Ok(Noticed::ByItself { .. })) {
                break;
            }
        }
        survivors += u32::from(!is_noticed);
    }
    for (name, why) in UNSEEN {
        println!("| {name} | | | | | not played: {why} |");
    }
    Ok(survivors == 0)
}

/// Builds both programs of the copy and keeps them in a directory.
fn build(copy: &Path, keep: &Path) -> Result<PathBuf, String> {
    let built = binaries::cargo()
        .args(["build", "--quiet", "--offline", "--workspace"])
        .args(["--bin=settled", "--bin=settled-host"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .status()
        .map_err(|error| error.to_string())?;
    if !built.success() {
        return Err("it does not build".to_owned());
    }
    std::fs::create_dir_all(keep).map_err(|error| error.to_string())?;
    for program in ["settled", "settled-host"] {
        let to = keep.join(program);
        let from = copy.join("target/debug").join(program);
        std::fs::copy(&from, &to).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(keep.to_owned())
}

/// The hosts that noticed a mutant.
enum Noticed {
    /// Both sound hosts froze at its wrong record and kept the records before.
    BySound { step: &'static str, rule: String },
    /// The mutant froze at a sound host's record. No record is wrong, it accepts and records nothing more, and the
    /// others go on.
    ByItself { step: &'static str, rule: String },
    /// All hosts agreed to the end.
    Never,
}

/// Three hosts on one broker. At most one is a mutant.
struct Play<'a> {
    programs: [&'a Path; 3],
    roots: [PathBuf; 3],
    mutant: usize,
    _daemons: Vec<Daemon>,
    _broker: Broker,
}

impl<'a> Play<'a> {
    fn new(
        place: &Path,
        sound: &'a Path,
        (mutant, broken): (usize, &'a Path),
    ) -> Result<Play<'a>, String> {
        let _ = std::fs::remove_dir_all(place);
        std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
        let broker = Broker::alone(place);
        let mut programs = [sound; 3];
        programs[mutant] = broken;
        let roots = HOSTS.map(|(host, _)| place.join(host));
        for (index, (host, agent)) in HOSTS.into_iter().enumerate() {
            let root = &roots[index];
            let url = broker.url();
            let mut join = vec!["host", "join", &url, "--workspace", "w", "--as", host];
            if index == 0 {
                settled(programs[index], root, &["init", "--agents", agent])?;
            } else {
                join.extend(["--agents", agent]);
            }
            settled(programs[index], root, &join)?;
        }
        let daemons = (0..HOSTS.len())
            .map(|index| Daemon::start(programs[index], &roots[index]))
            .collect::<Result<_, _>>()?;
        Ok(Play {
            programs,
            roots,
            mutant,
            _daemons: daemons,
            _broker: broker,
        })
    }

    /// Plays the story on three sound hosts and returns their records.
    fn reference(&self) -> Result<Vec<String>, String> {
        for step in story() {
            self.take(&step)?;
            for other in others(step.host) {
                self.follows(&step, other)?;
                if let Some(said) = self.trouble(other) {
                    return Err(format!("without a mutant: {}: {said}", step.name));
                }
            }
        }
        Ok(judged(&ledger(&self.roots[AUTHOR])))
    }

    /// Plays the story until a host freezes. Fails if a sound host accepts a wrong record, or freezes at another one.
    fn until_noticed(&self, expected: &[String]) -> Result<Noticed, String> {
        let [one, other] = others(self.mutant);
        for step in story() {
            let before = self.take(&step)?;
            for other in others(step.host) {
                self.follows(&step, other)?;
            }
            for sound in [one, other] {
                self.is_as_expected(&step, sound, expected)?;
            }
            match (
                self.trouble(one),
                self.trouble(other),
                self.trouble(self.mutant),
            ) {
                (None, None, None) => {}
                (None, None, Some(own)) if step.host != self.mutant => {
                    self.goes_on_without_it(&step, expected)?;
                    let rule = first(&own).to_owned();
                    return Ok(Noticed::ByItself {
                        step: step.name,
                        rule,
                    });
                }
                (Some(one), Some(other), None) if step.host == self.mutant => {
                    let (record, host) = (before + 1, HOSTS[self.mutant].0);
                    let begin =
                        format!("frozen at record {record} of the shared ledger: host {host}: ");
                    if !(one.starts_with(&begin) && one == other) {
                        let name = step.name;
                        return Err(format!("{name}: expected `{begin}…`: {one} / {other}"));
                    }
                    let rule = first(&one).to_owned();
                    return Ok(Noticed::BySound {
                        step: step.name,
                        rule,
                    });
                }
                said => return Err(format!("{}: {said:?}", step.name)),
            }
        }
        Ok(Noticed::Never)
    }

    /// Drops the file of a step and waits until its host has judged it. Returns the number of records before.
    fn take(&self, step: &Step) -> Result<usize, String> {
        let root = &self.roots[step.host];
        let before = ledger(root).lines().count();
        drop_file(root, step)?;
        until(step.name, || {
            !outbox(root, step).exists() && ledger(root).lines().count() > before
        })?;
        Ok(before)
    }

    /// Waits until another host has adopted a step, or returns the reason why it does not.
    fn follows(&self, step: &Step, host: usize) -> Result<(), String> {
        until(&format!("{} on {}", step.name, HOSTS[host].0), || {
            self.trouble(host).is_some()
                || ledger(&self.roots[host]) == ledger(&self.roots[step.host])
        })
    }

    /// Checks that a host has accepted only what three sound hosts record.
    fn is_as_expected(&self, step: &Step, host: usize, expected: &[String]) -> Result<(), String> {
        let found = judged(&ledger(&self.roots[host]));
        if expected.starts_with(&found) {
            return Ok(());
        }
        let same = found
            .iter()
            .zip(expected)
            .take_while(|(found, expected)| found == expected);
        let record = same.count();
        let differing = |records: &[String]| records.get(record).cloned().unwrap_or_default();
        let (wrong, right) = (differing(&found), differing(expected));
        // Records are long and mostly equal.
        let from = wrong
            .bytes()
            .zip(right.bytes())
            .take_while(|(one, other)| one == other)
            .count();
        let piece = |text: &str| {
            text.chars()
                .skip(from.saturating_sub(60))
                .take(160)
                .collect::<String>()
        };
        let (name, host) = (step.name, HOSTS[host].0);
        let (wrong, right) = (piece(&wrong), piece(&right));
        Err(format!(
            "{name}: {host} accepted a wrong record: …{wrong}…, expected …{right}…"
        ))
    }

    /// Checks that a mutant that froze itself has only the others' records, accepts no file of its own agent, and
    /// blocks nobody.
    fn goes_on_without_it(&self, step: &Step, expected: &[String]) -> Result<(), String> {
        let root = &self.roots[self.mutant];
        let (frozen, [one, other]) = (ledger(root), others(self.mutant));
        let its_next = question(self.mutant, one, "left");
        drop_file(root, &its_next)?;
        self.take(&question(one, other, "on"))?;
        self.follows(&question(one, other, "on"), other)?;
        let theirs = ledger(&self.roots[other]);
        let ours = ledger(root);
        if !(ours == frozen && theirs.starts_with(&ours) && outbox(root, &its_next).exists()) {
            return Err(format!("{}: it froze itself and went on", step.name));
        }
        let found = judged(&theirs);
        match &found[..] {
            [before @ .., _on] if expected.starts_with(before) => Ok(()),
            _ => Err(format!("{}: it had recorded something wrong", step.name)),
        }
    }

    /// The reason why a host no longer follows the shared ledger. One that waits for the broker does.
    fn trouble(&self, host: usize) -> Option<String> {
        let said = settled(
            self.programs[host],
            &self.roots[host],
            &["host", "list", "--json"],
        );
        let said: serde_json::Value = serde_json::from_str(&said.ok()?).ok()?;
        let trouble = said["data"]["trouble"].as_str()?;
        (!trouble.starts_with("waiting")).then(|| trouble.to_owned())
    }
}

/// The other two hosts.
fn others(host: usize) -> [usize; 2] {
    match host {
        AUTHOR => [1, MUTANT],
        MUTANT => [AUTHOR, 1],
        _ => [AUTHOR, MUTANT],
    }
}

/// The first half of a host's message: the record at which it froze, and the rule.
fn first(said: &str) -> &str {
    said.split(';').next().unwrap_or(said)
}

/// The decision and the files of each record, without the parts that differ between runs: times, digests and inodes.
/// Leaves out the records of joins, which have a host's key.
fn judged(ledger: &str) -> Vec<String> {
    let judged = |line: &str| -> Option<String> {
        let mut record: serde_json::Value = serde_json::from_str(line).ok()?;
        let fields = record.as_object_mut()?;
        for changing in ["at", "prev", "batch"] {
            fields.remove(changing);
        }
        if let Some(original) = fields.get_mut("original").and_then(|of| of.as_object_mut()) {
            original.remove("stamp");
        }
        Some(scrubbed(&record.to_string()))
    };
    ledger
        .lines()
        .filter(|line| !line.contains("\"policy\":"))
        .filter_map(judged)
        .collect()
}

/// A text without its times, its digests and the ids of the daemon's notices.
fn scrubbed(text: &str) -> String {
    let mut kept = String::new();
    for word in text
        .split_inclusive(|letter: char| !(letter.is_ascii_alphanumeric() || "-:.".contains(letter)))
    {
        let (body, end) =
            word.split_at(word.len() - word.chars().next_back().map_or(0, char::len_utf8));
        let is_changing = body.len() >= 14
            && (body.starts_with("settled-")
                || body
                    .chars()
                    .all(|letter| letter.is_ascii_hexdigit() || "TZ-:.".contains(letter)));
        kept += if is_changing { "_" } else { body };
        kept += end;
    }
    kept
}

/// A review that triggers each mutant's fault, as sound hosts refuse it.
fn story() -> Vec<Step> {
    let request = |round: u8, name, head: &str| Step {
        host: AUTHOR,
        name,
        text: message(
            AUTHOR,
            "review_request",
            &format!("request-{round}"),
            &format!(
                "pr: 86\n  branch: b\n  diff_summary: Says something.\n  declared_head: {head}"
            ),
        ),
        packet: None,
    };
    let review = |name, kind: &str, id: &str, body: &str, packet| Step {
        host: MUTANT,
        name,
        text: message(MUTANT, kind, id, body),
        packet,
    };
    let feedback = |name, id: &str, round: u8, blocking: u8, packet| {
        let body = format!(
            "findings_packet: packets/findings/{id}.yaml\n  round: {round}\n  blocking_count: {blocking}"
        );
        review(name, "review_feedback", id, &body, Some(packet))
    };
    let question = || message(MUTANT, "question", "why", "Why?");
    let approval = "quality_gate_result: pass\n  merge_ready: true";
    let of_other = format!("{approval}\n  validated_head: {OTHER}");
    vec![
        request(1, "a request", FIRST),
        review("a question", "question", "why", "Why?", None),
        Step {
            name: "the same question again",
            text: question(),
            ..review("", "question", "again", "", None)
        },
        feedback(
            "feedback of nothing",
            "nothing",
            1,
            0,
            "round: 1\nfindings: []\n",
        ),
        review(
            "an approval of another commit",
            "review_lgtm",
            "other",
            &of_other,
            None,
        ),
        feedback(
            "feedback with a remark of the validator",
            "two",
            1,
            2,
            "round: 1\nmood: good\nfindings:\n  - {id: F-001, severity: P1, status: open, title: A leak}\n  \
             - {id: F-002, severity: P1, status: open, title: Wrong unit}\n",
        ),
        Step {
            host: AUTHOR,
            name: "a fix of one",
            text: message(
                AUTHOR,
                "review_addressed",
                "fixed",
                &format!(
                    "commit_sha: {SECOND}\n  changes_summary: Fixed.\n  round: 1\n  addressed_finding_ids: [F-001]"
                ),
            ),
            packet: None,
        },
        request(2, "the second request", SECOND),
        review(
            "an approval with a word missing",
            "review_lgtm",
            "silent",
            approval,
            None,
        ),
        feedback(
            "a reply in the last round",
            "reply",
            2,
            1,
            "round: 2\nfindings:\n  - {id: F-001, severity: P1, status: fixed, title: A leak}\n  \
             - {id: F-002, severity: P1, action: reply, title: Wrong unit}\n",
        ),
        feedback(
            "feedback in the last round",
            "last",
            2,
            1,
            "round: 2\nfindings:\n  - {id: F-001, severity: P1, status: fixed, title: A leak}\n  \
             - {id: F-002, severity: P1, status: open, title: Wrong unit}\n",
        ),
    ]
}

/// A message of one host's agent to the other side of the review.
fn message(host: usize, kind: &str, id: &str, body: &str) -> String {
    let (from, to) = match host {
        AUTHOR => ("claude", "pi"),
        _ => ("pi", "claude"),
    };
    format!(
        "id: {id}\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\ncreated_at_utc: \"2026-02-13T10:00:00Z\"\n\
         related_pr: \"86\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
    )
}

/// A question outside the review.
fn question(from: usize, to: usize, id: &'static str) -> Step {
    let ([from_name, to_name], host) = ([HOSTS[from].1, HOSTS[to].1], from);
    Step {
        host,
        name: id,
        text: format!(
            "id: {id}\nfrom: {from_name}\nto: {to_name}\ntype: question\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: Which\nbody: Which?\n"
        ),
        packet: None,
    }
}

/// The file of a step, named after the step, so that the same bytes can come twice.
fn outbox(root: &Path, step: &Step) -> PathBuf {
    let file = format!("{}.yaml", step.name.replace(' ', "-"));
    root.join("agents")
        .join(HOSTS[step.host].1)
        .join("outbox")
        .join(file)
}

fn drop_file(root: &Path, step: &Step) -> Result<(), String> {
    let write = |path: &Path, text: &str| {
        let fresh = root.join(".fresh");
        std::fs::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, path))
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    if let Some(packet) = step.packet {
        let named = step
            .text
            .lines()
            .find_map(|line| line.trim().strip_prefix("findings_packet: "));
        write(&root.join(named.expect("a packet is named")), packet)?;
    }
    write(&outbox(root, step), &step.text)
}

fn ledger(root: &Path) -> String {
    let segments = std::fs::read_dir(root.join(".settled/ledger"));
    let mut paths: Vec<PathBuf> = segments
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what}: not within {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn settled(programs: &Path, root: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(programs.join("settled"));
    if let ["init", rest @ ..] = words {
        command.arg("init").arg(root).args(rest);
    } else {
        command.args(words).arg("--root").arg(root);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{words:?}: {}", text(&output.stderr)))
    }
}

/// A daemon of a host; dropping the value ends it.
struct Daemon(Child);

impl Daemon {
    fn start(programs: &Path, root: &Path) -> Result<Daemon, String> {
        let log = std::fs::File::create(root.with_extension("log"));
        let log = log.map_err(|error| error.to_string())?;
        let child = Command::new(programs.join("settled-host"))
            .arg("--root")
            .arg(root)
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        child.map(Daemon).map_err(|error| error.to_string())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}
