//! The most frequent slips of YAML writers, recognized in the raw text after the parser has failed: it reports what it
//! took a tab or a fence for; we name the tab and the fence.
//!
//! Nothing here runs on a text that can be parsed. Lines and columns are 0-based and count in the text.

use granit_parser::ErrorKind;

use super::marks::{self, field_of, is_field};
use crate::id::AgentName;
use crate::line::{self, is_strange_space, is_typographic_quote};

/// The longest part of a line that a fix repeats, in characters.
const REPEATED_MAX: usize = 100;

/// A named slip.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slip {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
    /// The indentation that should come before the line's first letter, in columns of the text.
    pub(super) margin: usize,
    /// The fix; `{line}` is replaced by the line's number in the file, `{margin}` by the spaces.
    pub(super) fix: String,
}

/// Names the slip behind an error at that line and column; `None` for an unknown slip.
pub(super) fn named(text: &str, line: usize, column: usize, kind: &ErrorKind) -> Option<Slip> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = line::lines(text).take(line + 2).collect();
    let stop = line.min(lines.len().saturating_sub(1));
    if let Some(slip) = escape(&lines, stop, kind).or_else(|| control(stop, column, kind)) {
        return Some(slip);
    }
    if is_json(text) {
        return json_remark(&lines, stop).or_else(|| json_comma(&lines, stop));
    }
    fence(&lines)
        .or_else(|| open_quotes(&lines, stop, kind))
        .or_else(|| closed_quotes(&lines, stop))
        .or_else(|| open_bracket(&lines, stop, kind))
        .or_else(|| strange_indent(&lines, stop))
        .or_else(|| no_blank(&lines, stop))
        .or_else(|| no_field(&lines))
        .or_else(|| further_or_less(&lines, stop, column))
        .or_else(|| bare_value(lines.get(stop)?, stop, kind))
}

/// Returns the field with its value in double quotes, for a text value that looks like something else.
pub(super) fn in_quotes(line: &str) -> Option<String> {
    let field = field_of(line).filter(|field| !field.value.is_empty())?;
    let value = serde_json::Value::from(unquoted(field.value).trim_matches(is_typographic_quote));
    let written = format!("{}: {value}", field.key);
    (written.chars().count() <= REPEATED_MAX).then_some(written)
}

/// A backslash in double quotes that begins no escape, as in `"C:\dir"`.
fn escape(lines: &[&str], stop: usize, kind: &ErrorKind) -> Option<Slip> {
    if *kind != ErrorKind::UnknownQuotedScalarEscape {
        return None;
    }
    let text = lines.get(stop)?;
    let mut chars = text
        .chars()
        .enumerate()
        .skip_while(|(_, c)| *c != '"')
        .peekable();
    while let Some((column, c)) = chars.next() {
        let Some((_, letter)) = chars.next_if(|_| c == '\\') else {
            continue;
        };
        if "0abt\tnvfre \"/\\N_LPxuU".contains(letter) {
            continue;
        }
        let letter = line::escaped(&letter.to_string());
        let fix = match letter.as_str() {
            "'" => "write `'` alone: in double quotes it needs no backslash".to_owned(),
            _ => format!(
                "write `\\\\{letter}`, or put the text in single quotes, where a backslash is a letter"
            ),
        };
        let message = format!(
            "`\\{letter}` is not an escape sequence, and in double quotes a backslash starts one"
        );
        return Some(Slip {
            line: stop,
            column,
            margin: 0,
            message,
            fix,
        });
    }
    None
}

/// A raw control character.
fn control(line: usize, column: usize, kind: &ErrorKind) -> Option<Slip> {
    let ErrorKind::UnexpectedCharacter { character } = kind else {
        return None;
    };
    let number = u32::from(*character);
    character.is_control().then(|| Slip {
        line,
        column,
        margin: 0,
        message: format!("there is the control character U+{number:04X}"),
        fix: "remove it".to_owned(),
    })
}

/// Returns the text of `'it's'`, whose quotes were meant to hold all of it: a letter directly follows the closing
/// quote.
fn unquoted(value: &str) -> &str {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let is_glued = marks::end_of_quotes(value)
        .is_some_and(|end| value[end..].starts_with(|c: char| c.is_alphanumeric()));
    inner.filter(|_| is_glued).unwrap_or(value)
}

/// A Markdown fence around the message: above its first field, or after its last.
fn fence(lines: &[&str]) -> Option<Slip> {
    let at = lines
        .iter()
        .position(|line| line.starts_with("```") || line.starts_with("~~~"))?;
    let is_above = !lines[..at].iter().any(|line| marks::key_of(line).is_some());
    let (message, fix) = match (is_above, at) {
        (true, 0) => (
            "a Markdown fence surrounds the fields",
            "remove line {line}, and the closing fence with all that follows",
        ),
        (true, _) => (
            "a Markdown fence surrounds the fields",
            "remove line {line} with all above it, and the closing fence with all that follows",
        ),
        (false, _) => (
            "a Markdown fence ends here",
            "remove line {line} with all that follows",
        ),
    };
    Some(Slip {
        line: at,
        column: 0,
        margin: 0,
        message: message.to_owned(),
        fix: fix.to_owned(),
    })
}

/// True if the text begins like JSON, perhaps behind a comment.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let remark = text
        .strip_prefix("/*")
        .and_then(|rest| rest.split_once("*/"));
    let text = remark.map_or(text, |(_, rest)| rest.trim_start());
    text.starts_with(['{', '['])
}

/// A JavaScript comment in a text that begins like JSON.
fn json_remark(lines: &[&str], stop: usize) -> Option<Slip> {
    let (mut in_string, mut is_escaped) = (false, false);
    for (line, text) in lines.iter().enumerate().take(stop + 1) {
        let mut before = ' ';
        for (column, c) in text.chars().enumerate() {
            if !in_string && before == '/' && (c == '/' || c == '*') {
                return Some(Slip {
                    line,
                    column: column - 1,
                    margin: 0,
                    message: "the JSON contains a comment".to_owned(),
                    fix: "remove it: JSON has no comments".to_owned(),
                });
            }
            in_string ^= c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            before = c;
        }
    }
    None
}

/// A line of JSON without the comma that the next one needs.
fn json_comma(lines: &[&str], stop: usize) -> Option<Slip> {
    lines
        .get(stop)
        .filter(|line| line.trim_start().starts_with('"'))?;
    let (line, above) = lines[..stop]
        .iter()
        .enumerate()
        .rev()
        .find(|(_, line)| !line.trim().is_empty())?;
    let above = above.trim_end();
    (!above.ends_with([',', '{', '[', ':'])).then(|| Slip {
        line,
        column: above.chars().count(),
        margin: 0,
        message: "a comma is missing".to_owned(),
        fix: "write a comma at the end of line {line}".to_owned(),
    })
}

/// A bracket that is opened after a key and not closed on that line, when the parser looks for the end of a list.
fn open_bracket(lines: &[&str], stop: usize, kind: &ErrorKind) -> Option<Slip> {
    let is_about_brackets = matches!(
        kind,
        ErrorKind::InvalidColonPlacement
            | ErrorKind::ExpectedFlowMappingSeparator
            | ErrorKind::ExpectedFlowSequenceSeparator
            | ErrorKind::UnclosedFlowCollection { .. }
            | ErrorKind::UnexpectedEofFlowSequence
            | ErrorKind::UnexpectedEofFlowMapping
            | ErrorKind::InvalidFlowScalarIndent
    );
    lines
        .iter()
        .enumerate()
        .take(stop + 1)
        .rev()
        .filter(|_| is_about_brackets)
        .find_map(|(line, text)| {
            let field = field_of(text)?;
            let close = match field.value.chars().next()? {
                '[' => ']',
                '{' => '}',
                _ => return None,
            };
            let key = field.key;
            (!field.value.contains(close)).then(|| Slip {
                line,
                column: field.column_of_value,
                margin: 0,
                message: format!("the bracket that opens here behind `{key}:` is not closed"),
                fix: format!(
                    "close it with `{close}`, or put the text behind `{key}:` in double quotes"
                ),
            })
        })
}

/// Quotes that are opened after a key and not closed on that line: the last ones before the parser stopped.
fn open_quotes(lines: &[&str], stop: usize, kind: &ErrorKind) -> Option<Slip> {
    if !matches!(
        kind,
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent
    ) {
        return None;
    }
    lines
        .iter()
        .enumerate()
        .take(stop + 1)
        .rev()
        .find_map(|(line, text)| {
            let field = field_of(text)?;
            let quote = field
                .value
                .chars()
                .next()
                .filter(|c| matches!(c, '"' | '\''))?;
            let key = field.key;
            marks::end_of_quotes(field.value).is_none().then(|| Slip {
                line,
                column: field.column_of_value,
                margin: 0,
                message: format!("the quotes that open here after `{key}:` are not closed"),
                fix: format!(
                    "close them with `{quote}`; a text of several lines begins with `{key}: |`"
                ),
            })
        })
}

/// Text behind quotes that are opened on a line above and closed on this one. Nothing on the lines of a quoted text is
/// a field, whatever it looks like.
fn closed_quotes(lines: &[&str], stop: usize) -> Option<Slip> {
    // Joined once: each of thousands of lines can open quotes.
    let text = lines.get(..=stop)?.join("\n");
    let mut start = text.len() - lines[stop].len();
    (0..stop).rev().find_map(|line| {
        start -= lines[line].len() + 1;
        let field = field_of(lines[line])?;
        let in_quotes = match field.value.chars().next()? {
            '"' => "\\\"",
            '\'' => "''",
            _ => return None,
        };
        let (value, _) = lines[line].char_indices().nth(field.column_of_value)?;
        let quoted = &text[start + value..];
        let (inside, behind) = quoted.split_at(marks::end_of_quotes(quoted)?);
        let last = inside.rsplit('\n').next()?;
        let is_next = |c: char| matches!(c, ',' | ']' | '}' | '#');
        let has_text = !behind.trim().is_empty() && !behind.trim_start().starts_with(is_next);
        (inside.matches('\n').count() == stop - line && has_text).then(|| Slip {
            line: stop,
            column: last.chars().count(),
            margin: 0,
            message: format!("text follows the closing quote of `{}`", field.key),
            fix: format!(
                "write `{in_quotes}` for a quote in the text, or put the text on the lines below `{}: |`",
                field.key
            ),
        })
    })
}

/// A tab, or a space that YAML does not accept, in the indentation of the line or one of its neighbours.
fn strange_indent(lines: &[&str], stop: usize) -> Option<Slip> {
    [Some(stop), stop.checked_sub(1), Some(stop + 1)]
        .into_iter()
        .flatten()
        .find_map(|line| {
            let text = lines.get(line)?;
            let margin = text
                .chars()
                .take_while(|c| c.is_whitespace() || is_strange_space(*c));
            let (column, found) = margin
                .enumerate()
                .find(|(_, c)| *c == '\t' || is_strange_space(*c))?;
            let name = marks::name_of_space(found);
            Some(Slip {
                line,
                column,
                margin: 0,
                message: format!("the line is indented with a {name}"),
                fix: format!("replace the {name} at the start of line {{line}} by spaces"),
            })
        })
}

/// `subject:Review`: without a blank the colon is an ordinary letter.
fn no_blank(lines: &[&str], stop: usize) -> Option<Slip> {
    let near = lines
        .iter()
        .enumerate()
        .take(stop + 1)
        .skip(stop.saturating_sub(1));
    near.rev().find_map(|(line, text)| {
        let (key, value) = text.split_once(':')?;
        let indent = key.len() - key.trim_start_matches(' ').len();
        let is_name = key
            .trim_start()
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'_')
            && key.trim() != "";
        let is_glued = value.starts_with(|c: char| !c.is_whitespace() && c != '/' && c != ':');
        (is_name && is_glued && !is_field(text)).then(|| Slip {
            line,
            column: indent + key.trim_start().len(),
            margin: 0,
            message: format!("a space is missing after `{}:`", key.trim()),
            fix: format!(
                "write `{}`",
                line::cut(&format!("{}: {value}", key.trim()), REPEATED_MAX)
            ),
        })
    })
}

/// An unindented line that is no field: prose around the message, or a body that is not indented.
fn no_field(lines: &[&str]) -> Option<Slip> {
    let is_stranger = |line: &&str| {
        let is_mark = |c: char| c.is_whitespace() || "#-}]?:%&*!\"'|>@".contains(c);
        !line.is_empty()
            && !line.starts_with(is_mark)
            && !line.starts_with("...")
            && !is_field(line)
    };
    let line = lines.iter().position(is_stranger)?;
    let above = lines[..line]
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty());
    let opened = above
        .and_then(|above| field_of(above))
        .filter(|field| field.indent == 0 && field.opens_block());
    let (message, fix) = match (opened, above) {
        (Some(field), _) => (
            format!("the text of `{}` is not indented", field.key),
            format!(
                "write `{}: |` and indent its lines, from line {{line}} on, by 2 spaces",
                field.key
            ),
        ),
        (None, None) => (
            "there is prose above the fields".to_owned(),
            "remove line {line}".to_owned(),
        ),
        (None, Some(_)) => (
            "the line is not a field: there is prose among the fields".to_owned(),
            "remove line {line}, or indent it like the lines above if it belongs to them"
                .to_owned(),
        ),
    };
    Some(Slip {
        line,
        column: 0,
        margin: 0,
        message,
        fix,
    })
}

/// A field or an item that is indented more than the one above it, or less than the lines of its block.
fn further_or_less(lines: &[&str], stop: usize, column: usize) -> Option<Slip> {
    let text = lines.get(stop)?;
    let (indent, field) = (marks::indent(text), field_of(text));
    let name = match &field {
        Some(field) => format!("`{}`", field.key),
        None if text.trim_start().starts_with("- ") => "the item".to_owned(),
        None => return None,
    };
    // Further right on the line the parser failed at something else.
    if field.is_some_and(|field| column >= field.column_of_value) {
        return None;
    }
    let above = lines[..stop]
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty() && !line.starts_with('#'))?;
    let margin = marks::indent(above);
    let is_closed = field_of(above).is_some_and(|above| !above.opens_block());
    let slip = |how: &str, fix: &str| Slip {
        line: stop,
        column: indent,
        margin,
        message: format!("{name} is indented {how}"),
        fix: fix.to_owned(),
    };
    if indent > margin && is_closed {
        return Some(slip(
            "further than the field above it",
            "begin line {line} with {margin}",
        ));
    }
    (0 < indent && indent < margin).then(|| {
        slip(
            "less than the lines above it",
            "begin line {line} with {margin}, like them",
        )
    })
}

/// A value without quotes that YAML takes for more than a text.
fn bare_value(text: &str, line: usize, kind: &ErrorKind) -> Option<Slip> {
    let field = field_of(text)?;
    let (key, first) = (field.key, field.value.chars().next()?);
    let is_colon = matches!(
        kind,
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement
    );
    let colon = field
        .value
        .find(": ")
        .or_else(|| field.value.strip_suffix(':').map(str::len));
    let (at, message) = match (first, colon) {
        (quote, _) if is_typographic_quote(quote) => (
            0,
            format!("the value of `{key}` is in typographic quotes, which are letters to YAML"),
        ),
        ('"' | '\'', _) => {
            let end = marks::end_of_quotes(field.value).filter(|end| *end < field.value.len())?;
            (end, format!("text follows the closing quote of `{key}`"))
        }
        ('|' | '>', _) => {
            let rest = field.value[1..].trim_start_matches(|c: char| "+-0123456789".contains(c));
            if rest.trim().is_empty() || rest.trim_start().starts_with('#') {
                return None;
            }
            (0, format!("there is text after the `{first}` of `{key}`"))
        }
        (_, Some(colon)) if is_colon => (
            colon,
            format!("the value of `{key}` holds a colon, but no quotes"),
        ),
        // A complete list or mapping is what it looks like; the fault is elsewhere.
        ('[', _) if field.value.trim_end().ends_with(']') => return None,
        ('{', _) if field.value.trim_end().ends_with('}') => return None,
        ('`', _) => (
            0,
            format!("the value of `{key}` begins with a backtick, which means something to YAML"),
        ),
        ('@' | '%' | '[' | '{' | '?' | '-' | ']' | '}' | ',', _) => (
            0,
            format!("the value of `{key}` begins with `{first}`, which means something to YAML"),
        ),
        (_, _) => return None,
    };
    let fix = match (first, in_quotes(text)) {
        ('|' | '>', Some(written)) if key == "subject" => format!("write `{written}`"),
        ('|' | '>', _) => {
            format!("write the text on the lines below `{key}: {first}`, indented by 2 spaces")
        }
        ('@', _) if matches!(key, "to" | "from") => {
            match AgentName::new(field.value.trim_start_matches('@')) {
                Ok(name) => format!("write `{key}: {name}`"),
                Err(_) => format!("write the name of an agent after `{key}:`"),
            }
        }
        (_, Some(written)) => format!("write `{written}`"),
        (_, None) => format!("put the text behind `{key}:` in double quotes"),
    };
    let column = field.column_of_value + field.value[..at].chars().count();
    Some(Slip {
        line,
        column,
        margin: 0,
        message,
        fix,
    })
}
