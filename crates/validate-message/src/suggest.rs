//! Finds the known word nearest to a wrong one, by spelling or by meaning. The caller hands in the known words.

use message_schema::line::{is_strange_space, is_typographic_quote};

/// The longest word that is compared with others, in bytes.
const LENGTH_MAX: usize = 64;

/// Names that other protocols and everyday speech use for a field or a value: our word first, then theirs.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("id", &["message_id", "msg_id", "finding_id", "uuid"]),
    ("nit_id", &["id"]),
    ("from", &["sender", "author", "from_agent"]),
    ("to", &["recipient", "recipients", "receiver", "to_agent"]),
    ("type", &["message_type", "msg_type", "kind"]),
    (
        "created_at_utc",
        &["timestamp", "created", "date", "sent_at", "time"],
    ),
    ("subject", &["title", "topic", "summary"]),
    ("body", &["content", "message", "text", "payload"]),
    ("related_pr", &["pr", "pull_request", "pr_number"]),
    ("parent_message_id", &["in_reply_to", "reply_to"]),
    ("expires_at", &["expiry", "expires_at_utc"]),
    ("pr", &["pull_request", "pr_number", "related_pr", "pr_id"]),
    (
        "diff_summary",
        &["summary", "description", "changes_summary", "changes"],
    ),
    (
        "changes_summary",
        &["summary", "description", "diff_summary", "changes"],
    ),
    ("branch", &["head_branch", "head_ref"]),
    ("commit_sha", &["commit", "sha", "head", "head_sha"]),
    ("findings_packet", &["packet", "findings", "packet_path"]),
    ("blocking_count", &["blocking", "blockers"]),
    ("quality_gate_result", &["result", "gate", "quality_gate"]),
    ("merge_ready", &["ready", "mergeable", "ready_to_merge"]),
    ("owner", &["assignee"]),
    ("next_action", &["next_step", "todo"]),
    ("tier", &["severity", "priority"]),
    ("severity", &["priority", "tier", "level"]),
    ("status", &["state"]),
    ("findings", &["issues", "comments"]),
    ("review_request", &["request", "review"]),
    (
        "review_feedback",
        &["feedback", "review_findings", "changes_requested"],
    ),
    ("review_addressed", &["addressed", "fixed", "review_fixed"]),
    (
        "review_lgtm",
        &["lgtm", "approve", "approved", "approval", "review_approved"],
    ),
    ("notification", &["notice", "info", "message"]),
    ("P0", &["critical", "blocker", "urgent"]),
    ("P1", &["high", "major"]),
    ("P2", &["medium", "normal", "moderate"]),
    ("P3", &["low", "minor", "nit", "trivial"]),
    ("open", &["todo", "new", "unresolved"]),
    ("fixed", &["done", "closed", "addressed"]),
    ("wont_fix", &["ignored", "rejected"]),
    ("needs_clarification", &["question", "unclear"]),
    ("pass", &["ok", "success", "successful", "green", "true"]),
    ("fail", &["error", "failure", "red", "false"]),
    ("resolve", &["approve", "accept", "close", "fixed"]),
    ("reply", &["comment", "respond"]),
    ("verify", &["verification"]),
];

/// Returns the candidate that differs from the word by case, hyphens or blanks, or by one or two typing slips; longer
/// words may differ more. Words like `P1` are all one slip apart, so they may differ only in case.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // A word this long is no misspelt field name, and comparing it takes quadratic time.
    if word.len() > LENGTH_MAX {
        return None;
    }
    let plain = plain(word);
    let letters = plain.chars().count();
    let slips_max = if letters < 4 { 0 } else { 1 + letters / 4 };
    candidates
        .filter(|candidate| candidate.len() <= LENGTH_MAX)
        .map(|candidate| {
            (
                strsim::osa_distance(&plain, &self::plain(candidate)),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= slips_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the candidate that means the same as the word, as `from` does for `sender`.
pub(crate) fn synonym<'c>(
    word: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.len() > LENGTH_MAX {
        return None;
    }
    let plain = plain(word);
    candidates
        .filter_map(|ours| {
            SYNONYMS
                .iter()
                .find(|(word, _)| *word == ours)
                .map(|(_, theirs)| (ours, theirs))
        })
        .filter_map(|(ours, theirs)| {
            theirs
                .iter()
                .position(|their| *their == plain)
                .map(|at| (at, ours))
        })
        .min_by_key(|(at, _)| *at)
        .map(|(_, ours)| ours)
}

/// Returns the word without the differences that do not matter: case, quotes, surrounding spaces, and whether hyphens,
/// blanks or underscores join its parts.
pub(crate) fn plain(word: &str) -> String {
    let is_rim =
        |c: char| c.is_whitespace() || is_strange_space(c) || is_typographic_quote(c) || c == '*';
    word.trim_matches(is_rim)
        .to_lowercase()
        .replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["review_lgtm", "subject", "P1", "P2"];
        let near = |word| nearest(word, known.into_iter());
        assert_eq!(near("review_lgmt"), Some("review_lgtm"));
        assert_eq!(near("Review-LGTM"), Some("review_lgtm"));
        assert_eq!(near("subjct"), Some("subject"));
        assert_eq!(near("\u{a0}subject"), Some("subject"));
        assert_eq!(near("p2"), Some("P2"));
        assert_eq!(near("\u{201c}P2\u{201d}"), Some("P2"));
        assert_eq!(near("p5"), None);
        assert_eq!(near("colour"), None);
        assert_eq!(near(&"subject".repeat(10)), None);
        // Too long to be compared, even with itself.
        let long = "subject".repeat(10);
        assert_eq!(nearest(&long, [long.as_str()].into_iter()), None);
        assert_eq!(
            nearest("subject", [long.as_str(), "subjct"].into_iter()),
            Some("subjct")
        );
    }

    #[test]
    fn a_word_of_64_bytes_is_compared_and_its_rim_does_not_matter() {
        let longest = "a".repeat(64);
        assert_eq!(
            nearest(&longest, ["b", &longest].into_iter()),
            Some(&*longest)
        );
        assert_eq!(nearest(&"a".repeat(65), [&*longest].into_iter()), None);
        assert_eq!(
            synonym(&format!("sender{}", " ".repeat(58)), ["from"].into_iter()),
            Some("from")
        );
        assert_eq!(
            synonym(&format!("sender{}", " ".repeat(59)), ["from"].into_iter()),
            None
        );
        for rim in [" ", "\t", "\u{a0}", "\u{200b}", "\u{201c}", "*"] {
            assert_eq!(plain(&format!("{rim}A-b c{rim}")), "a_b_c", "{rim:?}");
        }
    }

    #[test]
    fn another_word_for_the_same_is_recognised_among_those_that_are_wanted() {
        let same = |word, wanted: &[&'static str]| synonym(word, wanted.iter().copied());
        assert_eq!(same("sender", &["to", "from"]), Some("from"));
        assert_eq!(
            same("Summary", &["diff_summary", "pr"]),
            Some("diff_summary")
        );
        assert_eq!(same("High", &["P0", "P1", "P2", "P3"]), Some("P1"));
        assert_eq!(same("sender", &["to"]), None);
        assert_eq!(same("colour", &["to", "from"]), None);
    }
}
