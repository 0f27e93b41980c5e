//! Files between two hosts: judged by the host of the sender, delivered by that of the reader.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::hosts::Hosts;

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
            "could not deliver, archive or sync 1 files, nor read 0 files or directories",
        ),
        (
            "outbox",
            "could not deliver, archive or sync 0 files, nor read 1 files or directories",
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
    let served = hosts.tower.fails(9, &["serve", "--once", "--wait", "1"]);
    let checked = hosts.tower.fails(6, &["check", "--wait", "1"]);
    assert!(served.contains("cannot reach the ledger"), "{served}");
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
