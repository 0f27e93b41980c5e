//! `cargo xtask mutants --sample N --seed S`: small changes proposed by `cargo-mutants`, drawn from every room in turn
//! and tried against the room's own tests and, where these play the room, the scenarios; those of the commands against
//! the modules of `tests/it` that run them. The same seed draws the same changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use settled_tests::packages;
use settled_tests::tool::Tool;

use super::switch::{Switches, errors};
use super::{Ran, SCENARIOS, WHOLE, of_it, of_rooms, ran, read, write};

/// The program that proposes the changes; another version would propose others.
const CARGO_MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
    asked: &["mutants", "--version"],
    options: &[],
};

/// The room that plays the scenarios.
const STAGE: &str = "simulate";

/// Rooms below it that a scenario only links: it has no disk and starts no process.
const UNPLAYED: [&str; 4] = ["disk", "runner", "sorted-rows", "spool"];

/// A room of plain values, and the room whose tests are also its own: the rules that decide with these values.
const VALUES: (&str, &str) = ("review-words", "review");

/// The room that is mostly tested by the tests of the whole: it is arguments, one call and printing.
const COMMANDS: &str = "settled";

/// Rooms that are a program or its display, and their tests among those of the whole: the test program, and a module of
/// it or nothing for all.
const WHOLE_OF: [(&str, &str, &str); 7] = [
    ("cockpit", "it", "cockpit"),
    ("notifier", "it", "notify"),
    ("settled-host", "it", "hosts"),
    ("settled-mcp", "it", "mcp"),
    ("settled-page", "it", "page"),
    ("settled-watch", "screens", ""),
    ("setup", "it", "agent_add"),
];

/// The time limit for some modules of `tests/it` on a change, including the build.
const WHOLE_MAX: Duration = Duration::from_secs(900);

/// The time limit for building and then running a room's tests on the unbroken code. The first room also builds the
/// crates of others, which alone took more than ten minutes beside other builds on two cores. This limit only ends
/// endless runs; the limit for a change is measured on this run.
const UNBROKEN_MAX: Duration = Duration::from_secs(3_600);

/// The modules of `tests/it` for files of the commands, by file name, where no module has that name.
const MODULES: [(&str, &str); 22] = [
    ("agent", "agent_add"),
    ("agents_md", "agents"),
    ("brief", "briefs"),
    ("command", "cli"),
    ("diff", "evidence"),
    ("explain", "codes"),
    ("gate", "gate_check"),
    ("gc", "housekeeping"),
    ("hook", "hooks"),
    ("inbox", "agents"),
    ("ledger", "rewritten"),
    ("order", "orders"),
    ("person", "orders"),
    ("problems", "people"),
    ("pull", "events"),
    ("separate", "agent_users"),
    ("serve", "once"),
    ("status", "people"),
    ("threads", "people"),
    ("turn", "orders"),
    ("verdict", "verdict_files"),
    ("wait", "agents"),
];

/// The modules for every other file: what all commands share, and what writes messages.
const OTHER_MODULES: [&str; 4] = ["cli", "compose", "people", "agents"];

/// The most tests to try a change against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The tests of its room, and the scenarios.
    Own,
    /// Also those tests of the whole that belong to its room.
    Whole,
}

/// One small change, as listed by `cargo-mutants`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) file: PathBuf,
    room: String,
    /// The kind of change, in the words of `cargo-mutants`.
    pub(super) genre: String,
    /// The place and the change, for people.
    name: String,
    start: Position,
    end: Position,
    pub(super) replacement: String,
}

/// Line and column in characters, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
}

/// The results for the changes of one room.
#[derive(Debug, Default)]
struct Tally {
    own: u32,
    scenarios: u32,
    whole: u32,
    unviable: u32,
    missed: Vec<String>,
}

/// The tests for a room's changes, each with its time limit.
struct Trial {
    own: Vec<String>,
    own_max: Duration,
    /// `None` for a room that scenarios do not play.
    scenarios_max: Option<Duration>,
    reach: Reach,
}

/// The time that a build after a change may take.
const BUILD_MAX: Duration = Duration::from_secs(300);

/// Draws `count` changes whose names contain one of the words, and tries them in the copy; returns true if every viable
/// one was caught.
pub(super) fn run(
    copy: &Path,
    target: &Path,
    count: usize,
    seed: u64,
    reach: Reach,
    only: &[String],
) -> Result<bool, String> {
    let mut changes = listed(copy, target, only)?;
    changes.retain(|change| {
        only.is_empty() || only.iter().any(|word| change.name.contains(word.as_str()))
    });
    let played = played();
    let mut rooms: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for change in drawn(changes, count, seed) {
        rooms.entry(change.room.clone()).or_default().push(change);
    }
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for (room, changes) in &rooms {
        tallies.insert(room, Tally::of(copy, room, changes, &played, reach)?);
    }
    println!(
        "\n| room | caught by its own tests | by the scenarios | by the whole | missed | unviable |\n|---|---:|---:|---:|---:|---:|"
    );
    for (room, tally) in &tallies {
        let scenarios = match played.contains(*room) {
            true => tally.scenarios.to_string(),
            false => "-".to_owned(),
        };
        let has_whole = *room == COMMANDS || WHOLE_OF.iter().any(|(of, _, _)| of == room);
        let whole = match has_whole && reach == Reach::Whole {
            true => tally.whole.to_string(),
            false => "-".to_owned(),
        };
        println!(
            "| {room} | {} | {scenarios} | {whole} | {} | {} |",
            tally.own,
            tally.missed.len(),
            tally.unviable
        );
    }
    for name in tallies.values().flat_map(|tally| &tally.missed) {
        println!("survived: {name}");
    }
    Ok(tallies.values().all(|tally| tally.missed.is_empty()))
}

impl Trial {
    /// Builds the room's tests and runs them and the scenarios on the unbroken code. Tests that fail there would catch
    /// everything, and their time limits a test that a change makes endless.
    fn unbroken(
        copy: &Path,
        room: &str,
        played: &BTreeSet<String>,
        reach: Reach,
    ) -> Result<Self, String> {
        let own = match VALUES {
            (values, rules) if values == room => of_rooms(&[values, rules], "--tests"),
            _ => of_rooms(&[room], "--tests"),
        };
        let own_max = Self::timed(copy, &own)?;
        println!("{room}: `cargo {}`", own.join(" "));
        let mut scenarios_max = None;
        if played.contains(room) && room != STAGE {
            scenarios_max = Some(Self::timed(copy, &SCENARIOS)?);
            println!("{room}: `cargo {}`", SCENARIOS.join(" "));
        }
        Ok(Self {
            own,
            own_max,
            scenarios_max,
            reach,
        })
    }

    /// The time limit for these tests on a change: several times their duration here.
    fn timed(copy: &Path, command: &[impl AsRef<str>]) -> Result<Duration, String> {
        let command: Vec<&str> = command.iter().map(AsRef::as_ref).collect();
        // Behind `--` are the words for the tests.
        let cargos = command.split(|word| *word == "--").next();
        Self::passed(copy, &[cargos.unwrap_or_default(), &["--no-run"]].concat())?;
        let began = Instant::now();
        Self::passed(copy, &command)?;
        Ok(began.elapsed() * 3 + Duration::from_secs(20))
    }

    fn passed(copy: &Path, command: &[&str]) -> Result<(), String> {
        match ran(copy, command, UNBROKEN_MAX, None)? {
            Ran::Passed => Ok(()),
            Ran::Failed(test) => Err(format!("without a change {test} fails")),
            Ran::NotBuilt(said) => Err(format!("the tests did not run:\n{said}")),
        }
    }
}

impl Tally {
    /// Tries every change of the room, and leaves the copy as it was.
    fn of(
        copy: &Path,
        room: &str,
        changes: &[Change],
        played: &BTreeSet<String>,
        reach: Reach,
    ) -> Result<Self, String> {
        let mut tally = Self::default();
        let switches = Switches::put(copy, room, changes)?;
        let trial = Trial::unbroken(copy, room, played, reach)?;
        println!(
            "{room}: one build holds {} of {} changes",
            switches.held.len(),
            changes.len()
        );
        for &number in &switches.held {
            tally.add(&trial, copy, &changes[number], Some(number))?;
        }
        switches.restore(copy)?;
        let others = changes.iter().enumerate();
        for (_, change) in others.filter(|(number, _)| !switches.held.contains(number)) {
            let path = copy.join(&change.file);
            let text = read(&path)?;
            write(&path, change.made_in(&text)?.as_bytes())?;
            // Most of these compile nowhere, and a check says so without building anything.
            let added = match errors(copy, room)?.is_empty() {
                true => tally.add(&trial, copy, change, None),
                false => {
                    tally.unviable += 1;
                    println!("{}\n  does not compile", change.name);
                    Ok(())
                }
            };
            write(&path, text.as_bytes())?;
            added?;
        }
        Ok(tally)
    }

    /// Tries one change and counts the result. The copy holds it, or it is switched on by its number.
    fn add(
        &mut self,
        trial: &Trial,
        copy: &Path,
        change: &Change,
        number: Option<usize>,
    ) -> Result<(), String> {
        let began = Instant::now();
        let told = self.tried(trial, copy, change, number)?;
        let seconds = began.elapsed().as_secs_f64();
        println!("{}\n  {told} ({seconds:.1} s)", change.name);
        Ok(())
    }

    fn tried(
        &mut self,
        trial: &Trial,
        copy: &Path,
        change: &Change,
        number: Option<usize>,
    ) -> Result<String, String> {
        let noticed = |command: &[String], patience| {
            let build = number.map_or(BUILD_MAX, |_| Duration::ZERO);
            noticed(copy, command, patience + build, number)
        };
        match noticed(&trial.own, trial.own_max)? {
            Noticed::By(test) => {
                self.own += 1;
                return Ok(format!("caught by {test}"));
            }
            Noticed::Unviable => {
                self.unviable += 1;
                return Ok("does not compile".to_owned());
            }
            Noticed::No => {}
        }
        if let Some(patience) = trial.scenarios_max
            && let Noticed::By(test) = noticed(&SCENARIOS.map(str::to_owned), patience)?
        {
            self.scenarios += 1;
            return Ok(format!("caught by {test} of the scenarios"));
        }
        if trial.reach == Reach::Whole
            && let Some(whole) = change.whole()
        {
            println!("  `cargo {}`", whole.join(" "));
            if let Noticed::By(test) = noticed(&whole, WHOLE_MAX)? {
                self.whole += 1;
                return Ok(format!("caught by {test} of the whole"));
            }
        }
        self.missed.push(change.name.clone());
        Ok("missed".to_owned())
    }
}

/// The test that noticed a change.
enum Noticed {
    By(String),
    No,
    /// It does not compile.
    Unviable,
}

fn noticed(
    copy: &Path,
    command: &[String],
    patience: Duration,
    number: Option<usize>,
) -> Result<Noticed, String> {
    Ok(match ran(copy, command, patience, number)? {
        Ran::Passed => Noticed::No,
        Ran::Failed(test) => Noticed::By(test),
        Ran::NotBuilt(said) if said.contains("could not compile") => Noticed::Unviable,
        Ran::NotBuilt(_) => Noticed::By("a run of tests that broke off".to_owned()),
    })
}

/// The rooms that a scenario plays: the room that plays them and those it is built on, down to the disk.
fn played() -> BTreeSet<String> {
    packages::built_into(STAGE, &UNPLAYED)
}

impl Change {
    pub(super) fn read(listed: &Value) -> Result<Self, String> {
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
            genre: text("genre")?.to_owned(),
            room: room.to_string_lossy().into_owned(),
            end: position("end")?,
            file,
            start,
            replacement,
        })
    }

    /// The tests of the whole for a change, if its room has any there. For a file of the commands: the module of
    /// `tests/it` with its name, or the modules we name.
    fn whole(&self) -> Option<Vec<String>> {
        if let Some((_, program, module)) = WHOLE_OF.iter().find(|(of, _, _)| *of == self.room) {
            let command = ["test", "--offline", "--package", WHOLE, "--test", program];
            let command = command.iter().map(|&word| word.to_owned());
            let module = (!module.is_empty()).then(|| ["--".to_owned(), format!("{module}::")]);
            return Some(command.chain(module.into_iter().flatten()).collect());
        }
        let stem = self.file.file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy();
        let files = settled_tests::repository().join("tests/it");
        let named = MODULES.iter().find(|(file, _)| *file == stem);
        let modules = match named {
            _ if self.room != COMMANDS => return None,
            Some((_, module)) => vec![*module],
            None if files.join(format!("{stem}.rs")).exists() => vec![&*stem],
            None => OTHER_MODULES.to_vec(),
        };
        let modules: Vec<String> = modules.iter().map(|name| format!("{name}::")).collect();
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        Some(of_it(WHOLE, &modules))
    }

    /// The file and the change, without the place, which moves with every line above it.
    fn what(&self) -> (&Path, &str) {
        let what = self.name.splitn(4, ':').nth(3);
        (&self.file, what.unwrap_or(&self.name))
    }

    /// Returns the bytes of the text that it replaces.
    pub(super) fn bytes_in(&self, text: &str) -> Result<Range<usize>, String> {
        let place = |position: Position| {
            let lines = text.split_inclusive('\n').take(position.line - 1);
            let before: usize = lines.map(str::len).sum();
            let rest = text.get(before..)?;
            // The position after the last character is valid too.
            let mut columns = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            columns.nth(position.column - 1).map(|at| before + at)
        };
        place(self.start)
            .zip(place(self.end))
            .filter(|(start, end)| start <= end)
            .map(|(start, end)| start..end)
            .ok_or_else(|| format!("{}: there is no such place", self.name))
    }

    /// Returns the file's text with the change.
    fn made_in(&self, text: &str) -> Result<String, String> {
        let bytes = self.bytes_in(text)?;
        let (before, after) = (&text[..bytes.start], &text[bytes.end..]);
        Ok(format!("{before}{}{after}", self.replacement))
    }
}

/// Draws `count` of them, from each room in turn, in an order given by the seed. A change keeps its place in it
/// whatever happens to other code, so that a seed can be repeated after tests were added.
fn drawn(changes: Vec<Change>, count: usize, seed: u64) -> Vec<Change> {
    let mut rooms: BTreeMap<String, Vec<(u64, Change)>> = BTreeMap::new();
    let mut alike: BTreeMap<String, u32> = BTreeMap::new();
    for change in changes {
        let what = format!("{:?}", change.what());
        let before = alike.entry(what.clone()).or_default();
        let key = mixed(seed, &format!("{what} {before}"));
        *before += 1;
        let room = rooms.entry(change.room.clone()).or_default();
        room.push((key, change));
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

/// Hashes a seed and a text: each byte goes through `SplitMix64`.
fn mixed(seed: u64, text: &str) -> u64 {
    text.bytes().fold(seed, |state, byte| {
        let state = (state ^ u64::from(byte)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// Lists every change that `cargo-mutants` proposes in the rooms, except in the output of `Debug`, which nothing
/// promises.
fn listed(copy: &Path, target: &Path, only: &[String]) -> Result<Vec<Change>, String> {
    let output = Command::new(CARGO_MUTANTS.program(target)?)
        .args(["mutants", "--list", "--json"])
        .args(packages_of(only))
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
    let mut changes = listed
        .iter()
        .map(Change::read)
        .collect::<Result<Vec<_>, _>>()?;
    changes.retain(|change| !change.name.contains("fmt::Debug for "));
    Ok(changes)
}

/// The packages to search for changes whose names contain one of the words: only the rooms with which the words begin,
/// if all do, since listing everything takes long.
fn packages_of(only: &[String]) -> Vec<&str> {
    // Each once: a package that is named twice is searched twice.
    let rooms: Option<BTreeSet<&str>> = only.iter().map(|word| room_of(word)).collect();
    match rooms {
        Some(rooms) if !rooms.is_empty() => rooms
            .into_iter()
            .flat_map(|room| ["--package", room])
            .collect(),
        _ => vec!["--workspace"],
    }
}

/// The room with whose full name a word begins.
fn room_of(word: &str) -> Option<&str> {
    let (room, _) = word.strip_prefix("crates/")?.split_once('/')?;
    Some(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(file: &str, line: usize) -> Change {
        let listed = serde_json::json!({
            "file": file, "replacement": "||", "genre": "BinaryOperator",
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
    fn only_the_rooms_that_are_asked_for_are_listed() {
        let packages = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&word| word.to_owned()).collect();
            packages_of(&only).join(" ")
        };
        assert_eq!(packages(&["crates/spool/"]), "--package spool");
        assert_eq!(
            packages(&["crates/spool/src/status.rs", "crates/settled/"]),
            "--package settled --package spool"
        );
        assert_eq!(
            packages(&["crates/spool/src/a.rs", "crates/spool/src/b.rs"]),
            "--package spool"
        );
        assert_eq!(packages(&[]), "--workspace");
        assert_eq!(
            packages(&["crates/settled"]),
            "--workspace",
            "its name begins others'"
        );
        assert_eq!(packages(&["crates/spool/", "status"]), "--workspace");
    }

    #[test]
    fn a_seed_draws_the_same_from_every_room_in_turn() {
        let all = |first: usize| {
            let rooms = ["a", "b", "c"].into_iter();
            let files = rooms.map(|room| format!("crates/{room}/src/lib.rs"));
            files
                .flat_map(|file| (0..50).map(move |line| change(&file, first + line)))
                .collect()
        };
        let first = drawn(all(1), 5, 1);
        let rooms: Vec<&str> = first.iter().map(|change| change.room.as_str()).collect();
        assert_eq!(rooms, ["a", "b", "c", "a", "b"]);
        assert_eq!(drawn(all(1), 5, 1), first);
        assert_ne!(drawn(all(1), 5, 2), first);
        let lines = |drawn: &[Change]| -> Vec<usize> {
            drawn.iter().map(|change| change.start.line).collect()
        };
        let moved: Vec<usize> = lines(&first).iter().map(|line| line + 7).collect();
        assert_eq!(
            lines(&drawn(all(8), 5, 1)),
            moved,
            "seven lines further down"
        );
    }

    #[test]
    fn a_command_is_tried_on_the_modules_that_run_it() {
        let command = |file: &str| {
            let whole = change(&format!("crates/{file}"), 1).whole();
            whole.expect("tests of the whole").join(" ")
        };
        let modules = |file: &str| {
            let command = command(file);
            command.split_once(" -- ").expect("a filter").1.to_owned()
        };
        assert_eq!(modules("settled/src/cli/gate.rs"), "gate_check::");
        assert_eq!(modules("settled/src/cli/trace.rs"), "trace::");
        assert_eq!(
            modules("settled/src/cli/context.rs"),
            "cli:: compose:: people:: agents::"
        );
        assert_eq!(modules("settled-mcp/src/call.rs"), "mcp::");
        let screens = command("settled-watch/src/status.rs");
        assert!(screens.ends_with(" --test screens"), "{screens}");
        assert_eq!(change("crates/spool/src/status.rs", 1).whole(), None);
        let files = settled_tests::repository().join("tests/it");
        let named = MODULES.iter().map(|(_, module)| module);
        for module in named.chain(&OTHER_MODULES) {
            assert!(files.join(format!("{module}.rs")).exists(), "{module}");
        }
        for (_, program, module) in WHOLE_OF {
            let tests = files.join("..").join(program);
            let mut names = [format!("{module}.rs"), format!("{module}/mod.rs")].into_iter();
            let is_there = module.is_empty() || names.any(|name| tests.join(name).exists());
            assert!(
                is_there && tests.join("main.rs").exists(),
                "{program} {module}"
            );
        }
    }

    #[test]
    fn the_scenarios_are_tried_on_what_they_play() {
        let played = played();
        for (room, is_played) in [
            ("message-schema", true),
            ("review", true),
            ("simulate", true),
            ("workspace", true),
            ("spool", false),
            ("disk", false),
            ("daemon", false),
            ("settled", false),
        ] {
            assert_eq!(played.contains(room), is_played, "{room}");
        }
    }
}
