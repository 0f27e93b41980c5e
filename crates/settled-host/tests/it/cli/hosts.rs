//! Hosts that share a ledger in a repository, and the program `settled-host` run on one of them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::executable::executable;
use crate::sh::sh;

/// Two hosts of one ledger: claude is at home on the tower, codex on the laptop.
pub(crate) struct Hosts {
    directory: TempDir,
    pub(crate) tower: Host,
    pub(crate) laptop: Host,
}

pub(crate) struct Host(pub(crate) PathBuf);

impl Hosts {
    pub(crate) fn joined() -> Hosts {
        let hosts = Hosts::just_joined();
        hosts.tower.done(&["serve", "--once"]);
        hosts
    }

    /// The tower has not yet read the record of the laptop's join.
    pub(crate) fn just_joined() -> Hosts {
        let hosts = Hosts::apart();
        let log = hosts.log("ledger.git");
        hosts
            .tower
            .done(&["join", &log, "--as", "tower", "--agents", "claude"]);
        hosts
            .laptop
            .done(&["join", &log, "--as", "laptop", "--agents", "codex"]);
        hosts
    }

    pub(crate) fn apart() -> Hosts {
        let directory = tempfile::tempdir().expect("a directory");
        let host = |name: &str| Host(directory.path().join(name));
        let (tower, laptop) = (host("tower"), host("laptop"));
        let hosts = Hosts {
            directory,
            tower,
            laptop,
        };
        for repository in ["ledger.git", "spare.git"] {
            hosts.new_log(repository);
        }
        hosts
    }

    pub(crate) fn new_log(&self, name: &str) -> String {
        sh(
            self.directory.path(),
            &format!("git init --quiet --bare \"{name}\""),
        );
        self.log(name)
    }

    pub(crate) fn log(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let whole = self.directory.path().canonicalize();
        whole.expect("a directory").join(name)
    }

    /// Has this shell script decide about each push into the log.
    pub(crate) fn decide_pushes(&self, script: &str) {
        let hook = self.path("ledger.git/hooks/pre-receive");
        executable(&hook, format!("#!/bin/sh\n{script}\n").as_bytes());
    }

    /// Gives the tower a record from before it shares its ledger.
    pub(crate) fn give_tower_a_past(&self) {
        let agents = ["claude", "pi"].map(|agent| agent.parse().expect("a name"));
        workspace::directory::init(&self.tower.0, &agents).expect("a workspace");
        self.tower.ask("claude", "pi", "q-1");
        daemon::serve::serve_once(&self.tower.0).expect("a run");
    }

    pub(crate) fn third(&self) -> Host {
        Host(self.path("box"))
    }
}

impl Host {
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_settled-host"))
            .args(args)
            .env("SETTLED_ROOT", &self.0)
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// Runs a command that must succeed although ssh takes a second, as it does with most forges.
    pub(crate) fn done_over(&self, ssh: &Path, args: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_settled-host"))
            .args(args)
            .env("SETTLED_ROOT", &self.0)
            .env("GIT_SSH_COMMAND", ssh)
            .env("GIT_SSH_VARIANT", "ssh")
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {told}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Starts a daemon that serves until its input ends.
    pub(crate) fn serving(&self) -> Child {
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_settled-host"))
            .args(["serve", "--until-eof"])
            .env("SETTLED_ROOT", &self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut told = BufReader::new(daemon.stderr.take().expect("its errors"));
        let mut line = String::new();
        while !line.contains("serving as one of several hosts") {
            line.clear();
            let bytes = told.read_line(&mut line).expect("text");
            assert_ne!(bytes, 0, "it ended before it served");
        }
        // The daemon must not block on a full pipe.
        std::thread::spawn(move || told.lines().map_while(Result::ok).for_each(drop));
        daemon
    }

    /// Runs a command that must succeed; returns its output.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {told}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that must fail with this exit code; returns its output.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
        told
    }

    /// Runs the command that a failure suggests, as a shell does.
    pub(crate) fn pastes(&self, told: &str) -> String {
        let suggested = told
            .lines()
            .find_map(|line| line.strip_prefix("  try: settled host "));
        let script = format!(
            "exec {} {}",
            env!("CARGO_BIN_EXE_settled-host"),
            suggested.unwrap_or_else(|| panic!("no command in {told}"))
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .env_remove("SETTLED_ROOT")
            .stdin(Stdio::null())
            .output()
            .expect("a shell runs");
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// All files below the workspace with their texts, except the copy of the repository and the lock.
    pub(crate) fn files(&self) -> Vec<(PathBuf, String)> {
        let (mut files, mut open) = (Vec::new(), vec![self.0.clone()]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.ends_with("log.git") || path.ends_with("lock") {
                    continue;
                }
                if path.is_dir() {
                    open.push(path.clone());
                    files.push((path, String::new()));
                } else {
                    let bytes = fs::read(&path).expect("a file");
                    files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
        files.sort();
        files
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.done(&[args, &["--json"]].concat());
        serde_json::from_str(&text).expect("a JSON document")
    }

    pub(crate) fn ask(&self, from: &str, to: &str, id: &str) {
        let text = format!(
            "id: \"{id}\"\nfrom: {from}\nto: {to}\ntype: question\npriority: P2\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"{id}\"\n"
        );
        let path = self.0.join(format!("agents/{from}/outbox/{id}.yaml"));
        fs::write(path, text).expect("a message");
    }

    pub(crate) fn inbox(&self, agent: &str) -> Vec<String> {
        let files = fs::read_dir(self.0.join(format!("agents/{agent}/inbox")));
        let name = |file: std::io::Result<fs::DirEntry>| {
            let name = file.expect("a file").file_name();
            name.into_string().expect("a name in UTF-8")
        };
        let mut names: Vec<String> = files.expect("an inbox").map(name).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    }

    pub(crate) fn ledger(&self) -> String {
        let files = fs::read_dir(self.0.join(".settled/ledger")).expect("a ledger");
        let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        paths.sort();
        let text = |path: &PathBuf| fs::read_to_string(path).expect("a segment");
        paths.iter().map(text).collect()
    }

    pub(crate) fn config(&self) -> String {
        fs::read_to_string(self.0.join("settled.toml")).expect("a config")
    }
}
