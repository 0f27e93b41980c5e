//! Tests what each check says of a workspace of claude and codex after a shell changed it.

#[path = "../../../../tests/sh.rs"]
mod sh;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use message_schema::id::AgentName;
use workspace::directory;

use super::{CHECKS, CheckContext, CheckOutcome, Checked, examine, hosts};

/// A recorded ledger of twelve records; the last one is of 08:01:30 on 23 November 2026.
const LEDGER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/fixtures/recorded/.settled/ledger"
);

/// Each case is `$`, a shell script; `?`, a check with its options; and what it says: the state, the sentence, and
/// after `->` the fix.
const CASES: &str = r#"
$ :
? workspace
ok complete, with 2 agents

$ rm -r agents/*
? workspace
wrong no agent has mailboxes -> settled init --agents claude,codex

$ rm settled.toml; rmdir .settled/orders agents/codex/archive
? workspace
wrong missing: agents/codex/archive, .settled/orders, settled.toml -> settled doctor --fix

$ rmdir agents/codex/archive; touch .settled/cursors/inbox-claude
? workspace --fix
fixed made agents/codex/archive

$ rmdir agents/codex/archive; touch agents/codex/archive
? workspace --fix
failed cannot make agents/codex/archive: …

$ rmdir .settled/ledger
? workspace --fix
fixed made .settled/ledger

$ rmdir .settled/ledger; mkdir .settled/snapshots; touch .settled/snapshots/1.json
? workspace --fix
wrong missing: .settled/ledger; there were records: restore the ledger from a backup -> settled ledger verify

$ rmdir .settled/ledger; touch .settled/cursors/inbox-claude
? workspace --fix
wrong missing: .settled/ledger; there were records: restore the ledger from a backup -> settled ledger verify

$ :
? config
ok settled.toml is valid

$ printf '[agents.gemini]\n[agents.codex]\n' > settled.toml
? config
note settled.toml is valid and names agents without mailboxes: gemini

$ printf '[rounds]\nmax = 9\n' > settled.toml
? config
wrong ROOT/settled.toml:2:7: config_invalid: … -> fix that line of settled.toml

$ rm settled.toml; mkdir settled.toml
? config --as claude
wrong ROOT/settled.toml:1:1: config_invalid: expected a regular file … -> fix that line of settled.toml

$ config 'per_day = { tokens = 5 }' text gemini claude
? config
ok settled.toml is valid
note limits of [budget] do not stop agents whose program does not report what it uses: a0 (no tokens)

$ config 'per_day = { usd = 5 }' text gemini claude
? config
ok settled.toml is valid
note limits of [budget] do not stop agents whose program does not report what it uses: a0 (no money), a1 (no money)

$ config 'per_agent = { usd = 5, tokens = 5 }' text gemini claude
? config
ok settled.toml is valid
note limits of [budget] do not stop agents whose program does not report what it uses: a0 (neither tokens nor money), a1 (no money)

$ config 'per_day = { usd = 5, tokens = 5 }' claude
? config
ok settled.toml is valid

$ config '' text
? config
ok settled.toml is valid

$ printf '[budget]\nper_day = { tokens = 5 }\n[agents.claude]\nvendor = "x"\n' > settled.toml
? config
ok settled.toml is valid

$ :
? access
ok the daemon (uid UID) can write everything it needs

$ :
? access --as claude
ok claude (uid UID) can write everything it needs

$ files agents/claude/inbox agents/claude/archive agents/claude/sent agents/claude/dead_letter packets/* .settled/ledger .settled/cursors
? access
wrong the daemon (uid UID) has no access to .settled/ledger, packets/briefs, packets/handoff, packets/findings, agents/claude/inbox, agents/claude/sent, agents/claude/dead_letter -> run it as the user it belongs to, or `settled init --separate-users` as root

$ files .settled
? access
wrong the daemon (uid UID) has no access to .settled -> run it as the user it belongs to, or `settled init --separate-users` as root

$ files agents/claude/* agents/codex/* packets/*
? access --as claude
wrong claude (uid UID) has no access to agents/claude/outbox, agents/claude/inbox, agents/claude/archive, agents/claude/sent, agents/claude/dead_letter, packets/findings -> run it as the user it belongs to, or `settled init --separate-users` as root

$ :
? users
note agents have no separate users: each of them can write as any other

$ printf '[rounds]\nmax = 9\n' > settled.toml
? users
note not checked: cannot read settled.toml, which names the owner of each mailbox

$ owned; chmod 755 agents/claude/outbox; chmod 750 agents/claude/inbox; chmod 700 .settled
? users
ok 1 agents have separate users

$ owned; chmod 757 agents/claude/outbox; chmod 751 agents/claude/inbox; chmod 710 .settled
? users
wrong everybody can write into the outbox of claude -> settled init --separate-users, as root
wrong everybody can open the inbox of claude -> settled init --separate-users, as root
wrong users other than the daemon's can open .settled -> settled init --separate-users, as root

$ printf '[agents.claude]\nuid = 54321\n' > settled.toml; chmod 700 .settled agents/claude/*
? users
wrong the outbox of claude belongs to uid UID, expected uid 54321 -> settled init --separate-users, as root

$ old agents/codex/outbox/.settled-retry-7.tmp agents/codex/dead_letter/.settled-send-01abc.tmp
? leftovers
wrong left behind for over a day: agents/codex/outbox/.settled-retry-7.tmp, agents/codex/dead_letter/.settled-send-01abc.tmp -> settled doctor --fix

$ touch -d '23 hours ago' agents/codex/outbox/.settled-retry-7.tmp
? leftovers
ok no temporary file was left behind

$ old agents/codex/outbox/.settled-retry-7.tmp agents/claude/inbox/.settled-send-1.tmp
? leftovers --fix
fixed removed agents/claude/inbox/.settled-send-1.tmp, agents/codex/outbox/.settled-retry-7.tmp

$ touch agents/codex/outbox/.settled-retry-8.tmp; cd agents/codex/inbox; old .settled-9.tmp .settled-9.1.tmp .theirs.tmp .settled-retry-7.yaml; old ../outbox/.settled-9.tmp
? leftovers
ok no temporary file was left behind

$ :
? file_system
ok a local kind (0xKIND)

$ :
? clock
ok not behind the last record

$ cp $LEDGER/* .settled/ledger
? clock --at 2026-11-23T08:01:30.649Z
ok not behind the last record

$ cp $LEDGER/* .settled/ledger
? clock --at 2026-11-23T08:01:20.649Z
wrong the clock is 10 s behind the last record: deadlines wait for it -> set the clock

$ sed '$s/:30.649Z./&,"host":"b"/' $LEDGER/* > .settled/ledger/00000000000000000001.jsonl
? clock --at 2026-11-23T08:01:28.649Z
ok not behind the last record

$ sed '$s/:30.649Z./&,"host":"b"/' $LEDGER/* > .settled/ledger/00000000000000000001.jsonl
? clock --at 2026-11-23T07:01:30.649Z
wrong the clock is 3600 s behind the last record, of host b: deadlines wait for it -> compare the clocks of the two hosts and set the one that is wrong

$ :
? clock --at 2020-01-01T00:00:00Z
ok not behind the last record

$ :
? clock --at 2019-12-31T23:59:59Z
wrong the clock says 2019-12-31 23:59:59 UTC -> set the clock

$ alerts unreadable 'x' host_clock "this host's clock is 60 s ahead"
? clock
wrong this host's clock is 60 s ahead -> set the clock

$ alerts host_clock 'the clock of b is 60 s ahead'
? clock
note the clock of b is 60 s ahead

$ rmdir agents/codex/outbox; rmdir agents/claude/outbox; ln -s nowhere agents/claude/outbox
? events
ok 4 directories can be watched…

$ cp $LEDGER/* .settled/ledger
? ledger
ok 12 records, chained and whole

$ cp $LEDGER/* .settled/ledger; printf '{"v":1' >> .settled/ledger/00000000000000000001.jsonl
? ledger
note 12 records, then 6 bytes of a batch that was never finished: the next start keeps a copy and cuts them off

$ cp $LEDGER/* .settled/ledger; printf '{"v":1' >> .settled/ledger/00000000000000000001.jsonl; serve
? ledger
ok 12 records, and a batch that is being written

$ sed s/change-86/change-68/ $LEDGER/* > .settled/ledger/00000000000000000001.jsonl
? ledger
wrong the ledger is damaged at ROOT/.settled/ledger/00000000000000000001.jsonl:2: … -> docs/operations.md explains how to repair a ledger

$ mkdir .settled/ledger/00000000000000000001.jsonl
? ledger
failed …

$ :
? snapshot
ok no snapshot: a start reads every record

$ cp $LEDGER/* .settled/ledger; mkdir .settled/snapshots; echo nonsense > .settled/snapshots/00000000000000000009.snapshot
? snapshot
note ROOT/.settled/snapshots/00000000000000000009.snapshot is skipped: …
ok no snapshot: a start reads every record

$ mkdir .settled/ledger/00000000000000000001.jsonl
? snapshot
failed …

$ cp $LEDGER/* .settled/ledger; cp $LEDGER/../../agents/claude/sent/* agents/claude/sent; cp $LEDGER/../../agents/codex/sent/* agents/codex/sent; rm agents/claude/sent/req-86.yaml; touch agents/claude/sent/other
? sent
ok 7 files in sent/ match what the daemon judged

$ cp $LEDGER/* .settled/ledger; cp $LEDGER/../../agents/claude/sent/* agents/claude/sent; for f in req-86 a-86; do echo >> agents/claude/sent/$f.yaml; done
? sent
wrong ROOT/agents/claude/sent/a-86.yaml differs from what the daemon judged (sent_differs) -> have its sender send the message again, then remove the file
wrong ROOT/agents/claude/sent/req-86.yaml differs from what the daemon judged (sent_differs) -> have its sender send the message again, then remove the file

$ mkdir .settled/ledger/00000000000000000001.jsonl
? sent
failed …

$ :
? serving
note no daemon is serving, and nothing waits for one; no lock is held

$ touch agents/codex/outbox/a.yaml agents/claude/outbox/b.yaml
? serving
wrong 2 files wait in outboxes and no daemon is serving -> settled serve

$ touch agents/codex/outbox/a.yaml; serve
? serving
ok a daemon is serving, 1 files wait in outboxes

$ ln -s lock .settled/lock
? serving
note this user cannot see whether a daemon is serving

$ :
? alerts
ok the daemon reports none

$ alerts outbox_owner 'the outbox is not theirs' host_clock 'the clock of b is 60 s ahead'
? alerts
wrong /p/outbox_owner: the outbox is not theirs -> settled init --separate-users   # as root: gives each agent its own files
wrong the clock of b is 60 s ahead -> settled doctor   # checks this host

$ :
? hosts
"#;

/// Words that the scripts use.
const WORDS: &str = r#"
# Makes files of directories.
files() { for path; do rm -r "$path"; : > "$path"; done; }
# Files that nobody has touched for two days.
old() { touch -d '2 days ago' "$@"; }
# Gives claude's outbox to a user who is not root, and says so in the config.
owned() {
    uid=$(id -u)
    if [ "$uid" = 0 ]; then uid=1001; chown $uid agents/claude/outbox; fi
    printf '[agents.claude]\nuid = %s\n' $uid > settled.toml
}
# A budget, and agents a0, a1 and so on whose programs write in these formats.
config() {
    printf '[budget]\n%s\n' "$1" > settled.toml; shift; n=0
    for output; do
        mkdir -p agents/a$n/outbox
        printf '[agents.a%s]\ncommand = ["true"]\noutput = "%s"\n' $n $output >> settled.toml; n=$((n + 1))
    done
}
# Alerts, each a kind and a sentence.
alerts() {
    while [ $# -gt 0 ]; do
        printf ',{"kind":"%s","path":"/p/%s","what":"%s"}' "$1" "$1" "$2"; shift 2
    done | sed 's/^,/[/; s/$/]/' > .settled/alerts.json
}
# The test holds the lock of a daemon while it checks.
serve() { : > .settled/lock; }
"#;

fn sh(root: &Path, script: &str) -> String {
    sh::sh(root, &format!("LEDGER='{LEDGER}'\n{WORDS}\n{script}"))
}

fn spelled(words: &str) -> String {
    format!("settled {words}")
}

/// The checks' context when the daemon's user asks on New Year 2030.
fn question<'a>(
    root: &'a Path,
    agents: &'a [AgentName],
    monitors: &'a [String],
) -> CheckContext<'a> {
    CheckContext {
        root,
        agent: None,
        agents,
        now: "2030-01-01T00:00:00Z".parse().expect("an instant"),
        fixes: false,
        monitors,
        spell: &spelled,
    }
}

/// Prints the outcomes of a check, each on a line.
fn told(root: &Path, checked: Checked) -> String {
    let mut text = String::new();
    match checked {
        Ok(said) => {
            for CheckOutcome { state, what, fix } in said {
                let fix = fix.map_or_else(String::new, |fix| format!(" -> {fix}"));
                writeln!(text, "{} {what}{fix}", state.word()).expect("memory");
            }
        }
        Err(why) => writeln!(text, "failed {why}").expect("memory"),
    }
    text.replace(&root.display().to_string(), "ROOT")
}

/// Runs one check and prints what it says.
fn said(root: &Path, words: &str, is_served: bool) -> String {
    let mut words = words.split_whitespace();
    let name = words.next().expect("a check");
    let agents = directory::agents(root).expect("a directory");
    let mut agent = None;
    let mut case = question(root, &agents, &[]);
    while let Some(option) = words.next() {
        match option {
            "--fix" => case.fixes = true,
            "--as" => agent = words.next().and_then(|name| AgentName::new(name).ok()),
            "--at" => case.now = words.next().expect("a time").parse().expect("an instant"),
            other => panic!("{other}"),
        }
    }
    case.agent = agent.as_ref();
    let lock = is_served.then(|| fs::File::open(root.join(".settled/lock")).expect("a lock"));
    if let Some(lock) = &lock {
        lock.lock().expect("nobody else has it");
    }
    let (_, run) = CHECKS.iter().find(|(check, _)| *check == name).expect(name);
    told(root, run(&case))
}

/// True if the text is the expected one, in which `…` stands for anything.
fn fits(text: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = part;
    }
    rest.is_empty() || (last.is_empty() && expected.ends_with('…'))
}

#[test]
fn each_check_says_what_is_wrong_and_what_fixes_it() {
    let agents = ["claude", "codex"].map(|name| name.parse::<AgentName>().expect("a name"));
    let temporary = std::env::temp_dir();
    let (uid, kind) = (sh(&temporary, "id -u"), sh(&temporary, "stat -f -c %t ."));
    let mut wrong = String::new();
    for case in CASES.trim().split("\n\n") {
        let mut lines = case.lines();
        let script = lines.next().and_then(|line| line.strip_prefix("$ "));
        let question = lines.next().and_then(|line| line.strip_prefix("? "));
        let (script, question) = script.zip(question).unwrap_or_else(|| panic!("{case}"));
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        directory::init(root, &agents).expect("a workspace");
        sh(root, script);
        let expected: Vec<String> = lines
            .map(|line| line.replace("UID", &uid).replace("KIND", &kind))
            .collect();
        let text = said(root, question, script.ends_with("serve"));
        let lines: Vec<&str> = text.lines().collect();
        let fits_all = lines.len() == expected.len()
            && lines
                .iter()
                .zip(&expected)
                .all(|(line, expected)| fits(line, expected));
        if !fits_all {
            writeln!(wrong, "{case}\n---- but it says\n{text}").expect("memory");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_check_is_made_in_the_order_of_causes() {
    let root = tempfile::tempdir().expect("a directory");
    let agents = ["claude", "codex"].map(|name| name.parse::<AgentName>().expect("a name"));
    directory::init(root.path(), &agents).expect("a workspace");
    let results = examine(&question(root.path(), &agents, &[]));
    let mut made: Vec<&str> = results.iter().map(super::CheckResult::check).collect();
    made.dedup();
    // The config has no shared ledger and no sandbox.
    let all = CHECKS.iter().map(|(check, _)| *check);
    let expected: Vec<&str> = all
        .filter(|it| !["hosts", "sandbox"].contains(it))
        .collect();
    assert_eq!(made, expected);
    let is_git = |what: &str| what.starts_with("git: git version ");
    assert!(results.iter().any(|it| is_git(&it.what)), "{results:?}");
}

#[test]
fn the_findings_of_the_program_for_hosts_are_taken_over() {
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path();
    let asked = |answer: &str, monitors: &[&str]| {
        // The shell writes the program, so that no other test holds it open while it starts.
        let program = format!("printf '#!/bin/sh\n%s\n' '{answer}' > host; chmod +x host");
        sh::sh(root, &program);
        let monitors: Vec<String> = monitors.iter().map(ToString::to_string).collect();
        let case = question(root, &[], &monitors);
        told(root, hosts::ask(&root.join("host"), &case))
    };
    let findings = r#"printf "{\"data\":{\"findings\":[{\"state\":\"ok\",\"what\":\"$*\"}, {\"state\":\"wrong\",\"what\":\"b\",\"fix\":\"c\"}, {\"what\":\"d\"}]}}""#;
    for (answer, monitors, expected) in [
        (
            findings,
            &[][..],
            "ok --json --root ROOT check\nwrong b -> c\nnote d\n",
        ),
        (
            findings,
            &["a", "b"],
            "ok --json --root ROOT check --monitor a,b\nwrong b -> c\nnote d\n",
        ),
        (
            r#"echo "{\"error\":{\"message\":\"no broker\"}}""#,
            &[],
            "failed settled-host: no broker\n",
        ),
        ("echo {}", &[], "failed settled-host: it says nothing\n"),
    ] {
        assert_eq!(asked(answer, monitors), expected, "{answer}");
    }
    let silent = asked("exit 1", &[]);
    assert!(
        silent.starts_with("failed settled-host gave no answer: "),
        "{silent}"
    );
    let none = hosts::ask(&root.join("none"), &question(root, &[], &[]));
    let none = told(root, none);
    assert!(
        none.starts_with("failed settled-host cannot be run: "),
        "{none}"
    );
}
