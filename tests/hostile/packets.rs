//! Findings packets that are expensive to check and to judge: many findings, and findings that have to be compared with
//! each other.

use super::shapes::{SIZE_MAX, keys};

/// Returns all of them, by name.
pub(super) fn all() -> Vec<(&'static str, Vec<u8>)> {
    let packet = |name, finding: &dyn Fn(usize) -> String| (name, findings(finding));
    let mut all = vec![
        packet("as many findings as fit", &|n| {
            format!("{{id: {n:x}, severity: P3, status: open}}")
        }),
        packet("findings of one place and other words", &|n| {
            let words: String = (0..12).map(|word| format!("word{word}x{n:x} ")).collect();
            format!("{{id: {n:x}, severity: P3, status: open, file: a, title: {words}}}")
        }),
        packet("findings of one place and one long title", &|n| {
            let words: String = (0..400).map(|word| format!("{word:x} ")).collect();
            format!("{{id: {n:x}, severity: P3, status: open, file: a, title: {words}}}")
        }),
        packet("findings that are all the same", &|n| {
            format!("{{id: {n:x}, severity: P3, status: open, file: a, title: one}}")
        }),
        packet("actions on threads nobody knows", &|n| {
            format!("{{id: {n:x}, severity: P3, status: open, action: reply}}")
        }),
        packet("actions that are none", &|n| {
            format!("{{id: {n:x}, severity: P3, status: open, action: x}}")
        }),
        packet("findings that repeat an id", &|_| {
            "{id: a, severity: P3, status: open}".to_owned()
        }),
        packet("findings without anything", &|_| "{}".to_owned()),
        packet("findings of the wrong kind", &|_| "[]".to_owned()),
        packet("findings with one wrong field", &|n| {
            format!("{{id: {n:x}, severity: P9, status: open}}")
        }),
        packet("findings with an unknown field", &|n| {
            format!("{{id: {n:x}, severity: P3, status: open, x: y}}")
        }),
    ];
    all.push(("a finding with as many keys as fit", many_keys()));
    all.push(("a packet of validation commands", commands()));
    for (name, bytes) in &all {
        assert!(
            bytes.len() <= SIZE_MAX,
            "{name} is larger than a packet may be"
        );
    }
    all
}

/// As many findings as fit into a packet.
fn findings(finding: &dyn Fn(usize) -> String) -> Vec<u8> {
    let mut text = "findings:\n".to_owned();
    for number in 0.. {
        let line = format!("- {}\n", finding(number));
        if text.len() + line.len() > SIZE_MAX {
            break;
        }
        text.push_str(&line);
    }
    text.into_bytes()
}

fn many_keys() -> Vec<u8> {
    let fields: String = keys(SIZE_MAX / 8)
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    format!("findings:\n-\n{fields}").into_bytes()
}

fn commands() -> Vec<u8> {
    let one = "  - {command: a, result: fail}\n";
    let head = "findings: []\nqa_validation:\n  commands_run:\n";
    (head.to_owned() + &one.repeat((SIZE_MAX - head.len()) / one.len())).into_bytes()
}
