//! Tests what the commands say about a wrong command line: the mistake, the exit code, and the command to run instead.

use super::desk::Desk;

#[test]
fn whoever_does_not_say_where_or_who_learns_how_to() {
    Desk::recorded().check(
        "",
        "who.txt",
        &[
            "settled inbox",
            "settled --agent nobody",
            "settled --agent 'a b' inbox --json",
            "settled --root none status",
            "SETTLED_ROOT= settled status",
            "settled up none",
            "settled init new --agents a=1000",
            "settled init new --agents a,b",
            "settled init new --agents a,b",
            "settled init new --agents a --separate-users --daemon nobody-of-this-name --dry-run",
        ],
    );
}

#[test]
fn a_command_line_that_means_nothing_is_answered_with_what_it_may_mean() {
    Desk::recorded().check(
        "claude",
        "usage.txt",
        &[
            "settled statsu",
            "settled frobnicate --json",
            "settled review 86",
            "settled gate chek --pr 86",
            "settled approve 86",
            "settled send 86",
            "settled --root m merged 86",
            "settled why --json",
            "settled hook turn-end --for nothing",
            "settled hook install nothing --json",
            "settled wait --timeout 2x",
            "settled wait --timeout 25h",
            "settled wait --for reply",
            "settled demo --pace 1",
            "settled demo --pace 61s",
            "settled service status --name=-x",
            "settled explain action_mising",
            "settled explain nothing --json",
        ],
    );
}

#[test]
fn what_is_not_there_is_named_with_where_to_look() {
    Desk::recorded().check(
        "gemini",
        "absent.txt",
        &[
            "settled show none",
            "settled reply none --body x",
            "settled brief 99",
            "settled diff 88",
            "settled why 99",
            "settled threads 99",
            "settled trace none",
            "settled trace req-86 --from gemini",
            "settled dead-letter show none",
            "settled validate-run 99",
            "settled lgtm 86",
            "settled feedback 88 --action F-1-001=resolve --json",
            "settled pr ingest none.json",
            "settled simulate none.yaml",
            "settled simulate --ledger \"$SETTLED_ROOT\" --config none.toml",
            "settled verdict verify none.txt --head 8888888",
            "settled ledger verify --from none.txt",
            "settled pair --transcript",
            "settled pair --resume",
            "settled pair --resume pair-1",
            "settled doctor --agents gemini",
            "settled doctor --agents",
            "settled hook install claude --dir none",
        ],
    );
}
