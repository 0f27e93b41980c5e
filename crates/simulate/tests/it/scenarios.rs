//! The rules as scenarios: every file under `tests/scenarios` meets its own expectations, fits the schema, and claims
//! something.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use message_schema::Code;
use serde_json::Value;
use simulate::Transcript;

/// Every scenario, in order.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    find(&folder, &mut files);
    files
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("a folder of scenarios");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    paths.sort();
    for path in paths {
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

/// The transcript of every scenario, played once for all tests.
static PLAYED: LazyLock<Vec<(PathBuf, Transcript)>> = LazyLock::new(|| {
    let files = files();
    let play = |file: &PathBuf| {
        let played = simulate::simulate(&bytes(file), file);
        (
            file.clone(),
            played.unwrap_or_else(|error| panic!("{error}")),
        )
    };
    let (some, others) = files.split_at(files.len() / 2);
    std::thread::scope(|scope| {
        let some = scope.spawn(|| some.iter().map(play).collect::<Vec<_>>());
        let others: Vec<_> = others.iter().map(play).collect();
        let mut all = some.join().expect("readable scenarios");
        all.extend(others);
        all
    })
});

#[test]
fn every_scenario_comes_out_as_it_says() {
    let mut wrong = String::new();
    for (file, transcript) in PLAYED.iter() {
        wrong += &simulate::mismatches(transcript, file);
        if transcript.expected == 0 {
            wrong += &format!("{}: it expects nothing\n", file.display());
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_two_scenarios_claim_the_same() {
    let titles: Vec<&String> = PLAYED.iter().map(|(_, played)| &played.title).collect();
    assert!(
        titles.len() >= 150,
        "the search for scenarios found only {}",
        titles.len()
    );
    let mut distinct = BTreeSet::new();
    let mut twice = titles;
    twice.retain(|title| !distinct.insert(*title));
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
    let outcomes = PLAYED
        .iter()
        .flat_map(|(_, played)| &played.steps)
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
