//! Tests the reader's whole output for a text: a page for each form of slip that YAML writers make and some that have no
//! name, and a page of other files, readable or not.

use message_schema::line::escaped;
use message_schema::yaml::{Content, Node, Style};
use message_schema::{Malformed, Message, ReadBody, parse};

use crate::assert_page;

#[test]
fn every_slip_is_named_at_its_place_and_with_its_fix() {
    let table = include_str!("slips.txt");
    let mut told = Vec::new();
    for case in table.split("====\n") {
        let (text, _) = case
            .split_once("----\n")
            .expect("a text and what it is told");
        let Err(malformed) = parse(text.as_bytes()) else {
            panic!("no slip: {text}");
        };
        told.push(format!("{text}----\n{}", refusal(&malformed)));
    }
    assert_page("slips.txt", &told.join("====\n"), table);
}

/// Files whose bytes a page of plain text cannot hold, or that are readable.
const FILES: &[&[u8]] = &[
    // Nothing, or hardly anything.
    b"",
    b"---\n",
    b"''\n",
    b"abc",
    b"abc\n",
    b"'abc'",
    b"- a\n",
    b"- a",
    b"- a: b\n",
    b"- a: b\n- c: d\n",
    b"- []\n",
    b"[]\n",
    // Other encodings.
    b"\xff\xfei\0d\0",
    b"\xfe\xff\0i\0d",
    b"\xfe\xff",
    b"\xffid: a",
    b"i\0d\0:\0",
    b"\0i\0d\0:",
    b"i\0d: a",
    b"\0id: a",
    b"\xef\xbb\xbfid: \xc3",
    b"\xef\xbb\xbfid: a\n  to: b\n",
    b"\xef\xbb\xbfid: a\n\0",
    // What YAML offers beyond plain trees.
    b"id: a\nto: *b\n",
    b"id: a\nto: &b c\n",
    b"id: a\nto: !b c\n",
    b"id: a\nto: !!str\n",
    b"id: a\nto:\n- *b\n",
    b"id: *a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v w x y z a b c\n",
    b"%YAML 1.2\n---\nid: a\n",
    b"? [a, b]\n: c\n",
    // Keys.
    b"a: 1\nb: 2\na: 3\nb: 4\n",
    b"\"a\\tb\": 1\n\"a\\tb\": 2\n",
    b"a: 1\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\nh: 1\ni: 1\nj: 1\nk: 1\nl: 1\nm: 1\nn: 1\no: 1\np: 1\np: 2\na: 2\n",
    // Several documents.
    b"id: a\n---\n",
    b"id: a\n---\n\n \n",
    b"id: a\n---\nid: b\n",
    b"id: a\n---\n\nPlease review.\n",
    // A text cut off, and not.
    b"id: a\nto: [b, c",
    b"id: a\nto: [b, c\nfrom: d\nsubject: e\n",
    b"id: a\nto: b: c\n\n",
    b"id: a\nto: b: c\nfrom: d\n",
    b"id: \"a\nfrom: d\n",
    // Tabs and spaces that are none.
    b"id: a\n\tto: b\n",
    b"id: a\nbody:\n  pr: 1\n\tbranch: b\n",
    b"id: a\n\xc2\xa0to: b\n",
    b"id: a\n \xe2\x80\x83to: b\n",
    b"id: \x01\n",
    b"id: a\nto: \x7f\n",
    b"id: a\nto: \x9b\n",
    // Line ends.
    b"id: a\r\nto: b\rfrom: c\n\n\rbody: d: e\rx: y\n",
    b"id: a\nsubject: b\xe2\x80\xa8c\n",
    // Styles, and comments that may be lost parts of a text.
    b"a: x #12\nb: x # 12\nc: x ##12\nd: x #!\ne: 'x' #12\nf:   #12 and more  \ng:\n- #12\n- y  #13\nh: z#14\ni: \"q\"\nj: >\n  f\n   g\nk: |\n  l\nl: ~\n",
    b"a:\n- b\nc:\n- #1\nd:\n  - #2\n  -   #3\n",
    b"a:\n- - #1\n- b: #2\n-\n  #3\n- c\n- #\xc3\xbc 4",
    b"a: {b: [c, 'd'], e: }\nf:\n  - g: h\n    i: j\n",
    // Bodies in a block, in quotes, and on one line, with places in the file.
    b"type: review_request\nbody: |\n\n\n  pr: 86 #12\n  nested: |\n\n    a: b\n  branch: x\n",
    b"type: Review-Request\nbody: |2\n    pr: 86\n    branch: x\n",
    b"type: review lgtm\nbody: {pr: 86, branch: 'x'}\n",
    b"type: review_lgtm\nbody: {}\n",
    b"type: review_lgtm\nbody: [a]\n",
    b"type: review_lgtm\nbody: ' '\n",
    b"type: review_lgtm\n",
    b"type: question\nbody: |\n  pr: 86\n",
    b"type: reviews\nbody: |\n  pr: 86\n",
    b"type: review_lgtm\nbody: \"pr: 86\\nbranch: '\\u00fcb' # \\U0001f600 \\x41\\n\\ud83d\\ude00x: {y: z}\\r\\nq: r\\rs: t\\n\"\n",
    b"type: review_lgtm\nbody: '{pr: ''86'', branch: x, ''y'': z}'\n",
    b"type: review_lgtm\nbody: \"pr: 86\n  branch: x\"\n",
    b"type: review_lgtm\nbody: \"pr:\\t86\"\n",
    b"type: review_lgtm\nbody: >\n  pr: 86\n\n  branch: x\n",
    b"type: review_lgtm\nbody: pr 86\n",
    // Bodies that are no mapping.
    b"type: review_lgtm\nbody: |\n  pr: 86\n   branch: x\n",
    b"type: review_lgtm\nbody: |\n  - pr: 86\n",
    b"type: review_lgtm\nbody: |\n  pr: 86\n  ---\n  branch: x\n",
    b"type: review_lgtm\nbody: |\n  pr: 86\n  branch: *x\n",
    b"type: review_lgtm\nbody: |\n  pr: 86\n  branch: `x`\n",
    b"type: review_lgtm\nbody: |\n  pr: 86\n  branch: x: y\n\nto: b\n",
    b"type: review_lgtm\nbody: \"pr: 86\\n branch: x\\n\"\n",
    b"type: review_lgtm\nbody: \"pr: 86\\nbranch: *x\\n\"\n",
    b"type: review_lgtm\nbody: \"pr: 86\\nbranch: x: y\\nz: a\\n\"\n",
    b"type: review_lgtm\nbody: >\n  pr: 86\n\n   branch: x\n",
    b"type: review_lgtm\nbody: >\n  pr: *x\n",
    b"type: review_lgtm\nbody: 'pr: *x'\n",
    b"type: review_lgtm\nbody: \"pr: 86\\n\\tx: y\\n\"\n",
    b"type: review_lgtm\nbody: \"pr: |\\n  a\\n b: c\\n\"\n",
];

#[test]
fn a_file_is_read_or_refused_with_every_place_in_it() {
    let told: Vec<String> = FILES.iter().map(|file| told(file)).collect();
    assert_page("files.txt", &told.join("====\n"), include_str!("files.txt"));
}

/// Returns the file, and what it says or why it is refused.
fn told(file: &[u8]) -> String {
    let lines = file.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(|line| format!("{}\n", line.escape_ascii()));
    let mut told: String = lines.collect();
    told = told.replace("\\'", "'").replace("\\\"", "\"");
    told += "----\n";
    match parse(file) {
        Ok(message) => told += &read(&message),
        Err(malformed) => told += &refusal(&malformed),
    }
    told
}

fn refusal(malformed: &Malformed) -> String {
    let place = malformed.place.map(|place| format!("{place} "));
    let mut told = place.unwrap_or_default();
    told += &format!("{}: {malformed}\n", malformed.code);
    let found = malformed.found.iter().map(|text| ("found", text));
    let fix = malformed.fix.iter().map(|text| ("fix", text));
    for (part, text) in found.chain([("expected", &malformed.expected)]).chain(fix) {
        told += &format!("{part}: {}\n", escaped(text));
    }
    if malformed.looks_cut_off() {
        told += "perhaps cut off\n";
    }
    told
}

fn read(message: &Message) -> String {
    let mut told = String::new();
    add(message.root(), "", &mut told);
    if let Some(meant) = message.meant().filter(|_| message.kind().is_none()) {
        told += &format!("type perhaps {meant}\n");
    }
    match message.read_body() {
        ReadBody::Unread => {}
        ReadBody::Mapping(body) => {
            told += "body:\n";
            add(body, "  ", &mut told);
        }
        ReadBody::Malformed(malformed) => told += &format!("body {}", refusal(malformed)),
    }
    told
}

/// Adds a line for each value of the tree, with its place.
fn add(node: &Node, margin: &str, told: &mut String) {
    *told += &format!("{margin}{} ", node.place);
    match &node.content {
        Content::Scalar(scalar) => {
            let style = match scalar.style {
                Style::Plain => "plain",
                Style::Quoted => "quoted",
                Style::Literal => "literal",
                Style::Folded => "folded",
            };
            *told += &format!("{style} {:?}", scalar.text);
            if let Some(tail) = &scalar.tail {
                *told += &format!(", and perhaps {} {:?}", tail.place, tail.text);
            }
            *told += "\n";
        }
        Content::List(items) => {
            *told += &format!("{}\n", node.kind());
            for item in items {
                add(item, &format!("{margin}- "), told);
            }
        }
        Content::Map(fields) => {
            *told += "mapping\n";
            for field in fields {
                let below = format!("{margin}{} {}: ", field.key_place, field.key);
                add(&field.value, &below, told);
            }
        }
    }
}
