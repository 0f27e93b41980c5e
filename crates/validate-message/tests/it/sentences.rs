//! The sentence, what was found, what would have been accepted and the fix, for a mistake in a message: a table of
//! changes to correct messages.

use message_schema::{Code, parse};
use validate_message::{PacketInput, Violation, Violations, check, check_packet};

const TABLE: &str = include_str!("sentences.txt");
const REQUEST: &str = include_str!("../../../../packets/valid/review_request.yaml");
const FEEDBACK: &str = include_str!("../../../../packets/valid/review_feedback.yaml");
const ADDRESSED: &str = include_str!("../../../../packets/valid/review_addressed.yaml");

/// Makes the changes of a case in its message: a line replaces the one with the same key, or is added at the end, and `-`
/// before a key removes its line. `text` begins a whole message.
fn changed(case: &str) -> String {
    let mut lines = case.lines();
    let text = match lines.next() {
        Some("request") => REQUEST,
        Some("feedback") => FEEDBACK,
        Some("addressed") => ADDRESSED,
        Some("text") => return lines.map(|line| line.to_owned() + "\n").collect(),
        other => panic!("no message: {other:?}"),
    };
    let key = |line: &str| line.split_inclusive(':').next().unwrap_or(line).to_owned();
    let mut written: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in lines {
        let removed = change.strip_prefix('-');
        let place = written
            .iter()
            .position(|line| key(line) == key(removed.unwrap_or(change)));
        match (place, removed) {
            (Some(at), Some(_)) => drop(written.remove(at)),
            (Some(at), None) => change.clone_into(&mut written[at]),
            (None, Some(line)) => panic!("nothing to remove: {line}"),
            (None, None) => written.push(change.to_owned()),
        }
    }
    written.join("\n") + "\n"
}

/// Judges a packet by itself, and anything else as a message.
fn judged(case: &str) -> Vec<Violation> {
    if let Some(packet) = case.strip_prefix("packet\n") {
        return check_packet(packet.as_bytes()).into_vec();
    }
    let judged = parse(changed(case).as_bytes())
        .map_err(Violations::from)
        .and_then(|message| check(&message, PacketInput::NotLooked));
    match judged {
        Ok(valid) => valid.warnings().to_vec(),
        Err(violations) => violations.into_vec(),
    }
}

fn told(case: &str) -> String {
    let mut told = String::new();
    for violation in judged(case) {
        // The packet of a feedback is not handed in.
        if violation.code == Code::PacketUnchecked {
            continue;
        }
        told += &format!("{}\n", violation.to_text("m.yaml"));
        for (name, value) in [("found", violation.found), ("expected", violation.expected)] {
            told.extend(value.map(|value| format!("    {name}: {value}\n")));
        }
    }
    told
}

#[test]
fn every_mistake_is_told_with_what_was_found_what_is_expected_and_the_fix() {
    let cases = TABLE.split("====\n").map(|case| {
        let (changes, _) = case.split_once("----\n").expect("changes and a result");
        format!("{changes}----\n{}", told(changes))
    });
    let all = cases.collect::<Vec<_>>().join("====\n");
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/sentences.txt");
        std::fs::write(path, &all).expect("a file to write");
    }
    assert_eq!(all, TABLE, "UPDATE=1 rewrites the file");
}
