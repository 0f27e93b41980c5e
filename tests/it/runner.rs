//! Agents started by the daemon: real processes, one per request, which end with it whatever they do. Each review here
//! is played to its end against a reviewer that agrees, argues forever, is silent, crashes, floods, spoofs or leaves
//! children behind (`tests/fakes/reviewer.sh`).

mod bounds;
mod cancel;
mod failures;
mod fallback;
mod limits;
mod lives;
mod seen;
mod spend;
mod trees;
mod walls;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use settled_tests::mailroom::{Daemon, Mailroom};
use settled_tests::{ledger, read, repository, seed, wait, write};
use tempfile::NamedTempFile;

/// A mailroom in which codex has a command.
struct Room {
    mailroom: Mailroom,
    notes: PathBuf,
}

impl Room {
    /// The fake reviewer with this behaviour, and more lines for its section.
    fn new(behaviour: &[&str], more: &str) -> Self {
        let fake = repository()
            .join("tests/fakes/reviewer.sh")
            .display()
            .to_string();
        let words: Vec<String> = [fake.as_str()]
            .iter()
            .chain(behaviour)
            .map(|word| format!("'''{word}'''"))
            .collect();
        Self::with_command(&words.join(", "), more)
    }

    fn with_command(command: &str, more: &str) -> Self {
        let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
        let notes = mailroom
            .root()
            .parent()
            .expect("it is in a directory")
            .join("notes");
        let env = format!("env = {{ FAKE_NOTES = '''{}''' }}", notes.display());
        let config = format!(
            "[runner]\nconcurrent = 2\n[agents.codex]\ncommand = [{command}]\n{env}\n{more}\n"
        );
        write(mailroom.root().join("settled.toml"), &config);
        Self { mailroom, notes }
    }

    /// The number of the fake's starts.
    fn starts(&self) -> usize {
        std::fs::read_to_string(&self.notes).map_or(0, |notes| notes.lines().count())
    }

    fn ask(&self, pr: &str, id: &str, seconds: u32, turns: u32) {
        self.ask_with(pr, id, seconds, turns, "");
    }

    /// A request with more lines in its body.
    fn ask_with(&self, pr: &str, id: &str, seconds: u32, turns: u32, more: &str) {
        let body = format!(
            "pr: {pr}\nbranch: change-{pr}\ndiff_summary: a change\nmax_runtime_s_reviewer: {seconds}\n\
             max_turns_reviewer: {turns}\n{more}"
        );
        let text = seed::review_message("review_request", id, "claude", "codex", pr, &body);
        self.post("claude", id, &text);
    }

    fn post(&self, agent: &str, id: &str, text: &str) {
        let path = self
            .mailroom
            .agent(agent, "outbox")
            .join(format!("{id}.yaml"));
        let temporary = path.with_extension("tmp");
        write(&temporary, text);
        std::fs::rename(temporary, path).expect("within one directory");
    }

    fn review(&self) -> Value {
        self.mailroom.status()["reviews"][0].clone()
    }

    /// Plays the author in each round and returns the review at its end, with the time it took.
    fn end(&self) -> (Value, Duration) {
        let start = Instant::now();
        let mut addressed = 0;
        let ended = wait::for_some("the review to end", || {
            // Each check is a process, and the daemon and its agents need the machine too.
            wait::a_moment(Duration::from_millis(50));
            let review = self.review();
            match review["phase"].as_str() {
                Some("fixing") => {
                    let round = review["round"].as_u64().expect("a number");
                    if addressed < round {
                        addressed = round;
                        self.address(round);
                    }
                    None
                }
                Some("approved" | "escalated" | "closed") => Some(review),
                Some(_) | None => None,
            }
        });
        (ended, start.elapsed())
    }

    fn address(&self, round: u64) {
        let body =
            format!("commit_sha: abc1234\nchanges_summary: nothing was wrong\nround: {round}");
        let id = format!("addressed-{round}");
        self.post(
            "claude",
            &id,
            &seed::review_message("review_addressed", &id, "claude", "codex", "86", &body),
        );
        self.mailroom.cleared("claude");
        self.ask("86", &format!("request-{}", round + 1), 20, 8);
    }

    /// The number of the ledger's events of this kind.
    fn events(&self, kind: &str) -> usize {
        ledger::records(self.mailroom.root())
            .iter()
            .filter(|record| record["kind"] == kind)
            .count()
    }

    fn serve(&self) -> Daemon {
        self.mailroom.serve()
    }
}

/// True if a process with this pid runs.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// A message of codex that approves.
fn approval() -> NamedTempFile {
    let file = NamedTempFile::new().expect("a temporary file");
    let body = "quality_gate_result: pass\nmerge_ready: true";
    write(
        file.path(),
        &seed::review_message("review_lgtm", "made-up", "codex", "claude", "86", body),
    );
    file
}

fn lines(path: &Path) -> Vec<String> {
    read(path).lines().map(str::to_owned).collect()
}
