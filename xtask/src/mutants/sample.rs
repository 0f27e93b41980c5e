//! `cargo xtask mutants --sample N --seed S`: small changes that `cargo-mutants` thinks of, drawn from every room in
//! turn and tried against the room's own tests and the scenarios. The same seed draws the same ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Ran, SCENARIOS, ran, write};

/// The version of `cargo-mutants` that is installed into the build folder where none is found.
const VERSION: &str = "27.1.0";

/// One small change, as `cargo-mutants` lists it.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    file: PathBuf,
    room: String,
    /// Where and what, for people.
    name: String,
    start: Position,
    end: Position,
    replacement: String,
}

/// Line and column in characters, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
}

/// What came of the changes of one room.
#[derive(Debug, Default)]
struct Tally {
    caught: u32,
    unviable: u32,
    missed: Vec<String>,
}

/// Draws so many and tries them in the copy; whether every viable one was caught.
pub(super) fn run(copy: &Path, target: &Path, count: usize, seed: u64) -> Result<bool, String> {
    let changes = drawn(listed(copy, target)?, count, seed);
    let mut rooms: BTreeMap<String, Tally> = BTreeMap::new();
    for change in &changes {
        let tally = rooms.entry(change.room.clone()).or_default();
        println!("{}", change.name);
        match tried(copy, change)? {
            Ran::Passed => {
                println!("  missed");
                tally.missed.push(change.name.clone());
            }
            Ran::Failed(test) => {
                println!("  caught by {test}");
                tally.caught += 1;
            }
            Ran::NotBuilt(said) if !said.contains("could not compile") => {
                println!("  caught: a run of tests broke off");
                tally.caught += 1;
            }
            Ran::NotBuilt(_) => {
                println!("  does not compile");
                tally.unviable += 1;
            }
        }
    }
    println!("\n| room | caught | missed | unviable |\n|---|---:|---:|---:|");
    for (room, tally) in &rooms {
        let missed = tally.missed.len();
        println!(
            "| {room} | {} | {missed} | {} |",
            tally.caught, tally.unviable
        );
    }
    for name in rooms.values().flat_map(|tally| &tally.missed) {
        println!("survived: {name}");
    }
    Ok(rooms.values().all(|tally| tally.missed.is_empty()))
}

/// What fails of the room's tests, then of the scenarios. The copy is whole again afterwards.
fn tried(copy: &Path, change: &Change) -> Result<Ran, String> {
    let path = copy.join(&change.file);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let changed = change.made_in(&text)?;
    write(&path, changed.as_bytes())?;
    let own = ["test", "--offline", "--package", &change.room, "--tests"];
    let result = ran(copy, &own).and_then(|first| match first {
        Ran::Passed => ran(copy, &SCENARIOS),
        Ran::Failed(_) | Ran::NotBuilt(_) => Ok(first),
    });
    write(&path, text.as_bytes())?;
    result
}

impl Change {
    fn read(listed: &Value) -> Result<Self, String> {
        let strange = || format!("cargo-mutants lists something strange: {listed}");
        let text = |key: &str| listed[key].as_str().ok_or_else(strange);
        let position = |key: &str| -> Result<Position, String> {
            let number = |part: &str| {
                let number = listed["span"][key][part].as_u64().ok_or_else(strange)?;
                usize::try_from(number).map_err(|_| strange())
            };
            Ok(Position {
                line: number("line")?,
                column: number("column")?,
            })
        };
        let (file, start) = (PathBuf::from(text("file")?), position("start")?);
        let room = file.iter().nth(1).ok_or_else(strange)?;
        let replacement = text("replacement")?.to_owned();
        Ok(Self {
            name: text("name")?.to_owned(),
            room: room.to_string_lossy().into_owned(),
            end: position("end")?,
            file,
            start,
            replacement,
        })
    }

    /// The file's text with the change made.
    fn made_in(&self, text: &str) -> Result<String, String> {
        let place = |position: Position| {
            let lines = text.split_inclusive('\n').take(position.line - 1);
            let before: usize = lines.map(str::len).sum();
            let rest = text.get(before..)?;
            // The place behind the last character is one too.
            let mut columns = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            columns.nth(position.column - 1).map(|at| before + at)
        };
        place(self.start)
            .zip(place(self.end))
            .filter(|(start, end)| start <= end)
            .map(|(start, end)| format!("{}{}{}", &text[..start], self.replacement, &text[end..]))
            .ok_or_else(|| format!("{}: there is no such place", self.name))
    }
}

/// So many of them, from each room in turn, in an order that the seed gives.
fn drawn(changes: Vec<Change>, count: usize, seed: u64) -> Vec<Change> {
    let mut state = seed;
    let mut rooms: BTreeMap<String, Vec<(u64, Change)>> = BTreeMap::new();
    for change in changes {
        let room = rooms.entry(change.room.clone()).or_default();
        room.push((random(&mut state), change));
    }
    for room in rooms.values_mut() {
        room.sort_by_key(|(key, _)| *key);
    }
    let mut drawn = Vec::new();
    while drawn.len() < count && rooms.values().any(|room| !room.is_empty()) {
        for room in rooms.values_mut() {
            drawn.extend(room.pop().map(|(_, change)| change));
        }
    }
    drawn.truncate(count);
    drawn
}

/// `SplitMix64`.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Every change `cargo-mutants` can think of in the rooms.
fn listed(copy: &Path, target: &Path) -> Result<Vec<Change>, String> {
    let output = Command::new(program(target)?)
        .args(["mutants", "--list", "--json", "--workspace"])
        .args(["--file", "crates/**/*.rs"])
        .current_dir(copy)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cargo-mutants: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let listed: Vec<Value> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("its list: {error}"))?;
    listed.iter().map(Change::read).collect()
}

/// The program `cargo-mutants`: one that is installed, else one in the build folder, put there if need be.
fn program(target: &Path) -> Result<PathBuf, String> {
    let works = |program: &Path| {
        let mut command = Command::new(program);
        command.args(["mutants", "--version"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    let installed = PathBuf::from("cargo-mutants");
    if works(&installed) {
        return Ok(installed);
    }
    let root = target.join(format!("cargo-mutants-{VERSION}"));
    let program = root.join("bin/cargo-mutants");
    if !works(&program) {
        println!(
            "cargo-mutants is missing; installing {VERSION} into {}",
            root.display()
        );
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["install", "cargo-mutants", "--locked", "--quiet", "--debug"])
            .args(["--version", VERSION, "--root"])
            .arg(&root)
            .env("CARGO_TARGET_DIR", root.join("build"))
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .stdin(Stdio::null())
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err("cargo-mutants cannot be installed".to_owned());
        }
        // Only the program is of use from here on.
        let _ = std::fs::remove_dir_all(root.join("build"));
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(file: &str, line: usize) -> Change {
        let listed = serde_json::json!({
            "file": file, "replacement": "||",
            "name": format!("{file}:{line}:6: replace && with || in is_due"),
            "span": {"start": {"line": line, "column": 6}, "end": {"line": line, "column": 8}},
        });
        Change::read(&listed).expect("a change")
    }

    #[test]
    fn a_change_replaces_what_its_span_holds() {
        let change = change("crates/review/src/a.rs", 2);
        assert_eq!(change.room, "review");
        assert_eq!(
            change.made_in("fn\nä x  && y\n"),
            Ok("fn\nä x  || y\n".to_owned())
        );
        assert!(change.made_in("fn\n").is_err());
    }

    #[test]
    fn a_seed_draws_the_same_from_every_room_in_turn() {
        let all = || {
            let rooms = ["a", "b", "c"].into_iter();
            let files = rooms.map(|room| format!("crates/{room}/src/lib.rs"));
            files
                .flat_map(|file| (1..50).map(move |line| change(&file, line)))
                .collect()
        };
        let first = drawn(all(), 5, 1);
        let rooms: Vec<&str> = first.iter().map(|change| change.room.as_str()).collect();
        assert_eq!(rooms, ["a", "b", "c", "a", "b"]);
        assert_eq!(drawn(all(), 5, 1), first);
        assert_ne!(drawn(all(), 5, 2), first);
    }
}
