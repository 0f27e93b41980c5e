//! The stable twins of the fuzz targets in `fuzz`: any bytes, and mutilated valid inputs, keep the promises of each
//! reader in `settled_tests::readers`.
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use settled_tests::{list, read, readers, repository, seed};

/// The number of mutilated inputs for each reader; those of the disk cost files.
const CASES: u32 = 1_000;
const CASES_ON_DISK: u32 = 300;

/// Tokens with a meaning in YAML, TOML or JSON.
const TOKENS: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    "- ",
    "? ",
    "|\n",
    ">\n",
    "\"",
    "'",
    "\\",
    "#",
    " #",
    "&a ",
    "*a",
    "!t ",
    "%",
    "---\n",
    "...\n",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "\u{202e}",
    "~",
    "null",
    "=",
    "<<: ",
    "1e999",
    "-1",
    "\\u0000",
    "\"seq\":9",
    "\"v\":2",
    "boot",
];

/// One change of an input.
#[derive(Clone, Debug)]
enum Edit {
    Put(Index, Vec<u8>),
    Flip(Index, u8),
    Cut(Index, usize),
    Repeat(Index, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let tokens: Vec<Vec<u8>> = TOKENS
        .iter()
        .map(|token| token.as_bytes().to_vec())
        .collect();
    prop_oneof![
        (any::<Index>(), select(tokens)).prop_map(|(at, token)| Edit::Put(at, token)),
        (any::<Index>(), vec(any::<u8>(), 1..4)).prop_map(|(at, bytes)| Edit::Put(at, bytes)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, mask)| Edit::Flip(at, mask)),
        (any::<Index>(), 1..200_usize).prop_map(|(at, length)| Edit::Cut(at, length)),
        (any::<Index>(), 1..200_usize).prop_map(|(at, length)| Edit::Repeat(at, length)),
    ]
}

/// Bytes that print as text when a reader fails on them.
struct Input(Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

fn edited(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits {
        let place = |at: &Index, bytes: &[u8]| at.index(bytes.len() + 1);
        match edit {
            Edit::Put(at, put) => {
                let at = place(at, &bytes);
                bytes.splice(at..at, put.iter().copied());
            }
            Edit::Flip(at, mask) => {
                let at = place(at, &bytes);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= mask);
            }
            Edit::Cut(at, length) => {
                let at = place(at, &bytes);
                bytes.drain(at..bytes.len().min(at + length));
            }
            Edit::Repeat(at, length) => {
                let at = place(at, &bytes);
                let again = bytes[at..bytes.len().min(at + length)].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

/// Gives each reader `cases` inputs: a seed with a few edits, and sometimes unrelated bytes.
fn hold(cases: u32, seeds: Vec<Vec<u8>>, reader: fn(&[u8])) {
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| reader(seed));
    let mutilated =
        (select(seeds), vec(edit(), 1..6)).prop_map(|(seed, edits)| edited(seed, &edits));
    let input = prop_oneof![9 => mutilated, 1 => vec(any::<u8>(), 0..300)].prop_map(Input);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(bytes in input)| reader(&bytes.0));
}

fn files(directory: &str) -> Vec<Vec<u8>> {
    let files = list(repository().join(directory))
        .into_iter()
        .filter(|path| path.is_file());
    files
        .map(|path| std::fs::read(path).expect("a seed"))
        .collect()
}

#[test]
fn no_bytes_break_the_reader_of_messages_and_every_refusal_has_a_place() {
    hold(
        CASES,
        [files("packets/valid"), files("packets/invalid")].concat(),
        readers::message,
    );
}

#[test]
fn no_bytes_break_the_reader_of_packets_and_every_refusal_has_a_place() {
    let mut seeds = [files("packets/findings"), files("packets/findings/invalid")].concat();
    seeds.push(read(repository().join(seed::PACKET)).into_bytes());
    hold(CASES, seeds, readers::packet);
}

#[test]
fn no_bytes_break_the_reader_of_the_config_and_every_refusal_has_a_place() {
    let template = workspace::config::TEMPLATE;
    let every_key: Vec<String> = template
        .lines()
        .map(|line| line.trim_start_matches("#: ").to_owned())
        .collect();
    hold(
        CASES,
        vec![template.into(), every_key.join("\n").into()],
        readers::config,
    );
}

#[test]
fn the_reader_of_the_ledger_accepts_no_line_that_does_not_fit() {
    let (ledger, _) = readers::seeds();
    hold(
        CASES_ON_DISK,
        [0, 1]
            .map(|mode| [&[mode], ledger.as_slice()].concat())
            .to_vec(),
        readers::ledger,
    );
}

#[test]
fn no_cursor_makes_a_start_lose_or_repeat_what_is_there() {
    let (_, cursor) = readers::seeds();
    hold(CASES_ON_DISK, vec![cursor], readers::cursor);
}
