//! The envelope verdicts of `oacp validate` and of ours agree, except for the differences that `docs/oacp.md` names
//! with a reason; each of these does occur.

mod differ;
mod near;
mod pool;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use message_schema::Code;
use serde_json::Value;
use settled_tests::peer::{self, Judged};
use settled_tests::{binaries, hostile, read, repository};

use self::differ::Violation;
use self::write::Dice;

/// The same messages in every run; `VERDICTS_SEED` tries others.
const SEED: u64 = 20_260_213;

/// The numbers of correct, mutated and hostile messages.
const CORRECT: usize = 600;
const MUTATED: usize = 1_200;
const HOSTILE: usize = 200;

/// The number of messages that the real process `oacp validate` judges.
const SAMPLES: usize = 12;

/// Codes about the body and the packet, which `oacp` does not judge.
const BEYOND_THE_ENVELOPE: [Code; 6] = [
    Code::BodySyntax,
    Code::BodyFieldMissing,
    Code::BodyFieldInvalid,
    Code::BodyFieldUnknown,
    Code::NitInvalid,
    Code::PrMismatch,
];

/// A message with both verdicts.
struct Case {
    file: PathBuf,
    bytes: Vec<u8>,
    theirs: Judged,
    ours: Vec<Violation>,
    /// True if ours warns that `oacp` refuses an optional field that is empty or null.
    warned_of_nothing: bool,
}

fn seed() -> u64 {
    std::env::var("VERDICTS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(SEED)
}

fn messages(seed: u64) -> Vec<Vec<u8>> {
    let mut dice = Dice(seed);
    let mut messages: Vec<Vec<u8>> = (0..CORRECT).map(|_| write::correct(&mut dice)).collect();
    messages.extend(write::near_misses(&mut dice));
    messages.extend((0..MUTATED).map(|_| write::mutated(&mut dice)));
    messages.extend(near::whole().into_iter().map(String::into_bytes));
    let documents = hostile::documents();
    messages.extend((0..HOSTILE).map(|_| write::hostile(&documents, &mut dice)));
    messages
}

fn cases(directory: &Path, messages: Vec<Vec<u8>>) -> Vec<Case> {
    let file = |(n, bytes): (usize, &Vec<u8>)| {
        let file = directory.join(format!("{n:04}.yaml"));
        std::fs::write(&file, bytes).expect("room");
        file
    };
    let files: Vec<PathBuf> = messages.iter().enumerate().map(file).collect();
    let theirs = peer::judged(&files);
    let ours = ours(&files);
    let both = files.into_iter().zip(messages).zip(theirs).zip(ours);
    both.map(
        |(((file, bytes), theirs), (ours, warned_of_nothing))| Case {
            file,
            bytes,
            theirs,
            ours,
            warned_of_nothing,
        },
    )
    .collect()
}

/// The command's violations for each file's envelope, in one process.
fn ours(files: &[PathBuf]) -> Vec<(Vec<Violation>, bool)> {
    let mut command = Command::new(binaries::validate_message());
    let output = command
        .args(["--format", "json"])
        .args(files)
        .stdin(Stdio::null())
        .output();
    let output = output.expect("the command can be run");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let told = report["files"].as_array().expect("a list of files");
    assert_eq!(told.len(), files.len(), "one verdict for each file");
    let of_file = |(told, file): (&Value, &PathBuf)| {
        assert_eq!(
            told["file"],
            file.to_string_lossy().as_ref(),
            "in the order they were given"
        );
        let violations = told["violations"].as_array().expect("a list of violations");
        let warns = |violation: &Value| {
            violation["code"] == "text_doubtful"
                && violation["message"]
                    .as_str()
                    .is_some_and(|said| said.ends_with("`oacp` refuses it"))
        };
        (
            violations.iter().filter_map(of_the_envelope).collect(),
            violations.iter().any(warns),
        )
    };
    told.iter().zip(files).map(of_file).collect()
}

fn of_the_envelope(violation: &Value) -> Option<Violation> {
    let code = violation["code"].as_str().expect("a code");
    let is_beyond = BEYOND_THE_ENVELOPE
        .iter()
        .any(|beyond| beyond.as_str() == code);
    let is_error = violation["level"] == "error";
    (is_error && !is_beyond).then(|| Violation {
        code: code.to_owned(),
        field: violation["field"].as_str().unwrap_or_default().to_owned(),
        message: violation["message"].as_str().unwrap_or_default().to_owned(),
    })
}

/// The names of the differences listed in `docs/oacp.md`.
fn listed() -> BTreeSet<String> {
    let page = read(repository().join("docs/oacp.md"));
    let (_, list) = page
        .split_once("## Different verdicts")
        .expect("docs/oacp.md has the list");
    let rows = list
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let names: BTreeSet<String> = rows.map(|(name, _)| name.to_owned()).collect();
    assert!(!names.is_empty(), "docs/oacp.md has a table of differences");
    names
}

#[test]
fn envelope_verdicts_agree_with_oacp_but_for_the_listed_differences() {
    let seed = seed();
    let directory = settled_tests::scratch();
    let cases = cases(directory.path(), messages(seed));
    let listed = listed();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unlisted = Vec::new();
    for case in &cases {
        match differ::reasons(&case.bytes, &case.theirs, &case.ours) {
            Ok(reasons) => {
                let is_nothing = reasons.contains(&"nothing-is-absent");
                if case.theirs.errors.is_empty() || is_nothing {
                    assert_eq!(case.warned_of_nothing, is_nothing, "{}", shown(case));
                }
                reasons
                    .into_iter()
                    .for_each(|reason| *seen.entry(reason).or_default() += 1);
            }
            Err(what) => unlisted.push(format!("{what}\n{}", shown(case))),
        }
    }
    let few: String = unlisted.iter().take(10).cloned().collect();
    assert!(
        unlisted.is_empty(),
        "seed {seed}: {} unlisted disagreements\n{few}",
        unlisted.len()
    );
    let occurred: BTreeSet<String> = seen.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        occurred, listed,
        "seed {seed}: those that occur, and those on the list of docs/oacp.md"
    );
    enough_of_each(&cases);
    the_process_says_the_same(&cases, seed);
}

fn shown(case: &Case) -> String {
    format!(
        "{}\n{}\noacp: {:?}\nours: {:?}\n\n",
        case.file.display(),
        String::from_utf8_lossy(&case.bytes)
            .escape_debug()
            .to_string()
            .replace("\\n", "\n")
            .chars()
            .take(900)
            .collect::<String>(),
        case.theirs.errors,
        case.ours
    )
}

/// If both sides refused all files for the same reason, comparing them would show nothing.
fn enough_of_each(cases: &[Case]) {
    let both = |accept: bool| {
        let is_so = |case: &&Case| {
            case.theirs.errors.is_empty() == accept && case.ours.is_empty() == accept
        };
        cases.iter().filter(is_so).count()
    };
    assert!(
        both(true) >= 500,
        "{} messages are accepted by both",
        both(true)
    );
    assert!(
        both(false) >= 500,
        "{} messages are refused by both",
        both(false)
    );
    let wrong = cases
        .iter()
        .take(CORRECT)
        .find(|case| !case.ours.is_empty() || !case.theirs.errors.is_empty());
    assert!(
        wrong.is_none(),
        "a correct message is refused:\n{}",
        wrong.map(shown).unwrap_or_default()
    );
}

fn the_process_says_the_same(cases: &[Case], seed: u64) {
    for case in cases.iter().step_by(cases.len() / SAMPLES) {
        let accepted = peer::validates(&case.file).is_ok();
        assert_eq!(
            accepted,
            case.theirs.errors.is_empty(),
            "seed {seed}: `oacp validate`\n{}",
            shown(case)
        );
    }
}
