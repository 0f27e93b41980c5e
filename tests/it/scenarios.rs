//! The rules as scenarios: every file under `tests/scenarios` comes out as it says, is of the shape
//! the schema describes, and claims something.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use message_schema::Code;
use serde_json::Value;
use settled_tests::mailroom::said;
use settled_tests::{binaries, golden, list, repository, write};
use simulate::Transcript;

/// Every scenario, in order.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    find(&repository().join("tests/scenarios"), &mut files);
    files
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    for path in list(directory) {
        if path.is_dir() {
            find(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
}

fn bytes(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn play(file: &Path) -> Transcript {
    simulate::simulate(&bytes(file), file).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_comes_out_as_it_says() {
    let mut wrong = String::new();
    for file in files() {
        let transcript = play(&file);
        wrong += &simulate::mismatches(&transcript, &file);
        if transcript.expected == 0 {
            wrong += &format!("{}: it expects nothing\n", file.display());
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_two_scenarios_claim_the_same() {
    let titles: Vec<String> = files().iter().map(|file| play(file).title).collect();
    assert!(
        titles.len() >= 150,
        "the search for scenarios found only {}",
        titles.len()
    );
    let mut distinct = BTreeSet::new();
    let twice: Vec<&String> = titles
        .iter()
        .filter(|title| !distinct.insert(*title))
        .collect();
    assert!(twice.is_empty(), "two scenarios have one title: {twice:?}");
}

#[test]
fn every_scenario_is_of_the_shape_the_schema_describes() {
    let schema: Value = serde_json::from_str(simulate::SCHEMA).expect("a schema is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema of the draft");
    let check = |name: &str, text: &str| {
        let document: Value =
            serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let breaches: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        breaches
    };
    for file in files() {
        let text = String::from_utf8(bytes(&file)).expect("scenarios are UTF-8");
        let name = file.display().to_string();
        assert_eq!(check(&name, &text), [""; 0], "{name}");
    }
    for (what, text) in [
        ("no title", "steps: [{send: question}]"),
        ("no step", "title: x\nsteps: []"),
        (
            "an unknown key",
            "title: x\nsteps: [{send: question}]\ncolour: red",
        ),
        (
            "a step that does two things",
            "title: x\nsteps: [{send: question, wait: 2h}]",
        ),
        (
            "a step that does nothing",
            "title: x\nsteps: [{expect: accepted}]",
        ),
        ("no span", "title: x\nsteps: [{wait: soon}]"),
        ("no action", "title: x\nsteps: [{pr: squashed}]"),
    ] {
        assert!(!check(what, text).is_empty(), "the schema admits {what}");
        let read = simulate::simulate(text.as_bytes(), Path::new("x.yaml"));
        assert!(read.is_err() || what == "no step", "{what} can be played");
    }
}

#[test]
fn every_code_is_reached_by_a_scenario() {
    let transcripts: Vec<Transcript> = files().iter().map(|file| play(file)).collect();
    let outcomes = transcripts
        .iter()
        .flat_map(|played| &played.steps)
        .flat_map(|step| &step.facts);
    let reached: BTreeSet<Code> = outcomes.filter_map(|outcome| outcome.code).collect();
    let unreached = Code::ALL
        .iter()
        .filter(|code| !reached.contains(code))
        .map(|code| code.as_str());
    assert_eq!(
        unreached.collect::<Vec<_>>(),
        [""; 0],
        "no scenario reaches these codes"
    );
}

fn settled(directory: &Path, args: &[&str]) -> Output {
    Command::new(binaries::settled())
        .args(args)
        .current_dir(directory)
        .output()
        .expect("settled can be run")
}

#[test]
fn the_command_tells_right_from_wrong_by_its_exit_code() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = [
        (
            "good.yaml",
            "title: a question is delivered\nsteps: [{send: question, expect: accepted -> delivered to codex}]\n",
        ),
        (
            "other.yaml",
            "title: a question is refused\nsteps: [{send: question, expect: refused expired}]\n",
        ),
        (
            "broken.yaml",
            "title: nothing can be read\nsteps:\n  - sned: question\n",
        ),
        (
            "config.yaml",
            "title: four rounds\nconfig: {rounds: {max: 4}}\nsteps: [{send: question}]\n",
        ),
    ];
    for (name, text) in files {
        write(directory.path().join(name), text);
    }
    for (args, code, says) in [
        (&["good.yaml"][..], 0, "accepted -> delivered to codex"),
        (
            &["good.yaml", "other.yaml"],
            1,
            "other.yaml:2: step 1: expected: refused expired\n",
        ),
        (&["broken.yaml"], 2, "broken.yaml:3:5: a step has no `sned`"),
        (
            &["config.yaml"],
            2,
            "config.yaml:2:19: config_invalid: rounds.max is 4",
        ),
        (&["absent.yaml"], 3, "absent.yaml: "),
    ] {
        let output = settled(directory.path(), &[&["simulate"], args].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            said(&output)
        );
        let text = [output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat();
        assert!(
            text.contains(says),
            "{args:?} does not say {says:?}: {text}"
        );
    }
    let output = settled(
        directory.path(),
        &["simulate", "--json", "good.yaml", "other.yaml"],
    );
    let documents = String::from_utf8(output.stdout).expect("we print UTF-8");
    let pretty: String = documents
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON document a line"))
        .map(|document| {
            serde_json::to_string_pretty(&document).expect("a tree of values is JSON") + "\n"
        })
        .collect();
    golden::check("simulate.json", &pretty);

    // One that cannot be read keeps none of the others from being played; each has its line.
    let args = [
        "simulate",
        "--json",
        "absent.yaml",
        "broken.yaml",
        "good.yaml",
    ];
    let output = settled(directory.path(), &args);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let told: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON document a line"))
        .collect();
    let are_ok: Vec<&Value> = told.iter().map(|document| &document["ok"]).collect();
    assert_eq!(are_ok, [false, false, true]);
    assert_eq!(told[1]["error"]["exit"], 2, "{}", told[1]);
}

#[test]
fn what_a_line_names_is_a_key_in_json_and_each_review_an_object() {
    let text = "title: x\nsteps:\n  - send: review_request\n  - send: {type: review_request, body: {pr: \"87\"}}\n  \
                - send: {type: review_feedback, packet: [{id: F-001, severity: P1}]}\n  - send: review_addressed\n  \
                - send: review_request\n  - send: {type: review_lgtm, packet: [{id: F-001, severity: P1, action: reply}]}\n";
    let played = simulate::simulate(text.as_bytes(), Path::new("x.yaml")).expect("readable");
    let json = serde_json::to_value(&played).expect("JSON");
    let fact = |step: usize, n: usize| &json["steps"][step]["outcomes"][n];
    assert_eq!(
        (&fact(0, 0)["phase"], &fact(0, 0)["round"]),
        (&"reviewing".into(), &1.into())
    );
    let thread = fact(2, 1);
    assert_eq!(
        (&thread["thread"], &thread["round_count"], &thread["state"]),
        (&"F-001".into(), &0.into(), &"open".into())
    );
    let refused = fact(5, 0);
    assert_eq!(
        (&refused["code"], &refused["thread"]),
        (&"action_illegal".into(), &"F-001".into()),
        "{refused}"
    );
    let reviews = json["final"].as_array().expect("a list");
    let runs: Vec<(&Value, &Value)> = reviews
        .iter()
        .map(|one| (&one["review"], &one["run"]))
        .collect();
    assert_eq!(
        runs,
        [
            (&"#86 claude -> codex".into(), &"reviewing".into()),
            (&"#87 claude -> codex".into(), &"reviewing".into())
        ]
    );
    assert_eq!(reviews[0]["attempts_left"], 2);
    assert_eq!(reviews[0]["threads"]["F-001"]["severity"], "P1");
}
