//! `cargo xtask mutants`: breaks the code in a copy, one mutant after the other, and names the test that notices. A
//! test that cannot fail proves nothing, and an unnoticed mutant exposes one.

mod as_host;
mod mutant;
mod sample;
mod switch;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};
use settled_tests::binaries;

use self::mutant::Mutant;
use self::sample::Reach;

/// Apply each mutant to a copy of the code; name the test that catches it
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only mutants whose name contains one of these
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// File for the table, beside standard output
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Sample this many of cargo-mutants' mutants from all rooms in turn; `--only crates/ROOM/` draws from one
    #[arg(long, value_name = "N", conflicts_with = "table")]
    sample: Option<usize>,
    /// Make one of three hosts the mutant and check that the others freeze; for mutants that a record shows
    #[arg(long, conflicts_with_all = ["table", "sample"])]
    as_host: bool,
    /// Seed of the sample: the same seed draws the same mutants
    #[arg(long, value_name = "S", default_value_t = 1, requires = "sample")]
    seed: u64,
    /// Skip `tests/it`, whose build takes minutes for each mutant
    #[arg(long, requires = "sample")]
    own: bool,
}

/// The time after which a run of tests counts as endless, if no run was timed before.
const PATIENCE: Duration = Duration::from_secs(600);

/// The most memory in bytes that a program of the tests, or a compiler, may have: an endless mutant that collects what
/// it makes took 7 GB before its time was up.
const MEMORY_MAX: u64 = 4 << 30;

/// The package of the tests of the whole.
const WHOLE: &str = "settled-tests";

/// The rules as scenarios, and the state each leaves after a start, from a snapshot and after an undone batch.
const SCENARIOS: [&str; 8] = [
    "test",
    "--offline",
    "--package",
    "simulate",
    "--test",
    "it",
    "--",
    "scenarios::",
];

/// Returns the command that runs some modules of a package's tests named `it`.
fn of_it(package: &str, modules: &[&str]) -> Vec<String> {
    let command = ["test", "--offline", "--package", package];
    let words = command.iter().chain(&["--test", "it", "--"]).chain(modules);
    words.map(|&word| word.to_owned()).collect()
}

/// Returns the command that runs one kind of tests, `--tests` or `--lib`, of some rooms.
fn of_rooms(rooms: &[&str], kind: &str) -> Vec<String> {
    let rooms = rooms.iter().flat_map(|&room| ["--package", room]);
    let words = ["test", "--offline"].into_iter().chain(rooms);
    words.chain([kind]).map(str::to_owned).collect()
}

/// Returns the command for the word by which a mutant names its tests.
fn suite(word: &str) -> Option<Vec<String>> {
    let whole = |module| of_it(WHOLE, &[module]);
    match word {
        // Kills at the calls of a mix of messages, and of a whole review.
        "crash" => Some(whole("crash::a_kill_at_a_call")),
        "crash-of-review" => Some(whole("crash::a_kill_at_any_step")),
        // Failing calls, the short form.
        "faults" => Some(whole("faults::")),
        // Failures around the daemon.
        "environment" => Some(whole("environment::")),
        "power" => Some(whole(
            "power::nothing_promised_is_lost_on_a_disk_that_forgets",
        )),
        "pairs" => Some(whole("pair::edges")),
        "mcp" => Some(whole("mcp::")),
        "runs" => Some(whole("runner::")),
        "gate" => Some(whole("gate_check")),
        "verdict" => Some(whole("verdict_files")),
        "scenarios" => Some(SCENARIOS.map(str::to_owned).to_vec()),
        "walk" => Some(of_rooms(&["settled-model"], "--tests")),
        "review" => Some(of_rooms(
            &["review", "pair-machine", "policy", "review-words"],
            "--tests",
        )),
        "validator" => Some(of_rooms(&["validate-message-cli"], "--tests")),
        "hosts" => Some(of_it("daemon", &["hosts::"])),
        "log-suite" => Some(of_rooms(&["log-suite"], "--tests")),
        "daemon" | "pair" | "setup" | "spool" | "validate-message" => {
            Some(of_rooms(&[word], "--tests"))
        }
        "schema" => Some(of_rooms(&["message-schema"], "--lib")),
        "disk" | "inspect" | "judgement" | "runner" => Some(of_rooms(&[word], "--lib")),
        _ => None,
    }
}

/// Runs the mutants; returns true if each was noticed.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .map_err(|e| e.to_string())?;
    // All that this starts inherits it.
    setrlimit(
        Resource::Data,
        Rlimit {
            current: Some(MEMORY_MAX),
            maximum: Some(MEMORY_MAX),
        },
    )
    .map_err(|error| format!("cannot limit memory: {error}"))?;
    // Beside the build of these sources, so that two working trees do not break each other's copy.
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let copy = target.join("mutants");
    copy_sources(&root, &copy)?;
    if let Some(count) = args.sample {
        let reach = match args.own {
            true => Reach::Own,
            false => Reach::Whole,
        };
        return sample::run(&copy, &target, count, args.seed, reach, &args.only);
    }
    if args.as_host {
        return as_host::run(&root, &copy, &args.only);
    }
    let is_asked = |mutant: &Mutant| {
        let mut words = args.only.iter();
        args.only.is_empty() || words.any(|word| mutant.name.contains(word.as_str()))
    };
    let mutants: Vec<Mutant> = Mutant::all(&root)?.into_iter().filter(is_asked).collect();
    if mutants.is_empty() {
        return Err(format!(
            "no mutant's name contains {}",
            args.only.join(" or ")
        ));
    }
    check_the_unbroken(&copy, &mutants)?;

    let mut table =
        "| mutant | what goes wrong | caught by | seconds |\n|---|---|---|---:|\n".to_owned();
    print!("{table}");
    let mut survivors = 0;
    for mutant in &mutants {
        let began = Instant::now();
        let caught = with_mutant(&copy, mutant)?;
        survivors += u32::from(caught.is_none());
        let caught = caught.unwrap_or_else(|| "**nobody**".to_owned());
        let seconds = began.elapsed().as_secs_f64();
        let line = format!(
            "| {} | {} | {caught} | {seconds:.0} |\n",
            mutant.name, mutant.what
        );
        print!("{line}");
        table += &line;
    }
    println!("\n{} mutants, {survivors} survived", mutants.len());
    if let Some(path) = &args.table {
        std::fs::write(path, table).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(survivors == 0)
}

/// Copies tracked and new files if they differ. An unchanged copy keeps its times, so cargo does not rebuild it.
fn copy_sources(root: &Path, copy: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let kept: BTreeSet<PathBuf> = listed.lines().map(|name| copy.join(name)).collect();
    for directory in ["crates", "tests", "xtask"] {
        remove_others(&copy.join(directory), &kept)?;
    }
    for name in listed.lines() {
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(bytes) = std::fs::read(&from) else {
            continue;
        };
        if std::fs::read(&to).ok().as_ref() != Some(&bytes) {
            write(&to, &bytes)?;
        }
        // Keep the executable bit.
        let mode = std::fs::metadata(&from)
            .and_then(|data| std::fs::set_permissions(&to, data.permissions()));
        mode.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

/// Removes files that the sources no longer have: a leftover test file would still run.
fn remove_others(directory: &Path, kept: &BTreeSet<PathBuf>) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(());
    };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            remove_others(&path, kept)?;
            // This fails for a directory that is not empty, which stays.
            let _ = std::fs::remove_dir(&path);
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns cargo in the copy. Every call has these settings: with others, cargo would build everything again.
fn cargo_in(copy: &Path) -> Command {
    let mut cargo = binaries::cargo();
    cargo
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        // Nobody debugs a mutant, and tests without debug info link faster.
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        // A change whose constant overflows is one that a test can catch, and no reason not to build all others.
        .env("RUSTFLAGS", "--cap-lints=warn")
        .stdin(Stdio::null());
    cargo
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .map_err(named)?;
    std::fs::write(path, bytes).map_err(named)
}

/// Checks that the tests pass without a mutant; a failing one would catch everything.
fn check_the_unbroken(copy: &Path, mutants: &[Mutant]) -> Result<(), String> {
    let mut words: Vec<&String> = mutants.iter().flat_map(|mutant| &mutant.tests).collect();
    words.sort();
    words.dedup();
    for word in words {
        if let Some(failure) = failure(copy, word)? {
            return Err(format!("{word} fails without a mutant: {failure}"));
        }
    }
    Ok(())
}

/// Returns the test that noticed the mutant; `None` if none did.
fn with_mutant(copy: &Path, mutant: &Mutant) -> Result<Option<String>, String> {
    with_changes(copy, mutant, || {
        for word in &mutant.tests {
            if let Some(found) = failure(copy, word)? {
                return Ok(Some(format!("{word}: {found}")));
            }
        }
        Ok(None)
    })
}

/// Runs `act` while the copy has this mutant, and restores the copy afterwards.
fn with_changes<T>(
    copy: &Path,
    mutant: &Mutant,
    act: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let mut before: Vec<(PathBuf, String)> = Vec::new();
    let mut changed = Ok(());
    for change in &mutant.changes {
        let path = copy.join(&change.file);
        let text = read(&path)?;
        match change.made_in(&text) {
            Ok(changed) => write(&path, changed.as_bytes())?,
            Err(error) => changed = Err(error),
        }
        before.push((path, text));
    }
    let done = changed.and_then(|()| act());
    for (path, text) in before.iter().rev() {
        write(path, text.as_bytes())?;
    }
    done.map_err(|error| format!("{}: {error}", mutant.name))
}

/// The first failure of these tests, if any; fails if they do not build.
fn failure(copy: &Path, word: &str) -> Result<Option<String>, String> {
    let command = suite(word).ok_or_else(|| format!("there are no tests called `{word}`"))?;
    match ran(copy, &command, PATIENCE, None)? {
        Ran::Passed => Ok(None),
        Ran::Failed(test) => Ok(Some(test)),
        Ran::NotBuilt(text) => Err(format!("the tests did not run:\n{text}")),
    }
}

/// The result of running tests.
enum Ran {
    /// All tests passed.
    Passed,
    /// A test failed: the first one, or the law or the scenario that it names.
    Failed(String),
    /// The tests did not build; cargo's output.
    NotBuilt(String),
}

/// Runs tests on the copy, for at most `patience`, with one of the changes that it holds behind a switch, if any.
fn ran(
    copy: &Path,
    command: &[impl AsRef<str>],
    patience: Duration,
    switched: Option<usize>,
) -> Result<Ran, String> {
    let log = copy.join("target-of-mutants.log");
    let file =
        std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = file.try_clone().map_err(|error| error.to_string())?;
    let mut child = cargo_in(copy)
        .args(command.iter().map(AsRef::as_ref))
        .envs(switched.map(|number| (switch::CHOSEN, number.to_string())))
        // The group ends cargo together with the tests that it starts.
        .process_group(0)
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|error| error.to_string())?;
    // The log of a running test may end within a letter.
    let read_log = || {
        let bytes = std::fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        let is_late = began.elapsed() > patience;
        // A change needs one failure, and the tests after it may take long.
        let failed = match switched {
            Some(_) => failed_test(&read_log()?),
            None => None,
        };
        if is_late || failed.is_some() {
            rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL)
                .map_err(std::io::Error::from)
                .and_then(|()| child.wait())
                .map_err(|error| error.to_string())?;
            let seconds = patience.as_secs();
            return Ok(Ran::Failed(
                failed.unwrap_or_else(|| format!("no end after {seconds} s")),
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let text = read_log()?;
    if status.success() {
        return Ok(Ran::Passed);
    }
    let find = |prefix: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(prefix).map(str::to_owned))
    };
    let law = find("broken: ").map(|law| format!("*{law}*"));
    let named =
        law.or_else(|| failed_test(&text).map(|test| failed_scenario(&text).unwrap_or(test)));
    Ok(named.map_or(Ran::NotBuilt(text), Ran::Failed))
}

/// Returns the first scenario that the test of all scenarios names: `FILE:LINE: step N: …`.
fn failed_scenario(text: &str) -> Option<String> {
    let file = text.lines().find_map(|line| {
        let (_, named) = line.split_once("tests/scenarios/")?;
        named.split_once(".yaml:").map(|(file, _)| file)
    });
    file.map(|file| format!("`tests/scenarios/{file}.yaml`"))
}

/// Returns the first test that these words of `cargo test` call failed.
fn failed_test(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let test = lines.find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    test.map(|test| format!("`{test}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scenarios_notice_is_named_by_the_first_that_failed() {
        let text = "     Running tests/scenarios.rs (target/debug/deps/scenarios-1)\n\
                    test every_scenario_comes_out_as_it_says ... FAILED\n\n\
                    /x/crates/simulate/../../tests/scenarios/gate/a.yaml:7: step 2: accepted, expected refused\n\
                    /x/crates/simulate/../../tests/scenarios/gate/b.yaml:9: final: nothing is left\n";
        let scenario = failed_scenario(text).expect("one is named");
        assert_eq!(scenario, "`tests/scenarios/gate/a.yaml`");
        assert_eq!(failed_scenario(&text[..90]), None);
    }
}
