//! Workflow commands: lines that GitHub's runners turn into annotations. A step shows ten errors and ten warnings and
//! drops the rest, so a last line of another kind gives the totals.

use message_schema::Level;
use message_schema::line::escaped;
use validate_message::Violation;

use crate::check::verdict::{Totals, Verdict};

/// Returns a file's commands; `name` is the file as given on the command line.
pub(crate) fn one(verdict: &Verdict, name: &str) -> String {
    if let Some(why) = verdict.unreadable() {
        return format!(
            "::error file={}::{}\n",
            property(name),
            data(&format!("cannot be read: {why}"))
        );
    }
    let commands: String = verdict
        .violations()
        .iter()
        .map(|violation| command(violation, verdict, name))
        .collect();
    let cut = super::cut::cut(verdict);
    if cut.is_empty() {
        commands
    } else {
        format!("{commands}::notice::{}\n", data(cut.trim_end()))
    }
}

fn command(violation: &Violation, verdict: &Verdict, name: &str) -> String {
    let kind = match violation.level {
        Level::Error => "error",
        Level::Warning => "warning",
    };
    let file = verdict.opened(&violation.file, name);
    let place = violation
        .place
        .map(|place| format!(",line={},col={}", place.line, place.column))
        .unwrap_or_default();
    let fix = violation
        .fix
        .as_ref()
        .map(|fix| format!("\nfix: {fix}"))
        .unwrap_or_default();
    let text = data(&format!("{}{fix}", violation.message));
    format!(
        "::{kind} file={}{place},title={}::{text}\n",
        property(&file),
        violation.code
    )
}

/// Returns the true total as a notice: as the only one it is always shown.
pub(crate) fn tail(totals: Totals) -> String {
    let unreadable = match totals.unreadable {
        0 => String::new(),
        count => format!(", {count} could not be read"),
    };
    format!("::notice title=validate-message::{totals}{unreadable}\n")
}

/// Escapes a text for the message of a command, after its second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a text for a property's value, including control characters: runners show their log on terminals.
fn property(text: &str) -> String {
    data(&escaped(text)).replace(':', "%3A").replace(',', "%2C")
}
