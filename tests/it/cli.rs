//! The command line as promised: help texts, output, JSON forms, exit codes. The texts are compared with
//! `tests/golden/`; `UPDATE=1` rewrites them.

use std::process::{Command, Output};

use clap::CommandFactory as _;
use message_schema::envelope::{MessageType, ReviewKind};
use serde_json::Value;
use settled::cli::SettledCli;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{binaries, golden, names, read, seed, wait, write};

/// Every command with its own help text.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["up"],
    &["init"],
    &["agent"],
    &["agent", "add"],
    &["serve"],
    &["status"],
    &["log"],
    &["mcp"],
    &["notify"],
    &["page"],
    &["host"],
    &["host", "join"],
    &["host", "list"],
    &["host", "claim"],
    &["host", "move-home"],
    &["host", "retire-key"],
    &["host", "policy"],
    &["host", "republish"],
    &["host", "restore"],
    &["host", "check"],
    &["host", "leave"],
    &["simulate"],
    &["states"],
    &["explain"],
    &["gc"],
    &["ledger"],
    &["ledger", "verify"],
    &["ledger", "accept"],
    &["inbox"],
    &["show"],
    &["done"],
    &["wait"],
    &["demo"],
    &["hook"],
    &["hook", "session-start"],
    &["hook", "turn-end"],
    &["hook", "install"],
    &["agents-md"],
    &["robot"],
    &["robot", "help"],
    &["robot", "triage"],
    &["diff"],
    &["validate-run"],
    &["turn"],
    &["take"],
    &["pr"],
    &["pr", "merged"],
    &["pr", "ingest"],
    &["review"],
    &["review", "approve"],
    &["review", "cancel"],
    &["review", "grant"],
    &["review", "reopen"],
    &["thread"],
    &["thread", "drop"],
    &["thread", "hold"],
    &["thread", "queue"],
    &["thread", "release"],
    &["thread", "resolve"],
    &["thread", "wont-fix"],
    &["pair"],
    &["why"],
    &["threads"],
    &["problems"],
    &["watch"],
    &["brief"],
    &["feedback"],
    &["lgtm"],
    &["next"],
    &["send"],
    &["send", "question"],
    &["send", "review_addressed"],
    &["send", "review_feedback"],
    &["send", "review_request"],
    &["reply"],
    &["gate"],
    &["gate", "check"],
    &["verdict"],
    &["verdict", "export"],
    &["verdict", "verify"],
    &["completions"],
    &["man"],
    &["trace"],
    &["dead-letter"],
    &["dead-letter", "list"],
    &["dead-letter", "show"],
    &["dead-letter", "retry"],
    &["doctor"],
    &["service"],
    &["service", "install"],
    &["service", "uninstall"],
    &["service", "status"],
];

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).expect("we print UTF-8")
}

/// The text without the parts that differ between runs: the root, instants, digests, ages.
fn steady(text: &str, mailroom: &Mailroom) -> String {
    let text = text.replace(&mailroom.root().display().to_string(), "ROOT");
    let words = |line: &str| {
        line.split(' ')
            .map(steady_word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let text: String = text
        .split_inclusive('\n')
        .map(|line| steady_size(&words(line)))
        .collect();
    (0..120).fold(text, |text, seconds| {
        let since =
            |text: &str, end| text.replace(&format!(" {seconds} s{end}"), &format!(" N s{end}"));
        since(&since(&since(&text, " ago"), " of "), "\n")
    })
}

/// The ledger's length varies with the digits of the inode numbers in it.
fn steady_size(line: &str) -> String {
    match line.split(", ").collect::<Vec<_>>().as_slice() {
        [last, _, snapshot] if last.starts_with("ledger: ") => [last, "SIZE", snapshot].join(", "),
        _ => line.to_owned(),
    }
}

fn steady_word(word: &str) -> String {
    let end = &word[word.trim_end().len()..];
    match word.trim_end() {
        digest if digest.starts_with("sha256:") => format!("DIGEST{end}"),
        instant if instant.len() == 24 && instant.starts_with("20") && instant.ends_with('Z') => {
            format!("INSTANT{end}")
        }
        _ => word.to_owned(),
    }
}

/// A mailroom in which a review was approved and two messages were refused.
fn after_a_review() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    for post in &posts {
        mailroom.post(post.from, post.file, &post.text);
        mailroom.once();
    }
    let note = |id, to| seed::note("question", id, "claude", to, "?");
    mailroom.post("claude", "lost.yaml", &note("q-1", "nobody"));
    mailroom.once();
    mailroom.post(
        "codex",
        "again.yaml",
        &posts[4].text.replace("codex-002", "codex-003"),
    );
    mailroom.once();
    mailroom.post("claude", "request-1.yaml", &posts[0].text);
    mailroom.once();
    mailroom
}

#[test]
fn every_command_explains_itself_with_an_example() {
    for &command in COMMANDS {
        let output = settled()
            .args(command)
            .arg("--help")
            .env("COLUMNS", "100")
            .output()
            .expect("settled can be run");
        let help = text(&output);
        assert!(
            help.contains("Examples:")
                || ["ledger", "dead-letter", "robot", "hook"].contains(&command[0]),
            "{command:?} has no example"
        );
        let examples = help.lines().skip_while(|line| *line != "Examples:");
        for line in examples {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
        let name = ["help", "settled"]
            .iter()
            .chain(command)
            .copied()
            .collect::<Vec<_>>()
            .join("-");
        golden::check(&format!("{name}.txt"), &help);
    }
}

#[test]
fn no_command_is_missing_from_these_tests_or_from_the_help() {
    let help = text(
        &settled()
            .arg("--help")
            .output()
            .expect("settled can be run"),
    );
    let named: Vec<&str> = help.split([' ', ',', '\n']).collect();
    for command in SettledCli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let name = command.get_name();
        let is_tested = COMMANDS.iter().any(|tested| tested.first() == Some(&name));
        assert!(is_tested, "`settled {name}` has no kept help text");
        assert!(
            named.contains(&name),
            "`settled --help` does not name {name}"
        );
    }
}

#[test]
fn the_help_fits_a_screen_and_that_of_send_is_short() {
    let of = |args: &[&str]| text(&settled().args(args).output().expect("settled can be run"));
    let help = of(&["--help"]);
    assert_eq!(help, of(&["-h"]));
    assert_eq!(help, of(&["help"]));
    assert!(help.lines().count() <= 23, "{} lines", help.lines().count());
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let send = of(&["send", "--help"]);
    assert!(send.len() <= 2500, "{} bytes", send.len());
    assert_eq!(of(&["help", "send"]), send);
    for kind in MessageType::all() {
        let help = of(&["send", kind.as_str(), "--help"]);
        assert!(help.len() <= 3500, "{kind:?}: {} bytes", help.len());
        assert_eq!(
            help.contains("--branch"),
            kind == MessageType::Review(ReviewKind::Request),
            "{kind:?}: {help}"
        );
    }
}

/// Old names, names of subcommands, other tools' words and typos all lead to an existing command.
#[test]
fn an_unknown_command_names_the_one_that_was_meant() {
    for (args, meant) in [
        ("merged 7", &["settled pr merged 7"][..]),
        ("reopen 7", &["settled review reopen 7"]),
        ("grant 7 --rounds 1", &["settled review grant 7 --rounds 1"]),
        ("approve 7", &["settled lgtm 7", "settled review approve 7"]),
        ("cancel 7", &["settled review cancel 7"]),
        ("hold 7 F-1-001", &["settled thread hold 7 F-1-001"]),
        ("drop 7 F-1-001", &["settled thread drop 7 F-1-001"]),
        ("release 7 F-1-001", &["settled thread release 7 F-1-001"]),
        ("resolve 7 F-1-001", &["settled thread resolve 7 F-1-001"]),
        ("wont_fix 7 F-1-001", &["settled thread wont-fix 7 F-1-001"]),
        ("queue 7 F-1-001", &["settled thread queue 7 F-1-001"]),
        ("check --pr 7", &["settled gate check --pr 7"]),
        (
            "review_request --pr 7",
            &["settled send review_request --pr 7"],
        ),
        (
            "addressed --pr 7",
            &["settled send review_addressed --pr 7"],
        ),
        ("question --to codex", &["settled send question --to codex"]),
        ("retry q-1", &["settled dead-letter retry q-1"]),
        ("statsu", &["settled status"]),
        ("feeback 7", &["settled feedback 7"]),
        ("marged 7", &["settled pr merged 7"]),
        ("merge 7", &["settled pr merged 7"]),
        ("review 7", &["settled why 7"]),
        ("thread 7", &["settled threads 7"]),
        ("reveiw 7", &["settled why 7"]),
        ("mail 7", &["settled inbox"]),
        ("tail", &["settled log", "settled watch"]),
        ("dashboard ./m", &["settled watch ./m", "settled page ./m"]),
        ("version", &["settled --version"]),
        (
            "thread resolv 7 F-1-001",
            &["settled thread resolve 7 F-1-001"],
        ),
        ("gate chek --pr 7", &["settled gate check --pr 7"]),
        ("comment 7", &["settled feedback 7"]),
        ("ls", &["settled inbox"]),
        ("--root ./m merged 7", &["settled --root ./m pr merged 7"]),
        ("frobnicate", &["settled --help"]),
        ("gate frobnicate", &["settled gate --help"]),
    ] {
        let output = settled()
            .args(args.split(' '))
            .output()
            .expect("settled can be run");
        assert_eq!(output.status.code(), Some(2), "{args}: {}", said(&output));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let tries: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("  try: "))
            .collect();
        assert_eq!(tries, meant, "{args}: {text}");
    }
    let output = settled()
        .args(["merged", "7", "--json"])
        .output()
        .expect("settled can be run");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(answer["next"][0]["run"], "settled pr merged 7 --json");
}

#[test]
fn the_version_is_the_packages_and_says_which_build_it_is() {
    let version = env!("CARGO_PKG_VERSION");
    for (program, name) in [
        (binaries::settled(), "settled"),
        (binaries::validate_message(), "validate-message"),
    ] {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .expect("the program can be run");
        let said = text(&output);
        let build = said
            .trim_end()
            .strip_prefix(&format!("{name} {version} ("))
            .and_then(|rest| rest.strip_suffix(')'))
            .unwrap_or_else(|| panic!("{said}"));
        // An optimised build of the tests names a commit, or says that it is unknown.
        let is_expected = cfg!(not(debug_assertions)) || build == "development build";
        assert!(is_expected, "{said}");
    }
}

#[test]
fn init_says_what_it_made_and_makes_nothing_twice() {
    let mailroom = Mailroom::absent();
    let first = text(&mailroom.run(&["init", "--agents", "claude,codex"]));
    golden::check("init.txt", &steady(&first, &mailroom));
    mailroom.put("settled.toml", "[rounds]\nmax = 3\n");
    let again = text(&mailroom.run(&["init", "--agents", "claude,codex"]));
    assert_eq!(
        steady(&again, &mailroom),
        "ROOT is complete; nothing was changed\n"
    );
    assert_eq!(
        read(mailroom.root().join("settled.toml")),
        "[rounds]\nmax = 3\n"
    );
    text(&mailroom.run(&["init", "--agents", "gemini"]));
    assert_eq!(
        names(mailroom.root().join("agents")),
        ["claude", "codex", "gemini"]
    );
}

#[test]
fn up_makes_a_workspace_serves_it_and_says_what_is_next() {
    let mailroom = Mailroom::absent();
    let daemon = mailroom.up(&["claude", "codex"]);
    golden::check("up.txt", &steady(&daemon.out(), &mailroom));
    assert!(daemon.interrupt().success());
    assert_eq!(
        names(mailroom.root()),
        [".settled", "agents", "events", "packets", "settled.toml"]
    );

    write(
        mailroom.agent("claude", "inbox").join("kept.yaml"),
        "mine\n",
    );
    let daemon = mailroom.up(&["claude", "codex"]);
    golden::check("up-again.txt", &steady(&daemon.out(), &mailroom));
    assert!(daemon.terminate().success());
    assert_eq!(
        read(mailroom.agent("claude", "inbox").join("kept.yaml")),
        "mine\n"
    );
}

#[test]
fn up_without_agents_makes_no_workspace_nobody_could_use() {
    let mailroom = Mailroom::absent();
    let output = mailroom.run(&["up"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!mailroom.root().exists());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("try: settled up ") && said.contains(" --agents claude,codex\n"),
        "{said}"
    );
}

#[test]
fn a_name_no_agent_may_bear_is_a_usage_error() {
    for name in ["../x", "settled", "", ".hidden", "a b"] {
        let mailroom = Mailroom::absent();
        let output = mailroom.run(&["init", "--agents", name]);
        assert_eq!(output.status.code(), Some(2), "{name:?}: {}", said(&output));
        assert!(!mailroom.root().exists(), "{name:?} made something");
    }
}

#[test]
fn status_shows_every_review_and_whose_move_it_is() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    golden::check("status-empty.txt", &text(&mailroom.run(&["status"])));
    let mailroom = after_a_review();
    let [request, ..] = seed::review();
    let other = request
        .text
        .replace("claude-001", "claude-100")
        .replace("86", "87");
    mailroom.post("claude", "other.yaml", &other);
    mailroom.once();
    // On a slow machine an age can be two digits wide, which moves all columns.
    let table = steady(&text(&mailroom.run(&["status"])), &mailroom);
    let cells = |line: &str| {
        line.split("  ")
            .filter(|cell| !cell.is_empty())
            .map(str::trim)
            .collect::<Vec<_>>()
            .join("  ")
    };
    let table: String = table.lines().map(|line| cells(line) + "\n").collect();
    golden::check("status.txt", &table);
}

#[test]
fn log_shows_every_decision_with_its_reason() {
    let mailroom = after_a_review();
    golden::check(
        "log.txt",
        &steady(&text(&mailroom.run(&["log"])), &mailroom),
    );
    let json = text(&mailroom.run(&["log", "--json"]));
    let lines: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON document a line"))
        .collect();
    assert_eq!(lines.len(), 8);
    for (n, line) in lines.iter().enumerate() {
        assert_eq!(
            (&line["schema_version"], &line["data"]["seq"]),
            (&1.into(), &(n + 1).into())
        );
    }
    let verdicts: Vec<_> = lines
        .iter()
        .filter_map(|line| line["data"]["verdict"].as_str())
        .collect();
    assert_eq!(
        verdicts[4..],
        ["accepted", "refused", "refused", "duplicate"]
    );
    let delivered = serde_json::json!([
        "codex/inbox/request-1.yaml",
        "packets/briefs/86_claude_codex_r1.yaml"
    ]);
    assert_eq!(lines[0]["data"]["delivered"], delivered);
}

#[test]
fn status_as_json_is_one_versioned_document() {
    let answer = after_a_review().json(&["status"]);
    assert_eq!(
        (&answer["schema_version"], &answer["ok"]),
        (&1.into(), &true.into())
    );
    let status = &answer["data"];
    assert_eq!(
        (&status["accepted"], &status["refused"], &status["waiting"]),
        (&5.into(), &2.into(), &0.into())
    );
    assert_eq!(status["serving"], false);
    let review = &status["reviews"][0];
    let keys: Vec<_> = review
        .as_object()
        .expect("a review")
        .keys()
        .map(String::as_str)
        .collect();
    golden::check("status-json-keys.txt", &(keys.join("\n") + "\n"));
    assert_eq!(
        (&review["phase"], &review["round"], &review["rounds"]),
        (&"approved".into(), &2.into(), &2.into())
    );
    assert_eq!(review["threads"]["F-003"], "deferred");
}

#[test]
fn verify_counts_the_records_and_names_the_line_that_was_changed() {
    let mailroom = after_a_review();
    golden::check(
        "ledger-verify.txt",
        &steady(&text(&mailroom.run(&["ledger", "verify"])), &mailroom),
    );

    let segment = settled_tests::list(mailroom.root().join(".settled/ledger")).remove(0);
    let forged = read(&segment).replacen(
        "claude/review-loop-protocol",
        "claude/review-loop-protocoI",
        1,
    );
    write(&segment, &forged);
    let output = mailroom.run(&["ledger", "verify"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("the ledger is damaged at") && said.contains(".jsonl:2"),
        "{said}"
    );
    assert_eq!(
        mailroom.once().status.code(),
        Some(6),
        "a damaged ledger is not served"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mailroom = after_a_review();
    let script = format!(
        "'{}' log '{}' --json | head -c 1",
        binaries::settled().display(),
        mailroom.root().display()
    );
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .output()
        .expect("bash can be run");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        said(&output)
    );
}

#[test]
fn looking_changes_nothing_and_needs_no_lock() {
    let mailroom = after_a_review();
    let _daemon = mailroom.serve();
    let before = read(settled_tests::list(mailroom.root().join(".settled/ledger")).remove(0));
    for command in [&["status"][..], &["log"], &["ledger", "verify"]] {
        text(&mailroom.run(command));
    }
    assert_eq!(
        read(settled_tests::list(mailroom.root().join(".settled/ledger")).remove(0)),
        before
    );
    assert_eq!(mailroom.status()["serving"], true);
}

#[test]
fn the_root_may_come_from_the_environment() {
    let mailroom = after_a_review();
    let root = format!(" --root {}", mailroom.root().display());
    // The suggested commands repeat `--root`, which widens their column; so compare only words.
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Both print ages, so both must run within the same second.
    wait::until("the same from the environment and the option", || {
        let output = settled()
            .arg("status")
            .env("SETTLED_ROOT", mailroom.root())
            .output()
            .expect("settled can be run");
        let (from_environment, from_option) = (text(&output), text(&mailroom.run(&["status"])));
        assert!(!from_environment.contains("--root"), "{from_environment}");
        words(&from_environment) == words(&from_option.replace(&root, ""))
    });
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for args in [
        &["frobnicate"][..],
        &["status", "--jsn", "x"],
        &["up", "x", "--agents"],
    ] {
        let output = settled().args(args).output().expect("settled can be run");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
    }
    let output = settled()
        .args(["frobnicate", "--json"])
        .output()
        .expect("settled can be run");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(
        (&answer["ok"], &answer["error"]["exit"]),
        (&false.into(), &2.into())
    );
}

#[test]
fn no_command_waits_for_a_fifo_that_nobody_writes_to() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for post in &seed::review()[..1] {
        mailroom.post(post.from, post.file, &post.text);
    }
    mailroom.once();
    let fifo = mailroom.root().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()));
    let (root, fifo) = (mailroom.root().display(), fifo.display());
    for command in [
        format!("feedback 86 --agent codex --root {root} --findings {fifo}"),
        format!("pr ingest --root {root} {fifo}"),
        format!("verdict verify --head 9b2f41c {fifo}"),
        format!("simulate {fifo}"),
    ] {
        let output = mailroom.shell(&format!("timeout 20 settled {command}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {told}");
        let place = format!("{fifo}: it is a FIFO, expected a regular file; write ");
        assert!(told.contains(&place), "{command}: {told}");
    }
}

#[test]
fn a_workspace_that_was_not_named_is_not_guessed() {
    let mailroom = Mailroom::new(&["claude"]);
    let output = settled()
        .arg("status")
        .current_dir(mailroom.root())
        .output()
        .expect("settled can be run");
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(said(&output).contains("SETTLED_ROOT"), "{}", said(&output));
}

#[test]
fn a_failure_as_json_has_the_form_of_every_answer() {
    let answer = Mailroom::absent().json(&["status"]);
    let keys: Vec<_> = answer
        .as_object()
        .expect("an answer")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["alerts", "error", "next", "ok", "schema_version"]);
    let run = answer["next"][0]["run"].as_str().expect("a next command");
    assert!(run.starts_with("settled up "), "{run}");
    assert_eq!(answer["error"]["exit"], 3);
}
