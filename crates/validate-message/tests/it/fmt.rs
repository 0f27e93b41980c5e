//! The canonical form is equivalent to the message, keeps its comments, and is its own canonical form.

use message_schema::body::Body;
use message_schema::envelope::{Envelope, ORDER, ReviewKind};
use message_schema::yaml::Node;
use message_schema::{Malformed, Schema, parse, render_message};
use proptest::prelude::*;
use serde_json::Value;
use validate_message::content::values;
use validate_message::fmt::{Unformatted, format};

fn form(text: &str) -> String {
    format(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

#[test]
fn fields_are_put_in_order_and_written_as_we_write_them() {
    let text = "# yaml-language-server: $schema=../envelope.json\n# Written by hand.\n---\nbody: >-\n  one\n  line\n\
        # the sender\n\"from\": 'claude'   # me\nto: [codex,   gemini] # both\ntype: notification\n\
        priority: 'P1'\nx: {b: 1, a: no}\ncreated_at_utc: 2026-02-13T10:00:00Z\nrelated_pr: 86\n\
        # what it is\n\n# about\nsubject: \"it's # no comment\"\nid: a\nturns: '5'\nrelated_packet: ~\n...\n# end\n";
    let expected = "# yaml-language-server: $schema=../envelope.json\n# Written by hand.\nid: a\n# the sender\n\
        from: claude  # me\nto:  # both\n- codex\n- gemini\ntype: notification\npriority: P1\n\
        created_at_utc: '2026-02-13T10:00:00Z'\nrelated_pr: '86'\n# what it is\n# about\n\
        subject: 'it''s # no comment'\nrelated_packet: ~\nturns: 5\nx:\n  a: 'no'\n  b: '1'\nbody: |-\n  one line\n# end\n";
    assert_eq!(form(text), expected);
    assert_eq!(form(expected), expected);
}

#[test]
fn a_comment_stays_with_its_field_whatever_its_value_holds() {
    let text = "id: a\nx: [b, # one\n  'it''s # no', \"\\\"# no\"] # two\ny: two\n  words # three\nz: |2- # four\n   c # no\n  d\n# five\nturns: 07 # six\nwall_time_s: 0.5\ninput_tokens: 0\nw:\n  v: ~ # seven\n  # eight\n  u: t\n# nine\nto: c\n";
    assert_eq!(
        form(text),
        "id: a\n# nine\nto: c\n# five\nturns: '07'  # six\ninput_tokens: 0\nwall_time_s: 0.5\n# two\nx:  # one\n- b\n- 'it''s # no'\n- '\"# no'\ny: two words  # three\nz: |2-  # four\n   c # no\n  d\n# eight\nw:  # seven\n  u: t\n  v: null\n"
    );
}

#[test]
fn a_body_keeps_its_letters() {
    for body in [
        "a",
        "a\n",
        "a\n\n",
        "\n\na\n",
        "  a\n b\n",
        "a  \n\n  \n",
        "\ta\n",
        "a # b\n# c\n",
        "x\r\ny",
        "\u{85}",
        "\u{feff}a",
        "a: |\n  b\n",
        "-",
        "~",
        "no",
        "2026-02-13",
    ] {
        // Unescaped, it would end a line for some readers.
        let json = serde_json::to_string(body)
            .expect("a text is JSON")
            .replace('\u{85}', "\\u0085");
        let formed = form(&format!("# c\nid: a\nbody: {json} # d\n"));
        let message = parse(formed.as_bytes()).expect("readable");
        assert_eq!(
            message
                .root()
                .field("body")
                .and_then(|body| body.value.text()),
            Some(body),
            "{formed}"
        );
        assert!(
            formed.starts_with("# c\nid: a\nbody: ") && formed.contains("  # d\n"),
            "{formed}"
        );
        assert_eq!(form(&formed), formed);
    }
}

#[test]
fn what_we_write_ourselves_has_the_form() {
    let examples = |schema: Schema| -> Vec<Value> {
        let document: Value = serde_json::from_str(schema.source()).expect("JSON");
        document["examples"].as_array().expect("examples").clone()
    };
    let read = |kind: ReviewKind, body: Value| match kind {
        ReviewKind::Request => serde_json::from_value(body).map(Body::Request),
        ReviewKind::Feedback => serde_json::from_value(body).map(Body::Feedback),
        ReviewKind::Addressed => serde_json::from_value(body).map(Body::Addressed),
        ReviewKind::Lgtm => serde_json::from_value(body).map(Body::Lgtm),
    };
    let mut bodies = vec![Body::Text("Two lines,\n\nand no: mapping".to_owned())];
    for kind in ReviewKind::ALL {
        bodies.extend(
            examples(Schema::of_review(*kind))
                .into_iter()
                .map(|body| read(*kind, body).expect("an example is a body")),
        );
    }
    assert_eq!(bodies.len(), 9);
    for example in examples(Schema::Envelope) {
        let mut envelope: Envelope =
            serde_json::from_value(example).expect("an example is an envelope");
        envelope.auth = None;
        for body in &bodies {
            let text = render_message(&envelope, body);
            assert_eq!(form(&text), text);
        }
    }
    let names: Vec<&str> = Schema::Envelope.shape().names().collect();
    let others: Vec<&str> = names
        .into_iter()
        .filter(|name| !ORDER.contains(name))
        .collect();
    assert_eq!(others, ["auth", "body"], "every field has its place");
}

#[test]
fn what_has_no_form_is_left_alone() {
    assert_eq!(
        format(b"id: a\nbody: b\nauth: \"eyJ\"\n"),
        Err(Unformatted::Signed)
    );
    assert_eq!(format(b"id: a\rbody: b\n"), Err(Unformatted::Uncertain));
    assert!(matches!(
        format(b"id: [\n"),
        Err(Unformatted::Malformed(Malformed { .. }))
    ));
}

fn is_empty_block(message: &message_schema::Message) -> bool {
    message
        .root()
        .field("body")
        .and_then(|body| body.value.text())
        .is_some_and(str::is_empty)
}

/// Returns every text in a value, without the comments after it.
fn texts(node: &Node) -> String {
    let below = node
        .items()
        .iter()
        .chain(node.fields().iter().map(|field| &field.value));
    below.fold(node.text().unwrap_or_default().to_owned(), |all, node| {
        all + &texts(node)
    })
}

/// Generates a text with comments between its lines and at their ends.
fn commented() -> impl Strategy<Value = String> {
    let texts: Vec<String> = crate::corpus::messages()
        .into_iter()
        .filter_map(|(_, bytes)| String::from_utf8(bytes).ok())
        .filter(|text| format(text.as_bytes()).is_ok())
        // After the empty block of a body that lost its indentation, comments belong to no field.
        .filter(|text| parse(text.as_bytes()).is_ok_and(|read| !is_empty_block(&read)))
        .collect();
    let comments = prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            any::<bool>(),
            "[a-z#:'\"|{ ]{0,6}",
        ),
        0..6,
    );
    (prop::sample::select(texts), comments).prop_map(|(text, comments)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, own_line, comment) in comments {
            let at = at.index(lines.len());
            match own_line {
                true => lines.insert(at, format!("# {comment}")),
                false => lines[at].push_str(&format!(" # {comment}")),
            }
        }
        lines.join("\n") + "\n"
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_form_says_the_same_keeps_what_is_commented_and_is_its_own_form(text in commented()) {
        let formed = match format(text.as_bytes()) {
            Ok(formed) => formed,
            // A comment in the middle of a body ends it.
            Err(Unformatted::Malformed(_) | Unformatted::Signed) => return Ok(()),
            Err(Unformatted::Uncertain) => {
                prop_assert!(text.replace("\r\n", "\n").contains('\r'), "{}", text);
                return Ok(());
            }
        };
        let (before, after) = (parse(text.as_bytes()).expect("read"), parse(formed.as_bytes()).expect("read"));
        prop_assert_eq!(values(&before), values(&after), "{}", &formed);
        prop_assert_eq!(&form(&formed), &formed);
        let marks = |text: &str| text.matches('#').count();
        let in_values = |message: &message_schema::Message| message.root().fields().iter().map(
            |field| marks(&texts(&field.value)) + marks(&field.key)).sum::<usize>();
        prop_assert_eq!(marks(&text) - in_values(&before), marks(&formed) - in_values(&after), "{}\n----\n{}", text, formed);
    }
}
