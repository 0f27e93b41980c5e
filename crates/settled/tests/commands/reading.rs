//! Tests what the reading commands show of the recorded workspace.

use std::io::Read as _;

use super::desk::Desk;
use super::pseudo_terminal;

#[test]
fn an_agent_sees_its_mail_its_reviews_and_its_next_step() {
    let desk = Desk::recorded();
    for agent in ["claude", "codex", "gemini"] {
        desk.check(
            agent,
            &format!("agent-{agent}.txt"),
            &[
                "settled",
                "settled robot triage",
                "settled inbox",
                "settled inbox --limit 1 --json",
                "settled wait --timeout 0",
                "settled wait --timeout 0 --for verdict",
                "settled wait --timeout 0 --for reply --id q-1 --json",
                "settled wait --timeout 0 --pr 88 --json",
                "settled hook session-start",
                "settled hook turn-end --for codex",
                "settled dead-letter list",
                "settled threads 86",
                "settled brief",
            ],
        );
    }
}

#[test]
fn a_person_sees_every_review_and_what_needs_action() {
    Desk::recorded().check(
        "",
        "person.txt",
        &[
            "settled status",
            "settled status --all --limit 1 --json",
            "settled problems",
            "settled problems --limit 1 --json",
            "settled why 86",
            "settled why 86 --json",
            "settled why 88",
            "settled threads 86",
            "settled threads 86 --reviewer codex --json",
            "settled watch --once",
            "settled watch --once --json --review 86",
            "settled dead-letter list",
            "settled dead-letter list --json",
            "settled dead-letter show fb-86-2",
            "settled dead-letter show bad-1 --json",
        ],
    );
}

#[test]
fn the_ledger_is_shown_traced_and_verified() {
    Desk::recorded().check(
        "",
        "ledger.txt",
        &[
            "settled log",
            "settled log -n 2",
            "settled log -n 0",
            "settled log --verdict refused",
            "settled log --pr 88 -n 1 --json",
            "settled log --of gemini",
            "settled trace fb-86-2",
            "settled trace req-86 --json",
            "settled ledger verify",
            "settled ledger verify | settled ledger verify --from -",
            "settled ledger verify --expect sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "settled gc --dry-run",
            "settled gc --json",
            "settled simulate --ledger \"$SETTLED_ROOT\" --config \"$SETTLED_ROOT/settled.toml\"",
        ],
    );
}

#[test]
fn each_message_is_shown_with_its_packet_and_with_what_to_do_about_it() {
    let desk = Desk::recorded();
    let mail = [
        ("claude", ["req-88", "fb-86", "q-1"]),
        ("codex", ["req-86-2", "lgtm-88", "a-86"]),
        ("gemini", ["req-87", "", "q-1"]),
    ];
    for (agent, ids) in mail {
        let lines = ids.map(|id| format!("settled show {id}"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        desk.check(agent, &format!("show-{agent}.txt"), &lines);
    }
}

#[test]
fn an_approval_is_checked_and_exported_for_its_commit_alone() {
    let desk = Desk::recorded();
    desk.check(
        "",
        "gate.txt",
        &[
            "settled gate check --pr 88 --head 8888888",
            "settled gate check --pr 88 --head 1111111111111111111111111111111111111111",
            "settled gate check --pr 86 --head 2222222222222222222222222222222222222222",
            "settled gate check --pr 88 --head 8888888 --reviewer gemini --json",
            "settled gate check --pr 99 --head 8888888",
            "settled verdict export 99",
            "settled verdict export 88 --json",
            "settled verdict export 88 --reviewer gemini -o none.txt",
        ],
    );
}

#[test]
fn mail_is_taken_once_and_put_away_as_often_as_somebody_likes() {
    Desk::recorded().check(
        "claude",
        "mail.txt",
        &[
            "settled take q-1",
            "settled take q-1",
            "settled show q-1 | head -1",
            "settled done q-1 req-88",
            "settled done q-1",
            "settled show q-1 --json",
            "settled take",
            "settled done none",
            "settled dead-letter dismiss bad-1",
            "settled dead-letter list",
            "settled dead-letter dismiss bad-1",
        ],
    );
}

/// The bytes by which a program takes over the screen.
const SCREEN: &[u8] = b"\x1b[?1049h";

#[test]
fn only_a_terminal_that_is_watched_is_drawn_on() {
    let desk = Desk::recorded();
    let begin = |line: &str| {
        let (mut near, far) = pseudo_terminal::open(100, 30);
        let mut watch = desk.on_terminal(line, far);
        let mut first = [0; SCREEN.len()];
        near.read_exact(&mut first).expect("it prints something");
        watch.kill().expect("it is our child");
        watch.wait().expect("it is our child");
        first
    };
    assert_eq!(begin("exec settled watch"), SCREEN);
    for line in [
        "settled watch --once",
        "exec settled watch --json",
        "TERM=dumb exec settled watch",
    ] {
        assert_ne!(begin(line), SCREEN, "{line}");
    }
    let line = "mkfifo out; TERM=xterm settled watch > out & head -c 9 out; kill $!";
    assert_eq!(desk.run("", line).out, "{\"schema_");
}

#[test]
fn what_follows_the_ledger_ends_well_when_its_reader_has_gone() {
    for command in ["watch --json", "log --follow"] {
        let desk = Desk::recorded();
        let line = format!(
            "mkfifo out; settled {command} > out & read -r first < out; \
             settled send question --to codex --subject s --body b --agent claude --no-wait; wait $!"
        );
        let said = desk.run("claude", &line);
        assert_eq!(said.exit, 0, "{command}: {said:?}");
    }
}
