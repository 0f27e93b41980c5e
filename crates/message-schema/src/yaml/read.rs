//! The only access to the YAML parser: events in, tree out, every limit checked on the way.

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span};

use super::frame::{Frame, Layout};
use super::node::{Content, Field, Node, Scalar, Style, Tail};
use super::{complaint, marks, slip};
use crate::code::Code;
use crate::limit::MESSAGE_BYTES_MAX;
use crate::line::{line_starts, lines};
use crate::malformed::Malformed;
use crate::place::Place;

/// The maximum depth of nested mappings and lists.
pub(crate) const MAX_DEPTH: usize = 32;
/// The maximum number of keys, values, mappings and lists in a document: the cost of a file grows with it, and 256 KiB
/// have room for a hundred thousand.
pub(crate) const MAX_NODES: usize = 10_000;
/// Up to this many keys are compared pairwise; above, they are sorted first.
const FEW_KEYS: usize = 16;

/// Reads the bytes of a whole file.
pub(crate) fn read_bytes(bytes: &[u8]) -> Result<Node, Malformed> {
    read_text(text_of(bytes)?, Frame::FILE)
}

/// Reads a text whose position in its file is `layout`.
pub(crate) fn read_text<'q>(text: &str, layout: impl Into<Layout<'q>>) -> Result<Node, Malformed> {
    read_up_to(MAX_NODES, text, layout.into())
}

/// Reads a file of our own, without a limit on its nodes.
pub(crate) fn read_ours(text: &str) -> Result<Node, Malformed> {
    read_up_to(usize::MAX, text, Frame::FILE.into())
}

fn read_up_to(nodes_max: usize, text: &str, layout: Layout<'_>) -> Result<Node, Malformed> {
    let mut tree = Tree {
        text,
        layout,
        open: Vec::new(),
        root: None,
        nodes_left: nodes_max,
    };
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let mut parser = Parser::new_from_str_with_options(text, options);
    // A `for` would move the parser, which is larger than most messages.
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| tree.syntax(&error))?;
        tree.take(event, &span)?;
    }
    let root = tree.root.ok_or_else(empty)?;
    match root.content {
        Content::Map(_) => Ok(root),
        // `---` and nothing after it.
        Content::Scalar(_) if root.text() == Some("") => Err(empty()),
        Content::List(_) | Content::Scalar(_) => Err(tree_is_no_mapping(&root, text)),
    }
}

fn empty() -> Malformed {
    Malformed::new(Code::Empty, None, "there is nothing in it").cut_off(true)
}

fn text_of(bytes: &[u8]) -> Result<&str, Malformed> {
    if bytes.len() as u64 > MESSAGE_BYTES_MAX {
        return Err(Malformed::new(
            Code::TooLarge,
            None,
            format!("it is larger than {MESSAGE_BYTES_MAX} bytes"),
        )
        .expected("at most 256 KiB"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        Malformed::new(
            Code::NotUtf8,
            Some(end_of(good)),
            "the bytes from here on are not UTF-8",
        )
        .found(format!("byte 0x{:02x}", bytes[error.valid_up_to()]))
        .expected("UTF-8 text")
        .fix(if is_utf_16(bytes) {
            UTF_16
        } else {
            "save the file as UTF-8"
        })
        .cut_off(error.error_len().is_none())
    })?;
    match text.find('\0') {
        Some(at) => Err(Malformed::new(
            Code::NulByte,
            Some(end_of(&text[..at])),
            "there is a NUL character",
        )
        .expected("text without NUL")
        .fix(if is_utf_16(bytes) {
            UTF_16
        } else {
            "remove it"
        })),
        None => Ok(text),
    }
}

const UTF_16: &str = "save the file as UTF-8: it is UTF-16";

/// True if it begins like UTF-16: with its byte order mark, or with an ASCII letter beside a NUL.
fn is_utf_16(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xff, 0xfe, ..]
            | [0xfe, 0xff, ..]
            | [1..0x80, 0, 1..0x80, 0, ..]
            | [0, 1..0x80, 0, 1..0x80, ..]
    )
}

/// Returns the place just after the text.
pub(crate) fn end_of(text: &str) -> Place {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (line, start) = line_starts(text).enumerate().last().unwrap_or_default();
    Frame::FILE.place(small(line), small(text[start..].chars().count()))
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX - 1)
}

fn tree_is_no_mapping(root: &Node, text: &str) -> Malformed {
    // A writer that was interrupted in the first word of a message leaves a lone plain scalar.
    let cut_off = root
        .scalar()
        .is_some_and(|scalar| scalar.style == Style::Plain)
        && !text.ends_with('\n');
    let is_listed_message = root.items().len() == 1 && !root.items()[0].fields().is_empty();
    Malformed::new(
        Code::NotAMapping,
        Some(root.place),
        format!("it is {}, not a mapping", root.kind()),
    )
    .fix(if is_listed_message {
        "write the fields alone, not as an item of a list"
    } else {
        "write one field to a line, its name and a value, as in `round: 1`"
    })
    .cut_off(cut_off)
}

/// Returns the comment that ends where the parser puts a missing item of a list, which is the end of its line.
fn passed_comment<'t>(before: &'t str, rest: &str) -> &'t str {
    if !rest.is_empty() && !rest.starts_with(['\n', '\r']) {
        return "";
    }
    let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    let comment = line.trim_start_matches([' ', '\t', '-']);
    let is_item = line[..line.len() - comment.len()].contains('-');
    if is_item && comment.starts_with('#') {
        comment
    } else {
        ""
    }
}

/// A tree under construction.
struct Tree<'t> {
    text: &'t str,
    layout: Layout<'t>,
    open: Vec<Open>,
    root: Option<Node>,
    nodes_left: usize,
}

enum Open {
    List {
        place: Place,
        items: Vec<Node>,
    },
    Map {
        place: Place,
        fields: Vec<Field>,
        key: Option<(String, Place)>,
    },
}

impl Tree<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Malformed> {
        if event.tag().is_some() {
            return Err(self.feature("a tag", &span.tag_start().unwrap_or(span.start)));
        }
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(..) => match self.root {
                Some(_) => Err(self.second_document(&span.start)),
                None => Ok(()),
            },
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                Err(self.feature("an alias", &span.start))
            }
            Event::Anchor(..) => Err(self.feature("an anchor", &span.start)),
            // The parser writes `~` for a missing value, which is not in the file.
            Event::Scalar(_, ScalarStyle::Plain, _, _) if span.is_empty() => {
                self.scalar(String::new(), ScalarStyle::Plain, span)
            }
            Event::Scalar(text, style, _, _) => self.scalar(text.into_owned(), style, span),
            Event::SequenceStart(..) => self.descend(&span.start, |place| Open::List {
                place,
                items: Vec::new(),
            }),
            Event::MappingStart(..) => self.descend(&span.start, |place| Open::Map {
                place,
                fields: Vec::new(),
                key: None,
            }),
            Event::SequenceEnd | Event::MappingEnd => self.ascend(),
            // The parser may gain events; none of them can be part of a message we know.
            _ => Err(self.feature("an unknown construct", &span.start)),
        }
    }

    fn place(&self, marker: &Marker) -> Place {
        self.layout
            .place(small(marker.line().saturating_sub(1)), small(marker.col()))
    }

    /// Counts a node that begins here.
    fn count(&mut self, place: Place) -> Result<(), Malformed> {
        if self.nodes_left == 0 {
            let what = format!("there are more than {MAX_NODES} keys and values");
            return Err(Malformed::new(Code::TooLarge, Some(place), what)
                .expected(format!(
                    "at most {MAX_NODES} keys, values, mappings and lists"
                ))
                .fix("shorten it, or put a long text into one value"));
        }
        self.nodes_left -= 1;
        Ok(())
    }

    fn scalar(&mut self, text: String, style: ScalarStyle, span: &Span) -> Result<(), Malformed> {
        let place = self.place(&span.start);
        self.count(place)?;
        if let Some(Open::Map {
            key: key @ None, ..
        }) = self.open.last_mut()
        {
            *key = Some((text, place));
            return Ok(());
        }
        let (style, frame) = match style {
            ScalarStyle::Plain => (Style::Plain, Frame::Whole(place)),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                (Style::Quoted, Frame::Whole(place))
            }
            ScalarStyle::Folded => (Style::Folded, Frame::Whole(place)),
            ScalarStyle::Literal => (Style::Literal, self.block_frame(&text, span)),
        };
        let tail = if style == Style::Plain {
            self.tail(span).map(Box::new)
        } else {
            None
        };
        self.put(Node {
            place,
            content: Content::Scalar(Scalar {
                text,
                style,
                tail,
                frame,
            }),
        })
    }

    /// Returns a comment that begins without a blank after a plain scalar of that span.
    fn tail(&self, span: &Span) -> Option<Tail> {
        let (before, rest) = self.text.split_at_checked(span.end.byte_offset()?)?;
        let passed = if span.is_empty() {
            passed_comment(before, rest)
        } else {
            ""
        };
        let column = span.end.col() - passed.chars().count();
        let rest = &self.text[before.len() - passed.len()..];
        // The parser puts a missing value at its colon.
        let comment = rest.trim_start_matches([' ', '\t', ':']);
        let blanks = rest.len() - comment.len();
        let is_glued = comment
            .strip_prefix('#')?
            .starts_with(|c: char| !c.is_whitespace() && !matches!(c, '#' | '!'));
        is_glued.then(|| Tail {
            place: self.layout.place(
                small(span.end.line().saturating_sub(1)),
                small(column + blanks),
            ),
            text: lines(comment)
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
        })
    }

    /// The parser's span of a literal block begins at its first non-blank line; the blank lines before it are part of
    /// the text, so that line is not line 0.
    fn block_frame(&self, text: &str, span: &Span) -> Frame {
        let blank_lines = text.bytes().take_while(|b| *b == b'\n').count();
        let first = span
            .start
            .line()
            .saturating_sub(1)
            .saturating_sub(blank_lines);
        self.layout.inner(
            small(first),
            small(span.indent.unwrap_or_default()),
            self.place(&span.start),
        )
    }

    fn descend(&mut self, at: &Marker, open: impl FnOnce(Place) -> Open) -> Result<(), Malformed> {
        let place = self.place(at);
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(place));
        }
        self.count(place)?;
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err(self.feature("a list or mapping as a key", at));
        }
        self.open.push(open(place));
        Ok(())
    }

    fn ascend(&mut self) -> Result<(), Malformed> {
        let node = match self.open.pop() {
            Some(Open::List { place, items }) => Node {
                place,
                content: Content::List(items),
            },
            Some(Open::Map { place, fields, .. }) => {
                refuse_duplicates(&fields)?;
                Node {
                    place,
                    content: Content::Map(fields),
                }
            }
            None => return Ok(()),
        };
        self.put(node)
    }

    fn put(&mut self, node: Node) -> Result<(), Malformed> {
        match self.open.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { fields, key, .. }) => {
                if let Some((key, key_place)) = key.take() {
                    fields.push(Field {
                        key,
                        key_place,
                        value: node,
                    });
                }
            }
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn feature(&self, what: &str, at: &Marker) -> Malformed {
        let line = lines(self.text)
            .nth(at.line().saturating_sub(1))
            .filter(|_| !self.layout.is_whole());
        let malformed = Malformed::new(
            Code::YamlFeature,
            Some(self.place(at)),
            format!("there is {what}"),
        )
        .expected("plain mappings, lists and scalars");
        malformed.fix(match line.and_then(slip::in_quotes) {
            Some(written) => format!("write the value out, or, if it is a text, `{written}`"),
            None => {
                "write the value out, and quote a text that begins with one of & * ! %".to_owned()
            }
        })
    }

    fn second_document(&self, at: &Marker) -> Malformed {
        let malformed = Malformed::new(
            Code::SeveralDocuments,
            Some(self.place(at)),
            "a second document begins here",
        )
        .expected("one document in a file");
        // The lines after `---`: another message, the text after a front matter, or nothing.
        let mut behind = lines(self.text)
            .skip(at.line())
            .filter(|line| !line.trim().is_empty());
        malformed.fix(match behind.next() {
            None => "remove the `---`",
            Some(_) if !matches!(self.layout, Layout::Frame(Frame::FILE)) => "remove the `---`",
            Some(line) if marks::key_of(line).is_some() => "write one file per message",
            Some(_) => {
                "move the text after the `---` into `body: |`, indented below it, or remove it"
            }
        })
    }

    fn syntax(&self, error: &ScanError) -> Malformed {
        let place = self.place(error.marker());
        let kind = error.kind();
        if *kind == ErrorKind::RecursionLimitExceeded {
            return too_deep(place);
        }
        if *kind == ErrorKind::DirectiveDisallowed {
            return self.feature("a directive", error.marker());
        }
        let malformed = Malformed::new(Code::YamlSyntax, Some(place), kind.to_string())
            .expected("well-formed YAML")
            .cut_off(self.is_at_end(error));
        match (self.slip(error), complaint::advice(kind)) {
            (Some(slip), _) => self.with_slip(slip, malformed),
            (None, Some(fix)) => malformed.fix(fix),
            (None, None) => malformed,
        }
    }

    /// Returns the slip behind the parser's error. A text whose line breaks are gone has no lines to look at.
    fn slip(&self, error: &ScanError) -> Option<slip::Slip> {
        if self.layout.is_whole() {
            return None;
        }
        let at = error.marker();
        slip::named(
            self.text,
            at.line().saturating_sub(1),
            at.col(),
            error.kind(),
        )
    }

    /// Returns the error with the slip's words and place.
    fn with_slip(&self, slip: slip::Slip, malformed: Malformed) -> Malformed {
        let place = self.layout.place(small(slip.line), small(slip.column));
        let line = if self.layout.keeps_lines() {
            place.line
        } else {
            small(slip.line) + 1
        };
        let letters = lines(self.text).nth(slip.line).unwrap_or_default().trim();
        let malformed = Malformed {
            place: Some(place),
            message: slip.message,
            ..malformed
        };
        let margin = match self.layout.keeps_lines() {
            true => {
                self.layout
                    .place(small(slip.line), small(slip.margin))
                    .column
                    - 1
            }
            false => small(slip.margin),
        };
        let fix = slip
            .fix
            .replace("{line}", &line.to_string())
            .replace("{margin}", &marks::spaces(margin));
        malformed.found(letters).fix(fix)
    }

    /// True if the error is that the text ends: the parser reports it after the last letter or on the last line, or it
    /// is about something that was opened and never closed.
    fn is_at_end(&self, error: &ScanError) -> bool {
        let last_line = lines(self.text.trim_end()).count();
        error.marker().line() >= last_line || complaint::ends_open(error.kind())
    }
}

fn too_deep(place: Place) -> Malformed {
    Malformed::new(
        Code::TooDeep,
        Some(place),
        format!("nesting is deeper than {MAX_DEPTH}"),
    )
    .expected(format!("at most {MAX_DEPTH} levels"))
}

/// Finds the first key that occurs a second time, without comparing all pairs of a long mapping.
fn refuse_duplicates(fields: &[Field]) -> Result<(), Malformed> {
    let repeated = if fields.len() <= FEW_KEYS {
        (1..fields.len()).find(|&i| {
            fields[..i]
                .iter()
                .any(|earlier| earlier.key == fields[i].key)
        })
    } else {
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_unstable_by(|&a, &b| fields[a].key.cmp(&fields[b].key).then(a.cmp(&b)));
        order
            .windows(2)
            .filter(|w| fields[w[0]].key == fields[w[1]].key)
            .map(|w| w[1])
            .min()
    };
    match repeated.map(|i| &fields[i]) {
        Some(field) => Err(Malformed::new(
            Code::DuplicateKey,
            Some(field.key_place),
            format!("the key `{}` appears twice", shown(&field.key)),
        )
        .found(field.key.clone())
        .expected("each key once")
        .fix("remove one of the two")),
        None => Ok(()),
    }
}

/// Returns the key as it may be shown on one line.
fn shown(key: &str) -> String {
    key.chars().take(80).flat_map(char::escape_debug).collect()
}
