//! The command `settled simulate`: its exit codes, its JSON, and scenarios with unreadable ones among them. The room
//! `simulate` plays the files of `tests/scenarios` in its own tests.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use settled_tests::mailroom::said;
use settled_tests::{binaries, golden, write};

fn settled(directory: &Path, args: &[&str]) -> Output {
    Command::new(binaries::settled())
        .args(args)
        .current_dir(directory)
        .output()
        .expect("settled can be run")
}

#[test]
fn the_command_tells_right_from_wrong_by_its_exit_code() {
    let directory = settled_tests::scratch();
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

    // An unreadable file does not prevent the others from being played; each has its line.
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
