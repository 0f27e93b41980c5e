//! The reasons why our verdict differs from that of `oacp`, under the names listed in `docs/oacp.md`. A reason follows
//! from the text of the file and from how `oacp` reads it, so a wrong verdict cannot hide behind a right reason for
//! another one.

use serde_json::Value;
use settled_tests::peer::Judged;

/// Our largest file, in bytes.
const SIZE_MAX: usize = 256 * 1024;

/// Line breaks of YAML 1.1 that YAML 1.2 does not have.
const OTHER_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

const COUNTS: [&str; 3] = ["turns", "input_tokens", "output_tokens"];
const MEASURES: [&str; 2] = ["wall_time_s", "est_cost_usd"];

/// The command's objection to an envelope.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) code: String,
    pub(super) field: String,
    pub(super) message: String,
}

/// The names of the differences between the two verdicts; empty if they agree. The error is a difference that the list
/// does not explain.
pub(super) fn reasons(
    bytes: &[u8],
    theirs: &Judged,
    ours: &[Violation],
) -> Result<Vec<&'static str>, String> {
    let text = String::from_utf8_lossy(bytes);
    match (theirs.errors.is_empty(), ours.is_empty()) {
        (true, true) | (false, false) => Ok(Vec::new()),
        (true, false) => ours
            .iter()
            .map(|violation| {
                stricter(violation, &text, &theirs.data)
                    .ok_or(format!("only ours refuses: {violation:?}"))
            })
            .collect(),
        (false, true) => theirs
            .errors
            .iter()
            .map(|error| milder(error, &theirs.data).ok_or(format!("only oacp refuses: {error}")))
            .collect(),
    }
}

/// The reason why we refuse what `oacp` accepts.
fn stricter(violation: &Violation, text: &str, data: &Value) -> Option<&'static str> {
    let field = violation.field.split('[').next().unwrap_or_default();
    match violation.code.as_str() {
        "duplicate_key" => Some("duplicate-keys"),
        "yaml_feature" => text
            .contains(['&', '*', '!', '%'])
            .then_some("anchors-and-tags"),
        "too_large" => (text.len() > SIZE_MAX).then_some("size"),
        "yaml_syntax" => syntax(violation, text),
        "envelope_field_invalid" if field == "to" => recipients(data),
        "envelope_field_invalid" => value(field, data[field].as_str()?),
        _ => None,
    }
}

fn syntax(violation: &Violation, text: &str) -> Option<&'static str> {
    if text.contains(OTHER_BREAKS) {
        Some("line-separators")
    } else if text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .contains('\u{feff}')
    {
        Some("byte-order-marks")
    } else if text.contains("\\ud8") {
        Some("surrogates")
    } else {
        let begins_remark = |(_, behind): (usize, &str)| behind.starts_with('#');
        let closed = text
            .match_indices(['"', '\'', ']'])
            .map(|(at, _)| (at, &text[at + 1..]));
        let words = [
            "comments must be separated",
            "text follows the closing quote",
        ];
        if words
            .iter()
            .any(|words| violation.message.starts_with(words))
        {
            return closed
                .into_iter()
                .any(begins_remark)
                .then_some("attached-remarks");
        }
        let words = [
            "indentation in multiline quoted",
            "the quotes that open here",
        ];
        words
            .iter()
            .any(|words| violation.message.contains(words))
            .then_some("quoted-indentation")
    }
}

fn recipients(data: &Value) -> Option<&'static str> {
    let written: Vec<&str> = match &data["to"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        Value::String(one) => vec![one],
    };
    let names: Vec<&str> = written.iter().map(|name| name.trim()).collect();
    let is_review = data["type"]
        .as_str()
        .is_some_and(|kind| kind.trim().starts_with("review_"));
    if data["from"]
        .as_str()
        .is_some_and(|from| names == [from.trim()])
    {
        Some("self-send")
    } else if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
        Some("repeated-recipient")
    } else if is_review && names.len() > 1 {
        Some("several-recipients")
    } else {
        written
            .iter()
            .any(|name| is_padded(name))
            .then_some("white-space")
    }
}

fn value(field: &str, written: &str) -> Option<&'static str> {
    let text = written.trim();
    let is_odd = |c: char| !c.is_ascii_alphanumeric() && !"._:@+-".contains(c);
    let is_digit_elsewhere = |c: char| c.is_numeric() && !c.is_ascii_digit();
    if field == "subject" {
        return Some(if has_controls(text) {
            "subject-characters"
        } else {
            "subject-lines"
        })
        .filter(|_| has_controls(written));
    }
    if field == "id" && text.contains(is_odd) {
        Some("id-characters")
    } else if field == "from" && text == "settled" {
        Some("reserved-name")
    } else if field != "id" && text.contains(is_digit_elsewhere) {
        Some("other-digits")
    } else if is_padded(written) {
        Some("white-space")
    } else if (field == "related_pr" && text.len() > 20)
        || (COUNTS.contains(&field) && text.parse::<u64>().is_err())
    {
        Some("large-numbers")
    } else {
        MEASURES.contains(&field).then_some("number-spelling")
    }
}

/// True if the text has white space around it other than blanks or a block's last line break.
fn is_padded(written: &str) -> bool {
    let blanks = written.trim_matches([' ', '\t']);
    blanks != written.trim()
}

fn has_controls(text: &str) -> bool {
    let is_bidi = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().any(|c| c.is_control() || is_bidi(c))
}

/// The reason why we accept what `oacp` refuses.
fn milder(error: &str, data: &Value) -> Option<&'static str> {
    let is_nothing = |field: &str| {
        data[field]
            .as_str()
            .is_some_and(|text| ["", "~", "null"].contains(&text.trim()))
    };
    let is_absent = |field: &str| data.get(field).is_none() || is_nothing(field);
    if error.starts_with("review telemetry fields") {
        let all = ["model"].into_iter().chain(COUNTS).chain(MEASURES);
        return all
            .into_iter()
            .all(is_absent)
            .then_some("nothing-is-absent");
    }
    if error.starts_with("YAML parse error") {
        return error
            .contains("character '\\t' that cannot start any token")
            .then_some("tabs");
    }
    let field = error.strip_prefix("field '")?.split('\'').next()?;
    if is_nothing(field) {
        Some("nothing-is-absent")
    } else {
        (field == "auth").then_some("signatures")
    }
}
