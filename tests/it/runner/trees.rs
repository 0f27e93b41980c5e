//! A worktree for each run: the reviewer finds the commit under review there, whatever its author does meanwhile, and
//! nothing of it is left afterwards.

use std::path::{Path, PathBuf};

use serde_json::Value;
use settled_tests::{ledger, list, read, sh, wait, write};

use super::Room;

/// A repository whose author went on after the commit: with another branch, a change, and a new file.
pub(super) struct Code {
    pub(super) directory: tempfile::TempDir,
    pub(super) head: String,
}

impl Code {
    pub(super) fn new() -> Self {
        let directory = settled_tests::scratch();
        let head = sh(
            directory.path(),
            "git init -q -b main .; git commit -q --allow-empty -m 0; mkdir part; echo reviewed > part/a; git add -A; git commit -qm 1
             git rev-parse HEAD; git checkout -qb next; echo later > part/a; git commit -qam 2
             echo half-done > part/a; echo half-done > part/b",
        );
        Self { directory, head }
    }

    /// A room in which codex runs this script in the code, or in a directory of it.
    pub(super) fn room(&self, below: &str, script: &str, more: &str) -> Room {
        let workdir = self.directory.path().join(below);
        let more = format!("workdir = '''{}'''\n{more}", workdir.display());
        Room::with_command(&format!("'sh', '-c', '''{script}'''"), &more)
    }

    /// The worktrees that the repository knows besides the author's.
    fn worktrees(&self) -> usize {
        let list = "git worktree list --porcelain | grep -c ^worktree";
        sh(self.directory.path(), list)
            .parse::<usize>()
            .expect("a number")
            - 1
    }
}

fn trees(room: &Room) -> PathBuf {
    room.mailroom.root().join(".settled/trees")
}

pub(super) fn ask(room: &Room, head: &str) {
    room.ask_with("86", "request-1", 60, 8, &format!("declared_head: {head}"));
}

/// The reviewer's notes, after the end of the review.
fn noted(room: &Room, head: &str) -> String {
    let daemon = room.serve();
    ask(room, head);
    let (review, _) = room.end();
    assert_eq!(review["phase"], "approved", "{review}");
    wait::until("the trees to be gone", || {
        !trees(room).exists() || list(trees(room)).is_empty()
    });
    drop(daemon);
    read(&room.notes)
}

#[test]
fn a_reviewer_finds_the_commit_under_review_and_its_author_never_sees_what_it_does() {
    let code = Code::new();
    let script = "pwd > $FAKE_NOTES; git rev-parse HEAD >> $FAKE_NOTES; cat a >> $FAKE_NOTES; ls >> $FAKE_NOTES
        echo touched > a; echo touched > c; git add -A; echo PASS";
    let room = code.room("part", script, "");
    let notes = noted(&room, &code.head[..10]);
    let [place, head, rest @ ..] = &notes.lines().collect::<Vec<_>>()[..] else {
        panic!("{notes}");
    };
    let parent = Path::new(place).parent().and_then(Path::parent);
    assert_eq!(parent.map(Path::to_owned), trees(&room).canonicalize().ok());
    assert_eq!((*head, rest), (&*code.head, &["reviewed", "a"][..]));
    let status = sh(
        code.directory.path(),
        "cat part/a; git status --porcelain; git symbolic-ref --short HEAD",
    );
    assert_eq!(status, "half-done\n M part/a\n?? part/b\nnext");
    assert_eq!(code.worktrees(), 0);
}

#[test]
fn placeholders_name_the_top_of_the_tree_and_the_directory_the_command_starts_in() {
    let code = Code::new();
    let script = "echo {tree} {workdir} $PWD > $FAKE_NOTES; echo PASS";
    let room = code.room("part", script, "");
    let notes = noted(&room, &code.head);
    let [tree, workdir, place] = notes.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{notes}");
    };
    assert_eq!((workdir, place), (&*format!("{tree}/part"), workdir));
}

#[test]
fn a_config_that_says_so_leaves_the_command_in_its_workdir() {
    let code = Code::new();
    let script = "cat a > $FAKE_NOTES; echo PASS";
    for head in ["0123456789", &code.head] {
        let room = code.room("part", script, "checkout = \"workdir\"");
        assert_eq!(noted(&room, head), "half-done\n");
        assert!(!trees(&room).exists(), "no tree is begun");
    }
}

#[test]
fn a_commit_that_the_repository_lacks_is_approved_by_nobody() {
    let code = Code::new();
    let room = code.room("part", "echo PASS", "");
    let daemon = room.serve();
    ask(&room, "0123456789");
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["reason"], "invocation_failed", "{review}");
    let why = review["failed"]["why"].as_str().expect("words");
    let said = "does not have the commit 0123456789: fetch it there";
    assert!(why.contains(said), "{why}");
    assert_eq!(room.starts(), 0, "the command is never started");
}

#[test]
fn a_tree_that_cannot_be_made_is_a_failed_start_with_its_cause() {
    let code = Code::new();
    let room = code.room("", "echo PASS", "");
    let daemon = room.serve();
    write(trees(&room), "in the way");
    ask(&room, &code.head);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["reason"], "invocation_failed", "{review}");
    let failed = &review["failed"];
    assert_eq!(failed["cause"], "crashed", "{failed}");
    let why = failed["why"].as_str().expect("words");
    assert!(why.starts_with("it cannot be prepared: "), "{why}");
}

#[test]
fn a_repository_that_git_does_not_read_is_not_taken_for_none() {
    let code = Code::new();
    let room = code.room("", "echo started > $FAKE_NOTES; echo PASS", "");
    // Another user's repository is refused in the same way, with its own message.
    write(code.directory.path().join(".git/config"), "[nonsense");
    let daemon = room.serve();
    ask(&room, &code.head);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["failed"]["cause"], "crashed", "{review}");
    let why = review["failed"]["why"].as_str().expect("words");
    assert!(why.contains("git does not read the repository"), "{why}");
    assert!(why.contains("bad config"), "{why}");
    assert_eq!(room.starts(), 0, "the command is never started");
}

#[test]
fn what_is_to_be_left_out_needs_a_tree_and_nothing_starts_without_one() {
    let code = Code::new();
    let script = "ls > $FAKE_NOTES; echo PASS";
    let room = code.room("", script, "leave_out = [\"part\"]");
    let daemon = room.serve();
    room.ask("86", "request-1", 60, 8);
    let (review, _) = room.end();
    drop(daemon);
    let why = review["failed"]["why"].as_str().expect("words");
    assert!(why.contains("`leave_out` needs a tree"), "{why}");
    assert_eq!(room.starts(), 0, "the command is never started");
}

#[test]
fn the_commit_under_review_does_not_have_the_program_that_reviews_it() {
    let code = Code::new();
    let head = sh(
        code.directory.path(),
        r"printf '#!/bin/sh\necho PASS\n' > part/agent; chmod +x part/agent; git add part/agent; git commit -qm agent
         git rev-parse HEAD; printf '#!/bin/sh\necho FAIL\n' > part/agent",
    );
    let workdir = code.directory.path().join("part");
    let more = format!("workdir = '''{}'''", workdir.display());
    let room = Room::with_command("'./agent'", &more);
    let daemon = room.serve();
    ask(&room, &head);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["failed"]["cause"], "gave_up", "{review}");
}

#[test]
fn a_tree_that_a_kill_left_is_removed_by_the_next_daemon() {
    let code = Code::new();
    let script = "echo started >> $FAKE_NOTES
        for _ in $(seq 6000); do if [ -e $FAKE_NOTES.go ]; then break; fi; sleep 0.01; done; echo PASS";
    let room = code.room("", script, "");
    let daemon = room.serve();
    ask(&room, &code.head);
    wait::until("the reviewer to be started", || room.starts() == 1);
    let folder = list(room.mailroom.root().join(".settled/runs")).remove(0);
    // Its keeper is killed with the daemon, so nobody is left to remove it.
    let processes: Value = serde_json::from_str(&read(folder.join("process.json"))).expect("JSON");
    let keeper = processes["keeper"]["pid"].as_i64().expect("a number");
    let keeper = i32::try_from(keeper).expect("a pid");
    let keeper = rustix::process::Pid::from_raw(keeper).expect("a pid");
    rustix::process::kill_process(keeper, rustix::process::Signal::STOP).expect("it runs");
    daemon.kill();
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).expect("it runs");
    let left = list(trees(&room));
    assert_eq!((left.len(), code.worktrees()), (2, 1), "{left:?}");

    let daemon = room.serve();
    wait::until("the second start", || room.starts() == 2);
    wait::until("the tree to be gone", || left.iter().all(|it| !it.exists()));
    write(room.notes.with_extension("go"), "");
    assert_eq!(room.end().0["phase"], "approved");
    wait::until("the other tree to be gone", || {
        list(trees(&room)).is_empty()
    });
    drop(daemon);
    assert_eq!(code.worktrees(), 0);
}

#[test]
fn what_is_left_out_of_the_tree_is_nowhere_in_it_and_seems_not_deleted() {
    let code = Code::new();
    let head = sh(
        code.directory.path(),
        "git checkout -qfb told main; mkdir -p part/.Agents/x; echo obey | tee GEMINI.md part/gemini.md part/.Agents/x/y
         ln -s /etc/passwd part/x; mkdir part/z; ln -s / part/z/Gemini.MD
         git add -A; git commit -qm 3; git rev-parse HEAD",
    );
    let head = head.lines().last().expect("a commit");
    let script = "cd ..; find . -name .git -prune -o -type f -print -o -type l -print | sort > $FAKE_NOTES
        git status --porcelain >> $FAKE_NOTES; git show HEAD:GEMINI.md >> $FAKE_NOTES; cat {run}/validation.json >> $FAKE_NOTES
        echo PASS";
    let more = "leave_out = [\"GEMINI.md\", \".agents\"]\n[gate]\nvalidation_commands = [\"cat GEMINI.md\"]";
    let room = code.room("part", script, more);
    let daemon = room.serve();
    ask(&room, head);
    let (review, _) = room.end();
    drop(daemon);
    // The gate's commands passed on this commit, so a word is enough.
    assert_eq!(review["phase"], "approved", "{review}");
    let notes = read(&room.notes);
    let (found, run) = notes.split_once('[').expect("the validation");
    assert_eq!(found, "./part/a\n./part/b\n./part/x\nobey\n", "{notes}");
    assert!(
        run.contains("\"exit\":0"),
        "the commands find it all: {run}"
    );
    // Nothing outside of it is removed.
    assert!(code.directory.path().join("GEMINI.md").exists());
}

/// The digest of the commit's changes, as defined in the protocol.
const DIGEST: &str = r#"git diff-tree -r --no-renames -z --full-index HEAD~2 HEAD~1 |
    sed -z 'N; s/^:\([0-9a-f ]*\) [A-Z]\x00/\1 /' | LC_ALL=C sort -z | sha256sum | cut -d ' ' -f 1"#;

/// Prints that it read the file, in Claude Code's stream, and then only the word.
const READS_AND_PASSES: &str = r#"
echo "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Read\",\"input\":{\"file_path\":\"$PWD/part/a\"}}]}}"
echo "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\"}]}}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"PASS\"}""#;

/// A project that requires evidence and a named commit.
const STRICT: &str = "output = \"claude\"\n[gate]\nevidence = \"require\"\nrequire_head = true";

/// The review of a request that names its diff, after its end.
fn judged(code: &Code, room: &Room) -> Value {
    let daemon = room.serve();
    let git = |script: &str| sh(code.directory.path(), script);
    let (head, base, digest) = (&code.head[..10], git("git rev-parse HEAD~2"), git(DIGEST));
    let more = format!(
        "declared_head: {head}\nbase_sha: {base}\ndiff_digest: sha256:{digest}\nchanged_files: [part/a]"
    );
    room.ask_with("86", "request-1", 60, 8, &more);
    let (review, _) = room.end();
    drop(daemon);
    review
}

#[test]
fn a_word_approves_the_commit_that_the_daemon_checked_out_and_nothing_that_was_not_read() {
    let code = Code::new();
    let room = code.room("", READS_AND_PASSES, STRICT);
    let review = judged(&code, &room);
    assert_eq!(review["phase"], "approved", "{review}");
    let records = ledger::records(room.mailroom.root());
    let text = |record: &Value| record["original"]["text"].as_str().map(str::to_owned);
    let sent = records.iter().filter_map(text).next_back();
    let sent = sent.expect("the approval");
    assert!(sent.contains(&code.head), "{sent}");

    // A reviewer that read nothing, and one that works in the author's tree.
    let unread = READS_AND_PASSES.replace("$PWD/part/a", "/nowhere");
    let workdir = format!("checkout = \"workdir\"\n{STRICT}");
    for (script, more) in [(&*unread, STRICT), (READS_AND_PASSES, &workdir)] {
        let room = code.room("", script, more);
        let review = judged(&code, &room);
        assert_eq!(review["phase"], "escalated", "{review}");
    }
}

/// A command of the project that passes only on this commit, and leaves traces.
const COMMANDS: &str = r#"[gate]
validation_commands = ["grep -q reviewed part/a && echo dirt > part/a && touch part/new"]"#;

#[test]
fn commands_of_the_config_run_before_the_reviewer_who_finds_nothing_of_them_in_the_code() {
    let code = Code::new();
    let script = "ls > $FAKE_NOTES; cat a >> $FAKE_NOTES; cat {run}/validation.json >> $FAKE_NOTES; echo FAIL";
    let room = code.room("part", script, COMMANDS);
    let daemon = room.serve();
    ask(&room, &code.head);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["failed"]["cause"], "gave_up", "{review}");
    let notes = read(&room.notes);
    assert!(notes.starts_with("a\nreviewed\n[{"), "{notes}");
    assert!(notes.contains(r#""exit":0"#), "{notes}");
    let runs: Vec<Value> = ran(&room);
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(runs[0]["exit"], 0);
    assert_eq!(runs[0]["head"], *code.head);
}

#[test]
fn with_no_seconds_for_them_the_commands_of_the_config_do_not_run_and_are_missed() {
    let code = Code::new();
    let trap = code.directory.path().join("trap");
    let commands = format!(
        "[gate]\nvalidation_commands = [\"touch {}\"]",
        trap.display()
    );
    let room = code.room("", "ls {run} >> $FAKE_NOTES; echo PASS", &commands);
    let config = room.mailroom.root().join("settled.toml");
    write(
        &config,
        &read(&config).replace("concurrent = 2", "concurrent = 2\nvalidation_s = 0"),
    );
    let daemon = room.serve();
    ask(&room, &code.head);
    let (review, _) = room.end();
    drop(daemon);
    // The word does not pass the gate, which still requires the command.
    assert_eq!(review["reason"], "invocation_failed", "{review}");
    assert!(!trap.exists(), "a command was run");
    assert_eq!(ran(&room), Vec::<Value>::new());
    let notes = read(&room.notes);
    assert!(!notes.contains("validation.json"), "{notes}");
}

#[test]
fn a_command_of_the_author_does_not_run_and_an_observed_failure_is_not_passed() {
    let code = Code::new();
    let commands = "[gate]\nvalidation_commands = [\"false\"]";
    let room = code.room("", "echo started >> $FAKE_NOTES; echo PASS", commands);
    let daemon = room.serve();
    let trap = code.directory.path().join("trap");
    let more = format!(
        "declared_head: {}\nvalidation_commands: [\"touch {}\"]",
        code.head,
        trap.display()
    );
    room.ask_with("86", "request-1", 60, 8, &more);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["reason"], "invocation_failed", "{review}");
    assert!(!trap.exists(), "a command of the author was run");
    // The second start knows the result.
    let runs = ran(&room);
    let commands: Vec<&Value> = runs.iter().map(|run| &run["command"]).collect();
    assert_eq!((commands, room.starts()), (vec![&"false".into()], 2));
    assert_eq!(runs[0]["exit"], 1);
}

/// The records of validation commands in the ledger.
pub(super) fn ran(room: &Room) -> Vec<Value> {
    let records = ledger::records(room.mailroom.root());
    let ran = records
        .iter()
        .map(|record| &record["decision"]["happened"]["event"]["ran"]["run"]);
    ran.filter(|run| run.is_object()).cloned().collect()
}
