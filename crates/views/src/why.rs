//! The text of `settled why`: what a review waits for, and who brings it with which command.

use chrono::{DateTime, Utc};
use inspect::status::fix::FixCommand;
use inspect::status::why::Why;
use message_schema::line::escaped;
use screen::{Screen, ago, ahead};

/// The width of a label such as `otherwise:`, with the blank after it.
const LABEL: usize = 11;

/// Formats one answer of `settled why`.
pub fn text(why: &Why, serving: Option<bool>, now: DateTime<Utc>, screen: Screen) -> String {
    let reason = why
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(" ({})", escaped(reason)));
    let mut text = screen.wrap(
        2,
        &format!(
            "{}: {}{reason}, round {} of {}, {}",
            why.review,
            why.phase,
            why.round_of_generation,
            why.rounds,
            ago(now - why.since)
        ),
    );
    let missing = why.missing.as_deref().map_or("nothing".into(), escaped);
    text += &screen.wrap(LABEL, &format!("missing:   {missing}"));
    for fix in &why.fixes {
        // A command stays on one line, however long, so that it can be copied.
        text += &format!("{:<10} {}\n", format!("{}:", fix.actor), fix.run);
        let effect = format!("             {}{}", fix.effect, blanks(fix));
        text += &screen.wrap(LABEL + 2, &effect);
    }
    for condition in &why.gate {
        text += &screen.wrap(LABEL, &format!("gate:      {}", escaped(condition)));
    }
    match why.otherwise_at {
        Some(at) => {
            let instant = at.format("%Y-%m-%dT%H:%M:%SZ");
            let due = format!("otherwise: {}, at {instant}, the daemon", ahead(at - now));
            text += &screen.wrap(LABEL, &due);
            text += &screen.wrap(LABEL, &format!("           {}", why.otherwise));
        }
        None => text += &screen.wrap(LABEL, &format!("otherwise: the daemon {}", why.otherwise)),
    }
    if why.otherwise_at.is_some() && serving == Some(false) {
        let none = "           none serves now; the next one does it when it starts";
        text += &screen.wrap(LABEL, none);
    }
    text
}

fn blanks(fix: &FixCommand) -> String {
    if fix.fill.is_empty() {
        String::new()
    } else {
        format!("; {} to be filled in", fix.fill.join(" and "))
    }
}
