//! `settled agent add` and `settled doctor --agents`: a person's file keeps its other contents, and a probe reports
//! what a command lacks.

use std::path::PathBuf;

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{binaries, copy_program, names, read, sh, write, write_program};

fn script(mailroom: &Mailroom, name: &str, text: &str) -> String {
    let path = mailroom.root().join(name);
    write_program(&path, &format!("#!/bin/sh\n{text}\n"));
    path.display().to_string()
}

/// A small repository beside the workspace. Without one, each probe would check out all of ours.
fn code(mailroom: &Mailroom) -> PathBuf {
    let code = mailroom.root().with_file_name("code");
    if !code.exists() {
        std::fs::create_dir(&code).expect("a directory");
        sh(
            &code,
            "git init -q .; touch a; git add -A; git commit -qm 1",
        );
    }
    code
}

fn add(mailroom: &Mailroom, name: &str, command: &str) {
    let output = settled()
        .current_dir(code(mailroom))
        .args(["agent", "add", name, "--program", "custom", "--", command])
        .env("SETTLED_ROOT", mailroom.root())
        .output()
        .expect("settled can be run");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn an_agent_is_set_up_once_and_another_command_stays_unless_it_is_to_be_replaced() {
    let mailroom = Mailroom::new(&["claude"]);
    let template = read(mailroom.root().join("settled.toml"));
    let code = mailroom.root().display().to_string();
    let words = [
        "agent",
        "add",
        "codex",
        "--program",
        "codex",
        "--repository",
        &code,
        "--json",
    ];
    let output = mailroom.run(&words);
    assert!(output.status.success(), "{}", said(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(answer["data"]["changed"], true, "{answer}");
    assert!(
        answer["data"]["may"]
            .as_str()
            .is_some_and(|may| !may.is_empty()),
        "{answer}"
    );
    assert!(names(mailroom.root().join("agents")).contains(&"codex".to_owned()));
    let written = read(mailroom.root().join("settled.toml"));
    assert!(written.starts_with(&template), "{written}");
    assert!(
        written.contains("[agents.codex]") && written.contains("project_doc_max_bytes=0"),
        "{written}"
    );
    let output = mailroom.run(&words);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(answer["data"]["changed"], false, "{answer}");
    let other = [
        "agent",
        "add",
        "codex",
        "--program",
        "gemini",
        "--repository",
        &code,
    ];
    assert_eq!(mailroom.run(&other).status.code(), Some(1));
    assert_eq!(read(mailroom.root().join("settled.toml")), written);
    assert!(
        mailroom
            .run(&[&other[..], &["--replace"]].concat())
            .status
            .success()
    );
    assert!(!read(mailroom.root().join("settled.toml")).contains("project_doc_max_bytes"));
    // A mistyped name is reported, and no command may be named `person`.
    let typo = mailroom.json(&["agent", "add", "codecs", "--program", "codex"]);
    let alerts = typo["alerts"].as_array().expect("a list");
    assert!(
        alerts.iter().any(|alert| alert["code"] == "new_agent"),
        "{typo}"
    );
    let dry = ["agent", "add", "codecs", "--program", "codex", "--dry-run"];
    let next = mailroom.json(&dry)["next"].to_string();
    assert!(!next.contains("doctor"), "nothing is there to try: {next}");
    let person = mailroom.run(&["agent", "add", "person", "--program", "codex"]);
    assert_eq!(person.status.code(), Some(2), "{}", said(&person));
    // The command prints the settings that no option can make.
    let tools = mailroom.json(&[&other[..], &["--mcp", "--dry-run"]].concat());
    let needed = tools["alerts"].to_string();
    assert!(
        needed.contains("settings_needed") && needed.contains("mcpServers"),
        "{tools}"
    );
    // The program is the caller's file, wherever the daemon starts it.
    let own = |code: &str, command: &[&str]| {
        let words = ["agent", "add", "codecs", "--program", "custom", "--dry-run"];
        let output = settled()
            .args(words)
            .args(["--repository", code, "--"])
            .args(command)
            .env("SETTLED_ROOT", mailroom.root())
            .output();
        output.expect("settled can be run")
    };
    let section = own(".", &["./review.sh", "{brief}"]);
    let section = String::from_utf8_lossy(&section.stdout).into_owned();
    assert!(
        section.contains("command = [\"/") && section.contains("/review.sh\", \"{brief}\"]"),
        "{section}"
    );
    // `--repository` must name a directory.
    let file = mailroom.root().join("settled.toml").display().to_string();
    for nowhere in [&*file, "/nowhere"] {
        let refused = own(nowhere, &["id"]);
        assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
        let told = said(&refused);
        assert!(told.contains("--repository DIR"), "{told}");
    }
    let walls = mailroom.run(&[&other[..], &["--sandbox", "--dry-run"]].concat());
    let walls = String::from_utf8_lossy(&walls.stdout).into_owned();
    assert!(
        walls.contains("network = [\"generativelanguage.googleapis.com\"]"),
        "{walls}"
    );
    assert!(
        mailroom
            .run(&["doctor"])
            .status
            .code()
            .is_some_and(|code| code != 2)
    );
}

#[test]
fn a_probe_starts_each_command_and_names_what_it_lacks() {
    let mailroom = Mailroom::new(&["claude"]);
    let good = script(
        &mailroom,
        "good",
        r#"word=$(grep -o 'brief-[0-9a-z]*' "$SETTLED_BRIEF" | head -n 1); printf '{"response": {"type": "review_feedback",
        "threads": {}, "commands_run": [], "examined": {"diff_digest": "", "declared": []}, "validated_head": "", "escalation": "",
        "findings": [{"severity": "P3", "blocking": false, "title": "%s", "file": "a", "lines": "1", "category": "style",
        "evidence": "", "recommendation": "", "introduced_by": ""}]}}' "$word""#,
    );
    let blind = script(&mailroom, "blind", "echo PASS");
    let stranger = script(
        &mailroom,
        "stranger",
        "echo 'Not logged in. Please run /login' >&2; exit 1",
    );
    let prose = script(&mailroom, "prose", "echo 'Looks good to me.'");
    add(&mailroom, "good", &good);
    add(&mailroom, "stranger", &stranger);
    add(&mailroom, "prose", &prose);
    add(&mailroom, "blind", &blind);
    add(&mailroom, "gone", "/nowhere/program");
    let output = mailroom.run(&["doctor", "--agents", "--json"]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(answer["data"]["wrong"], 4, "{answer}");
    let of = |name: &str| {
        let all = answer["data"]["agents"].as_array().expect("a list");
        let found = all.iter().find(|finding| finding["agent"] == name);
        found.unwrap_or_else(|| panic!("{name}: {answer}")).clone()
    };
    assert_eq!(of("good")["ok"], true, "{answer}");
    for (name, what, fix) in [
        ("stranger", "it is not logged in", "log the program in"),
        ("prose", "without a verdict", "--replace"),
        ("blind", "may have read nothing", "{run}"),
        ("gone", "cannot be started", "install the program"),
    ] {
        let finding = of(name);
        assert!(
            finding["what"]
                .as_str()
                .is_some_and(|said| said.contains(what)),
            "{finding}"
        );
        assert!(
            finding["fix"]
                .as_str()
                .is_some_and(|said| said.contains(fix)),
            "{finding}"
        );
    }
    // Only the cause, and the folder with everything that the command was given and printed.
    let failed = of("stranger");
    let what = failed["what"].as_str().expect("a text");
    assert!(
        !what.contains("review") && !what.contains(".settled/"),
        "{failed}"
    );
    let folder = std::path::Path::new(failed["folder"].as_str().expect("a path"));
    assert!(folder.join("mailroom/.settled/runs").is_dir(), "{failed}");
    assert!(of("good").get("folder").is_none(), "{answer}");
    for name in ["stranger", "prose", "blind", "gone"] {
        std::fs::remove_dir_all(of(name)["folder"].as_str().expect("a path")).expect("it is ours");
    }
    // An agent that is set up with tools has to answer with them.
    let tools = mailroom.root().join("settled.toml");
    let text = read(&tools).replace(
        &format!("\"{good}\""),
        &format!("\"{good}\", \"--mcp-config\", \"{{}}\""),
    );
    write(&tools, &text);
    let output = mailroom.run(&["doctor", "--agents", "good", "--json"]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let finding = &answer["data"]["agents"][0];
    let what = finding["what"].as_str().unwrap_or_default();
    assert!(what.contains("not by the tools"), "{answer}");
    std::fs::remove_dir_all(finding["folder"].as_str().expect("a path")).expect("it is ours");
    // Without the server's program there are no tools, which is reported before the agent starts.
    let alone = settled_tests::scratch();
    let program = alone.path().join("settled");
    copy_program(&binaries::settled(), &program);
    let output = std::process::Command::new(&program)
        .args(["doctor", "--agents", "good", "--json"])
        .env("SETTLED_ROOT", mailroom.root())
        .env("TMPDIR", alone.path())
        .env_remove("SETTLED_AGENT")
        .output()
        .expect("settled can be run");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let finding = &answer["data"]["agents"][0];
    let what = finding["what"].as_str().unwrap_or_default();
    assert!(what.contains("`settled mcp` lists no tools: "), "{answer}");
    let fix = finding["fix"].as_str().unwrap_or_default();
    assert!(fix.contains("install `settled-mcp`"), "{answer}");
    write(&tools, &text.replace(", \"--mcp-config\", \"{}\"", ""));
    let unknown = mailroom.run(&["doctor", "--agents", "good,nobody"]);
    assert_eq!(unknown.status.code(), Some(3), "{}", said(&unknown));
    assert!(said(&unknown).contains("nobody"), "{}", said(&unknown));
    // The probe had a workspace of its own.
    assert_eq!(mailroom.status()["reviews"], Value::Array(Vec::new()));
    let one = mailroom.run(&["doctor", "--agents", "good"]);
    assert!(one.status.success(), "{}", said(&one));
    assert_eq!(
        mailroom
            .run(&["doctor", "--agents", "claude"])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_probe_finds_the_commit_without_what_is_left_out_as_a_review_does() {
    let mailroom = Mailroom::new(&["claude"]);
    let code = settled_tests::scratch();
    sh(
        code.path(),
        "git init -q .; echo KEY=1 > .env; touch a; git add -A; git commit -qm 1; touch half-done",
    );
    let seen = mailroom.root().join("seen");
    let looks = script(
        &mailroom,
        "looks",
        &format!(
            "ls -a > '{}'; echo 'Not logged in.' >&2; exit 1",
            seen.display()
        ),
    );
    let config = format!(
        "[agents.looks]\ncommand = ['''{looks}''']\nworkdir = '''{}'''\nleave_out = [\".env\"]\n",
        code.path().display()
    );
    write(mailroom.root().join("settled.toml"), &config);
    let output = mailroom.run(&["doctor", "--agents", "looks", "--json"]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert_eq!(read(&seen), ".\n..\n.git\na\n");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let folder = answer["data"]["agents"][0]["folder"].as_str();
    std::fs::remove_dir_all(folder.expect("a path")).expect("it is ours");
    let list = sh(
        code.path(),
        "git worktree list --porcelain | grep -c ^worktree",
    );
    assert_eq!(list, "1", "its tree is removed");
}

#[test]
fn another_version_than_the_tried_one_is_a_note() {
    let mailroom = Mailroom::new(&["claude"]);
    let kept = settled_tests::scratch();
    // The program is recognized by its file name; this one prints its version and answers nothing.
    script(
        &mailroom,
        "codex",
        r#"test "$1" = --version && echo 'codex-cli 0.1.2'"#,
    );
    let path = format!(
        "{}:{}",
        mailroom.root().display(),
        std::env::var("PATH").expect("a PATH")
    );
    let run = |words: &[&str]| {
        let output = settled()
            .current_dir(code(&mailroom))
            .args(words)
            .env("SETTLED_ROOT", mailroom.root())
            .env("PATH", &path)
            .env("TMPDIR", kept.path())
            .output();
        let output = output.expect("settled can be run");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let json = |words: &[&str]| {
        let (code, text) = run(&[words, &["--json"]].concat());
        let answer: Value = serde_json::from_str(&text).expect("one document");
        (code, answer)
    };
    let (code, added) = json(&["agent", "add", "codex", "--program", "codex"]);
    assert_eq!(code, Some(0), "{added}");
    let version = &added["data"]["version"];
    assert_eq!(version["installed"], "0.1.2", "{added}");
    let tried = version["tried"].as_str().expect("a version").to_owned();
    assert_eq!(added["alerts"][0]["code"], "version_not_tried", "{added}");
    let (_, said) = run(&["agent", "add", "codex", "--program", "codex"]);
    let note = format!("Codex 0.1.2 is installed, and this set-up was tried with {tried}");
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line(&said).contains(&note), "{said}");
    let (code, probed) = json(&["doctor", "--agents", "codex"]);
    // The missing answer is an error; the version is not.
    assert_eq!(code, Some(6), "{probed}");
    let finding = &probed["data"]["agents"][0];
    assert_eq!(finding["version"], *version, "{probed}");
    assert!(
        finding["note"]
            .as_str()
            .is_some_and(|said| said.contains(&note)),
        "{probed}"
    );
    let (_, said) = run(&["doctor", "--agents", "codex"]);
    assert!(said.contains("note: Codex 0.1.2"), "{said}");
    script(
        &mailroom,
        "codex",
        &format!("test \"$1\" = --version && echo 'codex-cli {tried}'"),
    );
    let (_, same) = json(&["agent", "add", "codex", "--program", "codex"]);
    assert_eq!(same["data"]["version"]["installed"], *tried, "{same}");
    assert_eq!(same["alerts"], Value::Array(Vec::new()), "{same}");
}
