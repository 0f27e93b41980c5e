//! What agents read costs them: the primer and the answers of the common commands, in tokens.

use settled_tests::mailroom::{Mailroom, settled};
use settled_tests::{golden, seed};

/// The most a primer may cost.
const PRIMER_MAX: usize = 700;

/// Counted as the models do that have a public vocabulary; others differ by some ten in a hundred.
fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton()
        .encode_ordinary(text)
        .len()
}

/// What a command prints, whatever it ends with.
fn printed(mailroom: &Mailroom, agent: &str, args: &[&str]) -> String {
    let mut command = settled();
    command
        .args(args)
        .env("SETTLED_ROOT", "R")
        .env("SETTLED_AGENT", agent);
    let output = command
        .current_dir(mailroom.root().parent().expect("a directory around it"))
        .output()
        .expect("settled can be run");
    String::from_utf8(output.stdout).expect("we print UTF-8")
}

#[test]
fn the_primer_costs_less_than_seven_hundred_tokens() {
    let primer = settled()
        .args(["robot", "help"])
        .output()
        .expect("settled can be run");
    let count = tokens(&String::from_utf8(primer.stdout).expect("we print UTF-8"));
    assert!(count <= PRIMER_MAX, "the primer has {count} tokens");
}

#[test]
fn what_the_common_commands_cost_is_known() {
    let mailroom = Mailroom::absent();
    let root = mailroom.root().with_file_name("R");
    let output = settled()
        .arg("init")
        .arg(&root)
        .args(["--agents", "claude,codex"])
        .output();
    assert!(output.expect("settled can be run").status.success());
    let [request, ..] = seed::review();
    settled_tests::write(
        root.join("agents/claude/outbox/request.yaml"),
        &request.text,
    );
    settled()
        .arg("serve")
        .arg("--once")
        .arg(&root)
        .output()
        .expect("settled can be run");
    let mut table = String::new();
    for args in [
        &[][..],
        &["robot", "help"],
        &["robot", "triage"],
        &["inbox"],
        &["inbox", "--json"],
        &["show"],
        &["wait", "--timeout", "0"],
        &["hook", "session-start"],
        &["hook", "turn-end"],
    ] {
        let text = printed(&mailroom, "codex", args);
        assert!(!text.is_empty(), "{args:?} prints nothing");
        // To the nearest ten: an age or an id may cost one more or less.
        let tens = (tokens(&text) + 5) / 10 * 10;
        table += &format!("{tens:>5}  settled {}\n", args.join(" ")).replace(" \n", "\n");
    }
    golden::check("tokens.txt", &table);
}
