//! Messages that are expensive to parse: YAML's own constructs, as deep, as many and as long as allowed.

/// The largest accepted file, in bytes.
pub const SIZE_MAX: usize = 256 * 1024;

/// The deepest accepted nesting.
const DEPTH_MAX: usize = 32;

/// Returns all of them, by name.
pub(super) fn all() -> Vec<(&'static str, Vec<u8>)> {
    let text = |name, text: String| (name, fitted(text).into_bytes());
    let mut all = vec![
        text("flow lists in each other", "[".repeat(SIZE_MAX)),
        text("flow mappings in each other", "{a: ".repeat(SIZE_MAX / 4)),
        text("block lists in each other", "- ".repeat(SIZE_MAX / 2)),
        text("explicit keys in each other", "? ".repeat(SIZE_MAX / 2)),
        text(
            "block mappings in each other",
            (0..700).map(|depth| " ".repeat(depth) + "a:\n").collect(),
        ),
        text("closing brackets", "a: ".to_owned() + &"]".repeat(SIZE_MAX)),
        text(
            "brackets that open and close",
            "a: [".to_owned() + &"[],".repeat(SIZE_MAX / 3 - 9) + "]",
        ),
        text("as deep as allowed, again and again", at_depth()),
        text("an alias bomb", alias_bomb()),
        text(
            "anchors on every item",
            "a:\n".to_owned() + &"- &a a\n".repeat(SIZE_MAX / 7 - 1),
        ),
        text("as many keys as fit", keys(SIZE_MAX / 6)),
        text(
            "as many keys as fit, in one line",
            format!("{{{}}}", keys(SIZE_MAX / 6).replace('\n', ",")),
        ),
        text("one key again and again", "a: b\n".repeat(SIZE_MAX / 5)),
        text("keys that are almost ours", slips()),
        text(
            "long keys",
            (0..240).map(|n| format!("{n:0>1020}: a\n")).collect(),
        ),
        text(
            "one long key",
            "? ".to_owned() + &"k".repeat(SIZE_MAX - 8) + "\n: a",
        ),
        text(
            "one long plain scalar",
            "id: ".to_owned() + &"x".repeat(SIZE_MAX - 5),
        ),
        text(
            "one long plain scalar of many lines",
            "id: ".to_owned() + &"x\n ".repeat(SIZE_MAX / 3 - 2),
        ),
        text(
            "quoted escapes",
            format!("id: \"{}\"", "\\u202e".repeat(SIZE_MAX / 6 - 2)),
        ),
        text(
            "quoted quotes",
            format!("id: '{}'", "''".repeat(SIZE_MAX / 2 - 4)),
        ),
        text(
            "a folded block of short lines",
            "id: >\n".to_owned() + &" a\n\n".repeat(SIZE_MAX / 4 - 2),
        ),
        text(
            "a literal block of blank lines",
            "body: |\n".to_owned() + &"\n".repeat(SIZE_MAX - 20) + "  a",
        ),
        text("comments only", "# a\n".repeat(SIZE_MAX / 4)),
        text(
            "comments between all lines",
            "a: [\n".to_owned() + &"#\n1,\n".repeat(SIZE_MAX / 5 - 2) + "]",
        ),
        text("empty lines only", "\n".repeat(SIZE_MAX)),
        text("spaces only", " ".repeat(SIZE_MAX)),
        text("tabs only", "\t".repeat(SIZE_MAX)),
        text("carriage returns only", "a: b\r".repeat(SIZE_MAX / 5)),
        text(
            "an empty list item a line",
            "a:\n".to_owned() + &"-\n".repeat(SIZE_MAX / 2 - 2),
        ),
        text(
            "numbers in one line",
            "a: [".to_owned() + &"1,".repeat(SIZE_MAX / 2 - 4) + "]",
        ),
        text("tags", "a: ".to_owned() + &"!a ".repeat(SIZE_MAX / 3 - 2)),
        text("documents", "---\na\n".repeat(SIZE_MAX / 6)),
        text(
            "a quote that never closes",
            "a: \"".to_owned() + &"b ".repeat(SIZE_MAX / 2 - 4),
        ),
        text(
            "a syntax error at the end",
            keys(SIZE_MAX / 6 - 4) + "b: [\n",
        ),
        text(
            "four-byte characters",
            "id: ".to_owned() + &"\u{1f600}".repeat(SIZE_MAX / 4 - 2),
        ),
        text("byte order marks", "\u{feff}".repeat(SIZE_MAX / 3)),
        text(
            "a list of recipients",
            envelope(&format!("[{}]", names(SIZE_MAX / 7)), "question", "b"),
        ),
        text(
            "a recipient again and again",
            envelope(
                &format!("[{}a]", "a,".repeat(SIZE_MAX / 2 - 150)),
                "question",
                "b",
            ),
        ),
        text(
            "a body of keys",
            envelope("claude", "review_request", &block(&keys(SIZE_MAX / 9))),
        ),
        text(
            "a body of almost our keys",
            envelope("claude", "review_request", &block(&slips())),
        ),
        text(
            "a body of brackets",
            envelope("claude", "review_request", &"[".repeat(SIZE_MAX - 200)),
        ),
        text(
            "a body with a list of paths",
            envelope("claude", "review_addressed", &block(&paths())),
        ),
        text(
            "a body with nits",
            envelope("claude", "review_lgtm", &block(&nits())),
        ),
        text(
            "a body as long as allowed",
            envelope("claude", "question", &"\u{202e}".repeat(19_000)),
        ),
    ];
    all.push((
        "a NUL at the end",
        [&vec![b'a'; SIZE_MAX - 1], &b"\0"[..]].concat(),
    ));
    all.push((
        "bytes that are not UTF-8 at the end",
        [&"\u{e9}\n".as_bytes().repeat(SIZE_MAX / 3), &b"\xff"[..]].concat(),
    ));
    all.push((
        "UTF-16",
        "id: x\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>()
            .repeat(SIZE_MAX / 12),
    ));
    for (name, bytes) in &all {
        assert!(
            bytes.len() <= SIZE_MAX,
            "{name} is larger than a file may be"
        );
    }
    all
}

/// Cuts a text to the largest size, at a character boundary.
fn fitted(mut text: String) -> String {
    while text.len() > SIZE_MAX {
        text.pop();
    }
    text
}

/// Returns `count` distinct keys, one per line.
pub(super) fn keys(count: usize) -> String {
    (0..count).map(|n| format!("{n:x}:\n")).collect()
}

fn names(count: usize) -> String {
    (0..count).map(|n| format!("a{n:x}, ")).collect()
}

/// Keys that are almost the missing ones.
fn slips() -> String {
    let ours = [
        "priority",
        "subject",
        "created_at_utc",
        "diff_summary",
        "branch",
        "findings",
    ];
    let slip = |n: usize| format!("{}{n:x}: a\n", ours[n % ours.len()]);
    (0..SIZE_MAX / 18).map(slip).collect()
}

fn paths() -> String {
    let list: String = (0..SIZE_MAX / 12).map(|n| format!("- {n:x}/a\n")).collect();
    format!("commit_sha: abc1234\nround: 1\nchanges_summary: s\ntouched_files:\n{list}")
}

fn nits() -> String {
    let list: String = (0..SIZE_MAX / 16)
        .map(|n| format!("- nit_id: {n:x}\n"))
        .collect();
    format!("quality_gate_result: pass\nmerge_ready: true\nnits:\n{list}")
}

fn at_depth() -> String {
    let depth = DEPTH_MAX - 2;
    let one = "[".repeat(depth) + &"]".repeat(depth) + ",";
    format!("a: [{}]", one.repeat(SIZE_MAX / one.len() - 1))
}

fn alias_bomb() -> String {
    let level = |n: usize| {
        format!(
            "a{n}: &a{n} [{}]\n",
            format!("*a{},", n.saturating_sub(1)).repeat(9)
        )
    };
    "a0: &a0 [lol]\n".to_owned() + &(1..4000).map(level).collect::<String>()
}

fn block(text: &str) -> String {
    format!(
        "|\n{}",
        text.lines()
            .map(|line| format!(" {line}\n"))
            .collect::<String>()
    )
}

/// A message with a complete envelope.
fn envelope(to: &str, kind: &str, body: &str) -> String {
    format!(
        "id: x\nfrom: codex\nto: {to}\ntype: {kind}\npriority: P1\nsubject: s\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nbody: {body}\n"
    )
}
