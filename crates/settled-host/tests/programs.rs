//! The program `settled-host` as a person runs it, on hosts that share a ledger in a repository.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Two hosts of one ledger: claude is at home on the tower, codex on the laptop.
struct Hosts {
    directory: TempDir,
    tower: Host,
    laptop: Host,
}

struct Host(PathBuf);

impl Hosts {
    fn joined() -> Hosts {
        let hosts = Hosts::just_joined();
        hosts.tower.done(&["serve", "--once"]);
        hosts
    }

    /// The tower has not yet read the record of the laptop's join.
    fn just_joined() -> Hosts {
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

    fn apart() -> Hosts {
        let directory = tempfile::tempdir().expect("a directory");
        for repository in ["ledger.git", "spare.git"] {
            git(directory.path(), &["init", "--quiet", "--bare", repository]);
        }
        let host = |name: &str| Host(directory.path().join(name));
        let (tower, laptop) = (host("tower"), host("laptop"));
        Hosts {
            directory,
            tower,
            laptop,
        }
    }

    fn log(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        let whole = self.directory.path().canonicalize();
        whole.expect("a directory").join(name)
    }

    fn third(&self) -> Host {
        Host(self.path("box"))
    }
}

fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(args)
        .current_dir(directory)
        .status();
    assert!(done.expect("git runs").success(), "{args:?}");
}

impl Host {
    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_settled-host"))
            .args(args)
            .env("SETTLED_ROOT", &self.0)
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// Runs a command that must succeed although ssh takes a second, as it does with most forges.
    fn done_over(&self, ssh: &Path, args: &[&str]) -> String {
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
    fn serving(&self) -> Child {
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
    fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {told}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that must fail with this exit code; returns its output.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
        told
    }

    /// Runs the command that a failure suggests, as a shell does.
    fn pastes(&self, told: &str) -> String {
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
    fn files(&self) -> Vec<(PathBuf, String)> {
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

    fn json(&self, args: &[&str]) -> Value {
        let text = self.done(&[args, &["--json"]].concat());
        serde_json::from_str(&text).expect("a JSON document")
    }

    fn ask(&self, from: &str, to: &str, id: &str) {
        let text = format!(
            "id: \"{id}\"\nfrom: {from}\nto: {to}\ntype: question\npriority: P2\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"{id}\"\n"
        );
        let path = self.0.join(format!("agents/{from}/outbox/{id}.yaml"));
        fs::write(path, text).expect("a message");
    }

    fn inbox(&self, agent: &str) -> Vec<String> {
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

    fn ledger(&self) -> String {
        let files = fs::read_dir(self.0.join(".settled/ledger")).expect("a ledger");
        let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        paths.sort();
        let text = |path: &PathBuf| fs::read_to_string(path).expect("a segment");
        paths.iter().map(text).collect()
    }

    fn config(&self) -> String {
        fs::read_to_string(self.0.join("settled.toml")).expect("a config")
    }
}

#[test]
fn the_first_host_brings_the_ledger_and_the_next_one_takes_it_over() {
    let hosts = Hosts::apart();
    let log = hosts.log("ledger.git");
    let told = hosts.tower.done(&[
        "join",
        &log,
        "--workspace",
        "team",
        "--as",
        "tower",
        "--agents",
        "claude,pi",
    ]);
    assert!(
        told.starts_with(&format!(
            "host tower shares the ledger team at {log}, with 1 records\nat home here: claude, pi\nit is the first host\nnext: settled serve"
        )),
        "{told}"
    );
    let join = ["join", &log, "--workspace", "team", "--as", "laptop"];
    let told = hosts.laptop.done(&join);
    assert!(
        told.starts_with(&format!(
            "host laptop shares the ledger team at {log}, with 2 records\nat home here: no agent\nother hosts: tower\nnext: settled serve"
        )),
        "{told}"
    );
    // Joining again adds the named agents.
    let again = hosts
        .laptop
        .json(&[&join[..], &["--agents", "codex"]].concat());
    let data = &again["data"];
    assert_eq!(data["agents"], serde_json::json!(["codex"]));
    assert_eq!(
        (&data["began"], &data["records"]),
        (&Value::from(false), &Value::from(3))
    );
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(
        hosts.tower.json(&["list"])["data"]["hosts"][1]["name"],
        "tower"
    );
    for (host, name) in [(&hosts.tower, "tower"), (&hosts.laptop, "laptop")] {
        let config = host.config();
        for line in [
            format!("log = \"{log}\""),
            "workspace = \"team\"".to_owned(),
            format!("host = \"{name}\""),
        ] {
            assert!(config.contains(&line), "{config}");
        }
    }
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
}

/// Has this hook decide about each push into the repository.
fn decide_pushes(repository: &Path, script: &str) {
    let hook = repository.join("hooks/pre-receive");
    fs::write(&hook, format!("#!/bin/sh\n{script}\n")).expect("a hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn a_first_host_has_joined_once_the_log_has_its_record() {
    let hosts = Hosts::apart();
    let (log, repository) = (hosts.log("ledger.git"), hosts.path("ledger.git"));
    let join = ["join", &log, "--as", "tower", "--agents", "claude"];
    decide_pushes(&repository, "exit 1");
    let told = hosts.tower.fails(9, &join);
    assert!(told.contains("pre-receive hook declined"), "{told}");
    assert_eq!(hosts.tower.ledger(), "");
    // The log does not have it, so this host goes on alone.
    assert!(!hosts.tower.config().contains("ledger.git"));
    daemon::serve::serve_once(&hosts.tower.0).expect("a run of a host that is alone");
    // An answer that comes late is waited for.
    decide_pushes(&repository, "sleep 2");
    let told = hosts.tower.done(&join);
    assert!(told.contains("with 1 records"), "{told}");
    assert!(told.contains("it is the first host"), "{told}");
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.ledger().lines().count(), 1);
}

#[test]
fn of_two_hosts_that_join_an_empty_log_at_once_each_has_joined_or_says_that_it_has_not() {
    let hosts = Hosts::apart();
    let log = hosts.log("ledger.git");
    let joins = [
        (
            &hosts.tower,
            ["join", &log, "--as", "tower", "--agents", "claude"],
        ),
        (
            &hosts.laptop,
            ["join", &log, "--as", "laptop", "--agents", "codex"],
        ),
    ];
    // Each reads the log before the push of the other ends.
    decide_pushes(&hosts.path("ledger.git"), "sleep 1");
    let told = std::thread::scope(|both| {
        let running = joins.map(|(host, join)| both.spawn(move || host.run(&join)));
        running.map(|running| running.join().expect("an output"))
    });
    let first = told
        .iter()
        .filter(|output| String::from_utf8_lossy(&output.stdout).contains("it is the first host"));
    assert_eq!(first.count(), 1, "{told:?}");
    for ((host, join), output) in joins.into_iter().zip(&told) {
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(9), "{output:?}");
            host.done(&join);
        }
    }
    hosts.tower.done(&["serve", "--once"]);
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
    assert_eq!(hosts.tower.ledger().lines().count(), 2);
}

#[test]
fn each_file_is_judged_by_the_host_of_its_sender_and_delivered_by_that_of_its_reader() {
    let hosts = Hosts::joined();
    hosts.tower.ask("claude", "codex", "q-1");
    let told = hosts.tower.done(&["serve", "--once"]);
    assert_eq!(told, "1 accepted, 0 refused, 0 duplicates\n");
    let told = hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(told, "0 accepted, 0 refused, 0 duplicates\n");
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml"]);
    assert_eq!(hosts.tower.inbox("codex"), [""; 0]);
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
    fs::write(
        hosts.laptop.0.join("agents/codex/outbox/broken.yaml"),
        "from: [\n",
    )
    .expect("a file");
    let told = hosts.laptop.fails(7, &["serve", "--once"]);
    assert!(
        told.starts_with("0 accepted, 1 refused, 0 duplicates\n"),
        "{told}"
    );
    // The daemon ends when its input does.
    hosts.tower.done(&["serve", "--until-eof"]);
}

#[test]
fn a_run_that_leaves_files_says_how_many_and_fails() {
    let hosts = Hosts::joined();
    hosts.tower.ask("claude", "codex", "q-1");
    hosts.tower.done(&["serve", "--once"]);
    // No mailbox is opened through a symbolic link.
    for (mailbox, left) in [
        (
            "inbox",
            "could not deliver or archive 1 files, nor read 0 files or outboxes",
        ),
        (
            "outbox",
            "could not deliver or archive 0 files, nor read 1 files or outboxes",
        ),
    ] {
        let mailbox = hosts.laptop.0.join("agents/codex").join(mailbox);
        let aside = hosts.path("aside");
        fs::rename(&mailbox, &aside).expect("a mailbox to move");
        std::os::unix::fs::symlink(&aside, &mailbox).expect("a link");
        let told = hosts.laptop.fails(9, &["serve", "--once"]);
        assert!(told.contains(left), "{told}");
        fs::remove_file(&mailbox).expect("the link");
        fs::rename(&aside, &mailbox).expect("a mailbox to move");
        hosts.laptop.done(&["serve", "--once"]);
    }
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml"]);
}

#[test]
fn a_log_that_is_away_accepts_nothing_and_that_may_pass() {
    let hosts = Hosts::joined();
    let before = hosts.tower.ledger();
    hosts.tower.ask("claude", "codex", "q-1");
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a repository to move");
    // Both wait 20 s for the log.
    let (served, checked) = std::thread::scope(|both| {
        let checks = both.spawn(|| hosts.tower.fails(6, &["check"]));
        let served = hosts.tower.fails(9, &["serve", "--once"]);
        (
            served,
            checks.join().expect("a check that fails as it should"),
        )
    });
    assert!(served.contains("the ledger cannot be reached"), "{served}");
    assert!(checked.contains("does not answer"), "{checked}");
    assert_eq!(hosts.tower.ledger(), before);
    fs::rename(hosts.path("away.git"), hosts.path("ledger.git")).expect("a repository to move");
    let told = hosts.tower.done(&["check"]);
    for line in [
        "ok     host tower has joined with the key it has here\n",
        "ok     all hosts judge by the policy in settled.toml\n",
        "answers, with records up to 2; a push is as durable as its server makes it\n",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn agents_are_claimed_and_move_and_a_host_leaves_when_none_is_at_home_there() {
    let hosts = Hosts::joined();
    let told = hosts.laptop.done(&["claim", "pi", "gpt"]);
    assert!(told.starts_with("recorded: "), "{told}");
    // Repeated, it records only what is new.
    let before = hosts.laptop.ledger().lines().count();
    let told = hosts.laptop.done(&["claim", "pi", "gpt"]);
    assert_eq!(
        told,
        "nothing new: host laptop is the home of pi, gpt already\n"
    );
    assert_eq!(hosts.laptop.ledger().lines().count(), before);
    let told = hosts.laptop.done(&["claim", "pi", "kimi"]);
    assert_eq!(told, "recorded: host laptop is the home of kimi\n");
    let moved = ["move-home", "kimi", "--to", "tower", "--by", "ann"];
    hosts.laptop.done(&moved);
    let told = hosts.tower.fails(6, &["claim", "codex", "--json"]);
    assert!(told.contains("\"ok\": false"), "{told}");
    assert!(told.contains("agent codex is at home on laptop"), "{told}");
    assert!(hosts.laptop.0.join("agents/pi/outbox").is_dir());
    let told = hosts.laptop.fails(6, &["leave"]);
    assert!(told.contains("agent codex is at home here"), "{told}");
    assert!(
        told.contains("  try: settled host move-home codex --to HOST"),
        "{told}"
    );
    for agent in ["codex", "pi"] {
        hosts
            .laptop
            .done(&["move-home", agent, "--to", "tower", "--by", "ann"]);
    }
    hosts.tower.done(&["serve", "--once"]);
    // By default, a move goes from the agent's home in the ledger to this host.
    hosts
        .tower
        .done(&["move-home", "gpt", "--by", "ann", "--reason", "for a day"]);
    let told = hosts
        .tower
        .fails(6, &["move-home", "gpt", "--from", "laptop"]);
    assert!(told.contains("agent gpt is at home on tower"), "{told}");
    let told = hosts
        .tower
        .fails(2, &["retire-key", "laptop", "--reason", "two\nlines"]);
    assert!(told.contains("on one line each"), "{told}");
    hosts.laptop.done(&["serve", "--once"]);
    let told = hosts
        .laptop
        .done(&["leave", "--by", "ann", "--reason", "sold"]);
    assert!(told.starts_with("host laptop left;"), "{told}");
    assert!(!hosts.laptop.config().contains("ledger.git"));
    let told = hosts.laptop.fails(3, &["list"]);
    assert!(
        told.contains("shares its ledger with no other host"),
        "{told}"
    );
    hosts.tower.done(&["serve", "--once"]);
    let listed = hosts.tower.json(&["list"]);
    let row = &listed["data"]["hosts"][0];
    assert_eq!(
        (&row["name"], &row["is_retired"]),
        (&Value::from("laptop"), &Value::from(true))
    );
    let home = serde_json::json!(["claude", "codex", "gpt", "kimi", "pi"]);
    assert_eq!(listed["data"]["hosts"][1]["agents"], home);
    // The last host leaves without a record.
    let before = hosts.tower.ledger();
    hosts.tower.done(&["leave"]);
    assert_eq!(hosts.tower.ledger(), before);
}

#[test]
fn a_host_leaves_by_the_homes_that_the_log_has_then() {
    let hosts = Hosts::joined();
    let (third, log) = (hosts.third(), hosts.log("ledger.git"));
    third.done(&["join", &log, "--as", "box"]);
    // The ledger of the box does not have this yet.
    let moves = |to| ["move-home", "codex", "--to", to, "--by", "ann"];
    hosts.laptop.done(&moves("box"));
    let told = third.fails(6, &["leave"]);
    assert!(told.contains("agent codex is at home here"), "{told}");
    assert!(third.config().contains("ledger.git"));
    // The laptop does not have this yet, and a move begins where the home is.
    third.done(&moves("tower"));
    hosts.laptop.done(&moves("laptop"));
    third.done(&["leave"]);
    hosts.tower.done(&["serve", "--once"]);
    let listed = hosts.tower.json(&["list"]);
    let row = &listed["data"]["hosts"][0];
    assert_eq!(
        (&row["name"], &row["is_retired"]),
        (&Value::from("box"), &Value::from(true))
    );
}

#[test]
fn a_host_without_its_log_does_not_leave() {
    let hosts = Hosts::apart();
    let log = hosts.log("ledger.git");
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    // A host may have joined since.
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a repository to move");
    let told = hosts.tower.fails(9, &["leave"]);
    assert!(told.contains("if it is gone for good, remove"), "{told}");
    assert!(hosts.tower.config().contains("ledger.git"));
}

#[test]
fn a_host_that_lost_its_key_is_told_how_to_go_on_and_leaves_once_it_is_retired() {
    let hosts = Hosts::joined();
    fs::remove_file(hosts.laptop.0.join(".settled/host/key")).expect("a key");
    for command in [&["claim", "pi"][..], &["leave"], &["serve", "--once"]] {
        let told = hosts.laptop.fails(6, command);
        assert!(told.contains("host laptop has no key here"), "{told}");
        assert!(
            told.contains("settled host retire-key laptop") && told.contains(" --new-key --root "),
            "{told}"
        );
    }
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    hosts.laptop.done(&["leave"]);
    // The last host leaves with or without a key.
    fs::remove_file(hosts.tower.0.join(".settled/host/key")).expect("a key");
    hosts.tower.done(&["leave"]);
}

#[test]
fn a_claim_that_is_refused_makes_nothing() {
    let hosts = Hosts::joined();
    let before = hosts.tower.files();
    hosts.tower.fails(6, &["claim", "pi", "codex"]);
    assert_eq!(hosts.tower.files(), before);
    for command in [
        &["claim", "pi", "settled"][..],
        &["join", &hosts.log("ledger.git"), "--agents", "settled"],
        &["move-home", "settled", "--to", "laptop"],
    ] {
        let told = hosts.tower.fails(2, command);
        assert!(told.contains("is the daemon's own name"), "{told}");
    }
    assert_eq!(hosts.tower.files(), before);
}

#[test]
fn a_log_that_cannot_exist_is_answered_at_once() {
    let hosts = Hosts::joined();
    let begun = std::time::Instant::now();
    let third = hosts.third();
    let typo = hosts.path("typo.git");
    let typo = typo.display().to_string();
    for log in [&typo, "./typo.git", &format!("file://{typo}")] {
        let told = third.fails(3, &["join", log, "--as", "box"]);
        assert!(told.contains("there is no git repository at "), "{told}");
        let told = hosts.tower.fails(3, &["restore", log]);
        assert!(told.contains("there is no git repository at "), "{told}");
    }
    let nowhere = "https://ledger.invalid/ledger.git";
    let told = third.fails(9, &["join", nowhere, "--as", "box"]);
    assert!(told.contains("Could not resolve host"), "{told}");
    // A log that is away is waited for 20 s.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    assert!(!third.0.exists());
}

#[test]
fn a_join_that_waits_for_its_log_says_so_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let ssh = directory.path().join("ssh");
    // It connects, and nothing answers as long as its file is there.
    let script = "#!/bin/sh\nwhile test -e \"$0\"; do sleep 0.1; done\n";
    fs::write(&ssh, script).expect("a program");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a mode");
    let begun = std::time::Instant::now();
    let mut join = Command::new(env!("CARGO_BIN_EXE_settled-host"))
        .args(["join", "forge:ledger.git", "--as", "box"])
        .env("SETTLED_ROOT", directory.path().join("box"))
        .env("GIT_SSH_COMMAND", &ssh)
        .env("GIT_SSH_VARIANT", "ssh")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut told = String::new();
    let errors = BufReader::new(join.stderr.take().expect("its errors")).read_line(&mut told);
    errors.expect("text");
    let took = begun.elapsed();
    fs::remove_file(&ssh).expect("the program");
    join.kill().expect("it is our child");
    join.wait().expect("it is our child");
    assert!(
        told.contains("does not answer in time; waiting for it, at most 20s"),
        "{told}"
    );
    // It says so after 1 s; it gives up after 20 s.
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}

#[test]
fn mail_that_an_agent_has_moves_with_its_directory_and_arrives_again_without_it() {
    for is_copied in [true, false] {
        let hosts = Hosts::joined();
        for id in ["q-1", "q-2"] {
            hosts.laptop.ask("codex", "claude", id);
        }
        hosts.laptop.done(&["serve", "--once"]);
        hosts.tower.done(&["serve", "--once"]);
        let agent = hosts.tower.0.join("agents/claude");
        fs::rename(agent.join("inbox/q-1.yaml"), agent.join("archive/q-1.yaml"))
            .expect("mail to archive");
        if is_copied {
            let to = hosts.laptop.0.join("agents");
            let copied = Command::new("cp").arg("-a").arg(&agent).arg(to).status();
            assert!(copied.expect("cp runs").success());
        }
        hosts
            .laptop
            .done(&["move-home", "claude", "--to", "laptop", "--by", "ann"]);
        hosts.laptop.done(&["serve", "--once"]);
        let again = if is_copied {
            &["q-2.yaml"][..]
        } else {
            &["q-1.yaml", "q-2.yaml"]
        };
        assert_eq!(hosts.laptop.inbox("claude"), again, "copied: {is_copied}");
    }
}

#[test]
fn a_host_that_is_behind_follows_the_log_before_it_judges_a_change() {
    let hosts = Hosts::just_joined();
    assert!(!hosts.tower.ledger().contains("laptop"));
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    assert!(hosts.tower.ledger().contains("laptop"));
}

#[test]
fn a_host_whose_key_is_retired_joins_again_with_another_one() {
    let hosts = Hosts::joined();
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let told = hosts.tower.fails(6, &["retire-key", "nowhere"]);
    assert!(told.contains("`settled host list` has the hosts"), "{told}");
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(
        told.contains("the key of host laptop was retired"),
        "{told}"
    );
    let log = hosts.log("ledger.git");
    let join = ["join", &log, "--as", "laptop"];
    let told = hosts.laptop.fails(6, &join);
    assert!(told.contains("join with another key"), "{told}");
    hosts.laptop.pastes(&told);
    hosts.laptop.ask("codex", "claude", "q-1");
    hosts.laptop.done(&["serve", "--once"]);
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.inbox("claude"), ["q-1.yaml"]);
}

#[test]
fn a_valid_key_stays_whatever_the_log_and_the_command_line_say() {
    let hosts = Hosts::joined();
    let log = hosts.log("ledger.git");
    let join = ["join", &log, "--as", "tower", "--new-key"];
    let key = || fs::read_to_string(hosts.tower.0.join(".settled/host/key")).expect("a key");
    let before = key();
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a repository to move");
    hosts.tower.fails(3, &join);
    fs::rename(hosts.path("away.git"), hosts.path("ledger.git")).expect("a repository to move");
    assert_eq!(key(), before);
    let told = hosts.tower.done(&join);
    assert!(
        told.contains("its key is not retired, so it keeps that key"),
        "{told}"
    );
    assert_eq!(key(), before);
    hosts.tower.done(&["serve", "--once"]);
    // With a key that is retired, the second join finds the key of the first.
    hosts.laptop.done(&["retire-key", "tower", "--by", "ann"]);
    hosts.tower.done(&join);
    let after = key();
    assert_ne!(after, before);
    assert_eq!(hosts.tower.json(&join)["data"]["kept_key"], true);
    assert_eq!(key(), after);
    hosts.tower.done(&["serve", "--once"]);
}

#[test]
fn a_join_whose_answer_a_kill_lost_goes_on_with_its_key() {
    let hosts = Hosts::joined();
    let log = hosts.log("ledger.git");
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let own = hosts.laptop.0.join(".settled/host");
    let retired = fs::read_to_string(own.join("key")).expect("a key");
    hosts.laptop.done(&["join", &log, "--new-key"]);
    let joined = fs::read_to_string(own.join("key")).expect("a key");
    // The log has the record, and the key is not in its place yet.
    fs::rename(own.join("key"), own.join("key.next")).expect("a key to move");
    for (left, join) in [
        (Some(&retired), &["join", &*log][..]),
        (Some(&retired), &["join", &*log, "--new-key"]),
        (None, &["join", &*log]),
    ] {
        match left {
            Some(left) => fs::write(own.join("key"), left).expect("a key"),
            None => fs::remove_file(own.join("key")).expect("a key to remove"),
        }
        fs::write(own.join("key.next"), &joined).expect("a key");
        for key in ["key", "key.next"] {
            if let Ok(data) = fs::metadata(own.join(key)) {
                let mut mode = data.permissions();
                mode.set_mode(0o600);
                fs::set_permissions(own.join(key), mode).expect("a mode");
            }
        }
        hosts.laptop.done(join);
        let key = fs::read_to_string(own.join("key")).expect("a key");
        assert_eq!(key, joined, "{join:?}");
        hosts.laptop.done(&["serve", "--once"]);
    }
}

#[test]
fn a_refused_join_changes_nothing_in_its_workspace() {
    let hosts = Hosts::apart();
    let log = hosts.log("ledger.git");
    let first = &hosts.tower;
    fs::create_dir(&first.0).expect("a directory");
    fs::write(first.0.join("settled.toml"), "[rounds]\nmax = 3\n").expect("a config");
    first.done(&["join", &log, "--as", "tower", "--agents", "claude"]);
    // A workspace with a ledger of its own keeps its policy.
    let alone = &hosts.laptop;
    alone.done(&[
        "join",
        &hosts.log("spare.git"),
        "--as",
        "laptop",
        "--agents",
        "gem",
    ]);
    alone.done(&["leave"]);
    let before = alone.files();
    let token = hosts.path("token");
    fs::write(&token, "s3cret").expect("a token");
    let token = token.display().to_string();
    let told = alone.fails(6, &["join", &log, "--as", "laptop", "--token", &token]);
    assert!(told.contains("has a ledger of its own"), "{told}");
    assert_eq!(alone.files(), before);
    // A directory that was not there is not there, so the next command can leave the agent out.
    let third = hosts.third();
    let told = third.fails(6, &["join", &log, "--as", "box", "--agents", "claude"]);
    assert!(told.contains("agent claude is at home on tower"), "{told}");
    assert!(!third.0.exists(), "{:?}", third.files());
    let told = third.done(&["join", &log, "--as", "box"]);
    assert!(told.contains("at home here: no agent"), "{told}");
}

#[test]
fn a_host_does_not_go_to_an_empty_log_without_the_others() {
    let hosts = Hosts::just_joined();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    // The tower does not know of the laptop yet, and the laptop knows of the tower.
    for (host, others) in [
        (&hosts.tower, "hosts that joined since"),
        (&hosts.laptop, "tower"),
    ] {
        let before = host.config();
        let told = host.fails(6, &["join", &spare]);
        let why = format!(
            "{spare} is empty, and this host shares the ledger at {log}: there it would go on without {others}"
        );
        assert!(told.contains(&why), "{told}");
        assert!(
            told.contains(&format!("  try: settled host restore {spare} --root ")),
            "{told}"
        );
        assert_eq!(host.config(), before);
    }
    // All of them go as they are told.
    let told = hosts.laptop.fails(6, &["join", &spare]);
    hosts.laptop.pastes(&told);
    hosts.tower.done(&["join", &spare]);
    hosts.tower.ask("claude", "codex", "q-1");
    hosts.tower.done(&["serve", "--once"]);
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml"]);
}

#[test]
fn the_commands_that_a_join_and_a_daemon_suggest_can_be_pasted() {
    let hosts = Hosts::apart();
    git(
        hosts.directory.path(),
        &["init", "--quiet", "--bare", "the team's.git"],
    );
    let log = hosts.log("the team's.git");
    for (host, name) in [(&hosts.tower, "tower"), (&hosts.laptop, "laptop")] {
        host.done(&["join", &log, "--as", name]);
    }
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(
        told.contains("the key of host laptop was retired"),
        "{told}"
    );
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    hosts.laptop.pastes(&told);
    hosts.laptop.done(&["serve", "--once"]);
    // It is a host of that log already: the suggestion joins it again as that.
    let told = hosts
        .laptop
        .fails(2, &["join", &log, "--workspace", "other", "--as", "box"]);
    hosts.laptop.pastes(&told);
    // Another policy is shown, since a host that has not joined has no command to take it.
    hosts.tower.done(&["serve", "--once"]);
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    let third = hosts.third();
    fs::create_dir(&third.0).expect("a directory");
    fs::write(third.0.join("settled.toml"), "[rounds]\nmax = 1\n").expect("a config");
    let told = third.fails(6, &["join", &log, "--as", "box"]);
    assert!(told.contains("[rounds]\nmax = 3\n"), "{told}");
}

#[test]
fn a_host_that_knows_of_its_retired_key_follows_the_log_to_join_again() {
    let hosts = Hosts::joined();
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(
        told.contains("the key of host laptop was retired"),
        "{told}"
    );
    // Its ledger ends with the retirement, and the others go on, also under another policy.
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    hosts.tower.ask("claude", "codex", "q-1");
    hosts.tower.done(&["serve", "--once"]);
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    hosts.tower.ask("claude", "codex", "q-2");
    hosts.tower.done(&["serve", "--once"]);
    // What waits here is judged once the host has joined, not while it joins.
    hosts.laptop.ask("codex", "claude", "q-3");
    let log = hosts.log("ledger.git");
    let records = hosts.tower.ledger().lines().count();
    let told = hosts
        .laptop
        .done(&["join", &log, "--as", "laptop", "--new-key"]);
    assert!(told.contains("the policy of the other hosts now"), "{told}");
    let ledger = hosts.laptop.ledger();
    assert!(ledger.starts_with(&hosts.tower.ledger()), "{ledger}");
    assert_eq!(ledger.lines().count(), records + 1, "{ledger}");
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml", "q-2.yaml"]);
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.inbox("claude"), ["q-3.yaml"]);
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
}

/// The laptop's key is retired and another machine joined as the laptop; the first one does not know it yet.
fn replaced(hosts: &Hosts) -> Host {
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let other = hosts.third();
    let log = hosts.log("ledger.git");
    other.done(&["join", &log, "--as", "laptop"]);
    other
}

#[test]
fn a_host_that_another_machine_replaced_records_nothing_and_says_why() {
    let hosts = Hosts::joined();
    let other = replaced(&hosts);
    let commands: [&[&str]; 6] = [
        &["serve", "--once"],
        &["claim", "pi"],
        &["move-home", "claude", "--to", "laptop"],
        &["retire-key", "tower"],
        &["retire-key", "laptop"],
        &["policy", "--give"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let laptop = Host(hosts.path(&format!("laptop-{number}")));
        let copied = Command::new("cp")
            .arg("-a")
            .args([&hosts.laptop.0, &laptop.0])
            .status();
        assert!(copied.expect("cp runs").success());
        if command[0] == "policy" {
            let config = laptop.config() + "\n[rounds]\nmax = 3\n";
            fs::write(laptop.0.join("settled.toml"), config).expect("a config");
        }
        laptop.ask("codex", "claude", "q-1");
        // At first the ledger here does not tell of the other machine.
        for _ in 0..2 {
            let told = laptop.fails(6, command);
            for part in [
                "another machine joined as host laptop",
                "`settled host retire-key laptop` on another host",
                "--new-key",
            ] {
                assert!(told.contains(part), "{command:?}: {told}");
            }
            // A daemon that learned it while it served names its status instead.
            let (log, root) = (hosts.log("ledger.git"), laptop.0.display());
            let join =
                format!("host join {log} --workspace mailroom --as laptop --new-key --root {root}");
            let is_told = told.ends_with(&format!("  try: settled {join}\n"));
            assert!(is_told || command[0] == "serve", "{command:?}: {told}");
        }
    }
    hosts.tower.done(&["serve", "--once"]);
    other.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.ledger(), other.ledger());
    assert!(hosts.tower.inbox("claude").is_empty());
}

#[test]
fn a_host_that_another_machine_replaced_leaves_and_does_not_retire_the_key_of_that_one() {
    let hosts = Hosts::joined();
    hosts
        .laptop
        .done(&["move-home", "codex", "--to", "tower", "--by", "ann"]);
    let other = replaced(&hosts);
    let told = hosts.laptop.fails(6, &["leave"]);
    assert!(
        told.contains("another machine joined as host laptop"),
        "{told}"
    );
    // It knows now that it is out, and that there is nothing to record.
    let left = hosts.laptop.done(&["leave"]);
    assert!(left.starts_with("host laptop left;"), "{left}");
    other.done(&["serve", "--once"]);
}

#[test]
fn hosts_leave_a_record_that_breaks_the_rules_behind_in_another_log() {
    let hosts = Hosts::joined();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    // A commit that no host could follow stands for a record of a program that is not ours.
    let other = hosts.third();
    other.done(&["join", &log, "--as", "box"]);
    let ledger = hosts.path("ledger.git");
    let forge = "commit=$(git cat-file commit refs/settled/mailroom | sed 's/^Settled-Host: .*/Settled-Host: laptop/' \
         | git hash-object -t commit -w --stdin) && git update-ref refs/settled/mailroom $commit";
    let forged = Command::new("sh")
        .args(["-c", forge])
        .current_dir(&ledger)
        .status();
    assert!(forged.expect("a shell runs").success());
    for host in [&hosts.tower, &hosts.laptop] {
        let told = host.fails(6, &["serve", "--once"]);
        assert!(told.contains("frozen at record 3"), "{told}");
    }
    hosts.tower.done(&["restore", &spare]);
    hosts.laptop.done(&["join", &spare]);
    hosts.laptop.ask("codex", "claude", "q-1");
    for host in [&hosts.laptop, &hosts.tower] {
        host.done(&["serve", "--once"]);
    }
    assert_eq!(hosts.tower.inbox("claude"), ["q-1.yaml"]);
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
}

#[test]
fn a_host_with_a_new_key_does_not_sign_what_it_judged_before_it_shared_its_ledger() {
    let hosts = Hosts::apart();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    let agents = ["claude", "pi"].map(|agent| agent.parse().expect("a name"));
    workspace::directory::init(&hosts.tower.0, &agents).expect("a workspace");
    hosts.tower.ask("claude", "pi", "q-1");
    daemon::serve::serve_once(&hosts.tower.0).expect("a run");
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    hosts
        .laptop
        .done(&["join", &log, "--as", "laptop", "--agents", "codex"]);
    hosts.laptop.done(&["retire-key", "tower", "--by", "ann"]);
    hosts.tower.done(&["join", &log, "--new-key"]);
    hosts.laptop.done(&["serve", "--once"]);
    let told = hosts.tower.fails(6, &["restore", &spare]);
    assert!(
        told.contains("`settled host restore` on another host"),
        "{told}"
    );
    hosts.laptop.done(&["restore", &spare]);
    hosts.tower.done(&["join", &spare]);
    let third = hosts.third();
    third.done(&["join", &spare, "--as", "box"]);
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(third.ledger(), hosts.tower.ledger());
}

/// A tower with a record from before it shared its ledger.
fn tower_with_a_past(hosts: &Hosts) {
    let agents = ["claude", "pi"].map(|agent| agent.parse().expect("a name"));
    workspace::directory::init(&hosts.tower.0, &agents).expect("a workspace");
    hosts.tower.ask("claude", "pi", "q-1");
    daemon::serve::serve_once(&hosts.tower.0).expect("a run");
}

#[test]
fn a_host_with_a_new_key_does_not_begin_another_log_with_what_it_judged_before() {
    let hosts = Hosts::apart();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    tower_with_a_past(&hosts);
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    hosts.laptop.done(&["join", &log, "--as", "laptop"]);
    hosts.laptop.done(&["retire-key", "tower", "--by", "ann"]);
    hosts.tower.done(&["join", &log, "--new-key"]);
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    hosts.tower.done(&["leave"]);
    let told = hosts.tower.fails(6, &["join", &spare, "--as", "tower"]);
    assert!(
        told.contains("only the key that this host had then"),
        "{told}"
    );
    // The laptop is out, and has the signatures all the same.
    hosts.laptop.fails(6, &["serve", "--once"]);
    hosts.laptop.done(&["restore", &spare]);
    hosts.tower.done(&["join", &spare, "--as", "tower"]);
    hosts.third().done(&["join", &spare, "--as", "box"]);
}

#[test]
fn a_first_join_goes_on_only_with_the_key_that_signed_its_records() {
    let hosts = Hosts::apart();
    let (log, repository) = (hosts.log("ledger.git"), hosts.path("ledger.git"));
    tower_with_a_past(&hosts);
    // The log takes the ledger, and then not the join.
    decide_pushes(&repository, "test ! -e refs/settled/mailroom");
    hosts.tower.fails(9, &["join", &log, "--as", "tower"]);
    fs::remove_file(repository.join("hooks/pre-receive")).expect("a hook");
    let told = hosts
        .tower
        .fails(6, &["join", &log, "--as", "tower", "--new-key"]);
    assert!(
        told.contains("record 1 of the log is signed with another key"),
        "{told}"
    );
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    hosts.laptop.done(&["join", &log, "--as", "laptop"]);
}

#[test]
fn a_host_that_judged_alone_since_it_left_brings_its_ledger_to_no_log() {
    let hosts = Hosts::apart();
    tower_with_a_past(&hosts);
    hosts
        .tower
        .done(&["join", &hosts.log("ledger.git"), "--as", "tower"]);
    hosts.tower.done(&["leave"]);
    hosts.tower.ask("claude", "pi", "q-2");
    daemon::serve::serve_once(&hosts.tower.0).expect("a run");
    let told = hosts
        .tower
        .fails(6, &["join", &hosts.log("spare.git"), "--as", "tower"]);
    assert!(
        told.contains("judged record 3 while it shared nothing"),
        "{told}"
    );
}

#[test]
fn a_host_whose_key_is_retired_changes_nothing_and_names_the_command() {
    let hosts = Hosts::joined();
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    for _ in 0..2 {
        let told = hosts.laptop.fails(6, &["claim", "pi"]);
        assert!(
            told.contains("the key of host laptop was retired\n  try: settled host join /"),
            "{told}"
        );
        assert!(told.contains(" --new-key --root "), "{told}");
    }
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(told.contains(" --new-key --root "), "{told}");
    hosts.tower.done(&["serve", "--once"]);
    // Its agents are at home under its name, and only another host can move them now.
    hosts.laptop.done(&["leave"]);
}

#[test]
fn all_hosts_judge_by_one_policy() {
    let hosts = Hosts::joined();
    let told = hosts.laptop.done(&["policy"]);
    assert_eq!(told, "the defaults\nthis host has the same\n");
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    let told = hosts.tower.fails(6, &["check"]);
    assert!(told.contains("fix: settled host policy --take"), "{told}");
    assert_eq!(hosts.tower.json(&["policy"])["data"]["is_same"], false);
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    let told = hosts.tower.done(&["policy"]);
    assert!(
        told.contains("max = 3") && told.ends_with("this host has the same\n"),
        "{told}"
    );
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(told.contains("settled host policy --take"), "{told}");
    let told = hosts.laptop.done(&["policy", "--take"]);
    assert!(told.ends_with("this host has the same\n"), "{told}");
    assert!(hosts.laptop.config().contains("max = 3"));
    hosts.laptop.done(&["serve", "--once"]);
    // A host that joins judges the records before the change by the policy of their time.
    let third = hosts.third();
    let told = third.done(&["join", &hosts.log("ledger.git"), "--as", "box"]);
    assert!(
        told.contains("settled.toml has the policy of the other hosts now\n"),
        "{told}"
    );
    assert!(third.config().contains("max = 3"));
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(third.ledger(), hosts.tower.ledger());
}

#[test]
fn a_host_that_is_behind_records_nothing_by_an_old_policy_and_takes_that_of_the_log() {
    let hosts = Hosts::joined();
    let third = hosts.third();
    third.done(&["join", &hosts.log("ledger.git"), "--as", "box"]);
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    let told = hosts.laptop.done(&["policy", "--take"]);
    assert_eq!(told, "[rounds]\nmax = 3\nthis host has the same\n");
    assert!(hosts.laptop.config().contains("max = 3"));
    let claim = ["claim", "pi"];
    let told = third.fails(6, &claim);
    assert!(told.contains("settled host policy --take"), "{told}");
    third.done(&["policy", "--take"]);
    let told = third.done(&claim);
    assert!(told.starts_with("recorded: "), "{told}");
}

#[test]
fn a_default_that_one_host_writes_out_is_no_other_policy() {
    let hosts = Hosts::joined();
    let written = "\n[rounds]\nmax = 2\n";
    fs::write(
        hosts.laptop.0.join("settled.toml"),
        hosts.laptop.config() + written,
    )
    .expect("a config");
    hosts.laptop.done(&["check"]);
    assert_eq!(hosts.laptop.json(&["policy"])["data"]["is_same"], true);
    hosts.laptop.done(&["serve", "--once"]);
    let third = hosts.third();
    fs::create_dir(&third.0).expect("a directory");
    fs::write(third.0.join("settled.toml"), written).expect("a config");
    third.done(&["join", &hosts.log("ledger.git"), "--as", "box"]);
    // Also written out for all, it is what the tower has.
    hosts.laptop.done(&["policy", "--give", "--by", "ann"]);
    for host in [&hosts.tower, &third] {
        host.done(&["serve", "--once"]);
    }
    assert_eq!(hosts.tower.ledger(), third.ledger());
}

#[test]
fn a_daemon_that_began_with_another_policy_records_it_for_all() {
    let hosts = Hosts::joined();
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    let mut daemon = hosts.tower.serving();
    let told = hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    assert!(told.starts_with("recorded: ann: changed"), "{told}");
    drop(daemon.stdin.take());
    assert!(daemon.wait().expect("its end").success());
    // The tower is in step again; the laptop still has the old policy.
    hosts.tower.done(&["serve", "--once"]);
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(told.contains("settled host policy --take"), "{told}");
}

#[test]
fn what_the_log_lost_is_put_back_and_a_lost_log_is_restored() {
    let hosts = Hosts::joined();
    hosts.tower.ask("claude", "codex", "q-1");
    hosts.tower.done(&["serve", "--once"]);
    let (log, before) = (hosts.log("ledger.git"), hosts.tower.ledger());
    let lose = [
        "update-ref",
        "refs/settled/mailroom",
        "refs/settled/mailroom~1",
    ];
    git(&hosts.path("ledger.git"), &lose);
    let told = hosts.tower.fails(6, &["join", &log, "--as", "tower"]);
    assert!(
        told.contains("1 more from it: `settled host republish` puts them back"),
        "{told}"
    );
    let told = hosts.tower.done(&["republish"]);
    let said = format!(
        "the log at {log} had records up to 2; 1 were put back, and it ends with record 3 now\n\
         the daemons of the other frozen hosts go on by themselves\nnext: settled serve"
    );
    assert!(told.starts_with(&said), "{told}");
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.ledger(), before);
    // If the log went on without the lost records, nothing is put back.
    git(&hosts.path("ledger.git"), &lose);
    let third = hosts.third();
    third.done(&["join", &log, "--as", "box"]);
    let told = hosts.tower.fails(6, &["republish"]);
    assert!(
        told.contains("record 3 of the log is not this host's"),
        "{told}"
    );
    let told = hosts.tower.fails(6, &["join", &log, "--as", "tower"]);
    assert!(
        told.contains("has a ledger of its own, with 3 records"),
        "{told}"
    );

    let spare = hosts.log("spare.git");
    let told = hosts.tower.done(&["restore", &spare]);
    let said = "had records up to 0; 3 were put back, and it ends with record 3 now\nnext: ";
    assert!(told.contains(said), "{told}");
    assert!(hosts.tower.config().contains("spare.git"));
    hosts.laptop.done(&["join", &spare]);
    hosts.tower.ask("claude", "codex", "q-2");
    hosts.tower.done(&["serve", "--once"]);
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml", "q-2.yaml"]);
    // This host's ledger ends before the log: there is nothing to put back.
    hosts.tower.ask("claude", "codex", "q-3");
    hosts.tower.done(&["serve", "--once"]);
    let told = hosts.laptop.fails(6, &["republish"]);
    assert!(told.contains("there is nothing to put back"), "{told}");
}

#[test]
fn a_join_that_does_not_fit_is_refused_before_anything_is_written() {
    let hosts = Hosts::joined();
    let (log, third) = (hosts.log("ledger.git"), hosts.third());
    let told = third.fails(2, &["join", &log, "--workspace", "a b", "--as", "box"]);
    assert!(told.contains("expected 1 to 64 letters"), "{told}");
    let told = third.fails(2, &["join", "nats://me:s3cret@one", "--as", "box"]);
    assert!(told.contains("holds a password"), "{told}");
    let told = third.fails(6, &["join", &log, "--as", "box", "--agents", "codex"]);
    assert!(
        told.contains("settled host move-home codex --from laptop --to HOST"),
        "{told}"
    );
    let told = third.fails(6, &["join", &log, "--as", "tower"]);
    assert!(
        told.contains("host tower has joined with another key"),
        "{told}"
    );
    let told = hosts.laptop.fails(2, &["join", &log, "--as", "box"]);
    assert!(
        told.contains("is mailroom on host laptop already"),
        "{told}"
    );
    fs::create_dir(&third.0).expect("a directory");
    fs::write(third.0.join("settled.toml"), "[rounds]\nmax = 3\n").expect("a config");
    let told = third.fails(6, &["join", &log, "--as", "box"]);
    assert!(
        told.contains("its policy is not that of the other hosts"),
        "{told}"
    );
    hosts.tower.done(&["serve", "--once"]);
    let listed = hosts.tower.json(&["list"]);
    assert_eq!(listed["data"]["hosts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_command_needs_a_workspace_that_shares_its_ledger() {
    let hosts = Hosts::apart();
    let told = hosts.tower.fails(3, &["list"]);
    assert!(told.contains("is not a workspace"), "{told}");
    let none = Command::new(env!("CARGO_BIN_EXE_settled-host"))
        .args(["list", "--json"])
        .env_remove("SETTLED_ROOT")
        .output()
        .expect("the program runs");
    assert_eq!(none.status.code(), Some(5));
    let answer: Value = serde_json::from_slice(&none.stdout).expect("a JSON document");
    assert_eq!(answer["ok"], false);
    let told = String::from_utf8_lossy(&none.stderr);
    assert!(
        told.starts_with("settled host: no workspace given"),
        "{told}"
    );
}

#[test]
fn a_remote_that_takes_a_second_to_answer_is_as_good_as_a_fast_one() {
    use std::os::unix::fs::PermissionsExt as _;
    let hosts = Hosts::apart();
    let ssh = hosts.path("ssh");
    let script = "#!/bin/sh\nfor last; do :; done\nsleep 1\nexec sh -c \"$last\"\n";
    fs::write(&ssh, script).expect("a program");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a mode");
    let log = format!("forge:{}", hosts.log("ledger.git"));
    let (tower, laptop) = (&hosts.tower, &hosts.laptop);
    let join = ["join", &log, "--as", "tower", "--agents", "claude"];
    tower.done_over(&ssh, &join);
    tower.done_over(&ssh, &["serve", "--once"]);
    let join = ["join", &log, "--as", "laptop", "--agents", "codex,pi"];
    laptop.done_over(&ssh, &join);
    let check = tower.done_over(&ssh, &["check"]);
    assert!(check.contains("answers, with records up to 2"), "{check}");
    let moved = [
        "move-home",
        "pi",
        "--to",
        "tower",
        "--by",
        "ann",
        "--reason",
        "x",
    ];
    laptop.done_over(&ssh, &moved);
    tower.ask("claude", "codex", "q1");
    tower.done_over(&ssh, &["serve", "--once"]);
    laptop.done_over(&ssh, &["serve", "--once"]);
    assert_eq!(laptop.inbox("codex"), ["q1.yaml"]);
}

#[test]
fn a_check_says_what_is_well_and_names_a_repository_that_does_not_answer() {
    let hosts = Hosts::joined();
    let log = hosts.log("ledger.git");
    let well = format!(
        "ok     host tower has joined with the key it has here\n\
         ok     all hosts judge by the policy in settled.toml\n\
         ok     {log} answers, with records up to 2; a push is as durable as its server makes it\n"
    );
    assert_eq!(hosts.tower.done(&["check"]), well);
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a new name");
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains(&format!("\nwrong  {log} does not answer: ")),
        "{told}"
    );
    assert!(
        told.contains("\n       fix: repair the network or the repository\n"),
        "{told}"
    );
}

#[test]
fn output_that_nobody_reads_is_no_failure_and_a_full_disk_is_one() {
    let hosts = Hosts::just_joined();
    let list_into = |out: Stdio| {
        let mut list = Command::new(env!("CARGO_BIN_EXE_settled-host"));
        list.arg("list").env("SETTLED_ROOT", &hosts.tower.0);
        list.stdout(out).output().expect("the program runs")
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let unread = list_into(writer.into());
    assert_eq!(unread.status.code(), Some(0), "{unread:?}");
    let full = fs::File::options().write(true).open("/dev/full");
    let full = list_into(full.expect("a device").into());
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    let told = String::from_utf8_lossy(&full.stderr);
    assert!(told.contains("No space left on device"), "{told}");
}

#[test]
fn a_run_logs_in_the_form_that_is_asked_for() {
    let hosts = Hosts::joined();
    let told = hosts
        .tower
        .run(&["serve", "--once", "--log-format", "json"]);
    let told = String::from_utf8(told.stderr).expect("text");
    assert!(!told.is_empty());
    for line in told.lines() {
        let line: Value = serde_json::from_str(line).expect("a JSON object in each line");
        assert!(line["level"].is_string(), "{line}");
    }
    let told = hosts.tower.fails(2, &["serve", "--log-format", "xml"]);
    assert!(told.contains("expected text, json or journald"), "{told}");
}

#[test]
fn a_check_of_a_frozen_host_says_why_and_names_the_cure() {
    let hosts = Hosts::joined();
    let ledger = hosts.path("ledger.git");
    hosts.laptop.done(&["serve", "--once"]);
    hosts.tower.ask("claude", "codex", "q1");
    hosts.tower.done(&["serve", "--once"]);
    let reference = "refs/settled/ledger";
    let all = fs::read_dir(ledger.join("refs/settled")).expect("a directory");
    let name = all.map(|file| file.expect("a file").file_name()).next();
    let name = name.expect("a ref").to_string_lossy().into_owned();
    let reference = reference.replace("ledger", &name);
    git(&ledger, &["update-ref", "refs/kept", &reference]);
    git(
        &ledger,
        &["update-ref", &reference, &format!("{reference}~1")],
    );
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("wrong  this host is frozen, because the log lost records"),
        "{told}"
    );
    assert!(told.contains("settled host republish"), "{told}");
    // Another host goes on without the lost record.
    hosts.laptop.ask("codex", "claude", "q2");
    hosts.laptop.done(&["serve", "--once"]);
    hosts.tower.fails(6, &["serve", "--once"]);
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("has other records in the place of its own"),
        "{told}"
    );
    assert!(told.contains("Two histories"), "{told}");
    // Something that is no batch.
    git(&ledger, &["update-ref", &reference, "refs/kept"]);
    let script = format!(
        "git config user.name x; git config user.email x
         git update-ref {reference} $(git commit-tree -p {reference} -m hello {reference}^{{tree}})"
    );
    let done = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(&ledger)
        .status();
    assert!(done.expect("sh runs").success());
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("wrong  this host is frozen: the log is damaged"),
        "{told}"
    );
    assert!(!told.contains("does not answer"), "{told}");
    // Once the log is whole, what is left is a daemon that has to look again.
    git(&ledger, &["update-ref", &reference, "refs/kept"]);
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("the daemon goes on by itself once it serves"),
        "{told}"
    );
    hosts.tower.done(&["serve", "--once"]);
    hosts.tower.done(&["check"]);
}
