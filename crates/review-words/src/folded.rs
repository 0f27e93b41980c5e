//! A finished review in few bytes. Most reviews that a daemon knows are finished and rarely needed again, but any of
//! them may be: for a late message, a merge, a person who reopens it. So nothing is left out: a folded review is its
//! packed JSON. A line is too short for a general compressor, and similar in every review, so text that occurs in
//! `TYPICAL` or earlier in the line becomes a reference to it.

use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns a value as packed JSON. Equal values give equal bytes, which only this version can read.
pub fn fold(value: &impl Serialize) -> Vec<u8> {
    let mut text = typical_with(LINE);
    serde_json::to_writer(&mut text, value).expect("text keys and plain values are JSON");
    pack(&text)
}

/// Unpacks a folded value.
pub fn unfold<T: DeserializeOwned>(folded: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&unpack(folded))
}

/// The most frequent text of lines. No file depends on it, so any version may change it.
const TYPICAL: &[u8] = br#"{"granted":1,"given_back":["},"failed":{"reviewer":","cause":"why":"retry_after":"run":"}
"fixes":"reassigned_to":","spent":{"tokens":"micro_usd":"priority":"P0","P2","asked":1,"P3","asked":3,
"phase":{"escalated":"max_rounds_exceeded"},"reviewer_budget_exceeded"},"reviewer_timeout"},"author_timeout"},
"protocol_violation"},"blocker_held"},"invocation_failed"},"cancelled"},{"reviewer":"closed":"not_merged"},"commented"},
"stale":true,"by_rule":true,"broken":["by_person":"},"since":"2026-01-01T00:00:00Z","closed_by":"daemon","threads":{"F-
"observed":["],"runs":[{"command":","exit":0,"duration_ms":,"output":"sha256:","head":"
"missing":["],"commands_observed":[{"command":"cargo test","fingerprint":","resolution":"silence","aliases":["],
"reopened":true,"by_person":true,"fate":{"category":","target":","recommendation":","verify_run":true,"queued":true,
"left":true,"task":"handoff-pr-1"},"carried":true},"state":{"held":"veto"}},"escalate"}},"person"}},"state":"deferred"},
"state":"open"},"stance":"satisfied","severity":"P0","P2","blocking":false,"round_count":1,"replies":1},
{"generation":1,"rounds":2,"granted":0,"first_round":1,"round":1,"phase":{"closed":"merged"},"since":"2026-01-
{"generation":1,"rounds":2,"granted":0,"first_round":1,"round":2,"phase":{"approved":{"commit":","merge_ready":true,"at":"2026-
:00Z","evidence":{"digest_matches":true,"declared":0,"served":1,"observed":0,"commands_declared":["cargo test"]}}},
"since":"2026-","closed_by":"reviewer","threads":{"F-001":{"severity":"P1","blocking":true,"title":","file":"src/
.rs","lines":","words":","opened_in":1,"dialogue":{"stance":"seeks_change","round_count":0,"replies":0},"state":"resolved"},
"F-002":{"severity":"P2","blocking":false,"title":"}},"commit":","priority":"P1","asked":2,"reading":{"change":{"base":","head":
","digest":"sha256:","files":["src/.rs"]}}}"asked":1,"reading":{"change":{}}}"#;

/// The bytes of a line for which there is room at once: more than most lines have.
const LINE: usize = 1024;

/// The shortest text worth a reference; reference lengths are stored minus this.
const COPY_MIN: usize = 4;

/// The longest text of one reference.
const COPY_MAX: usize = COPY_MIN + 0x7f;

/// The lowest first byte of a reference: it holds the length, and two bytes of the position follow. Bytes below it are
/// ASCII text.
const COPY: u8 = 0x80;

/// The mark before the length and the bytes of text that is not ASCII. No line holds a control character.
const PLAIN: u8 = 0x1e;

/// The mark before the length and the bytes of packed lower-case hexadecimal digits.
const HEX: u8 = 0x1f;

/// The shortest run of digits that is packed.
const HEX_MIN: usize = 8;

/// The last position of each sequence of [`COPY_MIN`] bytes, by its hash.
#[derive(Clone)]
struct Places([u16; 1 << Self::BITS]);

impl Places {
    const BITS: u32 = 11;

    /// Returns the positions in the typical line.
    fn new() -> Self {
        static TYPICALS: LazyLock<Places> = LazyLock::new(|| {
            let mut places = Places([0; 1 << Places::BITS]);
            for at in 0..TYPICAL.len() {
                places.note(TYPICAL, at);
            }
            places
        });
        TYPICALS.clone()
    }

    /// Notes the position, and returns an earlier one that may begin with the same bytes.
    fn note(&mut self, text: &[u8], at: usize) -> Option<usize> {
        let start = text.get(at..)?.first_chunk::<COPY_MIN>()?;
        let hash = u32::from_le_bytes(*start).wrapping_mul(0x9e37_79b1) >> (32 - Self::BITS);
        let place = &mut self.0[hash as usize];
        let before = usize::from(*place);
        *place = u16::try_from(at).ok()?;
        Some(before)
    }
}

/// Returns the typical line, with room for as many bytes after it.
fn typical_with(room: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(TYPICAL.len() + room);
    text.extend_from_slice(TYPICAL);
    text
}

/// Packs what follows the typical line in a text.
fn pack(text: &[u8]) -> Vec<u8> {
    let mut places = Places::new();
    let mut packed = Vec::with_capacity((text.len() - TYPICAL.len()) / 2);
    let mut at = TYPICAL.len();
    while at < text.len() {
        let copy = places.note(text, at);
        let taken = match copy.map(|before| (before, common(text, before, at))) {
            Some((before, length)) if length >= COPY_MIN => {
                let [low, high] = u16::try_from(before).expect("a noted place").to_le_bytes();
                packed.extend([COPY + byte(length - COPY_MIN), low, high]);
                length
            }
            Some(_) | None => pack_new(&text[at..], &mut packed),
        };
        for passed in at + 1..at + taken {
            places.note(text, passed);
        }
        at += taken;
    }
    packed
}

/// Packs the start of a text that has no earlier copy, and returns its length.
fn pack_new(text: &[u8], packed: &mut Vec<u8>) -> usize {
    if let Some(length) = digits_at(text) {
        packed.extend([HEX, byte(length / 2)]);
        let pairs = text[..length].chunks_exact(2);
        packed.extend(pairs.map(|pair| nibble(pair[0]) * 16 + nibble(pair[1])));
        length
    } else if text[0].is_ascii() {
        packed.push(text[0]);
        1
    } else {
        let other = text.iter().take(0xff).take_while(|byte| !byte.is_ascii());
        let length = other.count();
        packed.extend([PLAIN, byte(length)]);
        packed.extend(&text[..length]);
        length
    }
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut text = typical_with(LINE);
    let mut rest = packed.iter().copied();
    while let Some(first) = rest.next() {
        let mut next = || rest.next().expect("a whole sequence");
        match first {
            COPY.. => {
                let from = usize::from(u16::from_le_bytes([next(), next()]));
                let length = usize::from(first & !COPY) + COPY_MIN;
                // The referenced text may overlap the text being written.
                (from..from + length).for_each(|at| text.push(text[at]));
            }
            HEX => {
                for byte in (0..next()).map(|_| next()) {
                    text.extend([digit(byte >> 4), digit(byte & 0xf)]);
                }
            }
            PLAIN => text.extend((0..next()).map(|_| next())),
            ascii => text.push(ascii),
        }
    }
    text.split_off(TYPICAL.len())
}

/// Counts the equal bytes from two positions on.
fn common(text: &[u8], before: usize, at: usize) -> usize {
    let both = text[before..].iter().zip(&text[at..]).take(COPY_MAX);
    both.take_while(|(one, other)| one == other).count()
}

fn byte(length: usize) -> u8 {
    u8::try_from(length).expect("no sequence is longer")
}

/// Counts the digits that the text begins with, rounded down to an even number; `None` if too few to pack.
fn digits_at(text: &[u8]) -> Option<usize> {
    let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let length = text.iter().take(2 * 255).take_while(is_digit).count() & !1;
    (length >= HEX_MIN).then_some(length)
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'a'..=b'f' => digit - (b'a' - 10),
        _ => digit - b'0',
    }
}

fn digit(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{fold, unfold};

    proptest! {
        #[test]
        fn every_line_of_json_comes_back(
            texts in prop::collection::vec("\\PC{0,30}|[0-9a-f]{0,80}|é{120,140}|(state|\"stance\"|\\\\)", 0..8),
        ) {
            let mut values = serde_json::Map::new();
            for text in texts {
                values.insert(text.clone(), text.into());
            }
            let line = serde_json::Value::from(values);
            prop_assert_eq!(unfold::<serde_json::Value>(&fold(&line)).expect("JSON"), line);
        }
    }

    /// Any loss in how well a line is packed shows here: a million reviews are in memory like this.
    #[test]
    fn a_line_takes_as_few_bytes_as_it_did() {
        let review = serde_json::json!({
            "generation": 1, "rounds": 2, "granted": 0, "first_round": 1, "round": 1,
            "phase": { "closed": "merged" }, "since": "2026-02-13T10:00:00Z",
        });
        let lines = [
            serde_json::json!("x"),
            serde_json::json!("0123456789abcdef".repeat(40)),
            serde_json::json!("9f86d081884c7d659a2feaa0c55ad015"),
            serde_json::json!("seldom or never, seldom or never"),
            review,
        ];
        assert_eq!(lines.map(|line| fold(&line).len()), [3, 262, 20, 21, 45]);
    }
}
