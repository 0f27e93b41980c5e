//! A host joins a log: the first one brings its ledger, the others take it over, and a join can fail or wait.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;

use std::process::{Command, Stdio};

use serde_json::Value;

use super::hosts::Hosts;
use crate::executable::executable;

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

#[test]
fn a_first_host_has_joined_once_the_log_has_its_record() {
    let hosts = Hosts::apart();
    let log = hosts.log("ledger.git");
    let join = ["join", &log, "--as", "tower", "--agents", "claude"];
    hosts.decide_pushes("exit 1");
    let told = hosts
        .tower
        .fails(9, &[&join[..], &["--wait", "1"]].concat());
    assert!(told.contains("pre-receive hook declined"), "{told}");
    assert_eq!(hosts.tower.ledger(), "");
    // The log does not have it, so this host goes on alone.
    assert!(!hosts.tower.config().contains("ledger.git"));
    daemon::serve::serve_once(&hosts.tower.0).expect("a run of a host that is alone");
    // An answer that comes late is waited for.
    hosts.decide_pushes("sleep 2");
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
    hosts.decide_pushes("sleep 1");
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
    // A log that is away is waited for 30 s.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    assert!(!third.0.exists());
}

#[test]
fn a_join_that_waits_for_its_log_says_so_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let ssh = directory.path().join("ssh");
    // It connects, and nothing answers as long as its file is there.
    let script = "#!/bin/sh\nwhile test -e \"$0\"; do sleep 0.1; done\n";
    executable(&ssh, script.as_bytes());
    let begun = std::time::Instant::now();
    let mut join = Command::new(env!("CARGO_BIN_EXE_settled-host"))
        .args(["join", "forge:ledger.git", "--as", "box", "--wait", "20"])
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
        told.contains("does not answer in time; waiting for it, at most 20s (--wait)"),
        "{told}"
    );
    // It says so after 1 s; it gives up after 20 s.
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
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
        told.contains("its policy differs from that of the other hosts"),
        "{told}"
    );
    hosts.tower.done(&["serve", "--once"]);
    let listed = hosts.tower.json(&["list"]);
    assert_eq!(listed["data"]["hosts"].as_array().map(Vec::len), Some(2));
}
