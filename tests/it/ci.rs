//! The jobs in `docs/ci.md` are valid workflows: their steps run existing commands, with values from the environment.

use serde_json::Value;
use settled_tests::mailroom::{said, settled};
use settled_tests::{markdown, read, repository};

fn workflows() -> Vec<Value> {
    let page = read(repository().join("docs/ci.md"));
    let blocks = markdown::blocks(&page)
        .into_iter()
        .filter(|block| block.info == "yaml");
    blocks
        .map(|block| serde_yaml::from_str(&block.text).expect("a workflow is YAML"))
        .collect()
}

fn steps(workflow: &Value) -> Vec<(Value, String)> {
    let jobs = workflow["jobs"].as_object().expect("a workflow has jobs");
    let runs = jobs.values().flat_map(|job| {
        let steps = job["steps"].as_array().expect("a job has steps").iter();
        steps.filter_map(|step| Some((job["env"].clone(), step["run"].as_str()?.to_owned())))
    });
    runs.collect()
}

#[test]
fn every_workflow_has_what_a_workflow_needs() {
    let workflows = workflows();
    assert_eq!(workflows.len(), 2);
    for workflow in &workflows {
        assert!(
            workflow["name"].is_string() && !workflow["on"].is_null(),
            "{workflow}"
        );
        assert_eq!(
            workflow["permissions"],
            serde_json::json!({"contents": "read"})
        );
        for job in workflow["jobs"].as_object().expect("jobs").values() {
            assert!(!job["runs-on"].is_null(), "{job}");
            let is_step = |step: &Value| step["run"].is_string() ^ step["uses"].is_string();
            assert!(
                job["steps"]
                    .as_array()
                    .is_some_and(|steps| steps.iter().all(is_step)),
                "{job}"
            );
        }
    }
}

#[test]
fn every_step_runs_a_command_that_takes_these_options_and_no_text_from_elsewhere() {
    let steps: Vec<_> = workflows().iter().flat_map(steps).collect();
    let ours: Vec<_> = steps
        .iter()
        .filter(|(_, run)| run.starts_with("settled "))
        .collect();
    assert_eq!(ours.len(), 3, "{steps:?}");
    for (env, run) in ours {
        assert!(
            !run.contains("${{"),
            "what others named goes through the environment: {run}"
        );
        let words: Vec<&str> = run
            .split_whitespace()
            .skip(1)
            .map(|word| word.trim_matches('"'))
            .collect();
        for variable in words.iter().filter_map(|word| word.strip_prefix('$')) {
            assert!(
                variable.starts_with("GITHUB_") || env[variable].is_string(),
                "{variable} is set: {run}"
            );
        }
        let values = words.iter().map(|word| match *word {
            "$HEAD" => "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21",
            "$PR" => "86",
            "$BASE" => "main",
            "$GITHUB_REPOSITORY" => "owner/name",
            "$SEAL" => "sha256:0000000000000000000000000000000000000000000000000000000000000000",
            word => word,
        });
        // There is no workspace: the error must say that, not that the command line is wrong.
        let output = settled()
            .args(values)
            .env("SETTLED_ROOT", "/absent")
            .output()
            .expect("settled can be run");
        assert_eq!(output.status.code(), Some(3), "{run}: {}", said(&output));
    }
}
