//! The text of `settled trace`: the life of a message, line by line.

use inspect::trace::{Certainty, Life, LifeStep, MessageTrace};
use message_schema::line::escaped;

/// The characters of a digest that people see.
const DIGEST_CHARS: usize = "sha256:".len() + 12;

/// Formats the life of each message with that id, one step per line, with its evidence below.
pub fn text(trace: &MessageTrace) -> String {
    let lives: Vec<String> = trace
        .messages
        .iter()
        .map(|life| self::life(&trace.id, life))
        .collect();
    lives.join("\n")
}

fn life(id: &str, life: &Life) -> String {
    let mut head = id.to_owned();
    head += &life.from.as_ref().map_or_else(
        || "  no proven sender".to_owned(),
        |from| format!("  from {from}"),
    );
    head += &life
        .kind
        .as_ref()
        .map_or_else(String::new, |kind| format!("  {kind}"));
    head += &life
        .review
        .as_ref()
        .map_or_else(String::new, |review| format!("  {review}"));
    let mut text = escaped(&head) + "\n";
    for step in &life.steps {
        text += &self::step(step);
    }
    text
}

/// One step with its time, and its evidence below.
fn step(step: &LifeStep) -> String {
    let mark = match step.state {
        Certainty::Yes => "+",
        Certainty::No => "-",
        Certainty::Unknown => "?",
    };
    let by = step
        .agent
        .as_ref()
        .map_or_else(String::new, |agent| format!("{agent}: "));
    let at = step.at.as_deref().unwrap_or("");
    let said = format!(
        "{mark} {:<9}  {at:<24}  {by}{}",
        step.step.word(),
        step.what
    );
    let mut text = escaped(said.trim_end()) + "\n";
    let record = step.record.map(|seq| format!("record {seq}"));
    let digest = step
        .digest
        .as_ref()
        .map(|digest| digest.chars().take(DIGEST_CHARS).collect());
    let shown: Vec<String> = [record, step.path.clone(), digest]
        .into_iter()
        .flatten()
        .collect();
    if !shown.is_empty() {
        text += &format!("{:39}{}\n", "", escaped(&shown.join("  ")));
    }
    text
}
