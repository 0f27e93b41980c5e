//! Messages to judge, all from one seed: correct ones in every spelling of YAML, the same with mistakes, and hostile
//! ones.

use serde_json::Value;
use settled_tests::hostile::Hostile;

use super::{near, pool};

/// A trailer in the form of an `oacp` signature, signed by nobody.
const AUTH: &str = include_str!("auth.txt");

/// A generator that gives the same numbers for the same seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // SplitMix64: every seed is a good one.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n).expect("a small number"))
            .expect("a small number")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A field: its name, and its value as written after the colon.
type Field = (String, String);

/// A message that both sides accept, whatever they think of its body.
pub(super) fn correct(dice: &mut Dice) -> Vec<u8> {
    let values = values(dice);
    if dice.one_in(12) {
        return json(&values).into_bytes();
    }
    let fields = values
        .into_iter()
        .map(|(name, value)| {
            let written = spelled(&name, &value, dice);
            (name, written)
        })
        .collect();
    let text = document(fields, dice);
    // A signed message must keep its line feeds.
    if dice.one_in(15) && !text.contains("auth: ") {
        text.replace('\n', "\r\n").into_bytes()
    } else {
        text.into_bytes()
    }
}

/// A correct message with one to three changes.
pub(super) fn mutated(dice: &mut Dice) -> Vec<u8> {
    let values = values(dice);
    let mut fields: Vec<Field> = values
        .into_iter()
        .map(|(name, value)| {
            let written = spelled(&name, &value, dice);
            (name, written)
        })
        .collect();
    if dice.one_in(3) {
        return spoiled(&document(fields, dice), dice);
    }
    for _ in 0..=dice.below(2) {
        alter(&mut fields, dice);
    }
    document(fields, dice).into_bytes()
}

/// Correct messages with one almost correct value each: every such value we know, twice.
pub(super) fn near_misses(dice: &mut Dice) -> Vec<Vec<u8>> {
    let special = near::special();
    let texts = special
        .iter()
        .flat_map(|(name, texts)| texts.iter().map(move |text| (*name, text)));
    let mut messages = Vec::new();
    for (name, text) in texts.chain([("to", &"[codex, gemini]".to_owned())]) {
        for kind in [None, Some("review_feedback")] {
            let mut fields = plain(dice);
            if let Some(kind) = kind {
                set(&mut fields, "type", kind);
            }
            set(&mut fields, name, text);
            messages.push(document(fields, dice).into_bytes());
        }
    }
    messages
}

/// A hostile message: too much of something, cut to what the peer reads within a second.
pub(super) fn hostile(documents: &[Hostile], dice: &mut Dice) -> Vec<u8> {
    let bytes = &dice.pick(documents).message;
    let length = 20 + dice.below(1_500);
    let mut cut = bytes[..length.min(bytes.len())].to_vec();
    if dice.one_in(2) {
        let mut whole = document(plain(dice), dice).into_bytes();
        let at = dice.below(whole.len());
        whole.splice(at..at, cut);
        cut = whole;
    }
    cut
}

/// The fields of a correct message, in any order.
fn values(dice: &mut Dice) -> Vec<(String, Value)> {
    let kind = *dice.pick(&pool::TYPES);
    let is_review = kind.starts_with("review_");
    let to = match dice.below(4) {
        0 => Value::from(vec!["codex"]),
        1 if !is_review && !kind.starts_with("handoff") => {
            Value::from(vec!["codex", "gemini-2", "x.y"])
        }
        _ => Value::from("codex"),
    };
    let mut values = vec![
        (
            "id".to_owned(),
            Value::from(format!("msg-{}", dice.below(1_000_000))),
        ),
        ("from".to_owned(), Value::from("claude")),
        ("to".to_owned(), to),
        ("type".to_owned(), Value::from(kind)),
        (
            "priority".to_owned(),
            Value::from(*dice.pick(&["P0", "P1", "P2", "P3"])),
        ),
        (
            "created_at_utc".to_owned(),
            Value::from("2026-02-13T10:00:00Z"),
        ),
        (
            "subject".to_owned(),
            Value::from(*dice.pick(&pool::SUBJECTS)),
        ),
        ("body".to_owned(), Value::from(*dice.pick(&pool::BODIES))),
    ];
    for (name, texts) in pool::OPTIONAL {
        if dice.one_in(5) {
            values.push((name.to_owned(), Value::from(*dice.pick(texts))));
        }
    }
    if ["review_feedback", "review_addressed", "review_lgtm"].contains(&kind) {
        for (name, texts) in pool::TELEMETRY {
            if dice.one_in(3) {
                values.push((name.to_owned(), Value::from(*dice.pick(texts))));
            }
        }
    }
    for at in (1..values.len()).rev() {
        values.swap(at, dice.below(at + 1));
    }
    values
}

/// The fields of a correct message in their plainest spelling.
fn plain(dice: &mut Dice) -> Vec<Field> {
    values(dice)
        .into_iter()
        .map(|(name, value)| (name, value.to_string()))
        .collect()
}

fn json(values: &[(String, Value)]) -> String {
    let map: serde_json::Map<String, Value> = values.iter().cloned().collect();
    Value::Object(map).to_string()
}

/// The value in one of its spellings in YAML.
fn spelled(name: &str, value: &Value, dice: &mut Dice) -> String {
    let Value::String(text) = value else {
        let names: Vec<&str> = value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        return match dice.below(3) {
            0 => format!("\n  - {}", names.join("\n  - ")),
            1 => format!("\n- {}", names.join("\n- ")),
            _ => format!("[{}]", names.join(", ")),
        };
    };
    let is_plain = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "-._ +".contains(c))
        && text.starts_with(|c: char| c.is_alphanumeric());
    match dice.below(6) {
        0 | 1 if is_plain => text.clone(),
        2 if !text.contains('\n') => format!("'{}'", text.replace('\'', "''")),
        // A block ends with a line break, which a subject may not.
        3 if name != "subject" && !text.is_empty() && !text.starts_with(' ') => {
            format!("|\n  {}", text.replace('\n', "\n  "))
        }
        4 if !text.is_empty() && !text.starts_with(' ') => {
            format!("|-\n    {}", text.replace('\n', "\n    "))
        }
        5 if is_plain => format!("{text}  # a remark"),
        _ => value.to_string(),
    }
}

fn document(fields: Vec<Field>, dice: &mut Dice) -> String {
    let mut text = String::new();
    if dice.one_in(12) {
        text.push('\u{feff}');
    }
    if dice.one_in(8) {
        text.push_str("# what it is about\n");
    }
    if dice.one_in(8) {
        text.push_str("---\n");
    }
    let is_signed = fields.iter().any(|(name, _)| name == "auth");
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\n"));
        if dice.one_in(12) {
            text.push_str(dice.pick::<&str>(&["\n", "# a remark: {\n", "\n\n"]));
        }
    }
    if !is_signed && dice.one_in(20) {
        text.push_str(&format!("auth: \"{AUTH}\"\n"));
    } else if dice.one_in(15) {
        text.push_str(dice.pick::<&str>(&["...\n", "\n", "# the end", "...\n# the end\n"]));
    }
    text
}

/// Makes one change to the fields.
fn alter(fields: &mut Vec<Field>, dice: &mut Dice) {
    let at = dice.below(fields.len());
    match dice.below(12) {
        0 => {
            fields.remove(at);
        }
        1 => {
            let twice = fields[at].clone();
            fields.push(twice);
        }
        2 => fields[at].0 = (*dice.pick(&pool::NAMES)).to_owned(),
        3 => fields[at].1 = (*dice.pick(&pool::ANYTHING)).to_owned(),
        4 => fields.push((
            (*dice.pick(&pool::NAMES)).to_owned(),
            (*dice.pick(&pool::ANYTHING)).to_owned(),
        )),
        5 => {
            let (name, texts) = *dice.pick(&pool::TELEMETRY);
            let text = (*dice.pick(texts)).to_owned();
            set(fields, name, &text);
        }
        _ => {
            let special = near::special();
            let (name, texts) = dice.pick(&special);
            let text = dice.pick(texts).clone();
            set(fields, name, &text);
        }
    }
}

fn set(fields: &mut Vec<Field>, name: &str, value: &str) {
    match fields.iter_mut().find(|(field, _)| field == name) {
        Some(field) => field.1 = value.to_owned(),
        None => fields.push((name.to_owned(), value.to_owned())),
    }
}

/// Makes a change to the characters.
fn spoiled(text: &str, dice: &mut Dice) -> Vec<u8> {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(letters.len().max(1)).min(letters.len());
        match dice.below(6) {
            0 => letters.truncate(at),
            1 => {
                let end = (at + 1 + dice.below(6)).min(letters.len());
                letters.drain(at..end);
            }
            2 | 3 => letters.insert(at, *dice.pick(&pool::LETTERS)),
            4 => {
                let line: String = letters.iter().collect();
                let mut lines: Vec<&str> = line.split('\n').collect();
                let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
                lines.swap(one, other);
                letters = lines.join("\n").chars().collect();
            }
            _ => {
                let begin = letters[..at]
                    .iter()
                    .rposition(|c| *c == '\n')
                    .map_or(0, |at| at + 1);
                letters.insert(begin, *dice.pick(&[' ', '\t', '-', '#']));
            }
        }
    }
    let mut bytes = letters.into_iter().collect::<String>().into_bytes();
    if dice.one_in(15) && !bytes.is_empty() {
        let at = dice.below(bytes.len());
        bytes[at] = 0xff;
    }
    bytes
}
