//! A person's first steps with an installation: a workspace is served, and each command that starts another program
//! finds it, wherever the programs are.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::mailroom::said;
use crate::{debian, wait};

/// The first messages of an MCP client.
const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
);

/// Serves a workspace below `place` and shows it in every way; `program` starts an installed program by name.
pub fn works(program: impl Fn(&str) -> Command, place: &Path) {
    let root = place.join("mailroom");
    let mut daemon = started(
        program("settled")
            .arg("up")
            .arg(&root)
            .args(["--agents", "claude,codex"]),
    );
    wait::until("the daemon serves", || {
        spool::is_served(&root) == Some(true)
    });
    let frame = debian::step(
        program("settled").args(["watch", "--once"]).arg(&root),
        "no frame",
    );
    assert!(frame.contains("a daemon is serving"), "{frame}");
    let help = debian::step(program("settled-watch").arg("--help"), "no live screen");
    assert!(help.contains("--review"), "{help}");
    shows_the_page(program("settled").arg("page").arg(&root));
    offers_tools(
        program("settled")
            .args(["mcp", "--agent", "codex", "--root"])
            .arg(&root),
    );
    ended(&mut daemon);
    assert_eq!(
        spool::is_served(&root),
        Some(false),
        "the daemon itself ended"
    );
}

fn shows_the_page(page: &mut Command) {
    let mut page = started(page.stdout(Stdio::piped()));
    let out = page.stdout.take().expect("it is a pipe");
    let mut link = String::new();
    BufReader::new(out).read_line(&mut link).expect("UTF-8");
    assert!(link.starts_with("open http://127.0.0.1:"), "{link}");
    kill(&page);
    page.wait().expect("it ends");
}

fn offers_tools(mcp: &mut Command) {
    let mut server = started(mcp.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut input = server.stdin.take().expect("it is a pipe");
    input.write_all(GREETING.as_bytes()).expect("it reads");
    drop(input);
    let output = server.wait_with_output().expect("it ends with its input");
    let answers = said(&output);
    assert!(output.status.success(), "{answers}");
    assert!(answers.contains(r#""name":"wait""#), "{answers}");
}

fn started(command: &mut Command) -> Child {
    let program = command.get_program().to_os_string();
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", OsStr::display(&program)))
}

fn kill(child: &Child) {
    let pid = i32::try_from(child.id()).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a pid"), Signal::TERM).expect("it runs");
}

/// Ends a process as a supervisor does and checks that it exits with success, even behind a launcher.
fn ended(child: &mut Child) {
    kill(child);
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}");
}
