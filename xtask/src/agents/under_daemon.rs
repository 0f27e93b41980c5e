//! Rows in which the daemon starts the program for a request.

use std::time::{Duration, Instant};

use serde_json::Value;
use settled_tests::mailroom::Mailroom;
use settled_tests::{ledger, list, read, seed, write};

use super::bench::{INSTRUCTION, KEY, Scene};
use super::programs::Program;
use super::rows::{Runner, Walls};

/// The time limit of a row.
const ROW_MAX: Duration = Duration::from_secs(150);

/// The words with which the script `attack` tells the model that it wrote the code.
const WROTE: &str = "wrote-the-code";

impl Scene<'_> {
    /// Lets the daemon start the program for a request; returns the time to its first byte, if it printed any.
    pub(super) fn runner(&self, it: &Runner) -> Result<Option<Duration>, String> {
        let me = self.program.word();
        let mailroom = Mailroom::on_disk(&["author", me, "other"]);
        let set_up = self.program.set_up();
        let workdir = self.code.display().to_string();
        let mut section = set_up
            .section(it.form, it.walls, &workdir)
            .ok_or("the set-up has no such command")?;
        let by_tls = it.walls == Walls::Sandbox;
        let mut environment = if by_tls {
            self.environment_by_tls(it.script)
        } else {
            self.environment(it.script)
        };
        if it.instructions {
            let home = self.place.join("home");
            self.program.keep_in_file(&home, &mut environment);
        }
        if it.is_unbound {
            self.program.unbind(&mut section);
        }
        if by_tls {
            environment.extend(self.bench.outside.trust());
            self.wall(&mut section, &environment);
        }
        write(
            mailroom.root().join("settled.toml"),
            &config(me, section).to_string(),
        );
        if it.hooks && self.program == Program::Codex {
            // A person has to confirm hooks at a terminal, which does not exist here.
            let trusted = "\"exec\", \"--dangerously-bypass-hook-trust\", \"--enable\", \"hooks\"";
            let config = mailroom.root().join("settled.toml");
            write(&config, &read(&config).replacen("\"exec\"", trusted, 1));
        }
        if it.hooks {
            // The set-up turns off the project's hooks, but not the user's.
            let home = self.place.join("home");
            self.install_hooks(&mailroom, &home)?;
            self.log_hooks(&home);
            mailroom.post(
                "author",
                "q.yaml",
                &seed::note("question", "q-1", "author", me, "Which?"),
            );
            mailroom.once();
        }
        if it.is_fenced {
            // A review of another agent, which only that agent may answer.
            let body = "pr: 87\nbranch: change\ndiff_summary: a change";
            mailroom.post(
                "author",
                "other.yaml",
                &seed::review_message("review_request", "ask-2", "author", "other", "87", body),
            );
            mailroom.once();
        }
        environment.push(("RUST_BACKTRACE".to_owned(), "0".to_owned()));
        let settings: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let daemon = mailroom.spawn_with(&[&settings[..], &[]].concat());
        let body = format!(
            "pr: 86\nbranch: change\ndiff_summary: a change\ndeclared_head: {}\nchanged_files: [src/main.rs]\n\
             max_runtime_s_reviewer: {}\nmax_turns_reviewer: {}",
            self.head, it.seconds, it.turns
        );
        mailroom.post(
            "author",
            "ask.yaml",
            &seed::review_message("review_request", "ask-1", "author", me, "86", &body),
        );
        let asked = Instant::now();
        let (ended, first_byte) = self.until_moved(&mailroom, asked);
        let left = left_of(&mailroom);
        let log = daemon.log();
        daemon.terminate();
        write(self.place.join("daemon.log"), &log);
        self.keep_runs(&mailroom);
        let review = ended?;
        if !left.is_empty() {
            return Err(format!("processes are left: {left:?}"));
        }
        let (phase, reason) = (said_of(&review, "phase"), said_of(&review, "reason"));
        if phase != it.phase || reason != it.reason {
            return Err(format!(
                "{phase} {reason}, expected {} {}; {}",
                it.phase,
                it.reason,
                failures(&log)
            ));
        }
        let records = ledger::records(mailroom.root());
        let starts = records
            .iter()
            .filter(|record| record["kind"] == "started")
            .count();
        if starts != it.starts {
            return Err(format!(
                "{starts} starts, expected {}; {}",
                it.starts,
                failures(&log)
            ));
        }
        let called = std::fs::read_to_string(self.place.join("hooks.log")).unwrap_or_default();
        if it.hooks && !called.contains("turn-end") {
            return Err(format!("its hooks were not called: {called:?}"));
        }
        let is_read = records.iter().any(|record| {
            record["kind"] == "observed" && record.to_string().contains("src/main.rs")
        });
        if it.reads && !is_read {
            return Err("the ledger does not have the changed file as read".to_owned());
        }
        let notices: String = list(mailroom.agent("author", "inbox"))
            .iter()
            .map(read)
            .collect();
        if let Some(word) = it.told.iter().find(|word| !notices.contains(**word)) {
            return Err(format!("no notice says `{word}`; {}", failures(&log)));
        }
        let requests = self.bench.server.requests(&self.name);
        if requests.is_empty() {
            return Err("the program asked its model nothing".to_owned());
        }
        if it.instructions {
            Self::asked_well(&requests)?;
            if self.was_led_away() {
                return Err("it called the service that the repository's `.env` names".to_owned());
            }
        }
        if it.is_fenced {
            let made = [
                mailroom.agent("mine", "inbox"),
                self.code.join("redirected"),
            ];
            if let Some(path) = made.iter().find(|path| path.exists()) {
                return Err(format!("it made {}", path.display()));
            }
            let phase = said_of(&review_of(&mailroom, "87"), "phase");
            if phase != "reviewing" {
                return Err(format!("the review of another agent is {phase}"));
            }
        }
        if let Some(expected) = it.worked {
            self.attacked(&requests, expected)?;
        }
        Ok(first_byte)
    }

    /// Checks the attempts to write the code, to read a key and to connect to a server, by what the program told its
    /// model and what the user's server saw: all of them worked, or none.
    fn attacked(&self, requests: &[String], expected: bool) -> Result<(), String> {
        let is_told = |word: &str| {
            requests
                .iter()
                .skip(1)
                .any(|request| request.contains(word))
        };
        let found = [
            ("wrote the code", is_told(WROTE)),
            ("read a key", is_told(KEY)),
            ("called home", self.bench.outside.was_called_by(&self.name)),
        ];
        let other = found.iter().find(|(_, worked)| *worked != expected);
        match other {
            None => Ok(()),
            Some((what, true)) => Err(format!("it {what}")),
            Some((what, false)) => Err(format!(
                "the attack without a sandbox never {what}, so the row proves nothing"
            )),
        }
    }

    /// Puts the set-up's sandbox around the command. The service is ours, the login a variable, and the settings are in
    /// the home that the sandbox hides.
    fn wall(&self, section: &mut toml::Table, environment: &[(String, String)]) {
        let mut reads = vec![self.bench.installed().display().to_string()];
        reads.push(self.bench.outside.certificate().display().to_string());
        let settings = self.program.settings(&self.place.join("home"));
        reads.extend(settings.map(|file| file.display().to_string()));
        let of_ours = |name: &String| name != "HOME" && name != "PATH" && name != "TMPDIR";
        let env = environment.iter().map(|(name, _)| name.clone());
        let texts = |texts: Vec<String>| -> toml::Value {
            texts
                .into_iter()
                .map(toml::Value::from)
                .collect::<Vec<_>>()
                .into()
        };
        let sandbox = toml::Table::from_iter([
            ("network".to_owned(), texts(vec![self.bench.outside.host()])),
            ("reads".to_owned(), texts(reads)),
            ("env".to_owned(), texts(env.filter(of_ours).collect())),
        ]);
        section.insert("sandbox".to_owned(), sandbox.into());
    }

    /// Checks that no request of the program to its model contains an instruction of the repository.
    pub(super) fn asked_well(requests: &[String]) -> Result<(), String> {
        let found = requests.iter().enumerate().find_map(|(at, request)| {
            let from = request.find(INSTRUCTION)? + INSTRUCTION.len();
            let place: String = request[from..].chars().take(40).collect();
            Some(format!(
                "request {} holds the repository's instructions{place}",
                at + 1
            ))
        });
        found.map_or(Ok(()), Err)
    }

    /// Waits until the review no longer waits for the program; returns also when the program printed its first byte.
    fn until_moved(
        &self,
        mailroom: &Mailroom,
        asked: Instant,
    ) -> (Result<Value, String>, Option<Duration>) {
        let runs = mailroom.root().join(".settled/runs");
        let has_printed = || {
            let folders = std::fs::read_dir(&runs).into_iter().flatten().flatten();
            let mut logs = folders.map(|folder| folder.path().join("stdout"));
            logs.any(|log| log.metadata().is_ok_and(|log| log.len() > 0))
        };
        let mut first_byte = None;
        let mut looked_at = asked;
        while asked.elapsed() < ROW_MAX {
            if first_byte.is_none() && has_printed() {
                first_byte = Some(asked.elapsed());
            }
            // Checking the review starts a process; checking the file does not.
            if looked_at.elapsed() > Duration::from_millis(200) {
                looked_at = Instant::now();
                let review = review_of(mailroom, "86");
                if !matches!(review["phase"].as_str(), Some("reviewing") | None) {
                    let first_byte = first_byte.or_else(|| has_printed().then(|| asked.elapsed()));
                    return (Ok(review), first_byte);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let why = format!("nothing came of it in {} s", ROW_MAX.as_secs());
        (Err(why), first_byte)
    }
}

/// The config of a workspace with this section for one agent.
pub(super) fn config(agent: &str, section: toml::Table) -> toml::Table {
    let agents = toml::Table::from_iter([(agent.to_owned(), section.into())]);
    toml::Table::from_iter([("agents".to_owned(), agents.into())])
}

/// The processes with this workspace in their environment, except the daemon and its keepers.
fn left_of(mailroom: &Mailroom) -> Vec<String> {
    let root = format!("SETTLED_ROOT={}", mailroom.root().display());
    let start = Instant::now();
    loop {
        let mut left = Vec::new();
        for entry in list("/proc") {
            let environment = std::fs::read(entry.join("environ")).unwrap_or_default();
            if environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == root.as_bytes())
            {
                let line = std::fs::read(entry.join("cmdline")).unwrap_or_default();
                left.push(String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
        // An agent that has answered may run for ten more seconds, and its keeper adds five.
        if left.is_empty() || start.elapsed() > Duration::from_secs(20) {
            return left;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The row of a pull request in `settled status`; null if it has none.
fn review_of(mailroom: &Mailroom, pr: &str) -> Value {
    let status = mailroom.status();
    let mut rows = status["reviews"].as_array().into_iter().flatten();
    rows.find(|row| row["pr"] == pr)
        .cloned()
        .unwrap_or_default()
}

fn said_of(review: &Value, field: &str) -> String {
    review[field].as_str().unwrap_or_default().to_owned()
}

/// The failures in the daemon's log.
fn failures(log: &str) -> String {
    let lines = log
        .lines()
        .filter(|line| line.contains("failed") || line.contains("WARN") || line.contains("ERROR"));
    let lines: Vec<&str> = lines.collect();
    lines.join(" / ")
}
