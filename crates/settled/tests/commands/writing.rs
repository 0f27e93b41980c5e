//! Tests the messages that the writing commands send, and what they say about the outcome.

use super::desk::{Desk, Play};

/// Two findings: one that blocks, one that does not.
const FINDINGS: &str = "\
findings:
- {severity: P1, title: the lock is kept, file: src/lock.rs, line: 40}
- {severity: P2, blocking: false, title: the name is odd, file: src/lock.rs, line: 2}
";

/// The commit of the second round.
const HEAD: &str = "2222222222222222222222222222222222222222";

const REQUEST: &str = "settled send review_request --to codex --pr 86 --branch fix/login --declared-head 1111111 \
                       --diff-summary 'two locks' --id req-1";

#[test]
fn a_message_is_sent_once_however_often_its_id_is() {
    let desk = Desk::new("claude,codex");
    let send = "settled send question --to codex --subject Port --body '80?' --id q-1";
    let mut play = Play::of(&desk);
    play.run("claude", &format!("{send} --no-wait"));
    play.run("claude", &format!("{send} --no-wait"));
    play.run("claude", &format!("{send} --timeout 0"));
    play.run("claude", &format!("{send} --timeout 0 --json"));
    play.run("claude", &format!("{send} --dry-run"));
    play.run("claude", "settled");
    let other = send.replace("80?", "another one");
    play.run("claude", &other);
    desk.judge();
    play.run("claude", send);
    play.run("claude", &format!("{other} --json"));
    play.run("codex", "settled next");
    play.judged("codex", "settled reply q-1 --body 8080 --id a-1", "");
    play.run("codex", "settled");
    play.run("claude", "settled wait --for reply --id q-1 --timeout 0");
    play.run("claude", "settled done a-1");
    let told = "settled send notification --to codex --subject s --body b --json --id";
    play.judged("claude", &format!("{told} n-1"), "");
    play.judged(
        "claude",
        &format!("{told} n-2 --expires-at 2020-01-01T00:00:00Z"),
        "",
    );
    play.check("question.txt");
}

#[test]
fn what_could_not_be_written_is_told_apart_from_what_is_not_judged_yet() {
    let desk = Desk::new("claude,codex");
    let outbox = desk.root().join("agents/claude/outbox");
    std::fs::remove_dir(&outbox).expect("an empty outbox");
    let send = "settled send question --to codex --subject Port --body '80?' --id q-1 --timeout 0";
    let mut play = Play::of(&desk);
    play.run("claude", send);
    play.run("claude", &format!("{send} --json"));
    std::fs::create_dir(&outbox).expect("an outbox");
    play.run("claude", send);
    play.check("unwritten.txt");
}

#[test]
fn a_review_is_held_with_the_commands_that_its_agents_have() {
    let desk = Desk::new("claude,codex");
    desk.put("findings.yaml", FINDINGS);
    let mut play = Play::of(&desk);
    play.judged("claude", REQUEST, "");
    play.run("codex", "settled");
    play.run("codex", "settled show req-1");
    play.run("codex", "settled take req-1");
    play.run("codex", "settled brief");
    let feedback = "settled feedback 86 --findings findings.yaml --id fb-1";
    play.run("codex", &format!("{feedback} --dry-run"));
    play.judged("codex", &format!("{feedback} --turns 3 --model m"), "");
    play.run("codex", "settled wait --timeout 0 --for verdict");
    play.run("claude", "settled wait --for verdict --pr 86 --timeout 0");
    play.run("claude", "settled threads 86");
    play.run("claude", "settled reply fb-1 --body x");
    play.judged(
        "claude",
        "settled reply fb-1 --commit-sha 2222222 --body-file - --id ad-1",
        "both\n",
    );
    play.run("codex", "settled");
    play.run("codex", "settled lgtm 86");
    let again = REQUEST.replace("req-1", "req-2").replace("1111111", HEAD);
    play.judged("claude", &again, "");
    play.run("codex", "settled lgtm 86 --dry-run --id lg-1");
    play.run("codex", "settled feedback 86 --findings - --json");
    play.run("codex", "settled feedback 86 --action F-1-001=defer");
    let words = "--action F-1-001=resolve --action F-1-002=resolve --nit 'a word' --id lg-1";
    play.judged("codex", &format!("settled lgtm 86 {words}"), "");
    play.run("codex", &format!("settled lgtm 86 {words}"));
    play.run("codex", "settled");
    play.run("claude", "settled show lg-1");
    play.run(
        "claude",
        "settled reply lg-1 --body thanks --dry-run --id t-1",
    );
    play.run(
        "claude",
        "settled send review_addressed --pr 86 --commit-sha 3333333 --body x",
    );
    play.run("", &format!("settled gate check --pr 86 --head {HEAD}"));
    play.run("", "settled gate check --pr 86 --head 2222222");
    play.run(
        "",
        "settled gate check --pr 86 --head 3333333333333333333333333333333333333333",
    );
    play.run("", "settled verdict export 86 -o verdict.txt");
    play.run("", "settled verdict export 86 --json -o verdict.txt");
    play.run("", "settled verdict export 86 | head -c 10");
    let verify = format!("settled verdict verify verdict.txt --head {HEAD}");
    let other = format!("sha256:{}", "f".repeat(64));
    play.run("", &verify);
    play.run("", &format!("{verify} --pr 87"));
    play.run("", &format!("{verify} --seal {other}"));
    play.run("", &format!("{verify} --anchor {other}"));
    play.run("", &format!("{verify} --reviewer gemini"));
    play.run(
        "",
        "settled verdict verify verdict.txt --head 3333333 --json",
    );
    play.run("", "echo x >> verdict.txt");
    play.run("", &verify);
    play.check("review.txt");
}

#[test]
fn what_is_refused_says_why_what_it_cost_and_what_may_be_sent() {
    let desk = Desk::new("claude,codex,gemini");
    let mut play = Play::of(&desk);
    play.run(
        "claude",
        "settled send review_request --pr 86 --branch b --diff-summary x",
    );
    play.run(
        "claude",
        "settled send review_request --branch b --diff-summary x",
    );
    play.run("claude", "settled send question --subject x --body x");
    play.judged("claude", "settled send question --to codex --subject x --body x --expires-at 2020-01-01T00:00:00Z --id old", "");
    play.run("claude", "settled send review_request --to codex --pr 86 --branch b --diff-summary x --max-rounds 9 --id r");
    play.judged("claude", REQUEST, "");
    play.judged("claude", &REQUEST.replace("req-1", "req-2"), "");
    play.run("codex", "settled feedback 86 --findings -");
    play.fed(
        "codex",
        "settled feedback 86 --findings - --json",
        "findings:\n- {severity: P1, file: a.rs, titel: x}\n- {severity: P1}\n",
    );
    play.fed("codex", "settled feedback 86 --findings -", "findings: [\n");
    play.fed(
        "codex",
        "settled feedback 86 --findings - --escalation because --dry-run --id e",
        "findings: []\n",
    );
    play.fed("codex", "settled lgtm 86 --nits -", "{\"response\": 3}\n");
    // Structured output has a place for no option, and none is dropped.
    let structured = r#"{"response": {"type": "review_lgtm", "threads": {}, "nits": [], "merge_ready": true, "commands_run": [], "validated_head": ""}}"#;
    for option in ["--nit x", "--not-merge-ready", "--examined a"] {
        let command = format!("settled lgtm 86 --findings - {option}");
        play.fed("codex", &command, structured);
    }
    let structured = structured.replace("review_lgtm", "review_feedback");
    let structured = structured.replace(r#""nits": [], "merge_ready": true"#, r#""findings": []"#);
    let command = "settled feedback 86 --findings - --escalation x --head 1234567";
    play.fed("codex", command, &structured);
    play.run("codex", "settled lgtm 86 --action F-9-001=resolve");
    play.run("codex", "settled lgtm 86 --action =resolve");
    play.run("codex", "settled lgtm 86 --action resolve");
    play.run("codex", "settled feedback 86 --action F-1-001=");
    play.run("codex", "settled reply req-1 --body x");
    play.judged(
        "codex",
        "settled lgtm 86 --ran 'cargo test=fail' --id bad",
        "",
    );
    play.run("claude", "settled pr merged 86");
    play.check("refused.txt");
}

#[test]
fn a_file_that_nobody_judges_or_that_was_refused_is_named_with_the_way_on() {
    let desk = Desk::new("claude,codex");
    desk.put("body.yaml", "pr: 86\n");
    let mut play = Play::of(&desk);
    // A fault is named where it was written: in the file, or by its option if the file is not the whole.
    let request = "settled send review_request --to codex --body-file body.yaml --dry-run --id r";
    play.run("claude", request);
    play.run("claude", &format!("{request} --branch b"));
    play.run(
        "claude",
        "echo 'type: question' > room/agents/claude/outbox/'a b'; settled",
    );
    play.run(
        "claude",
        "mv room/agents/claude/outbox/'a b' room/agents/claude/outbox/a.yaml; settled serve --once",
    );
    play.run("claude", "settled dead-letter retry a.yaml");
    play.run("claude", "settled dead-letter retry a.yaml --force");
    play.judged("claude", "settled send question --to codex --subject x --body x --expires-at 2020-01-01T00:00:00Z --id old", "");
    play.run("claude", "settled dead-letter retry old");
    play.judged("claude", REQUEST, "");
    let again = REQUEST.replace("req-1", "req-2");
    play.judged("claude", &again, "");
    play.run("claude", "settled dead-letter retry req-2");
    play.check("retried.txt");
}

#[test]
fn who_reports_an_event_learns_what_came_of_it_and_no_agent_decides_for_a_person() {
    let desk = Desk::new("claude,codex");
    desk.put("findings.yaml", FINDINGS);
    let mut play = Play::of(&desk);
    play.judged("claude", REQUEST, "");
    play.judged(
        "codex",
        "settled feedback 86 --findings findings.yaml --id fb-1",
        "",
    );
    play.run("", "settled review grant 86 --by ann");
    play.run("", "settled review grant 86 --by ann --reason 'it is ours'");
    play.run("", "settled thread hold 86 F-1-001 --json");
    for event in [
        "turn 86 --count 2",
        "take --pr 86",
        "pr synchronize 86 --head 4444444",
        "take --pr 87 --reviewer codex",
        "turn 87",
        "pr closed 86",
        "pr reopened 86 --head 4444444",
        "pr opened 88 --head 4444444 --author octocat --repo o/n",
    ] {
        play.run("", &format!("settled {event}"));
    }
    play.fed("", "settled pr ingest -", r#"{"action": "labeled"}"#);
    play.fed("", "settled pr ingest - --json", "{}");
    play.check("decided.txt");
}

#[test]
fn each_type_is_answered_by_the_type_that_follows_it() {
    let desk = Desk::new("claude,codex");
    for (asked, answer) in [
        ("question", "follow_up"),
        ("task_request", "follow_up"),
        ("notification", "follow_up"),
        ("handoff", "handoff_complete"),
        ("handoff_complete", "follow_up"),
        ("brainstorm_request", "brainstorm_followup"),
        ("brainstorm_followup", "brainstorm_followup"),
    ] {
        let send =
            format!("settled send {asked} --to codex --subject 'Re: s' --body b --id {asked}");
        let sent = desk.run("claude", &format!("{send} --no-wait"));
        assert_eq!(sent.exit, 0, "{sent:?}");
        desk.judge();
        let reply = desk.run(
            "codex",
            &format!("settled reply {asked} --body b --dry-run"),
        );
        let is_line = |line: String| reply.out.lines().any(|said| said == line);
        assert!(is_line(format!("type: {answer}")), "{asked}: {reply:?}");
        assert!(is_line(format!("parent_message_id: {asked}")), "{reply:?}");
        assert!(is_line("to: claude".to_owned()), "{reply:?}");
        assert!(is_line("subject: 'Re: s'".to_owned()), "{reply:?}");
    }
}

/// Makes a repository in `code` whose branch `fix` adds the files that these lines make.
fn commit(desk: &Desk, files: &str) {
    let git = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";
    let commits = format!(
        "export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z; {git} init -q code && cd code && \
         echo a > a && git add a && {git} commit -qm a && git checkout -qb fix && {files} && git add . && {git} commit -qm b"
    );
    assert_eq!(desk.run("", &commits).exit, 0);
}

#[test]
fn a_change_whose_reader_goes_away_is_not_counted_as_read() {
    let desk = Desk::new("claude,codex");
    // More than a pipe holds, so that it is not written before its reader has gone.
    commit(&desk, "yes | head -n 200000 > b");
    let request = "settled send review_request --to codex --pr 86 --branch fix --diff-summary s --repo-dir code --id r";
    assert_eq!(desk.judged("claude", request, "").exit, 0);
    let diff = "{ settled diff 86 --repo-dir code; echo $? >&2; } | head -c 4";
    let said = desk.run("codex", diff);
    assert_eq!((&*said.out, &*said.err), ("diff", "0\n"));
    let names = desk.run("codex", "settled diff 86 --names --repo-dir code");
    assert_eq!(names.out, "- b\n");
}

#[test]
fn a_reviewer_reads_the_change_of_its_own_checkout_and_its_answer_says_so() {
    let desk = Desk::new("claude,codex");
    commit(&desk, "echo b > b && echo c > c");
    let request = "settled send review_request --to codex --pr 86 --branch fix --diff-summary s --repo-dir code --id r \
                   --validation-command 'test -e b' --validation-command 'test -e d'";
    let sent = desk.judged("claude", request, "");
    assert!(sent.exit == 0 && !sent.out.contains("no_diff"), "{sent:?}");
    let mut play = Play::of(&desk);
    play.run("codex", "settled diff 86 --names --repo-dir code");
    play.run("codex", "settled diff 86 --file b --repo-dir code");
    play.run("codex", "settled diff 86 --names --repo-dir code");
    play.run("codex", "settled diff 86 --file a --repo-dir code");
    play.run(
        "codex",
        "settled diff 86 --file c --json --repo-dir code | grep -c '\"path\"'",
    );
    play.run("codex", "settled diff 86 --names --repo-dir code");
    play.run("codex", "settled diff 86 --repo-dir .");
    let ran = "--ran 'test -e b=pass' --ran 'test -e d=pass'";
    play.run(
        "codex",
        &format!("settled lgtm 86 {ran} --dry-run | sed -n '/examined/,/^#/p'"),
    );
    play.run(
        "codex",
        &format!("settled lgtm 86 --examined a {ran} --dry-run | sed -n '/examined/,/^#/p'"),
    );
    let validate = "settled validate-run 86 --repo-dir code";
    play.run("", &format!("{validate} > all; echo $?; wc -l < all"));
    play.run(
        "",
        &format!("{validate} --command 'test -e b' > all; echo $?; wc -l < all"),
    );
    play.run(
        "",
        &format!("{validate} --command 'test -e d' > all; echo $?; wc -l < all"),
    );
    play.run("", "settled validate-run 86 --command 'test -e e'");
    play.run(
        "",
        "settled validate-run 86 --command 'test -e b' --json | grep -c head_unknown",
    );
    play.check("change.txt");
}
