//! The demonstration: its text, and the picture of it in the README.

use settled_tests::mailroom::{said, settled};
use settled_tests::{golden, names, read, repository};

/// The story without ages and sizes.
fn steady(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let unit = words[at]
            .trim_end_matches([',', '\n'])
            .split('\n')
            .next()
            .unwrap_or_default()
            .to_owned();
        if words[at - 1].parse::<u64>().is_ok() && ["s", "KiB,"].contains(&unit.as_str()) {
            words[at - 1] = "0".to_owned();
        }
    }
    words.join(" ")
}

#[test]
fn the_demonstration_is_a_whole_review_and_the_readme_shows_it() {
    let output = settled().arg("demo").output().expect("settled can be run");
    assert!(output.status.success(), "{}", said(&output));
    let text = steady(&String::from_utf8(output.stdout).expect("we print UTF-8"));
    golden::check("demo.txt", &text);
    let picture = repository().join("docs/demo.svg");
    let drawn = demo::svg(&text);
    if std::env::var_os("UPDATE").is_some() {
        settled_tests::write(&picture, &drawn);
    }
    assert!(
        read(&picture) == drawn,
        "docs/demo.svg is not what `settled demo --svg docs/demo.svg` draws; UPDATE=1 writes it"
    );
}

#[test]
fn a_demonstration_leaves_nothing_behind_or_a_workspace_that_was_asked_for() {
    let directory = settled_tests::scratch();
    let run = |args: &[&str]| {
        let output = settled()
            .arg("demo")
            .args(args)
            .env("TMPDIR", directory.path())
            .current_dir(&directory)
            .output();
        output.expect("settled can be run")
    };
    assert!(run(&[]).status.success());
    assert!(names(&directory).is_empty(), "{:?}", names(&directory));
    let kept = run(&["--dir", "kept", "--json"]);
    assert!(kept.status.success(), "{}", said(&kept));
    let lines = String::from_utf8(kept.stdout).expect("we print UTF-8");
    let exits: Vec<i64> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("a JSON document a line")
        })
        .map(|document| document["data"]["exit"].as_i64().expect("an exit code"))
        .collect();
    assert_eq!(
        exits.iter().filter(|exit| **exit == 7).count(),
        1,
        "{exits:?}"
    );
    let status = settled()
        .args(["status", "kept", "--json"])
        .current_dir(&directory)
        .output()
        .expect("settled runs");
    let status: serde_json::Value =
        serde_json::from_slice(&status.stdout).expect("one JSON document");
    assert_eq!(
        (&status["data"]["serving"], &status["data"]["accepted"]),
        (&false.into(), &5.into())
    );
    let again = run(&["--dir", "kept"]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
}
