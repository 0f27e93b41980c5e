//! The commands around a review: what they write for programs, shells and services, and what they keep in order.

use super::desk::{Desk, Play};

#[test]
fn the_primer_is_kept_in_a_file_between_marks_and_taken_out_again() {
    let desk = Desk::new("claude,codex");
    desk.put("AGENTS.md", "# Ours\n");
    desk.check(
        "claude",
        "agents-md.txt",
        &[
            "settled agents-md | head -1",
            "settled robot help | head -1",
            "settled agents-md --check AGENTS.md",
            "settled agents-md AGENTS.md new.md",
            "settled agents-md AGENTS.md",
            "settled agents-md --check AGENTS.md new.md --json",
            "grep -c '^## Code review by mail (settled)' AGENTS.md",
            "settled agents-md --remove AGENTS.md new.md",
            "cat AGENTS.md",
            "settled agents-md --remove AGENTS.md",
            "settled agents-md room",
        ],
    );
}

#[test]
fn a_file_too_large_for_the_primer_is_not_cut() {
    let desk = Desk::new("claude,codex");
    let large = "x".repeat(4 * 1024 * 1024 + 1);
    desk.put("AGENTS.md", &large);
    let said = desk.run("claude", "settled agents-md AGENTS.md");
    assert_eq!(
        (said.exit, said.err.as_str()),
        (
            1,
            "settled: AGENTS.md: it has more than 4194304 bytes; nothing was changed\n"
        )
    );
    assert_eq!(desk.run("", "wc -c < AGENTS.md").out.trim(), "4194305");
}

#[test]
fn hooks_are_added_once_to_the_settings_of_a_program_and_removed_again() {
    let desk = Desk::new("claude,codex");
    desk.put("code/file", "");
    desk.check(
        "claude",
        "hooks.txt",
        &[
            "settled hook install claude --dir code",
            "settled hook install claude --dir code",
            "grep -c 'hook turn-end' code/.claude/settings.json",
            "settled hook install codex --dir code",
            "settled hook install gemini --dir code --json",
            "settled hook install gemini --dir code",
            "settled hook install gemini --dir code --uninstall",
            "settled hook install claude --dir code --uninstall",
            "grep -c 'hook turn-end' code/.claude/settings.json",
            "settled hook install claude --dir room --uninstall",
            "echo '[' > code/.codex/hooks.json; settled hook install codex --dir code",
            "settled hook session-start",
            "SETTLED_RUN=1 settled hook turn-end --for gemini",
            "settled --agent nobody hook session-start",
        ],
    );
}

#[test]
fn an_agent_is_set_up_once_and_another_command_replaces_it_only_on_demand() {
    let desk = Desk::new("claude,codex");
    desk.check(
        "",
        "agent-add.txt",
        &[
            "settled agent add new --program custom --dry-run -- ./review.sh '{brief}'",
            "ls room/agents",
            "settled agent add new --program custom -- ./review.sh '{brief}'",
            "settled agent add new --program custom -- ./review.sh '{brief}'",
            "settled agent add new --program custom -- ./other.sh",
            "settled agent add new --program custom --replace --json -- ./other.sh",
            "grep other.sh room/settled.toml",
            "settled agent add new --program custom",
            "settled agent add new --program custom --mcp -- ./x",
            "settled agent add new --program codex -- ./x",
            "settled agent add new --program custom --repository none -- ./x",
            "settled pair --author new --author-command x --task - < /dev/null",
        ],
    );
}

#[test]
fn a_service_file_is_made_changed_compared_and_removed() {
    let desk = Desk::new("claude,codex");
    let service = |rest: &str| format!("settled service {rest} --user --into HERE --name room");
    let lines = [
        service("status"),
        service("install --dry-run") + " | head -3",
        service("install"),
        service("install") + " --json",
        service("status"),
        service("status --starts-agents"),
        service("install --starts-agents"),
        service("uninstall --dry-run"),
        service("uninstall"),
        service("uninstall"),
        service("install --notify") + " && grep -c notify HERE/room.service",
        service("install"),
        service("install --dry-run --json"),
    ];
    let mut play = Play::of(&desk);
    for line in lines {
        let line = line.replace("HERE", "units");
        play.run("", &format!("mkdir -p units; {line}"));
    }
    play.check("service.txt");
}

#[test]
fn old_files_are_counted_and_removed_as_the_config_says() {
    let desk = Desk::recorded();
    desk.put(
        "room/settled.toml",
        "[retention]\nsent_days = 1\ndead_letter_days = 36500\n",
    );
    desk.check(
        "",
        "gc.txt",
        &[
            "settled gc --dry-run",
            "settled status | grep -i gc",
            "settled gc",
            "settled gc --json",
            "ls room/agents/claude/sent",
            "mkdir -p room/.settled/torn && echo half > room/.settled/torn/1 && settled gc --dry-run | tail -1",
        ],
    );
}

#[test]
fn what_is_wrong_with_a_workspace_is_found_and_fixed_on_demand() {
    let desk = Desk::new("claude,codex");
    let before = desk.run("", "settled doctor");
    assert!(!before.out.contains("packets/handoff"), "{before:?}");
    let found = desk.run("", "rm -r room/packets/handoff; settled doctor");
    assert!(
        found.exit == 6 && found.out.contains("packets/handoff"),
        "{found:?}"
    );
    assert!(found.out.contains("\n1 wrong, 0 fixed, "), "{found:?}");
    let fixed = desk.run("", "settled doctor --fix");
    assert!(fixed.exit == before.exit, "{fixed:?}");
    assert!(fixed.out.contains("\n0 wrong, 1 fixed, "), "{fixed:?}");
    assert!(desk.root().join("packets/handoff").is_dir());
}

#[test]
fn a_ledger_that_was_changed_or_cut_is_not_verified() {
    let desk = Desk::recorded();
    desk.check(
        "",
        "damaged.txt",
        &[
            "cp $LEDGER kept; printf 'half a rec' >> $LEDGER; settled ledger verify",
            "cp kept $LEDGER; settled ledger verify | sed 's/12/7/' | settled ledger verify --from -",
            "sed -i '3s/req-87/req-78/' $LEDGER; settled ledger verify --json",
            "settled ledger verify --from room/settled.toml",
        ],
    );
}

#[test]
fn a_scenario_that_ends_otherwise_fails_and_lets_the_others_run() {
    let desk = Desk::new("claude,codex");
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios/rounds");
    let one = std::fs::read_dir(scenarios).expect("scenarios").next();
    let one = one.expect("a scenario").expect("a file").path();
    let text = std::fs::read_to_string(&one).expect("a scenario");
    desk.put("right.yaml", &text);
    assert_eq!(desk.run("", "settled simulate right.yaml").exit, 0);
    let both = desk.run("", "settled simulate none.yaml right.yaml");
    assert!(
        both.exit == 3 && both.out.contains("right.yaml"),
        "{both:?}"
    );
    let lines = desk.run("", "settled simulate none.yaml right.yaml --json");
    assert_eq!((lines.exit, lines.out.lines().count()), (3, 2), "{lines:?}");
}

#[test]
fn the_help_of_a_type_shows_the_options_of_that_type() {
    let desk = Desk::new("claude,codex");
    let options = |line: &str| {
        let said = desk.run("", &format!("settled {line} --help"));
        assert_eq!(said.exit, 0, "{said:?}");
        let lines = said.out.lines().map(str::trim_start);
        let words = lines
            .filter(|line| line.starts_with("--"))
            .filter_map(|line| line.split(' ').next());
        words.map(str::to_owned).collect::<Vec<String>>()
    };
    let [request, question, reply, all] = [
        "send review_request",
        "--root m send question",
        "reply",
        "send",
    ]
    .map(options);
    for (option, shown) in [
        ("--branch", [true, false, false, false]),
        ("--repo-dir", [true, false, false, false]),
        ("--commit-sha", [false, false, true, false]),
        ("--channel", [false, true, false, false]),
        ("--round", [true, false, false, false]),
        ("--to", [true, true, true, true]),
        ("--timeout", [true, true, true, true]),
        ("--no-wait", [true, true, false, false]),
        ("--model", [false, false, false, false]),
        ("--id", [true, true, false, false]),
    ] {
        let is_in = [&request, &question, &reply, &all]
            .map(|options| options.iter().any(|one| one == option));
        assert_eq!(is_in, shown, "{option}");
    }
    let said = desk.run("", "settled send handoff --help");
    assert!(
        said.out.contains("settled send handoff --to codex --body"),
        "{said:?}"
    );
    let said = desk.run("", "settled send question --help");
    assert!(
        said.out.contains("settled send question --to gemini"),
        "{said:?}"
    );
    assert!(!said.out.contains("send review_request --to"), "{said:?}");
}

#[test]
fn pages_and_completions_name_every_command_that_is_not_hidden() {
    let desk = Desk::new("claude,codex");
    desk.check(
        "",
        "manual.txt",
        &[
            "settled man pages",
            "ls pages | grep -c keep-run",
            "ls pages | grep '^settled-gate'",
            "sed -n '/EXAMPLES/,$p' pages/settled-turn.1",
            "settled man | sed -n '/SH NAME/,+1p'",
            "settled man --json | head -c 60",
            "settled completions bash | grep -c 'settled__subcmd__gate\\|settled__gate' > /dev/null && echo it completes",
            "settled states | head -1",
            "settled explain action_missing | head -2",
            "settled explain --list | head -2",
            "settled explain --list --json | head -1 | cut -c1-60",
        ],
    );
}

#[test]
fn the_demonstration_tells_each_step_and_ends_well() {
    let desk = Desk::new("claude,codex");
    let told = desk.run("", "settled demo --pace 1ms --json");
    assert_eq!(told.exit, 0, "{told:?}");
    let steps = told.out.lines().filter(|line| line.contains("\"step\":"));
    assert_eq!(steps.count(), demo::steps().len(), "{told:?}");
    let kept = desk.run("", "settled demo --pace 1ms --dir 'my demo'");
    let place = "\nit is in my demo: settled status 'my demo'\n";
    assert!(kept.exit == 0 && kept.out.ends_with(place), "{kept:?}");
}

#[test]
fn a_pair_is_not_begun_with_words_or_agents_that_do_not_fit() {
    let desk = Desk::new("claude,codex");
    desk.put("task.md", "do it\n");
    desk.put(
        "room/settled.toml",
        "[agents.codex]\ncommand = [\"true\"]\nworkdir = \"/\"\n",
    );
    let pair = "settled pair --author claude --author-command true --task task.md";
    let lines = [
        format!("{pair} --done X --pass X"),
        format!("{pair} --done ' X'"),
        format!("{pair} --fail ''"),
        format!("{pair} --reviewer codex --reviewer-command true"),
        format!("{pair} --author-output none"),
        "settled pair --author claude --author-command true --task none.md".to_owned(),
        "settled pair --drop".to_owned(),
        "settled pair --transcript pair-1".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    desk.check("", "pair.txt", &lines);
}
