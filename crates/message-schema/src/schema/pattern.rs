//! The patterns of our schemas. Nearly all are a sequence of character classes with repetition counts: those are
//! compared character by character. Paths are compared part by part, and only the others need a regular expression.

use std::sync::OnceLock;

use regex_lite::Regex;

use crate::id::stays_below;

/// A part of a path in a schema: neither empty nor `.` nor `..`, and without control characters.
const PART: &str = r"([^/.\u0000-\u001f\u007f-\u009f]|\.[^/.\u0000-\u001f\u007f-\u009f]|\.\.[^/\u0000-\u001f\u007f-\u009f])[^/\u0000-\u001f\u007f-\u009f]*";

/// A pattern, compiled.
#[derive(Debug)]
pub(super) enum Pattern {
    /// These runs from beginning to end, and nothing else.
    Row(Vec<Run>),
    /// A path. One packet can name hundreds of paths, and a regular expression is slower.
    Path,
    /// Anything else. A program that never meets such a value never compiles it.
    Other {
        source: String,
        compiled: OnceLock<Regex>,
    },
}

/// A class of characters with a repetition count.
#[derive(Debug)]
pub(super) struct Run {
    class: Class,
    least: usize,
    most: usize,
}

#[derive(Debug)]
struct Class {
    ranges: Vec<(char, char)>,
    is_negated: bool,
    /// A bit for each ASCII character of its ranges: a text has few others.
    ascii: u128,
}

impl Pattern {
    /// Compiles a pattern of ours.
    pub(super) fn of(source: &str) -> Self {
        match row(source) {
            Some(runs) if needs_no_way_back(&runs) => Self::Row(runs),
            None if source == format!("^{PART}(/{PART})*$") => Self::Path,
            Some(_) | None => Self::Other {
                source: source.to_owned(),
                compiled: OnceLock::new(),
            },
        }
    }

    /// Returns whether it fits the text.
    ///
    /// # Panics
    ///
    /// If it is no regular expression.
    pub(super) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Row(runs) => {
                let mut rest = text.chars();
                runs.iter().all(|run| run.take(&mut rest)) && rest.next().is_none()
            }
            Self::Path => stays_below(text),
            Self::Other { source, compiled } => compiled
                .get_or_init(|| {
                    Regex::new(source).expect("a pattern of ours is a regular expression")
                })
                .is_match(text),
        }
    }
}

impl Run {
    /// Consumes as many matching characters as it may; false if there are too few.
    fn take(&self, rest: &mut std::str::Chars<'_>) -> bool {
        let mut taken = 0;
        while taken < self.most {
            let before = rest.clone();
            match rest.next() {
                Some(c) if self.class.has(c) => taken += 1,
                Some(_) | None => {
                    *rest = before;
                    break;
                }
            }
        }
        taken >= self.least
    }
}

impl Class {
    fn of(ranges: Vec<(char, char)>, is_negated: bool) -> Self {
        let ascii = ranges.iter().filter(|(first, _)| first.is_ascii());
        let bits = |&(first, last): &(char, char)| {
            (u128::MAX << u32::from(first)) & (u128::MAX >> (127 - u32::from(last).min(127)))
        };
        Self {
            ascii: ascii.map(bits).fold(0, |all, bits| all | bits),
            ranges,
            is_negated,
        }
    }

    fn has(&self, c: char) -> bool {
        let is_in_range = if c.is_ascii() {
            (self.ascii >> u32::from(c)) & 1 == 1
        } else {
            self.ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&c))
        };
        is_in_range != self.is_negated
    }
}

/// True if matching greedily is always right: only the last run may have an open length, so nothing has to be given back.
fn needs_no_way_back(runs: &[Run]) -> bool {
    let mut before_last = runs.iter().rev().skip(1);
    before_last.all(|run| run.least == run.most)
}

/// Parses a pattern that is a sequence of classes; `None` if it is more than that.
fn row(source: &str) -> Option<Vec<Run>> {
    let inner = source.strip_prefix('^')?.strip_suffix('$')?;
    let mut rest = inner.chars();
    let mut runs = Vec::new();
    let of_one = |c: char| Class::of(vec![(c, c)], false);
    while let Some(c) = rest.next() {
        let class = match c {
            '[' => class(&mut rest)?,
            '\\' => of_one(escaped(&mut rest)?),
            '(' | ')' | '|' | '.' | '?' | '*' | '+' | '{' | '}' | ']' | '^' | '$' => return None,
            c => of_one(c),
        };
        let (least, most) = times(&mut rest)?;
        runs.push(Run { class, least, most });
    }
    Some(runs)
}

/// Parses a class up to its end.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Class> {
    let is_negated = rest.as_str().starts_with('^');
    if is_negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next()? {
            ']' => return Some(Class::of(ranges, is_negated)),
            '\\' => escaped(rest)?,
            // Nested sets, and POSIX classes.
            '[' | '&' | '~' => return None,
            c => c,
        };
        let mut ahead = rest.clone();
        let last = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(']')) => first,
            (Some('-'), Some(c)) => {
                *rest = ahead;
                if c == '\\' { escaped(rest)? } else { c }
            }
            _ => first,
        };
        ranges.push((first, last));
    }
}

/// Parses the text after a backslash, if it is a character's number; the rows of our schemas escape nothing else.
fn escaped(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let number = rest.as_str().strip_prefix('u')?;
    let (digits, behind) = number.split_at_checked(4)?;
    *rest = behind.chars();
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// Parses a repetition: `+`, `*`, `{3}`, `{0,63}`, or once.
fn times(rest: &mut std::str::Chars<'_>) -> Option<(usize, usize)> {
    let text = rest.as_str();
    match text.chars().next() {
        Some('+') => {
            rest.next();
            Some((1, usize::MAX))
        }
        Some('*') => {
            rest.next();
            Some((0, usize::MAX))
        }
        Some('{') => {
            let (inner, behind) = text[1..].split_once('}')?;
            *rest = behind.chars();
            let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
            Some((least.parse().ok()?, most.parse().ok()?))
        }
        Some('?') => None,
        Some(_) | None => Some((1, 1)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::Schema;

    fn patterns_in(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                if let Some(Value::String(pattern)) = fields.get("pattern") {
                    found.push(pattern.clone());
                }
                fields.values().for_each(|value| patterns_in(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| patterns_in(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn patterns() -> Vec<String> {
        let mut found = Vec::new();
        for schema in Schema::ALL {
            let document = serde_json::from_str(schema.source()).expect("JSON");
            patterns_in(&document, &mut found);
        }
        found.sort();
        found.dedup();
        found
    }

    /// Returns texts that fit some pattern, and variants with one character more, fewer or different.
    fn texts() -> Vec<String> {
        let right = [
            "",
            "a",
            "abc1234",
            "claude",
            "a.b_c-d",
            "2026-02-13T10:00:00Z",
            "86",
            "src/a.rs",
            "../.a/..b/.",
            "conv-20260213-a-b-1",
            "10 - 20",
            "p@x:1+y",
            "two words",
            "größe",
        ];
        let mut texts: Vec<String> = right.map(str::to_owned).into();
        texts.push(format!("sha256:{}", "0f".repeat(32)));
        texts.extend([63, 64, 65, 200, 201].map(|length| "a".repeat(length)));
        texts.extend([20, 21, 64, 65].map(|length| "7".repeat(length)));
        let strange = "\n\t \u{0}\u{7f}\u{9f}\u{202e}\u{2066}ZzFg9/.-_:+é[]";
        for text in texts.clone() {
            // The middle of a long text repeats one character.
            let places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            let is_near_an_end = |at: &usize| *at < 24 || *at + 3 > text.len();
            for at in places.filter(is_near_an_end) {
                for c in strange.chars() {
                    let (before, behind) = text.split_at(at);
                    texts.push(format!("{before}{c}{behind}"));
                    let mut others = behind.chars();
                    others.next();
                    texts.push(format!("{before}{c}{}", others.as_str()));
                    texts.push(format!("{before}{}", others.as_str()));
                }
            }
        }
        texts.sort();
        texts.dedup();
        texts
    }

    #[test]
    fn a_pattern_says_what_the_regular_expression_says() {
        let texts = texts();
        for source in patterns() {
            let (ours, regex) = (Pattern::of(&source), Regex::new(&source).expect("one"));
            for text in &texts {
                assert_eq!(
                    ours.is_match(text),
                    regex.is_match(text),
                    "{source} of {text:?}"
                );
            }
        }
    }

    #[test]
    fn a_pattern_is_a_row_or_a_path_unless_it_has_a_choice_or_a_way_back() {
        let is_row = |source: &str| matches!(Pattern::of(source), Pattern::Row(_));
        for source in patterns() {
            let has_way_back = source.contains('(') || source.starts_with("^conv-");
            assert_eq!(is_row(&source), !has_way_back, "{source}");
            let is_path = matches!(Pattern::of(&source), Pattern::Path);
            assert_eq!(is_path, source.contains("(/"), "{source}");
        }
        for source in [
            "^(a|b)$",
            "^a?$",
            "^[a-z]+a$",
            "^[a-z]*-?$",
            "a$",
            "^.$",
            "^[^a]+b$",
            "^[0-9]+b$",
        ] {
            assert!(!is_row(source), "{source}");
        }
    }
}
