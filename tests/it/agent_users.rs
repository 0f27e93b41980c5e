//! Agents with users of their own, as real users: what each can do, what none can, and what happens to files of
//! another. Needs root, to become all of them.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::seed::{self, Post};
use settled_tests::{binaries, copy_program, ledger, names, read, wait};

const DAEMON: u32 = 61_000;
const CLAUDE: u32 = 61_001;
const CODEX: u32 = 61_002;
const AGENTS: &str = "claude=61001,codex=61002";

/// A workspace whose agents and daemon are three users.
struct Room {
    mailroom: Mailroom,
    /// A copy of the program where every user can run it.
    program: PathBuf,
}

/// A running daemon; dropping the value ends it.
struct Served {
    child: Child,
    log: PathBuf,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn uid_of(agent: &str) -> u32 {
    if agent == "claude" { CLAUDE } else { CODEX }
}

impl Room {
    fn new() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        assert!(
            is_root,
            "this test acts as several users and needs root: run it as root, or in a container"
        );
        let mailroom = Mailroom::absent();
        let above = mailroom
            .root()
            .parent()
            .expect("it is in a directory")
            .to_owned();
        std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o755))
            .expect("permissions");
        let program = above.join("settled");
        copy_program(&binaries::settled(), &program);
        let room = Self { mailroom, program };
        let made = room.init(&["--agents", AGENTS, "--daemon", "61000"]);
        assert!(made.status.success(), "{}", said(&made));
        room
    }

    fn init(&self, args: &[&str]) -> Output {
        self.mailroom
            .run(&[&["init", "--separate-users"], args].concat())
    }

    /// Runs a script as a user, in the root of the workspace.
    fn act(&self, uid: u32, script: &str) -> Output {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("umask 022\n{script}")])
            .current_dir(self.mailroom.root());
        shell
            .env("SETTLED", &self.program)
            .uid(uid)
            .gid(uid)
            .stdin(Stdio::null());
        shell.output().expect("a shell")
    }

    /// Writes a file as a user, under another name first.
    fn write(&self, uid: u32, path: &str, text: &str) {
        let mut shell = Command::new("sh");
        let script = format!("umask 022; cat > '{path}.tmp' && mv '{path}.tmp' '{path}'");
        shell
            .args(["-c", &script])
            .current_dir(self.mailroom.root())
            .uid(uid)
            .gid(uid)
            .stdin(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        child
            .stdin
            .take()
            .expect("piped")
            .write_all(text.as_bytes())
            .expect("the shell reads");
        assert!(
            child.wait().expect("our child").success(),
            "{uid} cannot write {path}"
        );
    }

    fn serve(&self) -> Served {
        let log = self.mailroom.root().with_extension("log");
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .expect("a log");
        let before = read(&log).matches("serving").count();
        let mut program = Command::new(&self.program);
        program
            .arg("serve")
            .arg(self.mailroom.root())
            .uid(DAEMON)
            .gid(DAEMON)
            .stderr(file)
            .stdin(Stdio::null());
        let served = Served {
            child: program.spawn().expect("the daemon starts"),
            log,
        };
        wait::until("the daemon to serve", || {
            served.log().matches("serving").count() > before
        });
        served
    }

    fn can(&self, uid: u32, script: &str) {
        let output = self.act(uid, script);
        assert!(
            output.status.success(),
            "{uid} should be able to: {script}\n{}",
            said(&output)
        );
    }

    fn cannot(&self, uid: u32, script: &str) {
        let output = self.act(uid, script);
        let text = said(&output);
        assert!(
            !output.status.success(),
            "{uid} was able to: {script}\n{text}"
        );
        let is_for_want_of_rights =
            text.contains("ermission denied") || text.contains("not permitted");
        assert!(
            is_for_want_of_rights || output.status.code() == Some(5),
            "{uid} failed otherwise: {script}\n{text}"
        );
    }
}

impl Served {
    fn log(&self) -> String {
        read(&self.log)
    }
}

fn note(id: &str, from: &str, to: &str) -> String {
    seed::note("question", id, from, to, "which?")
}

/// The agent archives a delivered message, and finds the sent text in it.
fn take(room: &Room, post: &Post) {
    let (to, file) = (post.to, post.file);
    room.mailroom.delivered(to, file);
    room.can(
        uid_of(to),
        &format!("mv agents/{to}/inbox/{file} agents/{to}/archive/{file}"),
    );
    assert_eq!(
        read(room.mailroom.agent(to, "archive").join(file)),
        post.text
    );
    room.mailroom.cleared(post.from);
    room.can(
        uid_of(post.from),
        &format!("cat agents/{}/sent/{file}", post.from),
    );
}

#[test]
fn users_of_their_own_hold_a_review_with_the_commands_that_write() {
    let room = Room::new();
    let _served = room.serve();
    let act = |agent: &str, code: i32, command: &str| {
        let output = room.act(
            uid_of(agent),
            &format!("$SETTLED {command} --root . --agent {agent} --timeout 30"),
        );
        assert_eq!(
            output.status.code(),
            Some(code),
            "{agent}: {command}\n{}",
            said(&output)
        );
        said(&output)
    };
    let request = "send review_request --to codex --pr 86 --branch b --body 'A parser.'";
    act("claude", 0, &format!("{request} --id req-1"));
    let finding = "{severity: P1, title: no lock, file: src/a.rs, line: 7}";
    room.write(
        CODEX,
        "agents/codex/outbox/.findings.tmp",
        &format!("- {finding}\n"),
    );
    act(
        "codex",
        0,
        "feedback --findings agents/codex/outbox/.findings.tmp --id fb-1",
    );
    act(
        "claude",
        0,
        "send review_addressed --pr 86 --commit-sha abc1234 --body 'A lock.' --id ad-1",
    );
    act("claude", 0, &format!("{request} --id req-2"));
    let unsaid = act(
        "codex",
        7,
        "feedback 86 --findings /dev/null --action F-1-001=reply",
    );
    assert!(unsaid.contains("it is empty"), "{unsaid}");
    let illegal = act("codex", 7, "feedback 86 --action F-1-001=reply");
    assert!(
        illegal.contains("F-1-001: reply is not legal now: this is the last round; legal: resolve, veto, escalate"),
        "{illegal}"
    );
    act(
        "codex",
        0,
        "lgtm 86 --action F-1-001=resolve --head abc1234 --id ok-1",
    );
    assert_eq!(room.mailroom.status()["reviews"][0]["phase"], "approved");
    let dry = act("claude", 0, &format!("{request} --dry-run"));
    assert!(
        dry.contains("# cannot tell what the daemon would decide: "),
        "{dry}"
    );
    let again = act("codex", 3, "lgtm 86");
    assert!(again.contains("no request is open with codex"), "{again}");
}

#[test]
fn a_review_goes_both_ways_between_users_who_cannot_get_at_each_other() {
    let room = Room::new();
    let served = room.serve();
    room.write(
        CODEX,
        seed::PACKET,
        &read(settled_tests::repository().join(seed::PACKET)),
    );
    for post in &seed::review() {
        room.write(
            uid_of(post.from),
            &format!("agents/{}/outbox/{}", post.from, post.file),
            &post.text,
        );
        take(&room, post);
    }
    for agent in ["claude", "codex"] {
        room.write(
            uid_of(agent),
            &format!("agents/{agent}/outbox/bad.yaml"),
            "no: message\n",
        );
        room.mailroom.refused(agent, "bad.yaml");
        wait::until("the notice", || {
            !room.mailroom.notices(agent, "envelope_field").is_empty()
        });
    }
    let records = ledger::accepted(&ledger::records(room.mailroom.root()));
    assert!(
        records.len() == 5 && records.values().all(|count| *count == 1),
        "{records:?}"
    );
    room.write(CLAUDE, "packets/findings/of_claude.yaml", "findings: []\n");
    for (own, other) in [("claude", "codex"), ("codex", "claude")] {
        let (uid, them) = (uid_of(own), uid_of(other));
        for allowed in [
            "echo x > agents/OWN/outbox/draft.tmp && rm agents/OWN/outbox/draft.tmp",
            "ls agents/OWN/inbox && cat agents/OWN/inbox/*",
            "for f in agents/OWN/inbox/*; do mv $f agents/OWN/archive/; done; rm agents/OWN/archive/*",
            "ls agents/OWN/sent agents/OWN/dead_letter && cat agents/OWN/sent/* agents/OWN/dead_letter/*",
            "cat packets/findings/* packets/briefs/*",
            "echo x > packets/findings/mine.yaml && rm packets/findings/mine.yaml",
        ] {
            room.can(uid, &allowed.replace("OWN", own));
        }
        for forbidden in [
            "ls agents/OTHER",
            "ls agents/OTHER/inbox",
            "cat agents/OTHER/sent/*",
            "cat agents/OTHER/inbox/* || cat agents/OTHER/archive/*",
            "touch agents/OTHER/outbox/x.yaml",
            "touch agents/OTHER/inbox/x.yaml",
            "touch agents/OTHER/archive/x.yaml",
            "mv agents/OTHER/outbox agents/OTHER/gone",
            "mv agents/OWN/outbox agents/OWN/gone",
            "mv agents/OWN agents/gone",
            "rmdir agents/OWN/archive || rm -r agents/OWN/sent",
            "touch agents/OWN/sent/x.yaml",
            "touch agents/OWN/dead_letter/x.yaml",
            "rm agents/OWN/dead_letter/*",
            "mkdir agents/evil",
            "touch x.yaml",
            "ls .settled",
            "cat .settled/ledger/*",
            "touch .settled/orders/x.json",
            "rm -r .settled/cursors || mv .settled gone",
            "cat settled.toml",
            "echo >> settled.toml",
            "mv settled.toml gone",
            "mkdir packets/new || mv packets/findings packets/gone",
            "touch packets/briefs/x.yaml",
            "touch events/pr/x",
            "rm -f packets/findings/THEIRS",
            "mv packets/findings/THEIRS packets/findings/gone",
            "echo x >> packets/findings/THEIRS",
            "$SETTLED turn 86 --root .",
            "$SETTLED take --pr 86 --root .",
            "$SETTLED review reopen 86 --root . --reason x",
            "$SETTLED serve --once .",
            "$SETTLED init . --separate-users",
        ] {
            let theirs = if own == "claude" {
                seed::PACKET
            } else {
                "packets/findings/of_claude.yaml"
            };
            let theirs = theirs
                .strip_prefix("packets/findings/")
                .expect("it is there");
            let script = forbidden
                .replace("OWN", own)
                .replace("OTHER", other)
                .replace("THEIRS", theirs);
            room.cannot(uid, &script);
        }
        assert_eq!(
            room.mailroom
                .agent(other, "outbox")
                .metadata()
                .expect("an outbox")
                .uid(),
            them
        );
    }
    assert_eq!(
        room.act(CODEX, "$SETTLED take --pr 86 --root .")
            .status
            .code(),
        Some(5)
    );
    assert!(!served.log().contains("ERROR"), "{}", served.log());
}

#[test]
fn what_belongs_to_another_user_is_not_from_the_agent() {
    let room = Room::new();
    let _served = room.serve();
    // The agent opens its outbox to everybody, and still only its own files count.
    room.can(CLAUDE, "chmod 0777 agents/claude/outbox");
    std::fs::set_permissions(
        room.mailroom.root().join("agents/claude"),
        std::fs::Permissions::from_mode(0o755),
    )
    .expect("permissions");
    room.write(
        CODEX,
        "agents/claude/outbox/forged.yaml",
        &note("q-1", "claude", "codex"),
    );
    let report = room.mailroom.refused("claude", "forged.yaml");
    assert_eq!(report["refused"], "wrong_owner");
    assert_eq!(report["violations"][0]["found"], "uid 61002");
    assert_eq!(report["violations"][0]["expected"], "uid 61001");
    assert!(names(room.mailroom.agent("codex", "inbox")).is_empty());

    let [request, feedback, ..] = seed::review();
    room.write(CLAUDE, "agents/claude/outbox/request.yaml", &request.text);
    room.mailroom.delivered("codex", "request.yaml");
    let packet = read(settled_tests::repository().join(seed::PACKET));
    room.write(CLAUDE, seed::PACKET, &packet);
    room.write(CODEX, "agents/codex/outbox/feedback.yaml", &feedback.text);
    let report = room.mailroom.refused("codex", "feedback.yaml");
    assert_eq!(
        (&report["refused"], &report["violations"][0]["found"]),
        (&"wrong_owner".into(), &"uid 61001".into())
    );
    assert_eq!(
        room.mailroom.status()["reviews"][0]["attempts_left"],
        3,
        "it cost nothing"
    );
    // A file of the daemon or of the sender itself is read.
    for (owner, file) in [(DAEMON, "ours.yaml"), (CODEX, "own.yaml")] {
        let path = format!("packets/findings/{file}");
        room.write(owner, &path, &packet);
        assert_eq!(
            room.mailroom
                .root()
                .join(&path)
                .metadata()
                .expect("a packet")
                .uid(),
            owner
        );
    }
    let text = feedback
        .text
        .replace(seed::PACKET, "packets/findings/own.yaml");
    room.write(CODEX, "agents/codex/outbox/feedback-2.yaml", &text);
    room.mailroom.delivered("claude", "feedback-2.yaml");
}

#[test]
fn what_the_daemon_may_not_read_is_told_once_and_holds_up_nobody() {
    let room = Room::new();
    let served = room.serve();
    room.can(
        CLAUDE,
        "umask 0777; cat > agents/claude/outbox/shut.yaml < /dev/null",
    );
    let shut = room.mailroom.agent("claude", "outbox").join("shut.yaml");
    std::fs::write(&shut, note("q-1", "claude", "codex")).expect("root writes anything");
    room.write(
        CLAUDE,
        "agents/claude/outbox/open.yaml",
        &note("q-2", "claude", "codex"),
    );
    room.mailroom.delivered("codex", "open.yaml");
    let told = || room.mailroom.status()["alerts"][0].clone();
    wait::until("the status to tell", || told()["kind"] == "unreadable");
    assert_eq!(told()["path"], shut.to_string_lossy().as_ref());
    let problem = room.mailroom.json(&["problems"])["data"]["problems"][0].clone();
    let what = problem["what"].as_str().expect("a sentence");
    assert!(what.starts_with(&format!("{}: ", shut.display())), "{what}");
    assert_eq!(
        problem["fix"]["run"],
        format!("chmod a+r {}", shut.display())
    );
    drop(served);
    let served = room.serve();
    room.write(
        CLAUDE,
        "agents/claude/outbox/later.yaml",
        &note("q-3", "claude", "codex"),
    );
    room.mailroom.delivered("codex", "later.yaml");
    let lines = served
        .log()
        .lines()
        .filter(|line| line.contains("cannot read this and will retry"))
        .count();
    assert_eq!(lines, 1, "told once, over a restart: {}", served.log());
    assert!(shut.exists(), "it is nobody's refusal");
    room.can(CLAUDE, "chmod 644 agents/claude/outbox/shut.yaml");
    room.mailroom.delivered("codex", "shut.yaml");
    wait::until("the status to forget", || {
        room.mailroom.status()["alerts"].is_null()
    });

    chown(room.mailroom.agent("claude", "outbox"), Some(CODEX), None).expect("root gives it away");
    wait::until("the status to tell the owner", || {
        told()["kind"] == "outbox_owner"
    });
    assert!(room.init(&[]).status.success());
    wait::until("the status to forget", || {
        room.mailroom.status()["alerts"].is_null()
    });
}

#[test]
fn a_run_that_ends_does_not_wait_for_what_it_may_not_read() {
    let room = Room::new();
    room.can(
        CLAUDE,
        "umask 0777; cat > agents/claude/outbox/shut.yaml < /dev/null",
    );
    let output = room.act(DAEMON, "$SETTLED serve --once .");
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    assert_eq!(room.mailroom.status()["alerts"][0]["kind"], "unreadable");
}

#[test]
fn users_are_separated_once_and_only_by_root() {
    let room = Room::new();
    let again = room.init(&[]);
    assert!(
        String::from_utf8_lossy(&again.stdout).contains("\n0 entries were changed\n"),
        "{}",
        said(&again)
    );
    assert_eq!(
        read(room.mailroom.root().join("settled.toml"))
            .matches("\nuid = ")
            .count(),
        2
    );
    let close = room.init(&["--agents", "gemini=61003:61001"]);
    assert_eq!(close.status.code(), Some(2), "{}", said(&close));
    let unknown = room.init(&["--agents", "nobody-by-this-name"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
    assert!(!room.mailroom.agent("gemini", "outbox").exists());
    let dry = room.init(&["--agents", "gemini=61003", "--dry-run"]);
    assert!(
        dry.status.success() && !room.mailroom.agent("gemini", "outbox").exists(),
        "{}",
        said(&dry)
    );
    let added = room.init(&["--agents", "gemini=61003"]);
    assert!(added.status.success(), "{}", said(&added));
    room.can(61_003, "touch agents/gemini/outbox/x.tmp");
    assert_eq!(
        room.act(CLAUDE, "$SETTLED init . --separate-users")
            .status
            .code(),
        Some(5)
    );
    let root = settled()
        .args(["serve", "--once"])
        .arg(room.mailroom.root())
        .output()
        .expect("it runs");
    assert_eq!(
        root.status.code(),
        Some(5),
        "what root makes the daemon could not write to: {}",
        said(&root)
    );
}

#[test]
fn no_link_leads_root_out_of_the_workspace() {
    let room = Room::new();
    let outside = room.mailroom.root().with_extension("outside");
    std::fs::create_dir(&outside).expect("a directory");
    let canary = outside.join("canary");
    std::fs::write(&canary, "x").expect("a file");
    let before = |path: &Path| {
        path.metadata()
            .map(|data| (data.uid(), data.gid(), data.mode()))
            .expect("it is there")
    };
    let (was, file_was) = (before(&outside), before(&canary));
    let archive = room.mailroom.agent("claude", "archive");
    std::fs::hard_link(&canary, archive.join("hard.yaml")).expect("a link");
    std::os::unix::fs::symlink(&canary, archive.join("soft.yaml")).expect("a link");
    assert!(room.init(&[]).status.success());
    std::fs::remove_dir(room.mailroom.agent("claude", "inbox")).expect("an empty inbox");
    std::os::unix::fs::symlink(&outside, room.mailroom.agent("claude", "inbox")).expect("a link");
    let output = room.init(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!((before(&outside), before(&canary)), (was, file_was));
}

/// A message of two lines that claude's user writes with a pause of this many seconds between them.
fn write_with_pause(room: &Room, seconds: u32) -> (Child, String) {
    let text = seed::note("question", "q-1", "claude", "codex", "one\ntwo\n");
    let (head, rest) = text.split_once("two").expect("a second line");
    let path = "agents/claude/outbox/a.yaml";
    let script = "umask 022; (printf %s \"$0\"; sleep \"$2\"; printf %s \"two$1\") > \"$3\"";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, head, rest, &seconds.to_string(), path])
        .current_dir(room.mailroom.root())
        .uid(CLAUDE)
        .gid(CLAUDE);
    let child = shell.spawn().expect("a shell");
    let path = room.mailroom.root().join(path);
    wait::until("the first half", || {
        std::fs::read_to_string(&path).is_ok_and(|text| !text.is_empty())
    });
    (child, text)
}

#[test]
fn a_writer_of_another_user_that_pauses_briefly_around_a_start_is_waited_for() {
    let room = Room::new();
    let (mut writer, text) = write_with_pause(&room, 1);
    let _served = room.serve();
    assert!(writer.wait().expect("our child").success());
    assert_eq!(room.mailroom.delivered("codex", "a.yaml"), text);
}

#[test]
fn a_message_that_its_writer_changes_after_it_was_judged_is_told_to_sender_and_operator() {
    a_change_is_told(false);
}

#[test]
fn a_message_that_its_writer_changes_while_nobody_serves_is_told_by_the_next_start() {
    a_change_is_told(true);
}

/// A message is judged before its writer ends. The daemon that judged it sees the change, or the one that starts after it.
fn a_change_is_told(restarts: bool) {
    let room = Room::new();
    let mailroom = &room.mailroom;
    let (mut writer, text) = write_with_pause(&room, 8);
    let mut served = room.serve();
    let first = mailroom.delivered("codex", "a.yaml");
    assert!(text.starts_with(&first) && first.len() < text.len());
    mailroom.cleared("claude");
    if restarts {
        drop(served);
        assert!(writer.wait().expect("our child").success());
        served = room.serve();
    } else {
        assert!(writer.wait().expect("our child").success());
    }
    wait::until("the notice", || {
        mailroom.notices("claude", "sent_differs").len() == 1
    });
    assert_eq!(read(mailroom.agent("claude", "sent").join("a.yaml")), text);
    wait::until("the alert", || {
        served.log().contains("sent_differs: claude")
    });
    let records = ledger::records(mailroom.root());
    let of_change = records
        .iter()
        .find(|record| record["kind"] == "sent_differs");
    let event = &of_change.expect("a record")["decision"]["happened"]["event"];
    assert_eq!(event["sent_differs"]["file"], "a.yaml");
    let status = mailroom.status();
    assert_eq!(status["alerts"][0]["kind"], "sent_differs", "{status}");
    let doctor = said(&mailroom.run(&["doctor"]));
    assert!(
        doctor.contains("sent/a.yaml differs from what the daemon judged"),
        "{doctor}"
    );
    drop(served);
    let again = room.serve();
    std::fs::remove_file(mailroom.agent("claude", "sent").join("a.yaml")).expect("a file");
    wait::until("the alert to be cleared", || {
        let alerts = &mailroom.status()["alerts"];
        alerts.as_array().is_none_or(Vec::is_empty)
    });
    assert_eq!(
        mailroom.notices("claude", "sent_differs").len(),
        1,
        "told once"
    );
    drop(again);
}
