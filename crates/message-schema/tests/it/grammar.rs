//! The texts that each kind of identifier, range, instant and escalation admits, at the edges of their grammars.

use chrono::DateTime;
use message_schema::body::Escalation;
use message_schema::envelope::Timestamp;
use message_schema::id::{
    AgentName, CommitSha, ConversationId, DiffDigest, FindingId, MessageId, PacketPath, PrNumber,
    Repo, RepoPath,
};
use message_schema::packet::LineRange;

/// Returns the text that many times.
fn times(text: &str, count: usize) -> String {
    text.repeat(count)
}

/// A kind of identifier: its name, whether it admits a text, texts that it admits, and texts that it does not.
type Kind = (
    &'static str,
    fn(&str) -> bool,
    &'static [&'static str],
    &'static [&'static str],
);

const KINDS: [Kind; 10] = [
    (
        "agent name",
        |text| AgentName::new(text).is_ok(),
        &["a", "7", "Gemini_1.5-pro"],
        &["", ".a", "_a", "-a", "a b", "a/b", "ä"],
    ),
    (
        "message id",
        |text| MessageId::new(text).is_ok(),
        &["a", "-", "A.z_0:@+-9"],
        &["", "a b", "a/b", "ä"],
    ),
    (
        "pull request",
        |text| PrNumber::new(text).is_ok(),
        &["0", "0086", "86"],
        &["", "-1", "+1", "8a", "#8", "\u{663}"],
    ),
    (
        "repository",
        |text| Repo::new(text).is_ok(),
        &["o/n", "Own.er_1/na-me", ".o/n.git", "o/..."],
        &[
            "", "o", "/", "/n", "o/", "./n", "../n", "o/.", "o/..", "o/n/m", "o o/n", "o/n n",
            "ä/n",
        ],
    ),
    (
        "commit",
        |text| CommitSha::new(text).is_ok(),
        &["abc1234", "ABCDEF0"],
        &["", "abc123", "abc123g", "HEAD~12"],
    ),
    (
        "finding id",
        |text| FindingId::new(text).is_ok(),
        &["F", "F 1", "größe"],
        &["", "F\n1", "F\u{202e}"],
    ),
    (
        "conversation",
        |text| ConversationId::new(text).is_ok(),
        &["conv-20260213-a-1", "conv-20260213-a.b_c-d-123456"],
        &[
            "20260213-a-1",
            "conv-20260213",
            "conv-20260213-1",
            "conv-2026021-a-1",
            "conv-2026021x-a-1",
            "conv-20260213--1",
            "conv-20260213-a b-1",
            "conv-20260213-a-",
            "conv-20260213-a-x",
            "conv-20260213-a-1234567",
        ],
    ),
    (
        "packet path",
        |text| PacketPath::new(text).is_ok(),
        &["a", ".a", "a b/ä.yaml", "..a/b"],
        &[
            "", "/a", "a/", "a//b", ".", "a/./b", "..", "a/../b", "a\tb", "a\u{7f}",
        ],
    ),
    (
        "path in the repository",
        |text| RepoPath::new(text).is_ok(),
        &["src/a.rs"],
        &["../a.rs"],
    ),
    (
        "digest of a diff",
        |text| DiffDigest::new(text).is_ok(),
        &[],
        &["", "sha256:"],
    ),
];

#[test]
fn an_identifier_admits_what_its_grammar_says() {
    for (kind, admits, good, bad) in KINDS {
        for text in good {
            assert!(admits(text), "{kind}: {text:?} is refused");
        }
        for text in bad {
            assert!(!admits(text), "{kind}: {text:?} is admitted");
        }
    }
    let digits = times("0f", 32);
    for (text, is_admitted) in [
        (format!("sha256:{digits}"), true),
        (format!("sha256:{}", digits.to_uppercase()), false),
        (format!("sha256:{}", times("0g", 32)), false),
        (format!("sha256:{digits}0"), false),
        (format!("sha256:{}", &digits[1..]), false),
        (format!("sha512:{digits}"), false),
        (digits, false),
    ] {
        assert_eq!(DiffDigest::new(&text).is_ok(), is_admitted, "{text}");
    }
}

#[test]
fn an_identifier_has_a_longest_text() {
    let max = |kind: &str| match kind {
        "agent name" | "commit" => 64,
        "pull request" => 20,
        "packet path" | "path in the repository" => 1024,
        _ => 200,
    };
    for (kind, admits, ..) in KINDS {
        let text = |length: usize| match kind {
            "repository" => format!("o/{}", times("n", length - 2)),
            _ => times("1", length),
        };
        if ["conversation", "digest of a diff"].contains(&kind) {
            continue;
        }
        let is_admitted = [max(kind), max(kind) + 1].map(|length| admits(&text(length)));
        assert_eq!(is_admitted, [true, false], "{kind}");
    }
    let conversation = |length| format!("conv-20260213-{}-1", times("n", length));
    let is_admitted = [64, 65].map(|length| ConversationId::new(conversation(length)).is_ok());
    assert_eq!(is_admitted, [true, false]);
    // What people read is counted in characters.
    assert!(FindingId::new(times("ä", 200)).is_ok() && FindingId::new(times("ä", 201)).is_err());
    assert!(PacketPath::new(times("ä", 1024)).is_ok());
}

#[test]
fn the_daemon_has_one_name_and_what_is_no_text_is_no_identifier() {
    let is_daemon = |name: &str| AgentName::new(name).expect("a name").is_daemon();
    assert!(is_daemon("settled") && !is_daemon("Settled") && !is_daemon("codex"));
    let error = serde_json::from_str::<AgentName>("5").expect_err("a number");
    assert!(error.to_string().contains("expected a string"), "{error}");
    let error = serde_json::from_str::<AgentName>("\"a b\"").expect_err("no name");
    assert!(error.to_string().contains(AgentName::EXPECTED), "{error}");
    assert_eq!(
        serde_json::to_string(&AgentName::new("a").expect("a name")).expect("JSON"),
        "\"a\""
    );
}

#[test]
fn lines_are_written_as_short_as_they_are() {
    for (text, written) in [
        ("40", "40"),
        ("40-40", "40"),
        ("40-45", "40-45"),
        ("40 -  45", "40-45"),
        ("4294967295", "4294967295"),
    ] {
        let range = LineRange::parse(text).expect("lines");
        assert_eq!(String::from(range), written);
    }
    for text in ["40- ", "4294967296", "00000000001", "4 0", "-4", "40\t-45"] {
        assert_eq!(LineRange::parse(text), None, "{text:?}");
    }
    let error = serde_json::from_str::<LineRange>("\"0\"").expect_err("no line");
    assert!(error.to_string().contains(LineRange::EXPECTED), "{error}");
}

#[test]
fn another_writing_of_an_instant_means_one_to_the_second() {
    for (text, meant) in [
        ("2026-02-13T12:00:00.9+02:00", Some("2026-02-13T10:00:00Z")),
        ("2026-02-13t10:00:00z", Some("2026-02-13T10:00:00Z")),
        ("2026-02-13", None),
        ("0000-01-01T00:00:00Z", None),
    ] {
        let instant = Timestamp::meant(text);
        assert_eq!(instant.map(|at| at.to_string()).as_deref(), meant, "{text}");
    }
    let at = DateTime::from_timestamp(1_770_000_000, 999_999_999).expect("an instant");
    let seconds = Timestamp::from_utc(at).utc();
    assert_eq!(
        (seconds.timestamp(), seconds.timestamp_subsec_nanos()),
        (1_770_000_000, 0)
    );
    let error = serde_json::from_str::<Timestamp>("\"today\"").expect_err("no instant");
    assert!(error.to_string().contains(Timestamp::EXPECTED), "{error}");
}

#[test]
fn a_reviewer_gives_up_in_a_known_word_or_in_a_line_of_its_own() {
    let longest = times("ä", 200);
    for (text, expected) in [
        ("max_rounds_exceeded", Escalation::MaxRoundsExceeded),
        (
            "reviewer_budget_exceeded",
            Escalation::ReviewerBudgetExceeded,
        ),
        (
            "out of my depth",
            Escalation::Other("out of my depth".to_owned()),
        ),
        (&longest, Escalation::Other(longest.clone())),
    ] {
        let escalation = Escalation::try_from(text.to_owned()).expect("an escalation");
        assert_eq!(escalation, expected);
        assert_eq!(escalation.as_str(), text);
        assert_eq!(String::from(escalation), text);
    }
    for text in ["", "a\nb", "\u{202e}", &times("ä", 201)] {
        assert!(Escalation::try_from(text.to_owned()).is_err(), "{text:?}");
    }
}
