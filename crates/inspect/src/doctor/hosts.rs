//! Checks the log of a shared ledger with `settled-host`, which has the network client.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use workspace::config::Config;

use super::{CheckContext, CheckOutcome, Checked};

/// The program, beside this one.
const PROGRAM: &str = "settled-host";

/// Runs that program's check; reports nothing where the ledger is not shared.
pub(super) fn hosts(case: &CheckContext<'_>) -> Checked {
    // The check `config` reports a config that cannot be read.
    if Config::load(case.root)
        .unwrap_or_default()
        .ledger
        .log
        .is_none()
    {
        return Ok(Vec::new());
    }
    let settled = std::env::current_exe().map_err(|error| error.to_string())?;
    ask(&settled.with_file_name(PROGRAM), case)
}

/// Runs the program's check and takes over its findings.
pub(super) fn ask(program: &Path, case: &CheckContext<'_>) -> Checked {
    let mut program = Command::new(program);
    program
        .arg("--json")
        .arg("--root")
        .arg(case.root)
        .arg("check");
    if !case.monitors.is_empty() {
        program.arg("--monitor").arg(case.monitors.join(","));
    }
    let output = program.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| format!("{PROGRAM} cannot be run: {error}"))?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{PROGRAM} gave no answer: {error}"))?;
    let Some(findings) = said["data"]["findings"].as_array() else {
        let why = said["error"]["message"]
            .as_str()
            .unwrap_or("it says nothing");
        return Err(format!("{PROGRAM}: {why}"));
    };
    let outcome = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        match finding["state"].as_str() {
            Some("ok") => CheckOutcome::ok(text("what")),
            Some("wrong") => CheckOutcome::wrong(text("what"), text("fix")),
            Some(_) | None => CheckOutcome::note(text("what")),
        }
    };
    Ok(findings.iter().map(outcome).collect())
}
