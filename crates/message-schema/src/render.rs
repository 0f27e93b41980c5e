//! Writes messages, packets and reports as text that our reader, OACP's and those of YAML 1.1 read back the same.
//! serde_yaml writes; this module closes the gaps it leaves.

use serde::Serialize;
use serde_yaml::{Mapping, Value};

use crate::body::Body;
use crate::envelope::Envelope;
use crate::packet::FindingsPacket;
use crate::yaml::{Content, Node, Style, read_ours};

/// Writes a message as YAML, its body as a literal block where possible. Ignores the `body` of the envelope. Texts come
/// back trimmed of surrounding white space.
pub fn render_message(envelope: &Envelope, body: &Body) -> String {
    let text = match body {
        Body::Request(body) => render_document(body),
        Body::Feedback(body) => render_document(body),
        Body::Addressed(body) => render_document(body),
        Body::Lgtm(body) => render_document(body),
        Body::Text(text) => text.clone(),
    };
    assembled(&without_body(envelope), &text, envelope.auth.as_deref())
}

/// Writes a message whose values may still break a rule, so that its author can have it checked first: the fields of an
/// envelope in their given order, then `body` and `auth`, which are passed separately.
pub fn render_draft(envelope: &impl Serialize, body: &str, auth: Option<&str>) -> String {
    assembled(envelope, body, auth)
}

fn assembled(fields: &impl Serialize, text: &str, auth: Option<&str>) -> String {
    let mut out = render_document(fields);
    match literal(text) {
        Some(block) => out.push_str(&format!("body: |\n{block}")),
        None => out.push_str(&field(&"body".into(), &text.into())),
    }
    if let Some(auth) = auth {
        // OACP accepts the trailer only as the last line, in double quotes.
        out.push_str(&format!("auth: {}\n", json_line(&auth)));
    }
    out
}

/// Writes a findings packet as YAML.
pub fn render_packet(packet: &FindingsPacket) -> String {
    render_document(packet)
}

/// Writes any other document of ours, a mapping with text keys, as block YAML.
pub fn render_document(document: &impl Serialize) -> String {
    let value = serde_yaml::to_value(document).expect("our types are mappings with text keys");
    let Value::Mapping(fields) = &value else {
        return block(&value);
    };
    if !needs_escapes(&value) {
        return block(&value);
    }
    fields
        .iter()
        .map(|(name, value)| field(name, value))
        .collect()
}

/// Reads back a document that `render_document` or `render_lines` wrote; `None` if it is not YAML. Use `parse` for
/// messages, which any agent may have written.
pub fn read_document(bytes: &[u8]) -> Option<serde_json::Value> {
    serde_yaml::from_slice(bytes).ok()
}

/// Writes a document of ours, a mapping with text keys, with one line of JSON for each field and each item of its
/// lists. That is YAML too, and costs a fraction of what blocks cost.
pub fn render_lines(document: &impl Serialize) -> String {
    let value = serde_yaml::to_value(document).expect("our types are mappings with text keys");
    let mut out = String::new();
    for (name, value) in value.as_mapping().into_iter().flatten() {
        out.push_str(name.as_str().unwrap_or_default());
        match value.as_sequence().filter(|items| !items.is_empty()) {
            Some(items) => {
                out.push_str(":\n");
                items
                    .iter()
                    .for_each(|item| out.extend(["- ", &json_line(item), "\n"]));
            }
            None => out.extend([": ", &json_line(value), "\n"]),
        }
    }
    out
}

fn json_line(value: &impl Serialize) -> String {
    json_for_yaml(&serde_json::to_string(value).expect("our types are mappings with text keys"))
}

/// Writes one field, as a line of JSON if a block would not come back the same.
fn field(name: &Value, value: &Value) -> String {
    let one: Mapping = [(name.clone(), value.clone())].into_iter().collect();
    match name.as_str().filter(|_| needs_escapes(value)) {
        Some(name) => format!("{name}: {}\n", json_line(value)),
        None => block(&Value::Mapping(one)),
    }
}

fn block(value: &Value) -> String {
    quote_for_yaml_1_1(serde_yaml::to_string(value).expect("a tree of values is YAML"))
}

fn needs_escapes(value: &Value) -> bool {
    let is_trap = |text: &str| text.contains(|c| c == '\r' || is_break_of_old(c));
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => is_trap(text),
        Value::Sequence(items) => items.iter().any(needs_escapes),
        Value::Mapping(fields) => fields
            .iter()
            .any(|(key, value)| needs_escapes(key) || needs_escapes(value)),
        Value::Tagged(tagged) => needs_escapes(&tagged.value),
    }
}

fn without_body(envelope: &Envelope) -> Value {
    let mut fields = serde_yaml::to_value(envelope).expect("our types are mappings with text keys");
    if let Value::Mapping(fields) = &mut fields {
        fields.shift_remove("body");
        fields.shift_remove("auth");
    }
    fields
}

/// Returns the lines of a literal block; `None` if the text needs escapes or an indentation indicator.
fn literal(text: &str) -> Option<String> {
    let text = text.trim_end();
    let starts_with_space = text.starts_with(char::is_whitespace);
    if text.is_empty() || starts_with_space || !text.chars().all(stands_in_a_block) {
        return None;
    }
    let line = |line: &str| {
        if line.is_empty() {
            "\n".to_owned()
        } else {
            format!("  {line}\n")
        }
    };
    Some(text.split('\n').map(line).collect())
}

/// True if the character may appear in a literal block, where nothing can be escaped.
pub fn stands_in_a_block(c: char) -> bool {
    c == '\n' || c == '\t' || !(c.is_control() || is_break_of_old(c) || is_unprintable(c))
}

/// True for the characters that end a line in YAML 1.1 but not in 1.2. serde_yaml leaves them bare in scalars, where
/// the two kinds of reader would see different lines.
fn is_break_of_old(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_unprintable(c: char) -> bool {
    matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns the text in double quotes, as YAML, JSON and TOML all read it: every control character is escaped.
pub fn double_quoted(text: &str) -> String {
    json_for_yaml(&serde_json::to_string(text).expect("a text is JSON"))
}

/// Returns JSON in which every character is escaped that some YAML reader would not accept bare. For JSON that people see,
/// `line::escaped_in_json` escapes more.
pub fn json_for_yaml(json: &str) -> String {
    // Most texts are plain, and a scan of the bytes is cheap.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if (c.is_control() && c != '\n') || is_break_of_old(c) || is_unprintable(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Quotes the bare texts that YAML 1.1 takes for a boolean, a number or a date. serde_yaml quotes what YAML 1.2 would
/// mistake, so a bare number there *is* a number.
fn quote_for_yaml_1_1(yaml: String) -> String {
    let Ok(root) = read_ours(&yaml) else {
        return yaml;
    };
    let mut bare = Vec::new();
    misread(&root, &mut bare);
    if bare.is_empty() {
        return yaml;
    }
    bare.sort_unstable();
    let mut bare = bare.into_iter().peekable();
    let mut out = String::with_capacity(yaml.len());
    for (number, line) in (1..).zip(yaml.split_inclusive('\n')) {
        let mut rest = line;
        let mut column = 1;
        while let Some(&(_, at, length)) = bare.peek().filter(|(line, _, _)| *line == number) {
            let (before, after) = split_chars(rest, at - column);
            let (text, after) = after.split_at(length);
            out.push_str(&format!("{before}'{text}'"));
            column = at + u32::try_from(length).unwrap_or(u32::MAX);
            rest = after;
            bare.next();
        }
        out.push_str(rest);
    }
    out
}

fn split_chars(text: &str, count: u32) -> (&str, &str) {
    let at = text
        .char_indices()
        .nth(usize::try_from(count).unwrap_or(usize::MAX));
    text.split_at(at.map_or(text.len(), |(at, _)| at))
}

/// Collects line, column and length of the bare texts below the node that YAML 1.1 misreads. They are ASCII, so
/// characters equal bytes.
fn misread(node: &Node, into: &mut Vec<(u32, u32, usize)>) {
    match &node.content {
        Content::Scalar(scalar) => {
            if scalar.style == Style::Plain && is_misread(&scalar.text) {
                into.push((node.place.line, node.place.column, scalar.text.len()));
            }
        }
        Content::List(items) => items.iter().for_each(|item| misread(item, into)),
        Content::Map(fields) => fields.iter().for_each(|field| misread(&field.value, into)),
    }
}

fn is_misread(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_word = matches!(
        lower.as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "=" | "<<"
    );
    let looks_like_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text
            .bytes()
            .all(|b| b.is_ascii_hexdigit() || b"_:.+-xXoOtTzZ ".contains(&b));
    is_word || (looks_like_number && text.parse::<f64>().is_err())
}
