//! Tests what the schemas say about each field, for reports, fixes and drafts: a table of all of them, beside this file.

use message_schema::Schema;
use message_schema::schema::{Shape, Step};
use message_schema::yaml::Node;

use crate::assert_page;

/// Adds a line for the position at `path`, and the lines of what is below it.
fn add(path: &str, shape: &Shape, mark: &str, table: &mut String) {
    let kinds = [
        ("one line", shape.is_one_line()),
        ("prose", shape.is_prose()),
        ("integer", shape.is_integer()),
        ("boolean", shape.is_boolean()),
        ("instant", shape.is_instant()),
        ("scalar", shape.is_scalar()),
        ("free", shape.is_free()),
        ("list", shape.items().is_some()),
    ];
    let kinds = kinds.iter().filter(|(_, is_so)| *is_so);
    let kinds: Vec<&str> = kinds.map(|(kind, _)| *kind).collect();
    *table += &format!("{path}{mark} ({})\n", kinds.join(", "));
    *table += &format!("    expected: {}\n", shape.expected());
    if !shape.words().is_empty() {
        *table += &format!("    words: {}\n", shape.words().join(" "));
    }
    if let Some(example) = shape.example() {
        *table += &format!("    example: {example}\n");
    }
    for name in shape.names() {
        let (below, is_required) = shape.field(name).expect("a field of this name");
        let mark = if is_required { "!" } else { "" };
        add(&format!("{path}.{name}"), below, mark, table);
    }
    if let Some(items) = shape.items() {
        add(&format!("{path}[]"), items, "", table);
    }
}

#[test]
fn every_field_is_told_with_its_kind_its_values_and_an_example() {
    let mut table = String::new();
    for schema in Schema::ALL {
        add(schema.name(), schema.shape(), "", &mut table);
    }
    assert_page("shapes.txt", &table, include_str!("shapes.txt"));
}

#[test]
fn a_value_is_told_by_its_kind_and_null_is_a_plain_word() {
    let text = "list: [a]\nnone: []\nmap: {a: b}\nempty:\nnull: null\ntilde: ~\nNull: Null\nNULL: NULL\nquoted: 'null'\nword: ' x '\n";
    let root: Node = message_schema::parse_packet(text.as_bytes()).expect("readable");
    for (name, kind, is_null, optional) in [
        ("list", "a list", false, None),
        ("none", "an empty list", false, None),
        ("map", "a mapping", false, None),
        ("empty", "a text", false, None),
        ("null", "a text", true, None),
        ("tilde", "a text", true, None),
        ("Null", "a text", true, Some("Null")),
        ("NULL", "a text", true, Some("NULL")),
        ("quoted", "a text", false, Some("null")),
        ("word", "a text", false, Some("x")),
        ("absent", "", false, None),
    ] {
        assert_eq!(root.optional_text(name), optional, "{name}");
        let Some(field) = root.field(name) else {
            continue;
        };
        assert_eq!(field.value.kind(), kind, "{name}");
        assert_eq!(field.value.is_null(), is_null, "{name}");
    }
    let (key, first) = (|key: &str| Step::Key(key.to_owned()), Step::Index(0));
    for (path, text) in [
        (vec![key("list"), first.clone()], Some("a")),
        (vec![key("map"), key("a")], Some("b")),
        (vec![key("none"), first.clone()], None),
        (vec![key("map"), first], None),
        (vec![key("absent")], None),
    ] {
        assert_eq!(root.at(&path).and_then(Node::text), text, "{path:?}");
    }
}
