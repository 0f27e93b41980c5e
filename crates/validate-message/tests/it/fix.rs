//! `--fix` changes what it reports in a message, and nothing else.

use message_schema::parse;
use message_schema::schema::Step;
use proptest::prelude::*;
use validate_message::content::{Values, values};
use validate_message::fix::{Fix, Fixed, fix};
use validate_message::{PacketInput, check};

const REQUEST: &str = "id: r-1\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
    created_at_utc: 2026-02-13T10:00:00Z\nsubject: \"Review: loop\"\nbody: |\n  pr: 86\n  branch: main\n  \
    diff_summary: |\n    Adds\n    \tit.\n  run_trigger: verify\n";

fn fixed(text: &str) -> Fixed {
    fix(text.as_bytes()).unwrap_or_else(|| panic!("nothing was fixed in\n{text}"))
}

fn is_valid(text: &str) -> bool {
    parse(text.as_bytes()).is_ok_and(|message| check(&message, PacketInput::NotLooked).is_ok())
}

fn read(text: &str) -> Values {
    values(&parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Returns slips: the kind of fix that each gets, and the text of the request with it.
fn slips() -> Vec<(Fix, String)> {
    let with = |from: &str, to: &str| {
        assert!(REQUEST.contains(from), "{from}");
        REQUEST.replace(from, to)
    };
    vec![
        (Fix::ByteOrderMark, format!("\u{feff}{REQUEST}")),
        (Fix::LineEnds, REQUEST.replace('\n', "\r\n")),
        (Fix::Fence, format!("```yaml\n{REQUEST}```\n")),
        (Fix::TabIndent, with("  branch", "\tbranch")),
        (Fix::Name, with("created_at_utc", "created-at-utc")),
        (Fix::Name, with("subject", "Subject")),
        (Fix::Name, with("type:", "'Type':")),
        (Fix::Name, with("diff_summary", "diff-summary")),
        (Fix::WordCase, with("P1", "p1")),
        (Fix::WordCase, with("P1", "\"p1\"  # urgent")),
        (
            Fix::WordCase,
            with(
                "to: codex\ntype: review_request\npriority: P1",
                "to: codex\rtype: review_request\rpriority: p1",
            ),
        ),
        (Fix::WordCase, with("review_request", "Review_Request")),
        (Fix::WordCase, with("verify", "Verify")),
        (Fix::WordHyphen, with("review_request", "review-request")),
        (Fix::TimeForm, with("00:00Z", "00:00+00:00")),
        (Fix::TimeForm, with("00:00Z", "00:00.000Z")),
    ]
}

#[test]
fn each_slip_is_fixed_under_its_name_and_the_message_says_what_was_meant() {
    for (kind, text) in slips() {
        let fixed = fixed(&text);
        assert_eq!(
            fixed
                .fixes
                .iter()
                .map(|applied| applied.fix)
                .collect::<Vec<_>>(),
            [kind],
            "{text}"
        );
        assert_eq!(
            read(&fixed.text),
            read(REQUEST),
            "{text}\nbecame\n{}",
            fixed.text
        );
        assert!(is_valid(&fixed.text));
        assert_eq!(fix(fixed.text.as_bytes()), None, "{text}");
    }
    let names = Fix::ALL.map(Fix::as_str);
    let expected =
        "byte_order_mark line_ends fence tab_indent name word_case word_hyphen time_form";
    assert_eq!(names.join(" "), expected);
    let all: std::collections::BTreeSet<Fix> = slips().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), Fix::ALL);
}

#[test]
fn all_slips_of_a_message_are_fixed_at_once() {
    let text = REQUEST
        .replace("P1", "p1")
        .replace("type: review_request", "Type: review-request")
        .replace("00:00Z", "00:00.0+00:00")
        .replace("verify", "VERIFY")
        .replace("  branch", "\tbranch");
    let fixed = fixed(&format!("\u{feff}```\r\n{}```", text.replace('\n', "\r\n")));
    assert_eq!(fixed.text, REQUEST);
    let kinds: Vec<Fix> = fixed.fixes.iter().map(|applied| applied.fix).collect();
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    let told = |at: usize| fixed.fixes[at].what.as_str();
    assert_eq!(
        (told(4), told(5)),
        (
            "`Type` is now `type`",
            "`review-request` is now `review_request`"
        )
    );
}

#[test]
fn a_signed_message_is_never_changed() {
    for (_, text) in slips() {
        let signed =
            text.trim_end_matches("```\n").to_owned() + "auth: \"eyJzaWduYXR1cmVzIjpbXX0\"\n";
        assert_eq!(fix(signed.as_bytes()), None, "{signed}");
        assert_eq!(fix((signed + "```\n").as_bytes()), None);
    }
}

#[test]
fn what_could_be_meant_in_two_ways_or_would_take_effect_by_it_stays() {
    for (from, to) in [
        ("P1", "P5"),
        ("P1", "high"),
        ("review_request", "review_requst"),
        ("00:00Z", "00:00+02:00"),
        ("00:00Z", "00:00.5Z"),
        ("pr: 86", "pr: '#86'"),
        ("run_trigger", "rum_trigger"),
        // Unknown and optional, this has no effect; under its right name it would.
        ("run_trigger", "run-trigger"),
        ("subject:", "Subject: x\nsubject:"),
        ("claude", "CLAUDE"),
    ] {
        let text = REQUEST.replace(from, to);
        assert_ne!(text, REQUEST);
        assert_eq!(fix(text.as_bytes()), None, "{to}");
    }
    assert_eq!(fix(REQUEST.as_bytes()), None);
    assert_eq!(fix(b"priority: p1\n\xff\n"), None);
}

#[test]
fn the_count_of_what_blocks_is_never_filled_in() {
    let text = REQUEST.replace("review_request", "review_feedback").replace(
        "  pr: 86\n",
        "  findings_packet: packets/findings/r1.yaml\n  round: 1\n  Blocking-Count: 7\n  pr: 86\n",
    );
    let fixed = fixed(&text);
    assert!(
        fixed.text.contains("  blocking_count: 7\n"),
        "{}",
        fixed.text
    );
}

/// Applies exactly the reported fixes to the values before, and compares the result with those after.
fn told_apart(before: &Values, after: &Values, fixed: &Fixed) -> bool {
    let field = |path: &[Step]| {
        let mut text = String::new();
        for step in path {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => text.extend([".", key]),
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    };
    let differs = |path: &Vec<Step>| before.get(path) != after.get(path);
    let is_told = |path: &Vec<Step>| {
        let field = field(path);
        fixed
            .fixes
            .iter()
            .filter_map(|applied| applied.field.as_deref().map(|name| (applied, name)))
            .any(|(applied, name)| {
                let new = applied.what.rsplit('`').nth(1).unwrap_or_default();
                let renamed = name
                    .rsplit_once('.')
                    .map_or(new.to_owned(), |(at, _)| format!("{at}.{new}"));
                let is_below = |name: &str| field == name || field.starts_with(&format!("{name}."));
                let is_list = |name: &str| field.starts_with(&format!("{name}["));
                is_below(name) || is_list(name) || is_below(&renamed) || is_list(&renamed)
            })
    };
    // The body of a message whose type or tabs were fixed is parsed for the first time.
    let is_body = |path: &Vec<Step>| path.first() == Some(&Step::Key("body".to_owned()));
    let is_first_read = fixed.fixes.iter().any(|applied| {
        applied.fix == Fix::TabIndent
            || applied.field.as_deref().is_some_and(|name| {
                ["type", "body"]
                    .iter()
                    .any(|known| name.eq_ignore_ascii_case(known))
            })
    });
    before
        .keys()
        .chain(after.keys())
        .filter(|path| differs(path))
        .all(|path| is_told(path) || (is_first_read && is_body(path)))
}

#[test]
fn in_the_corpus_nothing_changes_but_what_is_told() {
    let mut fixed_count = 0;
    for (name, bytes) in crate::corpus::messages() {
        let Some(fixed) = fix(&bytes) else { continue };
        fixed_count += 1;
        if let Ok(before) = parse(&bytes) {
            assert!(
                told_apart(&values(&before), &read(&fixed.text), &fixed),
                "{name}: {fixed:#?}"
            );
        }
        assert_eq!(
            fix(fixed.text.as_bytes()),
            None,
            "{name}: a second time something was fixed"
        );
    }
    assert!(
        fixed_count >= 3,
        "only {fixed_count} files of the corpus had something to fix"
    );
}

/// Generates a message of the corpus with slips, some of them those that agents make.
fn slipped() -> impl Strategy<Value = String> {
    let texts: Vec<String> = crate::corpus::messages()
        .into_iter()
        .filter_map(|(_, bytes)| String::from_utf8(bytes).ok())
        .collect();
    let slip = prop::sample::select(vec![
        ("P1", "p1"),
        ("P3", "p3"),
        ("review_", "review-"),
        ("review_", "Review_"),
        ("true", "True"),
        ("pass", "PASS"),
        ("00Z", "00+00:00"),
        ("00Z", "00.00Z"),
        ("_", "-"),
        ("  ", "\t"),
        ("    ", "\t"),
        ("\n", "\r\n"),
        (": ", ":"),
        ("\"", "'"),
        ("s", "S"),
        ("a", "\u{e4}"),
        ("\n", "\n\n"),
        ("body", "Body"),
        ("type", "Type"),
    ]);
    let slips = prop::collection::vec((slip, any::<prop::sample::Index>(), any::<bool>()), 0..6);
    (prop::sample::select(texts), slips, 0_u8..8).prop_map(|(mut text, slips, around)| {
        for ((from, to), at, everywhere) in slips {
            let places: Vec<usize> = text.match_indices(from).map(|(at, _)| at).collect();
            if everywhere {
                text = text.replace(from, to);
            } else if !places.is_empty() {
                let at: usize = *at.get(&places);
                text.replace_range(at..at + from.len(), to);
            }
        }
        match around {
            0 => format!("\u{feff}{text}"),
            1 => format!("```yaml\n{text}```\n"),
            _ => text,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_changes_but_what_is_told_and_a_valid_message_says_what_it_said(text in slipped()) {
        let Some(fixed) = fix(text.as_bytes()) else { return Ok(()) };
        if fixed.fixes.iter().all(|applied| applied.fix == Fix::TabIndent) {
            let blackened = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(blackened(&text), blackened(&fixed.text));
        }
        if let Ok(before) = parse(text.as_bytes()) {
            let was_valid = check(&before, PacketInput::NotLooked).is_ok();
            let (before, after) = (values(&before), read(&fixed.text));
            prop_assert!(told_apart(&before, &after, &fixed), "{:#?}", fixed);
            prop_assert!(!was_valid || before == after, "a valid message says something else: {:#?}", fixed);
        }
        prop_assert_eq!(fix(fixed.text.as_bytes()), None);
    }
}

#[test]
fn the_values_of_a_message_tell_nothing_from_a_text_and_a_list_from_a_mapping() {
    let values = read("a: x\nb: ~\nc: 'null'\nd:\ne: []\nf: {}\ng: [y, {h: z}]\n");
    let told = values
        .iter()
        .map(|(path, leaf)| format!("{path:?} {leaf:?}"));
    let expected = [
        r#"[Key("a")] Text("x")"#,
        r#"[Key("b")] Null"#,
        r#"[Key("c")] Text("null")"#,
        r#"[Key("d")] Text("")"#,
        r#"[Key("e")] EmptyList"#,
        r#"[Key("f")] EmptyMap"#,
        r#"[Key("g"), Index(0)] Text("y")"#,
        r#"[Key("g"), Index(1), Key("h")] Text("z")"#,
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_fix_in_a_line_far_down_is_told_there() {
    let text = "id: a\nsubject: \"b\nc\"\r\nbody: |\n  a\r\n";
    let fixed = fixed(text);
    let told: Vec<_> = fixed
        .fixes
        .iter()
        .map(|applied| applied.place.to_string())
        .collect();
    assert_eq!(told, ["3:1"]);
    let tabbed = REQUEST
        .replace("  branch", "\tbranch")
        .replace("  run", "\trun");
    let places = self::fixed(&tabbed)
        .fixes
        .into_iter()
        .map(|applied| applied.place.to_string());
    assert_eq!(places.collect::<Vec<_>>(), ["10:1", "14:1"]);
}
