//! Where the options of the commands that write put what they are given.

use super::desk::Desk;

/// The lines of a message that a dry run prints.
fn lines(desk: &Desk, agent: &str, line: &str) -> Vec<String> {
    let said = desk.run(agent, &format!("{line} --dry-run"));
    assert_eq!(said.exit, 0, "{line}: {said:?}");
    said.out
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

/// Asserts that each option puts its value into the field beside it.
fn assert_put(desk: &Desk, agent: &str, start: &str, options: &[(&str, &str)]) {
    for (option, field) in options {
        let lines = lines(desk, agent, &format!("{start} {option}"));
        assert!(
            lines.iter().any(|line| line == field),
            "{option}: {lines:#?}"
        );
    }
}

#[test]
fn each_option_of_every_message_is_the_field_of_its_name() {
    let desk = Desk::new("claude,codex,gemini");
    desk.put("text.md", "from a file\n");
    assert_put(
        &desk,
        "claude",
        "settled send question --subject s --to codex",
        &[
            ("--body b", "b"),
            ("--body-file text.md", "from a file"),
            ("--body b --priority P0", "priority: P0"),
            ("--body b --related-pr 7", "related_pr: '7'"),
            ("--body b --parent m-1", "parent_message_id: m-1"),
            (
                "--body b --conversation conv-20260213-claude-1",
                "conversation_id: conv-20260213-claude-1",
            ),
            ("--body b --related-packet p.yaml", "related_packet: p.yaml"),
            (
                "--body b --expires-at 2999-01-01T00:00:00Z",
                "expires_at: 'INSTANT'",
            ),
            ("--body b --channel c", "channel: c"),
            ("--body b --context-keys k", "context_keys: k"),
            (
                "--body b --autonomy-hint auto_proceed",
                "autonomy_hint: auto_proceed",
            ),
            ("--body b --id q-9", "id: q-9"),
        ],
    );
    let said = desk.run(
        "claude",
        "settled send question --subject s --body b --to codex,gemini --dry-run",
    );
    assert!(
        said.out.contains("- codex") && said.out.contains("- gemini"),
        "{said:?}"
    );
}

#[test]
fn each_option_of_a_request_is_the_field_of_its_name() {
    let desk = Desk::new("claude,codex");
    assert_put(
        &desk,
        "claude",
        "settled send review_request --to codex --pr 86 --branch b --diff-summary s",
        &[
            ("", "branch: b"),
            ("", "diff_summary: s"),
            ("--head abc1234", "declared_head: abc1234"),
            ("--base abc1234", "base_sha: abc1234"),
            ("--repo o/n", "repo: o/n"),
            ("--max-turns-reviewer 4", "max_turns_reviewer: 4"),
            ("--max-runtime-s-reviewer 60", "max_runtime_s_reviewer: 60"),
            ("--max-rounds 1", "max_rounds: 1"),
            ("--validation-command t", "- t"),
            ("--side-effect e", "- e"),
            ("--run-trigger verify", "run_trigger: verify"),
            ("--human-direction '{\"who\": \"ada\"}'", "who: ada"),
        ],
    );
}

#[test]
fn a_value_that_may_be_of_any_form_is_json_only_as_a_list_or_a_mapping() {
    let desk = Desk::new("claude,codex");
    let request =
        "settled send review_request --to codex --pr 86 --branch b --diff-summary s --id req-1";
    assert_eq!(desk.judged("claude", request, "").exit, 0);
    let start = "settled lgtm 86 --head 0badcafe";
    assert_put(
        &desk,
        "codex",
        start,
        &[
            ("", "validated_head: '0badcafe'"),
            ("--not-merge-ready", "merge_ready: false"),
            ("--ran 'a=b=pass'", "- command: a=b"),
            ("--ran 'a=b=pass'", "result: pass"),
            ("--nit later", "summary: later"),
            ("--turns 4", "turns: 4"),
            ("--model m", "model: m"),
            ("--input-tokens 5", "input_tokens: 5"),
            ("--output-tokens 6", "output_tokens: 6"),
            ("--wall-time-s 7.5", "wall_time_s: 7.5"),
            ("--est-cost-usd 0.5", "est_cost_usd: 0.5"),
            ("--subject mine", "subject: mine"),
            ("--priority P3", "priority: P3"),
            ("", "parent_message_id: req-1"),
        ],
    );
    let start = "settled send review_lgtm --to claude --pr 86 --round 1";
    assert_put(
        &desk,
        "codex",
        start,
        &[
            ("", "round: 1"),
            ("--follow-ups '[\"a b\"]'", "- a b"),
            ("--follow-ups '7'", "follow_ups: '7'"),
            (
                "--withheld-side-effects none",
                "withheld_side_effects: none",
            ),
            ("--follow-ups later", "follow_ups: later"),
            ("--telemetry '{\"a\": 1}'", "a: 1"),
            ("--validated-head abcdefa", "validated_head: abcdefa"),
            ("--merge-ready false", "merge_ready: false"),
        ],
    );
}
