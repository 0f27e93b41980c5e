//! The English of what users read: README, documents, help and the pages of the codes hold no
//! phrase from a list of ones that native readers stumbled over. And of what developers read: a doc comment names its thing.

use std::path::PathBuf;

use settled_tests::house::House;
use settled_tests::{list, read, repository};

/// Each phrase with what to write instead. Lower case; a match starts and ends at a word.
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

/// Phrases that the list of mutants keeps for now: developers read it.
const OF_MUTANTS: [&str; 3] = ["is told", "are told", "called off"];

/// Pages whose words belong to the rules they state, until these are rewritten.
const RULES: [&str; 2] = ["architecture.md", "termination.md"];

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
    [
        vec![repository().join("README.md")],
        in_folder("docs", |name| {
            name.ends_with(".md") && !RULES.contains(&name)
        }),
        in_folder("tests/golden", |name| name.starts_with("help-")),
        in_folder("crates/validate-message/codes", |_| true),
    ]
    .concat()
}

/// True if the line has the phrase as whole words.
fn has(line: &str, phrase: &str) -> bool {
    let is_edge = |side: Option<char>| !side.is_some_and(char::is_alphanumeric);
    line.match_indices(phrase).any(|(at, _)| {
        is_edge(line[..at].chars().next_back()) && is_edge(line[at + phrase.len()..].chars().next())
    })
}

#[test]
fn no_text_for_users_holds_a_banned_phrase() {
    let mut found = String::new();
    for path in texts() {
        for (line, number) in read(&path).lines().zip(1..) {
            let lower = line.to_lowercase();
            for (phrase, instead) in BANNED.iter().filter(|(phrase, _)| has(&lower, phrase)) {
                if path.ends_with("mutants.md") && OF_MUTANTS.contains(phrase) {
                    continue;
                }
                let place = path
                    .strip_prefix(repository())
                    .expect("in the repository")
                    .display();
                found += &format!("{place}:{number}: `{phrase}`; write {instead}\n  {line}\n");
            }
        }
    }
    assert!(found.is_empty(), "\n{found}");
}

/// The doc comments, in percent, that may begin with What, Whether or How: help texts of commands, above all.
const CLAUSES_MAX: usize = 1;

#[test]
fn a_doc_comment_names_its_thing_first() {
    let House { docs, clauses, .. } = House::of(&repository().join("crates"));
    assert!(
        clauses.len() * 100 <= docs * CLAUSES_MAX,
        "{} of {docs} doc comments begin with What, Whether or How:\n{}",
        clauses.len(),
        clauses.join("\n")
    );
}

#[test]
fn a_phrase_is_found_as_whole_words() {
    assert!(has("so be it.", "be it"));
    assert!(!has("may be its name", "be it"));
}
