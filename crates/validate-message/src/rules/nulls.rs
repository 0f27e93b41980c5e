//! Warns of optional fields that say "nothing here" in a way that `oacp` refuses: Settled delivers the message, but an
//! `oacp validate` of its reader, or in its writer's hook, rejects it.

use message_schema::Code;
use message_schema::envelope::MessageType;
use message_schema::schema::Step;
use message_schema::yaml::Node;

use super::Document;
use super::document::BreachKind;
use crate::found::Found;
use crate::violation::{Violation, shown};

/// Fields in which `oacp` 0.5.4 ignores an empty text, but reads `~` and `null` as text.
const EMPTY_OR_ABSENT: [&str; 5] = [
    "related_pr",
    "conversation_id",
    "expires_at",
    "channel",
    "autonomy_hint",
];

/// Fields that need a value or must be absent.
const NEVER_EMPTY: [&str; 6] = [
    "turns",
    "input_tokens",
    "output_tokens",
    "wall_time_s",
    "est_cost_usd",
    "auth",
];

/// Warns of each such field.
pub(super) fn check(document: &Document<'_>, kind: Option<MessageType>, found: &mut Found) {
    for field in document.root.fields() {
        let name = field.key.as_str();
        if !field.value.is_absent() || !is_refused_by_oacp(name, &field.value, kind) {
            continue;
        }
        let written = field.value.text().unwrap_or_default().trim();
        let what = if written.is_empty() { "empty" } else { "null" };
        let text = format!("`{name}` is {what}: Settled reads it as absent, and `oacp` refuses it");
        let path = [Step::Key(name.to_owned())];
        let violation = document.violation(BreachKind::Invalid, &path, field.value.place, text);
        found.push(
            Violation {
                code: Code::TextDoubtful,
                ..violation
            }
            .found(&shown(written))
            .expected("a value, or no field")
            .fix(format!("remove `{name}`"))
            .warning(),
        );
    }
}

fn is_refused_by_oacp(name: &str, value: &Node, kind: Option<MessageType>) -> bool {
    // As a channel, `null` is an ordinary word.
    let word = value.text().unwrap_or_default().trim();
    let is_word = !word.is_empty() && (name, word) != ("channel", "null");
    // A model may be named `null`, but only where a model is allowed.
    let may_have_model = kind.is_none_or(MessageType::may_carry_telemetry);
    EMPTY_OR_ABSENT.contains(&name) && is_word
        || NEVER_EMPTY.contains(&name)
        || name == "model" && (word.is_empty() || !may_have_model)
}
