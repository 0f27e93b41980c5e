//! `settled mcp` with third-party clients: the official TypeScript SDK, and the command line of its inspector.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{binaries, repository};

use super::install::version;

/// Returns the most tokens that the definitions take, or the fault of either client.
pub(super) fn play(bin: &Path) -> Result<u64, String> {
    let mailroom = Mailroom::on_disk(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let tokens = sdk(bin, &mailroom)?;
    inspector(bin, &mailroom)?;
    Ok(tokens)
}

fn sdk(bin: &Path, mailroom: &Mailroom) -> Result<u64, String> {
    // Node looks for a module beside the script.
    let script = bin.join("../../sdk.mjs");
    std::fs::copy(repository().join("tests/agents/sdk.mjs"), &script)
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let mut node = Command::new("node");
    node.arg(&script)
        .arg(binaries::settled())
        .arg(mailroom.root());
    let output = ran(&mut node)?;
    let tokens = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    println!(
        "@modelcontextprotocol/sdk {}: a review, at most {tokens} tokens of definitions",
        version("@modelcontextprotocol/sdk")
    );
    tokens
        .parse()
        .map_err(|_| format!("the SDK counts `{tokens}` tokens"))
}

fn inspector(bin: &Path, mailroom: &Mailroom) -> Result<(), String> {
    let mut inspector = Command::new(bin.join("mcp-inspector"));
    inspector
        .arg("--cli")
        .arg(binaries::settled())
        .args(["mcp", "--agent", "codex", "--root"])
        .arg(mailroom.root())
        .args(["--method", "tools/call", "--tool-name", "next"]);
    let output = ran(&mut inspector)?;
    let document: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let text = document["content"][0]["text"].as_str().unwrap_or_default();
    let answer: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    if answer["data"]["agent"] != "codex" {
        return Err(format!("the inspector shows {answer}"));
    }
    println!(
        "@modelcontextprotocol/inspector {}: calls a tool from its command line",
        version("@modelcontextprotocol/inspector")
    );
    Ok(())
}

fn ran(command: &mut Command) -> Result<Output, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(format!("{command:?}: {}", said(&output)))
    }
}
