//! Suggests a replacement for a wrong value: the most frequent slips of people and agents, each by its name. The schema
//! has already found the value wrong.

use message_schema::envelope::{MessageType, Timestamp};
use message_schema::id::{AgentName, CommitSha, MessageId, PacketPath, PrNumber, Repo, RepoPath};
use message_schema::line::{is_trap, is_typographic_quote};
use message_schema::packet::LineRange;
use message_schema::schema::{Shape, Step};
use message_schema::yaml::{Node, Style, Tail};

use super::document::NO_REMARK;
use crate::suggest::{nearest, synonym};
use crate::violation::shown;

/// The longest field that a fix repeats, in characters.
const REPEATED_MAX: usize = 70;

/// A wrong value and its context.
pub(super) struct Wrong<'a> {
    /// The name of its field.
    pub(super) name: &'a str,
    /// The part of the line before the value.
    pub(super) lead: String,
    pub(super) node: &'a Node,
    pub(super) shape: &'a Shape,
    /// The message's type, if the value is in an envelope.
    pub(super) kind: Option<MessageType>,
}

impl Wrong<'_> {
    /// Suggests a correction; `None` if the expectation alone is enough.
    pub(super) fn suggestion(&self) -> Option<String> {
        let Some(scalar) = self.node.scalar() else {
            return self.of_structure();
        };
        let text = scalar.text.trim();
        if self.shape.is_one_line() && scalar.text.contains(['\n', '\r']) {
            return Some(format!(
                "write it on one line after `{}:`, without `|` or `>`",
                self.name
            ));
        }
        if let (true, Some(tail)) = (self.node.is_absent(), &scalar.tail) {
            return Some(self.of_comment(tail));
        }
        if self.node.is_absent() || self.node.is_null() {
            return Some(self.of_nothing());
        }
        if scalar.style == Style::Plain && holds_remark(text) {
            return Some(NO_REMARK.to_owned());
        }
        let is_padded = self.shape.trimmed(scalar) != text;
        self.of_text(text)
            .or_else(|| {
                is_padded.then(|| format!("write `{}` without white space around it", shown(text)))
            })
            .or_else(|| self.as_in_example())
    }

    fn of_text(&self, text: &str) -> Option<String> {
        let inner = text.trim_matches(is_typographic_quote);
        if inner != text && !self.shape.is_prose() {
            return Some(format!(
                "write `{}` without typographic quotes",
                shown(inner)
            ));
        }
        let words = || self.shape.words().iter().map(String::as_str);
        if self.shape.is_boolean() {
            return boolean(text)
                .map(write)
                .or_else(|| nearest(text, words()).map(write));
        }
        if let Some(word) = nearest(text, words()) {
            return Some(write(word));
        }
        // `P1 - urgent`, `1`
        let first = text.split([' ', ',', ':', '(']).next().unwrap_or(text);
        if let Some(word) = words().find(|word| *word == first) {
            return Some(write(word));
        }
        let with_letter = format!("P{text}");
        if let Some(word) =
            synonym(text, words()).or_else(|| words().find(|word| *word == with_letter))
        {
            return Some(format!("did you mean `{word}`?"));
        }
        if self.shape.is_one_line() {
            return of_line(text);
        }
        if self.shape.items().is_some() {
            return self.of_list(text);
        }
        self.of_grammar(text)
    }

    /// Texts with a grammar, each known by its expectation.
    fn of_grammar(&self, text: &str) -> Option<String> {
        match self.shape.expected() {
            Timestamp::EXPECTED => instant(text),
            CommitSha::EXPECTED => {
                Some("write the digits of the commit; `git rev-parse HEAD` prints them".to_owned())
            }
            LineRange::EXPECTED => lines(text).map(write),
            MessageId::EXPECTED => id(text).map(write),
            Repo::EXPECTED => repo(text).map(write),
            PacketPath::EXPECTED => packet_path(text).map(write),
            RepoPath::EXPECTED => repo_path(text).map(write),
            PrNumber::EXPECTED => number(text).map(write),
            expected if expected.starts_with("an agent name") => agent(text).map(write),
            _ if self.shape.is_integer() && self.name == "line" && text.contains('-') => {
                lines(text).map(|lines| format!("write `lines: {lines}`"))
            }
            _ if self.shape.is_integer() => number(text)
                .filter(|digits| {
                    digits
                        .parse()
                        .is_ok_and(|number| self.shape.is_within_bounds(number))
                })
                .map(write),
            _ => None,
        }
    }

    /// Suggests a value of the right form, if the field has a grammar or a range.
    fn as_in_example(&self) -> Option<String> {
        let has_grammar =
            self.shape.is_scalar() && !self.shape.is_prose() && self.shape.words().is_empty();
        let example = self.shape.example().filter(|_| has_grammar)?;
        Some(format!("write a value{}", as_in(self.name, example)))
    }

    /// A text where a list, an agent's name or a list of names belongs.
    fn of_list(&self, text: &str) -> Option<String> {
        if ["none", "n/a", "-", "[]", "no", "0"].contains(&text.to_lowercase().as_str()) {
            // Not "leave it out": some lists are required.
            return Some(format!("write `{}: []`", self.name));
        }
        let parts: Vec<&str> = text
            .split([',', ';', '\n'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        if self.name == "to" {
            return match (
                parts.len(),
                self.kind.is_some_and(MessageType::has_one_recipient),
            ) {
                (0 | 1, _) => agent(text).map(write),
                (_, true) => Some("write one message for each recipient".to_owned()),
                (_, false) => Some(format!("write `to: [{}]`", shown(&parts.join(", ")))),
            };
        }
        let are_texts = self.shape.items().is_some_and(Shape::is_scalar);
        are_texts.then(|| {
            format!(
                "write a list, as in `{}: [{}]`",
                self.name,
                shown(&parts.join(", "))
            )
        })
    }

    /// A comment in place of a required value: a text that begins with `#`, or `pr: #86`.
    fn of_comment(&self, tail: &Tail) -> String {
        if self.shape.is_prose() || self.shape.is_one_line() {
            return in_quotes(&self.lead, "", tail);
        }
        self.of_grammar(&tail.text).unwrap_or_else(|| {
            let what = self.of_nothing();
            format!("{what}; YAML starts a comment at the `#`")
        })
    }

    /// An empty value where one is required.
    fn of_nothing(&self) -> String {
        match self.shape.example() {
            Some(example) if self.shape.is_prose() => {
                format!("write a text after `{}:`, such as `{example}`", self.name)
            }
            Some(example) => format!("write a value{}", as_in(self.name, example)),
            None if self.shape.items().is_some() => {
                format!(
                    "write a list after `{}:`; `{}: []` is an empty list",
                    self.name, self.name
                )
            }
            None => format!("write a value after `{}:`", self.name),
        }
    }

    /// A list or a mapping where one value belongs.
    fn of_structure(&self) -> Option<String> {
        let name = self.name;
        if self.shape.is_prose() {
            let is_mapping = !self.node.fields().is_empty();
            return Some(if is_mapping {
                format!(
                    "write `{name}: |` instead of `{name}:` and leave the lines below as they are; in JSON write a text"
                )
            } else {
                format!("write a text; `{name}: |` begins one of several lines, indented below it")
            });
        }
        if self.shape.items().is_some() && name != "to" && !self.node.fields().is_empty() {
            return Some(format!(
                "write a list below `{name}:`, each item after a `- `"
            ));
        }
        if !self.shape.is_scalar() {
            return None;
        }
        let example = self
            .shape
            .example()
            .map(|example| as_in(name, example))
            .unwrap_or_default();
        Some(format!(
            "write one value, not {}{example}",
            self.node.kind()
        ))
    }
}

fn write(text: impl AsRef<str>) -> String {
    format!("write `{}`", shown(text.as_ref()))
}

/// Shows the field as it could be written, in quotes if YAML would take it for more than a text.
pub(super) fn as_in(name: &str, example: &str) -> String {
    if example.contains([':', '#']) {
        format!(", as in `{name}: \"{example}\"`")
    } else {
        format!(", as in `{name}: {example}`")
    }
}

/// True if a JavaScript comment is at one end of the text, as in `86 /* why */`.
fn holds_remark(text: &str) -> bool {
    text.starts_with("/*") && text.contains("*/") || text.ends_with("*/") && text.contains(" /*")
}

/// Returns what a line has before the value at a path: its key, or the dash of an item.
pub(super) fn lead(path: &[Step]) -> String {
    match path.last() {
        Some(Step::Key(key)) => format!("{key}: "),
        Some(Step::Index(_)) | None => "- ".to_owned(),
    }
}

/// Suggests quotes for a text that continues after the `#`.
pub(super) fn in_quotes(before: &str, text: &str, tail: &Tail) -> String {
    let whole = format!("{} {}", text.trim(), tail.text);
    let written = format!("{before}{}", serde_json::Value::from(whole.trim()));
    if written.chars().count() > REPEATED_MAX {
        return "put the whole text in double quotes".to_owned();
    }
    format!("write `{}`", shown(&written))
}

/// Returns the boolean that YAML 1.1 and people mean by this word.
fn boolean(text: &str) -> Option<&'static str> {
    match text.to_lowercase().as_str() {
        "yes" | "y" | "on" | "1" => Some("true"),
        "no" | "n" | "off" | "0" => Some("false"),
        _ => None,
    }
}

/// A one-line text that is too long or contains a character that no line may contain.
fn of_line(text: &str) -> Option<String> {
    if let Some(trap) = text.chars().find(|c| is_trap(*c)) {
        return Some(format!("remove the character U+{:04X}", u32::from(trap)));
    }
    let length = text.chars().count();
    (length > 200).then(|| format!("cut it to 200 characters, {} fewer", length - 200))
}

/// Returns the accepted spelling of an instant written in another.
fn instant(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(instant) = Timestamp::meant(text) {
        return Some(write(instant.to_string()));
    }
    let (date, time) = text
        .split_once(['T', 't', ' '])
        .unwrap_or((text, "00:00:00"));
    let time = time
        .trim_end_matches(['Z', 'z'])
        .trim_end_matches("UTC")
        .trim();
    let time = if time.len() == 5 {
        format!("{time}:00")
    } else {
        time.to_owned()
    };
    let guess = Timestamp::meant(&format!("{date}T{time}Z"))?;
    Some(format!("write `{guess}`, if the time is UTC"))
}

/// Returns the only number in the text.
fn number(text: &str) -> Option<String> {
    if text.starts_with('-') {
        return None;
    }
    let whole = text
        .strip_suffix(".0")
        .unwrap_or(text)
        .replace(['_', ','], "");
    let mut runs = whole
        .split(|c: char| !c.is_ascii_digit())
        .filter(|run| !run.is_empty());
    let first = runs.next().filter(|run| run.len() <= 20)?;
    (runs.next().is_none() && first != text).then(|| first.to_owned())
}

/// Returns the first and the last line, whatever joins them.
fn lines(text: &str) -> Option<String> {
    let runs: Vec<&str> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|run| !run.is_empty())
        .collect();
    let written = match runs.as_slice() {
        [line] => (*line).to_owned(),
        [first, last] => format!("{first}-{last}"),
        _ => return None,
    };
    LineRange::parse(&written).map(|_| written)
}

/// Returns the id with a hyphen for every character that an id may not contain.
fn id(text: &str) -> Option<String> {
    let admits = |c: char| c.is_ascii_alphanumeric() || "._:@+-".contains(c);
    let id: String = text
        .chars()
        .map(|c| if admits(c) { c } else { '-' })
        .collect();
    MessageId::new(id.trim_matches('-')).ok().map(String::from)
}

/// Returns the name without the usual decorations.
fn agent(text: &str) -> Option<String> {
    let name = text.trim_start_matches('@').trim();
    let name = name
        .strip_prefix("agents/")
        .map_or(name, |rest| rest.trim_end_matches("/inbox"));
    AgentName::new(name)
        .ok()
        .map(String::from)
        .filter(|name| name != text)
}

/// Extracts owner and name from an address.
fn repo(text: &str) -> Option<String> {
    let parts: Vec<&str> = text
        .trim_end_matches('/')
        .trim_end_matches(".git")
        .rsplit(['/', ':'])
        .take(2)
        .collect();
    let [name, owner] = parts.as_slice() else {
        return None;
    };
    Repo::new(format!("{owner}/{name}"))
        .ok()
        .map(String::from)
        .filter(|repo| repo != text)
}

/// Returns the part of a path inside the workspace: from `packets/` on, or after a leading `./`.
fn packet_path(text: &str) -> Option<String> {
    let text = text.replace('\\', "/");
    let path = text
        .find("packets/")
        .map(|at| &text[at..])
        .or_else(|| text.strip_prefix("./"))?;
    PacketPath::new(path).ok().map(String::from)
}

/// Returns the path in the repository.
fn repo_path(text: &str) -> Option<String> {
    let path = text.strip_prefix("./")?;
    RepoPath::new(path).ok().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_suggested_where_the_text_holds_one_and_no_other() {
        for (text, suggested) in [
            ("#86", Some("86")),
            ("3 rounds", Some("3")),
            ("2.0", Some("2")),
            ("1_800", Some("1800")),
            ("86,400 s", Some("86400")),
            // It is correct, so the fault is another one.
            ("86", None),
            ("-3 rounds", None),
            ("2 or 3", None),
            ("two", None),
        ] {
            assert_eq!(number(text).as_deref(), suggested, "{text}");
        }
        // A number that does not fit its type is not repeated.
        let digits = "1".repeat(20);
        assert_eq!(number(&format!("#{digits}")), Some(digits.clone()));
        assert_eq!(number(&format!("#{digits}1")), None);
    }
}
