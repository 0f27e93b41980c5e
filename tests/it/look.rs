//! The layout of people's screens on terminals of 60 to 200 columns: only commands are wider, long names lose their
//! middles, a pipe gets whole lines without colours. The screens are compared with `tests/golden/`.

use std::path::Path;

use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{golden, seed};

const AUTHOR: &str = "claude-of-the-payment-team";
const REVIEWER: &str = "codex-of-the-platform-team";

/// The commands, and the agent that runs each.
const SCREENS: [(&[&str], Option<&str>); 4] = [
    (&["status"], None),
    (&["watch", "--once"], None),
    (&["why", "86"], None),
    (&["inbox"], Some(REVIEWER)),
];

/// A review in progress, one before its first answer, and mail, between agents with long names.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&[AUTHOR, REVIEWER]);
    seed::lay_packet(mailroom.root());
    let named = |text: &str| {
        let from = |text: &str, short: &str, long: &str| {
            text.replace(&format!("from: {short}\n"), &format!("from: {long}\n"))
                .replace(&format!("to: {short}\n"), &format!("to: {long}\n"))
        };
        from(&from(text, "claude", AUTHOR), "codex", REVIEWER)
    };
    let [request, feedback, ..] = seed::review();
    let other = request
        .text
        .replace("claude-001", "claude-100")
        .replace("86", "87")
        .replace(
            "  pr: 87",
            "  pr: 87\n  repo: owner/a-repository-of-many-words",
        );
    let posts = [
        (AUTHOR, "request-1.yaml", request.text),
        (REVIEWER, "feedback-1.yaml", feedback.text),
        (
            AUTHOR,
            "20260213T101500123Z-a-long-file-name-1zyjm08s.yaml",
            other,
        ),
        (
            AUTHOR,
            "question.yaml",
            seed::note("question", "q-1", AUTHOR, REVIEWER, "Why?"),
        ),
    ];
    for (agent, file, text) in posts {
        mailroom.post(agent, file, &named(&text));
        let output = mailroom.once();
        assert!(output.status.success(), "{file}: {}", said(&output));
    }
    mailroom
}

/// The output of a command at this width, without the parts that differ between runs.
fn shown(root: &Path, args: &[&str], agent: Option<&str>, columns: Option<usize>) -> String {
    let mut command = settled();
    command
        .args(args)
        .current_dir(root)
        .env("SETTLED_ROOT", ".");
    if let Some(agent) = agent {
        command.env("SETTLED_AGENT", agent);
    }
    match columns {
        Some(columns) => command.env("COLUMNS", columns.to_string()),
        None => command.env_remove("COLUMNS"),
    };
    let output = command.output().expect("settled can be run");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("we print UTF-8")
}

/// True for a line with a command to copy.
fn is_command(line: &str) -> bool {
    line.contains(" settled ")
}

/// Instants, ages and sizes keep their width.
fn steady(text: &str) -> String {
    let is_time = |word: &str| word.matches(':').count() == 2 && word.len() > 7;
    let line = |line: &str| {
        if line.starts_with("ledger: ") {
            return "ledger: …".to_owned();
        }
        let words: Vec<&str> = line.split(' ').collect();
        let word = |(n, word): (usize, &&str)| match *word {
            word if is_time(word) => word.replace(|c: char| c.is_ascii_digit(), "0"),
            word if word.len() == 1 && words.get(n + 1) == Some(&"s") => "0".to_owned(),
            word => word.to_owned(),
        };
        words
            .iter()
            .enumerate()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    text.lines().map(|of| line(of) + "\n").collect()
}

#[test]
fn screens_fit_their_terminal_and_show_no_colour_to_a_pipe() {
    let mailroom = mailroom();
    for columns in [60, 80, 120, 200] {
        let mut all = String::new();
        for (args, agent) in SCREENS {
            let text = shown(mailroom.root(), args, agent, Some(columns));
            assert!(!text.contains('\u{1b}'), "{text}");
            for line in text.lines().filter(|line| !is_command(line)) {
                assert!(
                    line.chars().count() <= columns,
                    "{columns} columns: {line}\n{text}"
                );
            }
            all += &format!("$ settled {}\n{text}\n", args.join(" "));
        }
        golden::check(&format!("look-{columns}.txt"), &steady(&all));
    }
}

#[test]
fn a_pipe_gets_whole_lines_of_prose() {
    let mailroom = mailroom();
    let why = shown(mailroom.root(), &["why", "86"], None, None);
    let narrow = shown(mailroom.root(), &["why", "86"], None, Some(60));
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // A second may pass between the two, so leave out instants and numbers.
    let of = |text: &str| {
        words(text)
            .into_iter()
            .filter(|word| word.matches(':').count() < 2 && word.parse::<u64>().is_err())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&why), of(&narrow), "wrapping loses no word");
    assert!(why.lines().count() < narrow.lines().count(), "{narrow}");
}

#[test]
fn a_limit_leaves_reviews_out_of_the_list_but_not_out_of_the_counts() {
    let mailroom = mailroom();
    let limited = mailroom.json(&["status", "--limit", "1"])["data"].take();
    let rows = limited["reviews"].as_array().expect("a list");
    // The review of the request that came later waits for its reviewer, the other one for its author.
    assert_eq!((rows.len(), &rows[0]["pr"]), (1, &"87".into()));
    assert_eq!(limited["left_out"], 1);
    assert_eq!(limited["phases"]["fixing"], 1);
    let whole = mailroom.json(&["status"])["data"].take();
    assert_eq!(whole["reviews"].as_array().map(Vec::len), Some(2));
    assert_eq!(whole["left_out"], serde_json::Value::Null);
    assert_eq!(whole["oldest_wait"], limited["oldest_wait"]);
    let text = shown(mailroom.root(), &["status", "--limit", "1"], None, None);
    assert!(text.contains("\n1 more reviews; see --limit\n"), "{text}");
    assert!(!text.contains("finished"), "{text}");
}
