//! `cargo xtask mutants --as-host`: three hosts share a ledger in a real broker, one of them is a mutant, and the others have
//! to freeze at its first wrong record. The mutant is where the reviewer of a review is at home; what it judges wrongly, it
//! signs and appends, and the broker takes it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use settled_tests::binaries;
use settled_tests::broker::Broker;

use super::mutant::Mutant;
use super::with_changes;

/// Each host with the agent at home there; the last one is the mutant.
const HOSTS: [(&str, &str); 3] = [("tower", "claude"), ("laptop", "codex"), ("ci", "pi")];
const AUTHOR: usize = 0;
const MUTANT: usize = 2;

/// The mutants whose fault the story below meets.
const MUTANTS: [&str; 9] = [
    "accepted-twice",
    "approval-of-any-commit",
    "feedback-of-nothing",
    "last-round-reply",
    "one-more-round",
    "refused-for-nothing",
    "remarks-dropped",
    "silence-resolves-all",
    "stance-count",
];

/// Some that no other host can notice, and why.
const UNSEEN: [(&str, &str); 4] = [
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
];

/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The commits of the two rounds, and one of neither.
const FIRST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const SECOND: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const OTHER: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// One file that an agent drops, and its packet.
struct Step {
    host: usize,
    name: &'static str,
    text: String,
    packet: Option<&'static str>,
}

/// Runs them; whether each was noticed. `copy` is a copy of the sources to break.
pub(super) fn run(root: &Path, copy: &Path, only: &[String]) -> Result<bool, String> {
    let place = copy.join("target/as-host");
    let sound = build(copy, &place.join("sound"))?;
    match play(&place.join("workspaces"), &sound, &sound)? {
        None => {}
        Some(frozen) => return Err(format!("without a mutant: {frozen}")),
    }
    let mut survivors = 0;
    println!(
        "| host with the mutant | what goes wrong there | what the others say |\n|---|---|---|"
    );
    let is_asked = |mutant: &Mutant| {
        let is_named = |word: &String| mutant.name.contains(word.as_str());
        MUTANTS.contains(&mutant.name.as_str()) && (only.is_empty() || only.iter().any(is_named))
    };
    for mutant in Mutant::all(root)?.iter().filter(|mutant| is_asked(mutant)) {
        let broken = with_changes(copy, mutant, || build(copy, &place.join(&mutant.name)))?;
        let said = play(&place.join("workspaces"), &sound, &broken);
        survivors += u32::from(!matches!(said, Ok(Some(_))));
        let said = said.unwrap_or_else(|error| Some(format!("**not as expected**: {error}")));
        let said = said.unwrap_or_else(|| "**nothing**".to_owned());
        println!("| {} | {} | {said} |", mutant.name, mutant.what);
    }
    for (name, why) in UNSEEN {
        println!("| {name} | | not played: {why} |");
    }
    Ok(survivors == 0)
}

/// Builds both programs of the copy and keeps them in a directory.
fn build(copy: &Path, keep: &Path) -> Result<PathBuf, String> {
    let built = binaries::cargo()
        .args([
            "build",
            "--quiet",
            "--offline",
            "--workspace",
            "--test=cost",
        ])
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

/// Plays the story with these programs on the two sound hosts and the third one. Gives what the sound ones say if both
/// freeze at the last record of the third, or what the third one says if it freezes itself; nothing if all agreed to the
/// end.
fn play(place: &Path, sound: &Path, broken: &Path) -> Result<Option<String>, String> {
    let _ = std::fs::remove_dir_all(place);
    std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
    let broker = Broker::alone(place);
    let programs = [sound, sound, broken];
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
    let _daemons: Vec<Daemon> = (0..HOSTS.len())
        .map(|index| Daemon::start(programs[index], &roots[index]))
        .collect::<Result<_, _>>()?;
    for step in story() {
        let before = ledger(&roots[step.host]).lines().count();
        drop_file(&roots[step.host], &step)?;
        let outbox = outbox(&roots[step.host], &step);
        until(step.name, || {
            !outbox.exists() && ledger(&roots[step.host]).lines().count() > before
        })?;
        // The others take it over, or say why not.
        let said = |index: usize| trouble(programs[index], &roots[index]);
        let others = (0..HOSTS.len()).filter(|index| *index != step.host);
        let mut troubles = Vec::new();
        for other in others {
            until(&format!("{} on {}", step.name, HOSTS[other].0), || {
                said(other).is_some() || ledger(&roots[other]) == ledger(&roots[step.host])
            })?;
            troubles.push(said(other));
        }
        match &troubles[..] {
            [None, None] => {}
            // It expects something else of a sound host's record, and goes no further.
            [None, Some(own)] if step.host == AUTHOR => {
                let why = own.split(';').next().unwrap_or(own);
                return Ok(Some(format!("{}: the mutant itself is {why}", step.name)));
            }
            [Some(one), Some(other)] if step.host == MUTANT => {
                let record = ledger(&roots[MUTANT]).lines().count();
                let begin = format!("frozen at record {record} of the shared ledger: host ci: ");
                let is_right = |said: &String| said.starts_with(&begin);
                if !(is_right(one) && one == other) {
                    return Err(format!(
                        "{}: expected `{begin}…`: {one} / {other}",
                        step.name
                    ));
                }
                let why = one.split(';').next().unwrap_or(one);
                return Ok(Some(format!("{}: {why}", step.name)));
            }
            others => return Err(format!("{}: {others:?}", step.name)),
        }
    }
    Ok(None)
}

/// A review with each fault of the mutants in it, as its sound hosts refuse it.
fn story() -> Vec<Step> {
    let request = |round: u8, name, head: &str| Step {
        host: AUTHOR,
        name,
        text: letter(
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
        text: letter(MUTANT, kind, id, body),
        packet,
    };
    let feedback = |name, id: &str, round: u8, blocking: u8, packet| {
        let body = format!(
            "findings_packet: packets/findings/{id}.yaml\n  round: {round}\n  blocking_count: {blocking}"
        );
        review(name, "review_feedback", id, &body, Some(packet))
    };
    let question = || letter(MUTANT, "question", "why", "Why?");
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
            text: letter(
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
fn letter(host: usize, kind: &str, id: &str, body: &str) -> String {
    let (from, to) = match host {
        AUTHOR => ("claude", "pi"),
        _ => ("pi", "claude"),
    };
    format!(
        "id: {id}\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\ncreated_at_utc: \"2026-02-13T10:00:00Z\"\n\
         related_pr: \"86\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n"
    )
}

/// The file of a step: named by it, so that the same bytes can come twice.
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

/// What a host says of the shared ledger, if it does not follow any more. One that waits for the broker goes on.
fn trouble(programs: &Path, root: &Path) -> Option<String> {
    let said = settled(programs, root, &["host", "list", "--json"]).ok()?;
    let said: serde_json::Value = serde_json::from_str(&said).ok()?;
    let find = |value: &serde_json::Value| value["trouble"].as_str().map(str::to_owned);
    let trouble = find(&said["data"]).or_else(|| find(&said));
    trouble.filter(|trouble| !trouble.starts_with("waiting"))
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

/// A daemon of a host, ended when this is dropped.
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
