//! The real peer, both ways: Settled serves a workspace that `oacp` made and writes into, and
//! `oacp` accepts and lists every message that Settled writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use message_schema::body::Body;
use message_schema::envelope::{
    Envelope, MessageType, Priority, Recipients, ReviewKind, Timestamp,
};
use message_schema::id::{AgentName, MessageId, PrNumber};
use serde_json::json;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{ledger, list, names, peer, read, seed};

/// An `oacp` home with one project, and that project as a mailroom.
fn project() -> (PathBuf, Mailroom) {
    let directory = settled_tests::scratch();
    let home = directory.path().to_owned();
    let output = peer::oacp(&home, &["init", "demo", "--agents", "claude,codex"]);
    assert!(output.status.success(), "{}", said(&output));
    (home, Mailroom::at(directory, "projects/demo"))
}

/// Sends with `oacp`; returns the name of the file, which is the same in inbox and outbox.
fn send(home: &Path, mailroom: &Mailroom, kind: &str, body: &str) -> String {
    let before: BTreeSet<String> = names(mailroom.agent("claude", "outbox"))
        .into_iter()
        .collect();
    let output = peer::oacp(
        home,
        &[
            "send",
            "demo",
            "--from",
            "claude",
            "--to",
            "codex",
            "--type",
            kind,
            "--subject",
            "hi",
            "--body",
            body,
        ],
    );
    assert!(output.status.success(), "{}", said(&output));
    let new = |name: &String| !before.contains(name);
    names(mailroom.agent("claude", "outbox"))
        .into_iter()
        .find(new)
        .expect("a copy in the sender's outbox")
}

fn messages(directory: PathBuf) -> Vec<String> {
    names(directory)
        .into_iter()
        .filter(|name| name.ends_with(".yaml"))
        .collect()
}

#[test]
fn what_oacp_sent_is_judged_and_its_recipient_has_it_once() {
    let (home, mailroom) = project();
    let question = send(&home, &mailroom, "question", "what is it?");
    let request = send(
        &home,
        &mailroom,
        "review_request",
        "pr: 7\nbranch: b\ndiff_summary: all of it\n",
    );
    let output = mailroom.once();
    assert!(output.status.success(), "{}", said(&output));

    let mut both = vec![question, request];
    both.sort();
    assert_eq!(
        messages(mailroom.agent("codex", "inbox")),
        both,
        "each once"
    );
    assert_eq!(messages(mailroom.agent("claude", "sent")), both);
    assert_eq!(messages(mailroom.agent("claude", "outbox")), [""; 0]);
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "reviewing");
    assert_eq!(ledger::accepted(&ledger::records(mailroom.root())).len(), 2);

    let listed = peer::oacp(&home, &["inbox", "demo", "--agent", "codex", "--json"]);
    let listed: serde_json::Value =
        serde_json::from_slice(&listed.stdout).expect("one JSON document");
    assert_eq!(listed["agents"][0]["message_count"], 2, "{listed}");
}

#[test]
fn a_refused_message_is_taken_out_of_the_inbox_oacp_wrote_it_into() {
    let (home, mailroom) = project();
    let kept = send(&home, &mailroom, "question", "a good one");
    let wrong = send(&home, &mailroom, "review_request", "pr: 7\n");
    assert_eq!(
        messages(mailroom.agent("codex", "inbox")).len(),
        2,
        "oacp itself delivers both"
    );
    assert_eq!(mailroom.once().status.code(), Some(7));
    assert_eq!(messages(mailroom.agent("codex", "inbox")), [kept]);
    assert_eq!(
        mailroom.refused("claude", &wrong)["refused"],
        "body_field_missing"
    );
}

#[test]
fn what_its_reader_has_changed_is_not_taken_out_of_an_inbox() {
    let (home, mailroom) = project();
    let wrong = send(&home, &mailroom, "review_request", "pr: 7\n");
    let copy = mailroom.agent("codex", "inbox").join(&wrong);
    settled_tests::write(&copy, "# seen\n");
    assert_eq!(mailroom.once().status.code(), Some(7));
    assert_eq!(read(copy), "# seen\n");
}

#[test]
fn what_settled_delivers_is_listed_by_oacp() {
    let (home, mailroom) = project();
    mailroom.post(
        "codex",
        "a.yaml",
        &seed::note("question", "q-1", "codex", "claude", "?"),
    );
    assert!(mailroom.once().status.success());
    let listed = peer::oacp(&home, &["inbox", "demo", "--agent", "claude", "--json"]);
    let listed: serde_json::Value =
        serde_json::from_slice(&listed.stdout).expect("one JSON document");
    let message = &listed["agents"][0]["messages"][0];
    assert_eq!(
        (&message["from"], &message["type"]),
        (&"codex".into(), &"question".into()),
        "{listed}"
    );
}

#[test]
fn every_message_of_the_daemon_passes_oacp_validate() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let [request, ..] = seed::review();
    mailroom.post("claude", "request.yaml", &request.text);
    mailroom.once();
    // Three approvals that contradict themselves use up the attempts, and the author gets a message.
    for n in 1..=3 {
        let lgtm = "quality_gate_result: fail\nmerge_ready: true";
        let text = seed::review_message(
            "review_lgtm",
            &format!("l-{n}"),
            "codex",
            "claude",
            "86",
            lgtm,
        );
        mailroom.post("codex", &format!("lgtm-{n}.yaml"), &text);
        mailroom.once();
    }
    assert_eq!(
        mailroom.status()["reviews"][0]["reason"],
        "protocol_violation"
    );
    let nasty = [
        ("it's \"quoted\": - #x.yaml", "id: x\nfrom: 'a\n"),
        (
            "ünïcode 🦀.yaml",
            "{\"id\": \"\\u0007\", \"from\": [1, 2], \"subject\": \"tab\\there\"}",
        ),
        (
            "--- .yaml",
            "id: \u{feff}\u{2028}\nfrom: claude\nto: codex\n",
        ),
        ("line\nbreak.yaml", "- a\n- b\n"),
        ("yes.yaml", "id: ~\n\"a\\nb\": c\n? complex\n: key\n"),
        (
            "long.yaml",
            &format!(
                "id: x\n{}",
                (0..2_000)
                    .map(|n| format!("unknown_{n}: \"#\"\n"))
                    .collect::<String>()
            ),
        ),
    ];
    for (file, text) in &nasty {
        mailroom.post("claude", file, text);
    }
    mailroom.once();

    let is_daemons = |path: &PathBuf| path.to_string_lossy().contains("_settled_");
    let messages: Vec<PathBuf> = ["claude", "codex"]
        .iter()
        .flat_map(|agent| list(mailroom.agent(agent, "inbox")))
        .filter(is_daemons)
        .collect();
    assert_eq!(
        messages.len(),
        3 + 1 + nasty.len(),
        "three notices, the escalation, one notice a file"
    );
    for message in messages {
        peer::validates(&message).unwrap_or_else(|said| panic!("{}{said}", read(&message)));
    }
}

/// Texts that are hard to write in YAML.
const NASTY: [&str; 12] = [
    "yes",
    "1e10",
    "null",
    "- a list: of, one",
    "it's \"quoted\" # and no comment",
    "[a, b]: {c}",
    "ünïcode 🦀 \u{1F468}\u{200D}\u{1F469} \u{00A0}x",
    "%TAG ! x",
    "@at `tick` |pipe > gt & * !",
    "2026-02-13T10:00:00Z",
    "0x1F 0o17 1_000 .inf ~",
    "a\\nb\\u0041 \\",
];

/// Bodies that are hard to write as block literals.
const BODIES: [&str; 12] = [
    "plain",
    "two\nlines\n",
    "  leading spaces\nthen none\n",
    "\nleading empty line",
    "trailing empty lines\n\n\n",
    "---\nnot a document\n...\n",
    "auth: \"x\"\n",
    "tab\tin\tit\n\tand before it\n",
    "# no comment\n- no: list\n",
    "carriage\r\nreturn\r\n",
    "next line \u{0085} separators \u{2028} \u{2029} done",
    "trailing spaces   \n   \nend  ",
];

fn envelope(kind: MessageType, n: usize) -> Envelope {
    let name = |text| AgentName::new(text).expect("an agent name");
    Envelope {
        id: MessageId::new(format!("m-{n}")).expect("an id"),
        from: name("claude"),
        to: Recipients::One(name(if n.is_multiple_of(2) { "codex" } else { "1e5" })),
        kind,
        priority: Priority::P2,
        created_at_utc: Timestamp::parse("2026-02-13T10:00:00Z").expect("an instant"),
        related_pr: Some(PrNumber::new("0086").expect("a number")),
        subject: NASTY[n % NASTY.len()].to_owned(),
        related_packet: None,
        conversation_id: None,
        parent_message_id: Some(NASTY[(n + 1) % NASTY.len()].to_owned()),
        context_keys: Some(NASTY[(n + 2) % NASTY.len()].to_owned()),
        expires_at: None,
        channel: None,
        autonomy_hint: None,
        model: kind
            .may_carry_telemetry()
            .then(|| NASTY[(n + 3) % NASTY.len()].to_owned()),
        turns: kind.may_carry_telemetry().then_some(8),
        input_tokens: None,
        output_tokens: None,
        wall_time_s: kind.may_carry_telemetry().then_some(0.25),
        est_cost_usd: kind.may_carry_telemetry().then_some(1e-7),
        body: String::new(),
        auth: None,
    }
}

/// A body of a review message with this text in every free field.
fn review_body(kind: ReviewKind, text: &str) -> Body {
    let nit =
        json!({"nit_id": text, "tier": "P3", "summary": text, "owner": text, "next_action": text});
    let body = match kind {
        ReviewKind::Request => serde_json::from_value(json!({
            "pr": "0086", "branch": text, "diff_summary": text, "handoff_ref": text, "round": 1,
            "base_sha": "1234567", "validation_commands": [text], "human_direction": {"who": text}
        }))
        .map(Body::Request),
        ReviewKind::Feedback => serde_json::from_value(json!({
            "findings_packet": "packets/findings/r1.yaml", "round": 1, "blocking_count": 0,
            "escalation": text, "telemetry": {"turns": 3, "note": text}
        }))
        .map(Body::Feedback),
        ReviewKind::Addressed => serde_json::from_value(json!({
            "commit_sha": "12345e7", "changes_summary": text, "round": 1, "addressed_finding_ids": [text]
        }))
        .map(Body::Addressed),
        ReviewKind::Lgtm => serde_json::from_value(json!({
            "quality_gate_result": "pass", "merge_ready": true, "nits": [nit]
        }))
        .map(Body::Lgtm),
    };
    body.expect("a body of its type")
}

/// A rendered file, with its envelope and body.
struct Rendered {
    file: PathBuf,
    envelope: Envelope,
    body: Body,
}

fn render_all(directory: &Path) -> Vec<Rendered> {
    let kinds = MessageType::all();
    let count = kinds.clone().count();
    let render = |(n, kind): (usize, MessageType)| {
        let envelope = envelope(kind, n);
        let body = match kind {
            MessageType::Review(kind) => review_body(kind, &envelope.subject),
            MessageType::Text(_) => Body::Text(BODIES[(n / count + n) % BODIES.len()].to_owned()),
        };
        let file = directory.join(format!("{n}.yaml"));
        settled_tests::write(&file, &message_schema::render_message(&envelope, &body));
        Rendered {
            file,
            envelope,
            body,
        }
    };
    kinds
        .cycle()
        .take(3 * count)
        .enumerate()
        .map(render)
        .collect()
}

#[test]
fn every_message_we_render_passes_oacp_validate_and_reads_back_the_same() {
    let directory = settled_tests::scratch();
    let rendered = render_all(directory.path());
    for Rendered { file, .. } in &rendered {
        peer::validates(file).unwrap_or_else(|said| panic!("{}\n{said}", read(file)));
    }
    let messages = peer::yaml(rendered.iter().map(|rendered| read(&rendered.file)));
    let texts = messages
        .iter()
        .map(|message| message["body"].as_str().expect("a body is text"));
    for ((Rendered { envelope, body, .. }, message), text) in
        rendered.iter().zip(&messages).zip(texts.clone())
    {
        assert_eq!(message["subject"], envelope.subject.as_str());
        assert_eq!(
            message["context_keys"].as_str(),
            envelope.context_keys.as_deref()
        );
        if let Body::Text(written) = body {
            // White space around a text does not count.
            assert_eq!(text.trim(), written.trim());
        }
    }

    let of_reviews = rendered
        .iter()
        .zip(texts)
        .filter(|(rendered, _)| rendered.envelope.kind.is_review());
    let bodies = peer::yaml(of_reviews.clone().map(|(_, text)| text.to_owned()));
    for ((Rendered { envelope, .. }, text), body) in of_reviews.zip(&bodies) {
        let plain = ["branch", "escalation", "changes_summary"]
            .iter()
            .find_map(|key| body.get(*key));
        let said = plain.unwrap_or_else(|| &body["nits"][0]["summary"]);
        assert_eq!(said, envelope.subject.as_str(), "{text}");
    }
}
#[test]
fn a_message_its_reader_has_archived_already_is_not_delivered_again() {
    let (home, mailroom) = project();
    for archive in ["inbox/archive", "archive"] {
        let file = send(&home, &mailroom, "question", archive);
        let archive = mailroom.agent("codex", archive);
        std::fs::create_dir_all(&archive).expect("an archive");
        std::fs::rename(
            mailroom.agent("codex", "inbox").join(&file),
            archive.join(&file),
        )
        .expect("a rename");
        let output = mailroom.once();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(
            messages(mailroom.agent("codex", "inbox")),
            [""; 0],
            "{}",
            archive.display()
        );
        assert_eq!(messages(archive), [file]);
    }
}
