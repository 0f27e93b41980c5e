//! The reader's promises: places are exact, limits hold, text stays unchanged, interrupted files are recognized.

use proptest::prelude::*;

use super::node::{Content, Node};
use super::read::{MAX_DEPTH, MAX_NODES, read_bytes, read_text};
use crate::code::Code;
use crate::limit::MESSAGE_BYTES_MAX;
use crate::place::Place;

/// Returns the place of a text that occurs once, counted from the characters of the file.
fn place_of(file: &str, needle: &str) -> Place {
    let at = file.find(needle).expect("the needle is there");
    assert_eq!(file.rfind(needle), Some(at), "{needle} is not unique");
    let before = &file[..at];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count();
    Place {
        line: u32::try_from(line).expect("small") + 1,
        column: u32::try_from(column).expect("small") + 1,
    }
}

/// One block of `k<i>: v<i>` lines as it may be written.
#[derive(Clone, Debug)]
struct Block {
    indent: usize,
    header: &'static str,
    says_indent: bool,
    comment: bool,
    leading_blank: usize,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
enum Line {
    Field(&'static str),
    Blank,
    Spaces,
    Comment,
}

fn block() -> impl Strategy<Value = Block> {
    let line = prop_oneof![
        4 => prop::sample::select(vec!["", "plain", "gro\u{df}e W\u{f6}rter", "\u{1f600} \u{4e2d}", "a # b", "x\u{301}"])
            .prop_map(Line::Field),
        1 => Just(Line::Blank),
        1 => Just(Line::Spaces),
        1 => Just(Line::Comment),
    ];
    (
        1..=6usize,
        prop::sample::select(vec!["|", "|-", "|+"]),
        any::<bool>(),
        any::<bool>(),
        0..3usize,
        prop::collection::vec(line, 1..8),
    )
        .prop_map(
            |(indent, header, says_indent, comment, leading_blank, lines)| Block {
                indent,
                header,
                says_indent,
                comment,
                leading_blank,
                lines,
            },
        )
}

/// Writes the block with a margin; every field gets a key and a value that occur only once.
fn write(block: &Block, margin: usize, mark: &str, out: &mut String) {
    out.push_str(block.header);
    if block.says_indent {
        out.push_str(&block.indent.to_string());
    }
    if block.comment {
        out.push_str("  # a remark: \u{e9}");
    }
    out.push('\n');
    out.push_str(&"\n".repeat(block.leading_blank));
    let pad = " ".repeat(margin + block.indent);
    out.push_str(&format!("{pad}{mark}first: {mark}begin\n"));
    for (i, line) in block.lines.iter().enumerate() {
        match line {
            Line::Field(text) => out.push_str(&format!("{pad}{mark}k{i}: '{mark}v{i} {text}'\n")),
            Line::Blank => out.push('\n'),
            Line::Spaces => out.push_str(&format!("{pad}   \n")),
            Line::Comment => out.push_str(&format!("{pad}# nothing\n")),
        }
    }
}

fn assert_places(mapping: &Node, file: &str) {
    for field in mapping.fields() {
        if !field.key.contains("nested") && !field.key.contains("last") {
            assert_eq!(
                field.key_place,
                place_of(file, &format!("{}:", field.key)),
                "key {}",
                field.key
            );
            let value = field.value.text().expect("a scalar");
            let quote = if value.contains("begin") { "" } else { "'" };
            assert_eq!(
                field.value.place,
                place_of(file, &format!("{quote}{value}")),
                "value {value}"
            );
        }
    }
}

/// Returns the character as JSON escapes it.
fn in_escapes(c: char) -> String {
    c.encode_utf16(&mut [0; 2])
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

fn literal(mapping: &Node, key: &str) -> Node {
    let scalar = mapping
        .field(key)
        .and_then(|field| field.value.scalar())
        .expect("a literal");
    read_text(&scalar.text, scalar.frame).expect("YAML inside")
}

/// Returns the number of random files: 600, or half of `SETTLED_BLOCKS` for the long form, because each holds two
/// blocks.
fn cases() -> u32 {
    let asked = option_env!("SETTLED_BLOCKS").and_then(|blocks| blocks.parse::<u32>().ok());
    asked.map_or(600, |blocks| blocks / 2)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn places_inside_literal_blocks_are_those_of_the_file(outer in block(), inner in block(), crlf: bool, bom: bool) {
        let mut nested = String::new();
        write(&outer, 0, "o", &mut nested);
        let pad = " ".repeat(outer.indent);
        nested.push_str(&format!("{pad}nested: "));
        write(&inner, outer.indent, "i", &mut nested);
        nested.push_str(&format!("{pad}olast: x\n"));
        let file = format!("before: \u{e9}\u{e9}\nbody: {nested}after: y\n");
        let file = if crlf { file.replace('\n', "\r\n") } else { file };
        let bytes = if bom { format!("\u{feff}{file}") } else { file.clone() };

        let root = read_bytes(bytes.as_bytes()).expect("readable");
        let body = literal(&root, "body");
        assert_places(&body, &file);
        let nested = literal(&body, "nested");
        prop_assert!(nested.fields().len() > inner.lines.iter().filter(|l| matches!(l, Line::Field(_))).count());
        assert_places(&nested, &file);
    }

    #[test]
    fn places_inside_quoted_bodies_and_flow_mappings_are_those_of_the_file(
        values in prop::collection::vec(prop::sample::select(vec!["x", "gro\u{df}e", "\u{1f600} b", "it's", "a \\ b", "\"q\""]), 1..6),
        flow: bool, single: bool, ascii: bool, lead in 0..3usize,
    ) {
        let text = |(i, value): (usize, &&str)| format!("k{i}: \u{3c}v{i} {value}");
        let fields: Vec<String> = values.iter().enumerate().map(text).map(|t| t.replace('"', "")).collect();
        let inner = if flow { format!("{{{}}}\n", fields.join(", ")) } else { fields.join("\n") + "\n" };
        let json = serde_json::to_string(&inner).expect("JSON");
        let written = match (single && flow, ascii) {
            (true, _) => format!("'{}'", inner.trim_end().replace('\'', "''")),
            (false, true) => json.chars().map(|c| if c.is_ascii() { c.to_string() } else { in_escapes(c) }).collect(),
            (false, false) => json,
        };
        let file = format!("{}type: review_lgtm\nbody: {written}\nafter: y\n", "# \u{e9}\n".repeat(lead));
        let message = crate::message::parse(file.as_bytes()).expect("readable");
        let crate::message::ReadBody::Mapping(body) = message.read_body() else { panic!("{message:?}") };
        prop_assert_eq!(body.fields().len(), values.len());
        for (i, field) in body.fields().iter().enumerate() {
            prop_assert_eq!(field.key_place, place_of(&file, &format!("k{i}:")), "{}", file);
            prop_assert_eq!(field.value.place, place_of(&file, &format!("\u{3c}v{i}")), "{}", file);
        }
    }

    #[test]
    fn no_input_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_bytes(&bytes);
    }

    #[test]
    fn no_yaml_like_input_makes_the_reader_panic(text in "[-a:b \n\\[\\]{}|>&*!%#?,'\"~\t0-9\u{e9}]{0,80}") {
        let _ = read_bytes(text.as_bytes());
    }

    #[test]
    fn values_are_those_of_the_reference_reader(text in "([a-c]: ?[a-z0-9 |>'\"-]{0,12}\n( {1,3}[a-d:-]{1,6}\n)?){1,4}") {
        let ours = read_bytes(text.as_bytes());
        let theirs = serde_yaml::from_str::<serde_yaml::Value>(&text);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert!(same(&ours, &theirs), "{text:?}: {ours:?} is not {theirs:?}");
        }
    }
}

/// True if both trees hold the same texts; the other reader types plain scalars, ours never does.
fn same(ours: &Node, theirs: &serde_yaml::Value) -> bool {
    use serde_yaml::Value;
    match (&ours.content, theirs) {
        (Content::Scalar(scalar), Value::String(text)) => scalar.text == *text,
        (Content::Scalar(scalar), Value::Null) => ["", "~", "null"].contains(&scalar.text.as_str()),
        (Content::Scalar(_), Value::Bool(_) | Value::Number(_)) => true,
        (Content::List(items), Value::Sequence(others)) => {
            items.len() == others.len() && items.iter().zip(others).all(|(a, b)| same(a, b))
        }
        (Content::Map(fields), Value::Mapping(others)) => {
            fields.len() == others.len()
                && fields
                    .iter()
                    .zip(others)
                    .all(|(a, (_, b))| same(&a.value, b))
        }
        (Content::Scalar(_) | Content::List(_) | Content::Map(_), _) => false,
    }
}

fn code_of(text: &str) -> (Code, Option<Place>) {
    let malformed = read_bytes(text.as_bytes()).expect_err("refused");
    (malformed.code, malformed.place)
}

fn at(line: u32, column: u32) -> Option<Place> {
    Some(Place { line, column })
}

#[test]
fn what_yaml_offers_beyond_plain_trees_is_refused_where_it_stands() {
    assert_eq!(code_of("a: 1\nb: &x 2\n"), (Code::YamlFeature, at(2, 4)));
    assert_eq!(code_of("a: 1\nb: *x\n"), (Code::YamlFeature, at(2, 4)));
    assert_eq!(code_of("a: &x {b: *x}\n"), (Code::YamlFeature, at(1, 4)));
    assert_eq!(code_of("a: !!str 2\n"), (Code::YamlFeature, at(1, 4)));
    assert_eq!(code_of("a: ! 2\n"), (Code::YamlFeature, at(1, 4)));
    assert_eq!(
        code_of("%YAML 1.2\n---\na: 1\n"),
        (Code::YamlFeature, at(1, 1))
    );
    assert_eq!(code_of("? [a, b]\n: 1\n").0, Code::YamlFeature);
    assert_eq!(code_of("? {a: b}\n: 1\n").0, Code::YamlFeature);
    assert_eq!(
        code_of("a: 1\n---\nb: 2\n"),
        (Code::SeveralDocuments, at(2, 1))
    );
    assert_eq!(
        code_of("a: 1\nb: 2\n\u{20}\na: 3\n"),
        (Code::DuplicateKey, at(4, 1))
    );
    assert_eq!(code_of("\u{feff}a: &x 1\n"), (Code::YamlFeature, at(1, 4)));
    assert_eq!(
        code_of("a: {b: 1, c: 2, 'b': 3}\n"),
        (Code::DuplicateKey, at(1, 17))
    );
    assert_eq!(code_of("- a\n"), (Code::NotAMapping, at(1, 1)));
    assert_eq!(code_of("# only a remark\n"), (Code::Empty, None));
    assert_eq!(code_of("\u{feff}"), (Code::Empty, None));
    assert_eq!(code_of("a: 1\nb: \"\0\"\n"), (Code::NulByte, at(2, 5)));
    assert_eq!(code_of("a: b: c\n").0, Code::YamlSyntax);
}

#[test]
fn plain_yaml_and_json_are_read() {
    for good in [
        "a: 1\n",
        "---\na: 1\n...\n",
        "{\"a\": [1, {\"b\": null}]}",
        "\u{feff}a: 1\n",
        "a: 1 # x\n",
        "<<: 1\n",
    ] {
        assert!(read_bytes(good.as_bytes()).is_ok(), "{good:?} was refused");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_refused_at_their_place() {
    let malformed = read_bytes(b"a: 1\nb: \xc3\xa9\xff\n").expect_err("refused");
    assert_eq!((malformed.code, malformed.place), (Code::NotUtf8, at(2, 5)));
    assert!(!malformed.looks_cut_off());
    assert!(
        read_bytes(b"a: 1\nb: \xc3")
            .expect_err("refused")
            .looks_cut_off()
    );
}

#[test]
fn a_file_may_have_256_kib_and_not_a_byte_more() {
    let file = |len: usize| format!("a: {}", "x".repeat(len - 3));
    let largest = usize::try_from(MESSAGE_BYTES_MAX).expect("a quarter of a MiB");
    assert!(read_bytes(file(largest).as_bytes()).is_ok());
    assert_eq!(code_of(&file(largest + 1)).0, Code::TooLarge);
}

#[test]
fn a_document_may_have_ten_thousand_keys_and_values_and_not_one_more() {
    // The mapping, a key, and the list.
    let list = |count: usize| format!("a: [{}]", "1,".repeat(count));
    assert!(read_bytes(list(MAX_NODES - 3).as_bytes()).is_ok());
    assert_eq!(code_of(&list(MAX_NODES - 2)).0, Code::TooLarge);
    let lists = |count: usize| format!("a: [{}]", "[],".repeat(count));
    assert!(read_bytes(lists(MAX_NODES - 3).as_bytes()).is_ok());
    assert_eq!(code_of(&lists(MAX_NODES - 2)).0, Code::TooLarge);
}

#[test]
fn nesting_is_refused_one_level_past_the_limit() {
    let flow = |depth: usize| format!("a: {}x{}", "[".repeat(depth), "]".repeat(depth));
    // The document's own mapping is the first level.
    assert!(read_bytes(flow(MAX_DEPTH - 1).as_bytes()).is_ok());
    assert_eq!(code_of(&flow(MAX_DEPTH)).0, Code::TooDeep);
    let block = |depth: usize| {
        (0..depth)
            .map(|i| format!("{}a:\n", " ".repeat(i)))
            .collect::<String>()
    };
    assert!(read_bytes(block(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(code_of(&block(MAX_DEPTH + 1)).0, Code::TooDeep);
    for bomb in ["[", "{", "- ", "{a: ", "[{a: "] {
        assert_eq!(
            code_of(&format!("a:\n  {}", bomb.repeat(40_000))).0,
            Code::TooDeep,
            "{bomb:?}"
        );
    }
}

#[test]
fn a_duplicate_is_found_among_thousands_of_keys() {
    let mut file: String = (0..4_000).map(|i| format!("k{i}: v\n")).collect();
    assert!(read_bytes(file.as_bytes()).is_ok());
    file.push_str("k77: v\nk5: v\n");
    assert_eq!(code_of(&file), (Code::DuplicateKey, at(4_001, 1)));
}

#[test]
fn every_proper_prefix_of_a_message_is_readable_or_looks_cut_off() {
    let files = [
        include_str!("../../../../packets/valid/review_request.yaml"),
        include_str!("../../../../packets/valid/review_addressed.yaml"),
        include_str!("../../../../packets/findings/20260213_review_loop_codex_r1.yaml"),
        "{\"id\": \"a\", \"to\": [\"b\", \"c\"], \"body\": \"x\\ny\", \"pr\": {\"a\": \"gro\u{df}\"}}",
        "{\n  \"id\": \"a\",\n  \"to\": [\n    \"b\"\n  ],\n  \"pr\": {\n    \"a\": 1\n  }\n}\n",
        "a: \"one\n  two\n\n  three\"\nb: 'one\n  two'\nc: one\n  two\nd: [one,\n  two, {e:\n  f}]\n",
        "a: 'it''s'\nb: >\n  folded\n  text\nc:\n- d: e\n  f: g\n-\n  h: i\n",
    ];
    for file in files {
        for end in 0..file.len() {
            if let Err(malformed) = read_bytes(&file.as_bytes()[..end]) {
                let shown = String::from_utf8_lossy(&file.as_bytes()[..end]);
                assert!(malformed.looks_cut_off(), "{malformed:?} after {shown:?}");
            }
        }
    }
}

#[test]
fn a_mistake_in_the_middle_does_not_look_cut_off() {
    for text in [
        "a: b: c\nd: e\nf: g\n",
        "a: 1\n\tb: 2\nc: 3\nd: 4\n",
        "- a\n- b\n",
        "a: &x 1\nb: 2\n",
        "a: ]\nb: c\nd: e\n",
    ] {
        let malformed = read_bytes(text.as_bytes()).expect_err("refused");
        assert!(!malformed.looks_cut_off(), "{malformed:?} of {text:?}");
    }
}

#[test]
fn a_carriage_return_alone_ends_a_line_in_every_place_that_is_told() {
    let told = |bytes: &[u8]| {
        let malformed = crate::parse(bytes).expect_err("refused");
        (
            malformed.code,
            malformed.place.map(|place| (place.line, place.column)),
            malformed.message,
        )
    };
    assert_eq!(told(b"id: a\r\rfrom: \0").1, Some((3, 7)));
    assert_eq!(told(b"id: a\r\rfrom: \xff").1, Some((3, 7)));
    assert_eq!(told("id: a\rfrom: \u{85}".as_bytes()).1, Some((2, 7)));
    let slip = told(b"id: a\r\rsubject: a: b\nbody: c\n");
    assert_eq!(
        (slip.1, slip.2.as_str()),
        (
            Some((3, 11)),
            "the value of `subject` holds a colon, but no quotes"
        )
    );
    let slip = told(b"{\"id\": \"a\",\r \"to\": \"b\" // why\r}");
    assert_eq!(
        (slip.1, slip.2.as_str()),
        (Some((2, 12)), "the JSON contains a comment")
    );
}

#[test]
fn a_letter_that_is_no_escape_cannot_turn_the_line_it_is_told_in() {
    let malformed = crate::parse("subject: \"a\\\u{202e}b\"\n".as_bytes()).expect_err("refused");
    assert_eq!(
        malformed.place,
        Some(Place {
            line: 1,
            column: 12
        })
    );
    assert_eq!(
        malformed.message,
        "`\\\\u{202e}` is not an escape sequence, and in double quotes a backslash starts one"
    );
}
