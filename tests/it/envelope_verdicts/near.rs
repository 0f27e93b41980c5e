//! Almost correct inputs: values for each field, and misleading whole files.

/// Almost correct values for each field, as written in the file.
pub(super) fn special() -> Vec<(&'static str, Vec<String>)> {
    let many = |letter: &str, count: usize| letter.repeat(count);
    let owned = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<String>>()
    };
    let mut ids = owned(&[
        "a b",
        "../../etc/passwd",
        "msg/1",
        "größe",
        "\"a\\nb\"",
        "'msg-1 '",
        "msg-1\u{a0}",
        "|\n  msg-1",
        "a:b@c+d-e_f.g",
        "\"\\u0007\"",
    ]);
    ids.extend([many("x", 200), many("x", 201)]);
    let mut names = owned(&[
        "settled",
        "claude",
        "codex",
        "-x",
        ".x",
        "..",
        "a/b",
        "a b",
        "ä",
        "'codex '",
        "\"codex\\n\"",
        "codex\u{a0}",
        "|\n  codex",
        "1e5",
        "null",
        "~",
    ]);
    names.extend([many("a", 64), many("a", 65)]);
    let mut lists = owned(&[
        "[]",
        "[codex, codex]",
        "[claude]",
        "[codex, claude]",
        "[codex, gemini]",
        "[[codex]]",
        "[{a: b}]",
        "[~]",
        "['']",
        "[\"codex\\n\"]",
        "[codex,]",
        "[codex, , x]",
        "\n  - codex\n  - gemini",
        "\n  - codex\n  -",
        "{codex: 1}",
        "[codex\u{a0}]",
        "settled",
        "[settled]",
    ]);
    let listed = |count: usize| {
        format!(
            "[{}]",
            (0..count)
                .map(|n| format!("a{n}"))
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    lists.extend([listed(10), listed(11)]);
    let mut instants = owned(&[
        "2026-02-13T10:00:00+00:00",
        "2026-02-13T10:00:00.5Z",
        "2026-02-13 10:00:00Z",
        "2026-02-30T10:00:00Z",
        "2024-02-29T10:00:00Z",
        "2023-02-29T10:00:00Z",
        "2026-02-13T10:00:60Z",
        "2026-02-13T24:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2026-02-13t10:00:00z",
        "2026-13-01T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "٢٠٢٦-٠٢-١٣T١٠:٠٠:٠٠Z",
        "' 2026-02-13T10:00:00Z '",
        "\"2026-02-13T10:00:00Z\\n\"",
        "2026-02-13T10:00:00Z\u{a0}",
        "2026-02-13",
        "[2026-02-13T10:00:00Z]",
    ]);
    instants.push("1999-12-31T23:59:59Z".to_owned());
    let mut subjects = owned(&[
        "\"a\\u202eb\"",
        "\"a\\u0007b\"",
        "\"a\\nb\"",
        "\"a\\u200fb\"",
        "a\u{202e}b",
        "a\u{2066}b",
        "a\u{7}b",
        "a\u{85}b",
        "a\u{2028}b",
        "|\n  a\n  b",
        "|\n  a",
        "\"\\ta\"",
        "\"a\\tb\"",
        "a\tb",
        "\"a\\0b\"",
        "\"a\\e[31m\"",
        "\"a\\u200bb\"",
        "a\n  b",
        "'a\u{a0}'",
        "\"\\u00a0\"",
        "[a]",
        "\"\\ud800\"",
        "\"a\\n\"",
    ]);
    subjects.extend([
        many("é", 200),
        many("é", 201),
        format!("\"{}\"", many(" ", 250)),
    ]);
    let mut bodies = owned(&[
        "{pr: 86}",
        "\n  pr: 86\n  branch: b",
        "[a]",
        "|\n\ta",
        "|\n  a\n\tb",
        "|\n  a\n b",
        "|\n\n\n  a",
        "|\n   a\n  b",
        "> folded\n",
        "\"\\u0007\"",
        "|\n  a\u{7}b",
        "|\n  a\u{85}b",
        "|\n  a\u{2028}b",
        "|\n  a\u{1b}[31mb",
        "\"a\\0b\"",
        "|2\n  a",
        "|1\n  a",
        "|-\n",
        "|\n",
        "\"\\u00a0\"",
        "|\n  a\u{202e}b",
        "'a\n\n  b'",
    ]);
    bodies.extend([
        many("b", 20_000),
        many("b", 20_001),
        format!("|\n  {}", many("é", 20_000)),
    ]);
    let digits = [
        "#86",
        "86.0",
        "٨٦",
        "²",
        "-1",
        "+86",
        "\"86\\n\"",
        "86\u{a0}",
        "0x56",
        "1_000",
        "null",
        "~",
        "[86]",
    ];
    let mut numbers = owned(&digits);
    numbers.extend([many("9", 20), many("9", 21), many("0", 40)]);
    let conversations = [
        "conv-2026021-a-1",
        "conv-20260213-a-1234567",
        "review-pr-42",
        "conv-20260213--1",
        "conv-٢٠٢٦٠٢١٣-a-1",
        "conv-20260213-a-٣",
        "conv-20260213-ä-1",
        "' conv-20260213-a-1 '",
        "conv-20260213-a-1\u{a0}",
        "null",
        "~",
        "\"conv-20260213-a-1\\n\"",
        "{a: b}",
    ];
    let mut parents = owned(&[
        "null",
        "\"a\\nb\"",
        "\"a\\u202eb\"",
        "[a]",
        "{a: b}",
        "\"\\u00a0\"",
    ]);
    parents.extend([many("p", 200), many("p", 201)]);
    let mut channels = owned(&[
        "a b", "ä", "a.b", "' a '", "\"a\\n\"", "null", "~", "a\u{a0}", "[a]",
    ]);
    channels.extend([many("c", 64), many("c", 65)]);
    let hints = owned(&[
        "yes",
        "Auto_Proceed",
        "' auto_proceed '",
        "\"auto_proceed\\n\"",
        "null",
        "~",
        "auto_proceed\u{a0}",
    ]);
    let counts = owned(&[
        "+5",
        "-1",
        "5.0",
        "1e3",
        "1_000",
        "٥",
        "²",
        "' 5 '",
        "5\u{a0}",
        "",
        "~",
        "null",
        "18446744073709551616",
        "five",
        "\"5\\n\"",
        "[5]",
    ]);
    let measures = owned(&[
        "+5", ".5", "5.", "1e3", "1E+3", "1_000", "-0.0", "-1", "nan", "inf", ".inf", "1e999",
        "0x10", "$0.1", "٥", "' 5 '", "5\u{a0}", "", "~", "null", "1e", "1.2.3", "\"5\\n\"",
        "1_0.5", "Infinity",
    ]);
    let free = owned(&[
        "{a: b}",
        "[a]",
        "null",
        "~",
        "\"a\\u0007b\"",
        "a\u{7}b",
        "|\n  a\n  b",
        "\"\\ud800\"",
        "{}",
        "[]",
    ]);
    let auth = owned(&[
        "x",
        "''",
        "~",
        "[x]",
        "{a: b}",
        "\"eyJzaWduYXR1cmVzIjpbXX0\"",
        include_str!("auth.txt"),
    ]);
    vec![
        ("id", ids),
        ("from", names.clone()),
        ("to", names),
        ("to", lists),
        (
            "type",
            owned(&[
                "Question",
                "' question '",
                "review-request",
                "question\u{a0}",
                "\"question\\n\"",
                "ask",
            ]),
        ),
        (
            "priority",
            owned(&[
                "p1",
                "P4",
                "' P1 '",
                "P1\u{a0}",
                "high",
                "1",
                "\"P1\\n\"",
                "[P1]",
            ]),
        ),
        ("created_at_utc", instants.clone()),
        ("expires_at", instants),
        ("subject", subjects),
        ("body", bodies),
        ("related_pr", numbers),
        ("conversation_id", conversations.map(str::to_owned).to_vec()),
        ("parent_message_id", parents),
        ("channel", channels),
        ("autonomy_hint", hints),
        ("turns", counts.clone()),
        ("output_tokens", counts),
        ("wall_time_s", measures.clone()),
        ("est_cost_usd", measures),
        ("model", free.clone()),
        ("context_keys", free.clone()),
        ("related_packet", free),
        ("auth", auth),
    ]
}

/// Misleading whole files.
pub(super) fn whole() -> Vec<String> {
    let head = "id: h-1\nfrom: claude\nto: codex\ntype: question\npriority: P2\n\
                created_at_utc: 2026-02-13T10:00:00Z\nsubject: s\nbody: b\n";
    let mut all: Vec<String> = [
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "...\n",
        "~\n",
        "[]\n",
        "a\n",
        "- a\n",
        "{}\n",
        "\u{feff}",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend([
        head.to_owned(),
        format!("%YAML 1.1\n---\n{head}"),
        format!("%TAG ! x\n---\n{head}"),
        format!("{head}---\n{head}"),
        format!("{head}...\n{head}"),
        format!("{head}...\n# only a remark\n"),
        format!("--- # remark\n{head}"),
        format!("!!map\n{head}"),
        format!("!!python/object/apply:os.system\n{head}"),
        format!("{head}context_keys: !!binary aGk=\n"),
        format!("{head}context_keys: &a x\nchannel: *a\n"),
        format!("{head}<<: {{priority: P0}}\n"),
        format!("{head}priority: P0\n"),
        format!("{head}\"priority\": P0\n"),
        format!("{head}? priority\n: P0\n"),
        format!("{head}? channel\n: c\n"),
        format!("{head}? [a]\n: c\n"),
        format!("{head}context_keys: {}\n", "x ".repeat(140_000)),
        format!("{}{head}", "# a remark as long as a line\n".repeat(9_500)),
        head.replace('\n', "\r"),
        head.replace('\n', "\r\n"),
        head.replace('\n', "\u{85}"),
        head.replace('\n', "\u{2028}"),
        head.replace(": ", ":\t"),
        head.replace(": ", " : "),
        head.replace(": ", ":"),
        head.lines().map(|line| format!("  {line}\n")).collect(),
        head.lines().map(|line| format!("\t{line}\n")).collect(),
        format!(
            "{{{}}}",
            head.trim_end()
                .replace('\n', ", ")
                .replace("2026-02-13T10:00:00Z", "'2026-02-13T10:00:00Z'")
        ),
        format!(
            "{{\n{}}}",
            head.replace('\n', ",\n")
                .replace("2026-02-13T10:00:00Z", "\"2026-02-13T10:00:00Z\"")
        ),
        format!("```yaml\n{head}```\n"),
        format!("{head}I hope this helps.\n"),
        format!("{head}\0"),
        format!("{head}# \u{7}\n"),
        format!("{head}# \u{2028}x: y\n"),
        format!("{head}channel: c# no remark\n"),
        format!("{head}channel: \"c\"# a remark\n"),
        format!("{head}channel: c #a remark\n"),
        head.replace("id: h-1", "id: \u{feff}h-1"),
        head.replace("subject: s", "subject: \u{1f468}\u{200d}\u{1f469}"),
        head.replace("subject: s", "subject: \u{fffe}"),
        head.replace("subject: s", "subject: \u{10ffff}"),
        head.replace("subject: s", "subject: \u{e000}"),
    ]);
    all
}
