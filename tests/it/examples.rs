//! Runs every example of every `--help` in a workspace with something to do.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::CommandFactory as _;
use settled::cli::SettledCli;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{binaries, read, repository, seed, write};

/// The time limit of an example, in seconds; those that serve or wait forever are cut off.
const PATIENCE_S: &str = "1";

/// The time limit of an example that does a lot and ends by itself.
const DEMO_PATIENCE_S: &str = "60";

/// The number of examples to run in parallel.
const AT_A_TIME: usize = 6;

/// The examples of a command and of those below it, as the help prints them.
fn examples(command: &clap::Command, all: &mut Vec<String>) {
    let help = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut lines = help.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(example) = line.strip_prefix("  settled") else {
            continue;
        };
        let mut script = format!("settled{example}");
        while let Some(begun) = script.strip_suffix('\\') {
            let rest = lines.next().expect("a line goes on").trim();
            script = format!("{begun}{rest}");
        }
        if script.ends_with("<<'EOF'") {
            for line in lines.by_ref() {
                script += &format!("\n{}", line.strip_prefix("  ").unwrap_or(line));
                if line.trim() == "EOF" {
                    break;
                }
            }
        }
        all.push(script);
    }
    command
        .get_subcommands()
        .for_each(|command| examples(command, all));
}

/// The command without the remark after it and without other people's programs.
fn alone(example: &str) -> String {
    let (first, rest) = example
        .split_once('\n')
        .map_or((example, ""), |(first, rest)| (first, rest));
    let first = first.split("   ").next().unwrap_or(first);
    let first = [" | ", " && ", " || "]
        .iter()
        .fold(first, |text, mark| text.split(mark).next().unwrap_or(text));
    // Stay inside the temporary directory.
    let first = first.replace("/srv/", "./srv/");
    if rest.is_empty() {
        first
    } else {
        format!("{first}\n{rest}")
    }
}

/// A directory with everything that the examples assume.
fn prepared() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    seed::lay_packet(mailroom.root());
    for post in &seed::review()[..4] {
        mailroom.post(post.from, post.file, &post.text);
        mailroom.once();
    }
    for (name, text) in [
        (
            "findings.yaml",
            "- {severity: P1, title: It does nothing, file: src/a.rs, line: 1}\n",
        ),
        ("answer.md", "That one.\n"),
        ("task.md", "Let there be light.\n"),
        ("author.sh", "echo DONE\n"),
        ("reviewer.sh", "echo PASS\n"),
        ("summary.md", "It says something.\n"),
        ("what-i-did.md", "I mended it.\n"),
        ("answer.json", "{}\n"),
        (
            "payload.json",
            "{\"action\": \"labeled\", \"number\": 86, \"pull_request\": {\"head\": {\"sha\": \"9b2f41c\"}}}\n",
        ),
        ("round.yaml", "title: x\nsteps: [{send: question}]\n"),
        ("other.toml", "[rounds]\nmax = 1\n"),
        ("verdict-86.txt", "no verdict\n"),
    ] {
        write(directory(&mailroom).join(name), text);
    }
    mailroom
}

fn directory(mailroom: &Mailroom) -> std::path::PathBuf {
    mailroom
        .root()
        .parent()
        .expect("a directory around it")
        .to_owned()
}

fn run(mailroom: &Mailroom, script: &str) -> Output {
    let directory = directory(mailroom);
    let patience = if script.starts_with("settled demo") {
        DEMO_PATIENCE_S
    } else {
        PATIENCE_S
    };
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("timeout")
        .args([patience, "bash", "-c", script])
        .current_dir(&directory)
        .env(
            "PATH",
            format!("{}:{path}", binaries::directory().display()),
        )
        .env("HOME", directory.join("home"))
        .env("SETTLED_ROOT", mailroom.root())
        .env("SETTLED_AGENT", "codex")
        .env("GITHUB_EVENT_PATH", directory.join("payload.json"))
        .env("HEAD", "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21")
        .env("LAST", format!("sha256:{}", "7".repeat(64)))
        .env("SEAL", format!("sha256:{}", "0".repeat(64)))
        .stdin(Stdio::null())
        .output()
        .expect("timeout and bash can be run")
}

#[test]
fn every_example_of_every_help_is_a_command_that_is_understood() {
    let mailroom = prepared();
    for made in [
        "home/.local/share/bash-completion/completions",
        "home/.config/fish/completions",
        "home/.zfunc",
    ] {
        std::fs::create_dir_all(directory(&mailroom).join(made)).expect("a directory");
    }
    std::os::unix::fs::symlink(
        repository().join("tests"),
        directory(&mailroom).join("tests"),
    )
    .expect("a link");
    let mut all = Vec::new();
    examples(&SettledCli::command(), &mut all);
    assert!(all.len() > 100, "only {} examples were found", all.len());
    // Some are cut off because they wait; the others run meanwhile.
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(example) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            assert_understood(&mailroom, example);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    assert!(read(directory(&mailroom).join("demo.svg")).starts_with("<svg"));
}

fn assert_understood(mailroom: &Mailroom, example: &str) {
    let script = alone(example);
    let output = run(mailroom, &script);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_usage = stderr.contains("\nUsage: ") || stderr.starts_with("error: ");
    let is_run = output
        .status
        .code()
        .is_some_and(|code| ![101, 126, 127].contains(&code));
    assert!(
        !is_usage && is_run,
        "`{example}`, run as `{script}`: {}",
        said(&output)
    );
}
