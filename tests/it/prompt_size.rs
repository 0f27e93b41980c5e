//! The cost of what agents read, in bytes: the primer and the answers of common commands. A token of such English has
//! about four bytes.

use settled_tests::mailroom::{Mailroom, settled};
use settled_tests::{golden, seed};

/// The most bytes of the primer: fewer than 700 tokens even at three and a half bytes each.
const PRIMER_MAX: usize = 2400;

/// The output of a command, whatever its exit code.
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
fn the_primer_is_short_enough_for_seven_hundred_tokens() {
    let primer = settled()
        .args(["robot", "help"])
        .output()
        .expect("settled can be run");
    let count = primer.stdout.len();
    assert!(count <= PRIMER_MAX, "the primer has {count} bytes");
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
        // To the nearest fifty, since an age may have one more digit.
        let fifties = (text.len() + 25) / 50 * 50;
        table += &format!("{fifties:>5}  settled {}\n", args.join(" ")).replace(" \n", "\n");
    }
    golden::check("bytes.txt", &table);
}
