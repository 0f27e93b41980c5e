//! The values of the messages to judge: correct ones, and mistakes for any field.

/// The twelve types.
pub(super) const TYPES: [&str; 12] = [
    "review_request",
    "review_feedback",
    "review_addressed",
    "review_lgtm",
    "notification",
    "question",
    "task_request",
    "follow_up",
    "handoff",
    "handoff_complete",
    "brainstorm_request",
    "brainstorm_followup",
];

/// Correct subjects.
pub(super) const SUBJECTS: [&str; 8] = [
    "Review: change 7",
    "yes",
    "~",
    "  both ends  ",
    "it's \"quoted\" # no remark",
    "größe 🦀 日本",
    "- a: [b]",
    "2026-02-13T10:00:00Z",
];

/// Correct bodies.
pub(super) const BODIES: [&str; 6] = [
    "what is it?",
    "two\nlines",
    "pr: 86\nbranch: b\ndiff_summary: s",
    "a\n\n  deeper\n\nback\n",
    "tab\tinside\n# no remark\n- x: {y\n",
    "---\nno document\n...",
];

/// Optional fields with correct values.
pub(super) const OPTIONAL: [(&str, &[&str]); 8] = [
    (
        "related_packet",
        &["packets/review/r1.md", "anything at all", ""],
    ),
    ("related_pr", &["86", "0086", ""]),
    (
        "conversation_id",
        &["conv-20260213-claude-1", "conv-99999999-a-b.c-123456", ""],
    ),
    ("parent_message_id", &["msg-1", "a text with spaces", ""]),
    ("context_keys", &["review-loop, docs", "two\nlines", ""]),
    ("expires_at", &["2126-02-13T10:00:00Z", ""]),
    ("channel", &["reviews", "A_b-1", ""]),
    ("autonomy_hint", &["auto_proceed", ""]),
];

/// The costs that a response may report.
pub(super) const TELEMETRY: [(&str, &[&str]); 6] = [
    ("model", &["some-model-1", "null"]),
    ("turns", &["0", "8", "007", "18446744073709551615"]),
    ("input_tokens", &["1234"]),
    ("output_tokens", &["99"]),
    ("wall_time_s", &["0.25", "1e3", "7", "0"]),
    ("est_cost_usd", &["1e-7", "0.42", "12.50"]),
];

/// Mistaken names of fields.
pub(super) const NAMES: [&str; 14] = [
    "ID",
    "form",
    "created_at",
    "createdAtUtc",
    "prio",
    "cc",
    "<<",
    "body ",
    "\"body\"",
    "related-pr",
    "auth",
    "model",
    "'to'",
    "? x\n",
];

/// Mistaken values for any field, as written in the file.
pub(super) const ANYTHING: [&str; 44] = [
    "",
    "~",
    "null",
    "''",
    "\"  \"",
    "[]",
    "{}",
    "[a]",
    "{a: b}",
    "[[codex]]",
    "[a, b",
    "{a: b",
    "'open",
    "\"open",
    "a: b",
    "a #b",
    "@x",
    "`x",
    "%x",
    "- x",
    "? x",
    "!!str x",
    "!x",
    "&a x",
    "*a",
    "|",
    ">",
    "|9\n  x",
    "|+\n  x\n\n",
    ">-\n  x\n  y",
    "'it''s'",
    "\"\\x41\\u0042\\U00000043\"",
    "\"\\/\"",
    "\"\\q\"",
    "\"\\ud83d\\ude00\"",
    "\"a\n  b\"",
    "a\n  b",
    "x\ty",
    "\tx",
    "x\u{7f}",
    "x\u{1b}[0m",
    "x\u{feff}",
    "\u{a0}",
    "x,",
];

/// Characters that YAML does not accept everywhere.
pub(super) const LETTERS: [char; 30] = [
    '\t', ' ', ':', '#', '-', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@',
    '`', ',', '?', '\n', '\r', '\0', '\u{7}', '\u{85}', '\u{2028}', '\u{feff}', '\u{a0}', 'é',
];
