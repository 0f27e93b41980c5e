//! The English of what users read: README, documents, help and the pages of the codes contain no phrase from a list
//! that made native readers stumble. For developers: a doc comment names its subject first.

use std::path::PathBuf;

use settled_tests::house::House;
use settled_tests::{list, read, repository};

/// Each phrase with a replacement. Lower case; a match begins and ends at a word.
const BANNED: &[(&str, &str)] = &[
    ("for ever", "forever, permanently"),
    ("had of it", "name the actor"),
    ("be it", "for example"),
    ("in force", "applies, current"),
    ("the same done right", "a corrected example"),
    ("in one go", "in one step"),
    ("unless told", "[default: …]"),
    ("may be given again", "repeatable"),
    ("may be left out", "optional"),
    ("goes round", "loops"),
    ("is a person's", "only a person may"),
    ("whose move is it", "who moves next"),
    ("when one meets", "when it happens"),
    ("done with it", "finished with it"),
    ("it is no", "it is not a"),
    ("there is none", "none exists"),
    ("message of yours", "message you received, your message"),
    ("if it is missing", "if it does not exist"),
    ("by itself alone", "alone"),
    ("is heard", "is processed, counts"),
    ("are heard", "are processed, count"),
    ("are tried again", "the daemon retries"),
    ("stands here", "is in its place"),
    ("where you stand", "your status"),
    ("as it stands", "unchanged"),
    ("says no more", "never answers"),
    ("so many seconds", "the seconds"),
    ("is asked of", "name who asks"),
    ("is given no", "has no"),
    ("is no field", "is not a field"),
    ("is not from it", "the daemon refuses it"),
    ("gets what names", "name the thing"),
    ("is to be run", "name who runs it"),
    ("done right", "corrected"),
    ("done wrong", "wrong"),
    ("let it rest", "discarded it"),
    ("goes on no more", "was discarded"),
    ("stand still", "hang"),
    ("might have risen", "allowed growth"),
    ("made to hurt", "built to slow it"),
    ("anybody say", "anybody can use"),
    ("called off", "cancelled"),
    ("in the same breath", "at once, too"),
    ("once and for good", "permanently"),
    ("is done with", "has finished with, settles"),
    ("is told", "name who tells whom"),
    ("are told", "name who tells whom"),
    ("stands in", "is in"),
    ("stands at", "is at"),
    ("lies in", "is in"),
    ("own business", "does not apply to"),
];

/// The most words in the glossary.
const GLOSSARY_MAX: usize = 40;

fn texts() -> Vec<PathBuf> {
    let in_folder = |folder: &str, keep: fn(&str) -> bool| {
        let mut files = list(repository().join(folder));
        files.retain(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(keep)
        });
        files
    };
    let at_the_root = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
    ];
    [
        at_the_root.map(|name| repository().join(name)).to_vec(),
        in_folder("docs", |name| name.ends_with(".md")),
        in_folder("tests/golden", |name| name.starts_with("help-")),
        in_folder("crates/validate-message/codes", |_| true),
        in_folder("schemas", |_| true),
    ]
    .concat()
}

/// A text without its line breaks, so that phrases are found across them.
struct Flowing {
    text: String,
    /// The offset at which each line begins.
    lines: Vec<usize>,
}

impl Flowing {
    fn of(text: &str) -> Self {
        let (mut flowing, mut lines) = (String::new(), Vec::new());
        for line in text.lines() {
            lines.push(flowing.len());
            flowing += &line.trim().to_lowercase();
            flowing.push(' ');
        }
        Self {
            text: flowing,
            lines,
        }
    }

    /// The numbers of the lines on which the phrase begins, as whole words.
    fn lines_with(&self, phrase: &str) -> Vec<usize> {
        let is_edge = |side: Option<char>| !side.is_some_and(char::is_alphanumeric);
        let (text, ends) = (&self.text, phrase.len());
        text.match_indices(phrase)
            .map(|(at, _)| at)
            .filter(|at| is_edge(text[..*at].chars().next_back()))
            .filter(|at| is_edge(text[at + ends..].chars().next()))
            .map(|at| self.lines.partition_point(|line| *line <= at))
            .collect()
    }
}

#[test]
fn no_text_for_users_holds_a_banned_phrase() {
    let mut found = String::new();
    for path in texts() {
        let text = Flowing::of(&read(&path));
        let place = path.strip_prefix(repository()).expect("in the repository");
        for (phrase, instead) in BANNED {
            for line in text.lines_with(phrase) {
                found += &format!("{}:{line}: `{phrase}`; write {instead}\n", place.display());
            }
        }
    }
    assert!(found.is_empty(), "\n{found}");
}

#[test]
fn at_most_forty_words_are_ours() {
    let glossary = read(repository().join("docs/glossary.md"));
    let is_word = |line: &&str| {
        line.starts_with("| ") && !line.starts_with("| word ") && !line.starts_with("|---")
    };
    let words = glossary.lines().filter(is_word).count();
    assert!(
        (20..=GLOSSARY_MAX).contains(&words),
        "docs/glossary.md has {words} words, of at most {GLOSSARY_MAX}"
    );
}

/// The percentage of doc comments that may begin with What, Whether or How; mainly help texts of commands.
const CLAUSES_MAX: usize = 1;

#[test]
fn a_doc_comment_names_its_thing_first() {
    let House { docs, clauses, .. } = House::ours();
    assert!(
        clauses.len() * 100 <= docs * CLAUSES_MAX,
        "{} of {docs} doc comments begin with What, Whether or How:\n{}",
        clauses.len(),
        clauses.join("\n")
    );
}

#[test]
fn a_phrase_is_found_as_whole_words_and_across_a_line_break() {
    assert_eq!(Flowing::of("So be it.").lines_with("be it"), [1]);
    assert_eq!(Flowing::of("may be its name").lines_with("be it"), [0; 0]);
    assert_eq!(Flowing::of("\nso may\n   Be\nit").lines_with("be it"), [3]);
    assert_eq!(Flowing::of("be\n\nit").lines_with("be it"), [0; 0]);
}
