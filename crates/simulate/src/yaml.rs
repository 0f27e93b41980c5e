//! Writes trees back as YAML, exactly as their author wrote them: an unquoted scalar stays unquoted, so that this room
//! does not decide its type.

use message_schema::double_quoted;
use message_schema::yaml::{Content, Field, Node, Style};

/// Lines of a document under construction.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
}

impl Writer {
    /// Returns the text so far.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Writes a field with any value.
    pub(super) fn field(&mut self, depth: usize, key: &str, value: &Node) {
        let pad = "  ".repeat(depth);
        match &value.content {
            Content::Scalar(_) => self.push(&pad, &format!("{}: {}", name(key), scalar(value))),
            Content::List(items) if items.is_empty() => {
                self.push(&pad, &format!("{}: []", name(key)));
            }
            Content::Map(fields) if fields.is_empty() => {
                self.push(&pad, &format!("{}: {{}}", name(key)));
            }
            Content::List(_) | Content::Map(_) => {
                self.push(&pad, &format!("{}:", name(key)));
                self.block(depth + 1, value);
            }
        }
    }

    /// Writes a field with a fixed text that needs no quotes.
    pub(super) fn plain(&mut self, key: &str, text: &str) {
        self.push("", &format!("{key}: {text}"));
    }

    /// Writes a field with a text of several lines, as a literal block if YAML allows that.
    pub(super) fn literal(&mut self, key: &str, text: &str) {
        let is_plain = |c: char| c == '\n' || !c.is_control();
        if text.trim().is_empty() || text.starts_with([' ', '\n']) || !text.chars().all(is_plain) {
            return self.push("", &format!("{key}: {}", double_quoted(text)));
        }
        let chomp = if text.ends_with('\n') { "|" } else { "|-" };
        self.push("", &format!("{key}: {chomp}"));
        text.lines()
            .for_each(|line| self.push(if line.is_empty() { "" } else { "  " }, line));
    }

    fn block(&mut self, depth: usize, node: &Node) {
        let pad = "  ".repeat(depth);
        match &node.content {
            Content::Scalar(_) => self.push(&pad, &scalar(node)),
            Content::Map(fields) => {
                fields
                    .iter()
                    .for_each(|Field { key, value, .. }| self.field(depth, key, value));
            }
            Content::List(items) => {
                for item in items {
                    match &item.content {
                        Content::Scalar(_) => self.push(&pad, &format!("- {}", scalar(item))),
                        Content::List(items) if items.is_empty() => self.push(&pad, "- []"),
                        Content::Map(fields) if fields.is_empty() => self.push(&pad, "- {}"),
                        Content::List(_) | Content::Map(_) => {
                            self.push(&pad, "-");
                            self.block(depth + 1, item);
                        }
                    }
                }
            }
        }
    }

    fn push(&mut self, pad: &str, line: &str) {
        self.text += pad;
        self.text += line.trim_end();
        self.text.push('\n');
    }
}

fn name(key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if is_bare {
        key.to_owned()
    } else {
        double_quoted(key)
    }
}

fn scalar(node: &Node) -> String {
    match node.scalar() {
        Some(scalar) if scalar.style == Style::Plain && !scalar.text.contains('\n') => {
            scalar.text.clone()
        }
        Some(scalar) => double_quoted(&scalar.text),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use message_schema::{Schema, coerce, parse_packet};

    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
        let text = "findings:\n  - {id: F-1, severity: P1, lines: 40-45, title: \"a: b # c\", nested: [[1, {}], []]}\n  - id: no\n    repro: |\n      one\n\n       two\n    \"odd key\": ~\n    \"# a: key\": ~\n";
        let tree = parse_packet(text.as_bytes()).expect("a mapping");
        let mut out = Writer::default();
        tree.fields()
            .iter()
            .for_each(|field| out.field(0, &field.key, &field.value));
        let out = out.into_text();
        let again = parse_packet(out.as_bytes()).expect("a mapping");
        let value = |tree| coerce(tree, Schema::FindingsPacket.shape());
        assert_eq!(value(&again), value(&tree), "{out}");
    }
}
