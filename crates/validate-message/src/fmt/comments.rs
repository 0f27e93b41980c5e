//! The comments of a message and the fields they belong to: text outside of names and values that begins with `#`.

use std::ops::Range;

use message_schema::Place;
use message_schema::yaml::{Field, Node, Style};

use crate::lines::Lines;

/// The comments, each with its `#`.
pub(super) struct Comments {
    /// The comments above the first field, which stay at the top of the file.
    pub(super) head: Vec<String>,
    /// For each field, the comments on lines of their own between the field before it and its value's end.
    pub(super) above: Vec<Vec<String>>,
    /// For each field, the comment at the end of its first line.
    pub(super) behind: Vec<Option<String>>,
    /// The comments below the last field.
    pub(super) tail: Vec<String>,
}

impl Comments {
    /// Finds the comments of a text without carriage returns, whose tree is given.
    pub(super) fn of(text: &str, root: &Node) -> Self {
        let fields = root.fields();
        let mut comments = Self {
            head: Vec::new(),
            above: vec![Vec::new(); fields.len()],
            behind: vec![None; fields.len()],
            tail: Vec::new(),
        };
        let tokens = Tokens {
            text,
            lines: Lines::of(text),
        };
        let mut taken = Vec::new();
        let mut ends = Vec::with_capacity(fields.len());
        for field in fields {
            taken.push(tokens.key(field));
            tokens.values(&field.value, field.key_place, &mut taken);
            ends.push(taken.last().map_or(0, |range| range.end));
        }
        taken.sort_by_key(|range| range.start);
        let starts: Vec<usize> = fields.iter().map(|field| tokens.key(field).start).collect();
        for at in comment_starts(text, &taken) {
            let comment = text[at..]
                .lines()
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned();
            let has_own_line = text[..at]
                .rsplit('\n')
                .next()
                .is_some_and(|before| before.trim().is_empty());
            comments.put(comment, at, has_own_line, &starts, &ends);
        }
        comments
    }

    fn put(
        &mut self,
        comment: String,
        at: usize,
        has_own_line: bool,
        starts: &[usize],
        ends: &[usize],
    ) {
        let Some(before) = starts.partition_point(|start| *start < at).checked_sub(1) else {
            self.head.push(comment);
            return;
        };
        match (has_own_line, self.behind[before].is_none()) {
            (false, true) => self.behind[before] = Some(comment),
            (false, false) => self.above[before].push(comment),
            (true, _) if at < ends[before] => self.above[before].push(comment),
            (true, _) => match self.above.get_mut(before + 1) {
                Some(above) => above.push(comment),
                None => self.tail.push(comment),
            },
        }
    }
}

/// Returns the byte offset of each comment outside of these sorted ranges.
fn comment_starts(text: &str, taken: &[Range<usize>]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut taken = taken.iter().peekable();
    let mut at = 0;
    while let Some(next) = text[at..].find('#').map(|found| at + found) {
        while taken.next_if(|range| range.end <= next).is_some() {}
        match taken.peek().filter(|range| range.start <= next) {
            Some(range) => at = range.end,
            None => {
                starts.push(next);
                at = text[next..].find('\n').map_or(text.len(), |end| next + end);
            }
        }
    }
    starts
}

/// A text and its lines, in which names and values are located.
struct Tokens<'t> {
    text: &'t str,
    lines: Lines<'t>,
}

impl Tokens<'_> {
    fn key(&self, field: &Field) -> Range<usize> {
        self.plain_or_absent(&field.key, field.key_place)
    }

    fn values(&self, node: &Node, key: Place, into: &mut Vec<Range<usize>>) {
        if let Some(scalar) = node.scalar() {
            into.push(match scalar.style {
                Style::Plain => self.plain_or_absent(&scalar.text, node.place),
                Style::Quoted => self.flow(&scalar.text, node.place),
                Style::Literal | Style::Folded => self.block(node.place, key),
            });
        }
        node.items()
            .iter()
            .for_each(|item| self.values(item, key, into));
        for field in node.fields() {
            into.push(self.key(field));
            self.values(&field.value, field.key_place, into);
        }
    }

    fn at(&self, place: Place) -> usize {
        self.lines.offset(place).unwrap_or(self.text.len())
    }

    /// Locates a key or a plain text; a missing value is empty.
    fn plain_or_absent(&self, value: &str, place: Place) -> Range<usize> {
        if value.is_empty() {
            let start = self.at(place);
            return start..start;
        }
        self.flow(value, place)
    }

    /// Locates a plain or quoted text, which may span several lines.
    fn flow(&self, value: &str, place: Place) -> Range<usize> {
        let start = self.at(place);
        let rest = &self.text[start..];
        let length = match rest.chars().next() {
            None => 0,
            Some(quote @ ('"' | '\'')) => closing(rest, quote),
            Some(_) => plain(rest, value),
        };
        start..start + length
    }

    /// Locates a literal or folded block, from its first non-blank line.
    fn block(&self, place: Place, key: Place) -> Range<usize> {
        let start = self.at(place);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let header = self.text[self.at(key)..line_start]
            .lines()
            .next()
            .unwrap_or_default();
        let indicator = header.rsplit(['|', '>']).next().and_then(|header| {
            header
                .trim_start_matches(['+', '-'])
                .chars()
                .next()
                .and_then(|c| c.to_digit(10))
        });
        let indent = match indicator {
            Some(columns) => usize::try_from(key.column + columns - 1).unwrap_or_default(),
            None => start - line_start,
        };
        let mut end = line_start;
        for line in self.text[line_start..].split_inclusive('\n') {
            let margin = line.len() - line.trim_start_matches(' ').len();
            if margin < indent && !line.trim().is_empty() {
                break;
            }
            end += line.len();
        }
        start..end.max(start)
    }
}

/// Returns the length of a quoted text in bytes, its quotes included.
fn closing(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote == '"' {
            characters.next();
        } else if c == quote
            && (quote == '"' || characters.next_if(|(_, next)| *next == quote).is_none())
        {
            return at + quote.len_utf8();
        }
    }
    rest.len()
}

/// Returns the length in bytes of a plain text: its letters, with any white space between them.
fn plain(rest: &str, letters: &str) -> usize {
    let mut wanted = letters.chars().filter(|c| !c.is_whitespace()).peekable();
    for (at, c) in rest.char_indices() {
        if wanted.peek().is_none() {
            return at;
        }
        if !c.is_whitespace() {
            wanted.next();
        }
    }
    rest.len()
}
