//! The pages of the codes: every code has one, the rules play both its examples with the results that the page claims,
//! and `settled explain` prints the page.
use std::path::PathBuf;

use message_schema::Code;
use serde_json::Value;
use settled_tests::mailroom::{said, settled};
use settled_tests::{golden, names, read, repository};
use simulate::{Fact, FactKind, Played};
use validate_message::explain::{self, Explained};

/// The lines of the comment that opens a page.
const EXPLANATION_LINES: std::ops::RangeInclusive<usize> = 2..=5;

/// The most columns of a page.
const COLUMNS_MAX: usize = 120;

fn page(code: Code) -> PathBuf {
    repository()
        .join("crates/validate-message/codes")
        .join(format!("{code}.yaml"))
}

/// The steps of a page as its comments divide them: the scene, the failure, the correction.
struct Parts {
    scene: Vec<Played>,
    failing: Vec<Played>,
    fixed: Vec<Played>,
}

/// Plays a page and splits it into its parts by counting steps, which begin with a dash at the same depth.
fn play(code: Code) -> Parts {
    let (file, text) = (page(code), read(page(code)));
    let played =
        simulate::simulate(text.as_bytes(), &file).unwrap_or_else(|error| panic!("{error}"));
    let wrong = simulate::mismatches(&played, &file);
    assert!(wrong.is_empty(), "{wrong}");
    let steps = |text: &str| text.lines().filter(|line| line.starts_with("  - ")).count();
    let (scene, behind) = text
        .split_once("\n  # failing\n")
        .unwrap_or_else(|| panic!("{code}: nothing fails"));
    let (failing, fixed) = behind
        .split_once("\n  # fixed\n")
        .unwrap_or_else(|| panic!("{code}: nothing is done right"));
    let counts = [scene, failing, fixed].map(steps);
    assert_eq!(
        counts.iter().sum::<usize>(),
        played.steps.len(),
        "{code}: {counts:?} steps were found"
    );
    let mut all = played.steps;
    let fixed = all.split_off(counts[0] + counts[1]);
    let failing = all.split_off(counts[0]);
    Parts {
        scene: all,
        failing,
        fixed,
    }
}

fn outcomes(steps: &[Played]) -> impl Iterator<Item = &Fact> {
    steps.iter().flat_map(|step| &step.facts)
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let mut expected: Vec<String> = Code::ALL
        .iter()
        .map(|code| format!("{code}.yaml"))
        .collect();
    expected.sort();
    assert_eq!(
        names(repository().join("crates/validate-message/codes")),
        expected
    );
}

#[test]
fn the_failing_example_yields_the_code_and_no_other() {
    for &code in Code::ALL {
        let Parts { scene, failing, .. } = play(code);
        assert!(
            outcomes(&scene).all(|outcome| outcome.code.is_none()),
            "{code}: it is in the scene already"
        );
        assert!(
            outcomes(&failing).any(|outcome| outcome.code == Some(code)),
            "{code}: {failing:#?}"
        );
        let other =
            outcomes(&failing).find(|outcome| outcome.code.is_some_and(|other| other != code));
        assert!(other.is_none(), "{code}: its example yields {other:?} too");
    }
}

#[test]
fn the_fixed_example_is_accepted() {
    for &code in Code::ALL {
        let Parts { fixed, .. } = play(code);
        let wrong =
            outcomes(&fixed).find(|outcome| outcome.kind == FactKind::No || outcome.code.is_some());
        assert!(wrong.is_none(), "{code}: {wrong:?}");
        assert!(
            outcomes(&fixed).any(|outcome| outcome.kind == FactKind::Yes),
            "{code}: {fixed:#?}"
        );
    }
}

#[test]
fn both_examples_say_what_comes_of_them() {
    for &code in Code::ALL {
        let Explained { failing, fixed, .. } = explain::explain(code);
        assert!(
            failing.contains("expect:") && failing.contains(code.as_str()),
            "{code}:\n{failing}"
        );
        assert!(fixed.contains("expect:"), "{code}:\n{fixed}");
    }
}

#[test]
fn what_is_explained_of_a_code_stands_on_its_own_page() {
    for &code in Code::ALL {
        let (text, explained) = (read(page(code)), explain::explain(code));
        let lines: Vec<&str> = explained.explanation.lines().collect();
        assert!(
            EXPLANATION_LINES.contains(&lines.len()),
            "{code}: {lines:?}"
        );
        let comment: String = lines.iter().map(|line| format!("# {line}\n")).collect();
        assert!(
            text.starts_with(&(comment + "title: ")),
            "{code}: another page was compiled in"
        );
        let is_wide = |line: &&str| line.chars().count() > COLUMNS_MAX;
        assert_eq!(text.lines().find(is_wide), None, "{code}");
    }
}

#[test]
fn no_two_pages_say_the_same() {
    let texts = |of: fn(Explained) -> String| {
        Code::ALL
            .iter()
            .map(|code| of(explain::explain(*code)))
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(texts(|page| page.explanation).len(), Code::ALL.len());
    assert_eq!(texts(|page| page.failing).len(), Code::ALL.len());
}

#[test]
fn every_page_is_of_the_shape_of_a_scenario() {
    let schema: Value = serde_json::from_str(simulate::SCHEMA).expect("a schema is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema of the draft");
    for &code in Code::ALL {
        let document: Value = serde_yaml::from_str(&read(page(code))).expect("it was played");
        let breaches: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(breaches, [""; 0], "{code}");
    }
}

/// The output of the command, which has to end with this exit code.
fn explained(args: &[&str], exit: i32) -> String {
    let output = settled()
        .arg("explain")
        .args(args)
        .output()
        .expect("settled can be run");
    assert_eq!(
        output.status.code(),
        Some(exit),
        "{args:?}: {}",
        said(&output)
    );
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).expect("we print UTF-8")
}

#[test]
fn explain_prints_the_page() {
    golden::check(
        "explain-action_missing.txt",
        &explained(&["action_missing"], 0),
    );
    golden::check(
        "explain-body_field_unknown.txt",
        &explained(&["body_field_unknown"], 0),
    );
    golden::check(
        "explain.json",
        &explained(&["already_approved", "--json"], 0),
    );
}

#[test]
fn explain_lists_every_code() {
    let list = explained(&["--list"], 0);
    let first: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(first, codes);
    let json = explained(&["--list", "--json"], 0);
    let listed: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON document a line"))
        .collect();
    assert_eq!(
        listed
            .iter()
            .map(|page| page["data"]["code"].as_str().expect("a code"))
            .collect::<Vec<_>>(),
        codes
    );
}

#[test]
fn a_code_that_is_not_known_is_not_found_and_the_nearest_is_named() {
    let near = explained(&["acton_missing"], 3);
    assert!(
        near.contains("no code \"acton_missing\"\n  try: settled explain action_missing\n"),
        "{near}"
    );
    let far = explained(&["colour"], 3);
    assert!(far.ends_with("  try: settled explain --list\n"), "{far}");
    explained(&[], 2);
    explained(&["empty", "--list"], 2);
}
