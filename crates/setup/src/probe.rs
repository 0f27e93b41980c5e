//! Starts an agent's command once, in a workspace of its own, with a request that asks for nothing but an answer. The
//! daemon, the brief, the prompt and the reading of the answer are the real ones.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use git::Repository;
use message_schema::id::AgentName;
use runner::folder;
use serde::Serialize;
use serde_json::Value;
use toml_edit::DocumentMut;
use workspace::config::FILE;

use crate::section::KnownProgram;
use crate::version::Versions;

/// The finding about an agent that is set up with the tools of `settled mcp` and did not use them.
const WITHOUT_TOOLS: &str =
    "it answered, but not by the tools of `settled mcp`, with which it is set up";

/// The start of the message that the server of these tools does not start.
const NO_SERVER: &str = "`settled mcp` lists no tools";

/// A client's requests up to the list of a server's tools.
const FRAMES: &str = concat!(
    r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "#,
    r#""capabilities": {}, "clientInfo": {"name": "settled doctor", "version": "1"}}}"#,
    "\n",
    r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}"#,
    "\n",
);

/// Parts of a set-up, in its command or its variables, that give an agent these tools.
const TOOLS: [&str; 4] = [
    "--mcp-config",
    "mcp_servers.settled",
    "--allowed-mcp-server-names",
    "\"mcp\":",
];

/// The start of a message that the daemon makes from the output of an agent's command.
const PRINTED: &str = "id: run-";

/// The inbox that receives the answer.
const INBOX: &str = "agents/doctor/inbox";

/// The finding about an answer that lacks the word of the brief.
const UNREAD: &str = "it answered, but not what its brief asks for: it may have read nothing";

/// The longest time between an answer's record and its files.
const ANSWER_FILES_MAX: Duration = Duration::from_secs(5);

/// The longest time the daemon takes to end a command whose budget is used up.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// The request as one line of YAML.
const TASK: &str = "\"A probe: there is nothing to review, and nothing to change. Answer by response_schema with one finding of \
                    severity P3, whose title and file are the one changed file that the brief names.\"";

/// The seconds that a program may take.
pub const SECONDS_MAX: u64 = 120;

/// The agent that makes the request.
const ASKER: &str = "doctor";

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The agent read its brief and gave an answer that counts.
    Answered {
        /// The seconds it took.
        seconds: u64,
    },
    /// The agent gave no answer that counts.
    Failed {
        /// The reason, in the daemon's words.
        why: String,
        /// The folder of the probe, with everything that the command was given and printed.
        folder: PathBuf,
    },
}

/// The finding of a probe about an agent.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeFinding {
    /// The agent.
    pub agent: AgentName,
    /// True if its answer counts.
    pub ok: bool,
    /// The result, in one sentence.
    pub what: String,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The folder of a probe that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The installed and the tried version, for a known program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Versions>,
    /// A warning that the installed version is not the tried one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Returns the finding for a person, with the fix for a known cause and a note on the version of the program. `walls`
/// lists the variables that a program in a sandbox gets.
pub fn finding(
    agent: &AgentName,
    (known, walls): (Option<KnownProgram>, Option<&[String]>),
    version: Option<Versions>,
    outcome: &ProbeOutcome,
) -> ProbeFinding {
    let (what, fix, folder) = match outcome {
        ProbeOutcome::Answered { seconds } => (
            format!(
                "its program started, read its brief and gave an answer that counts, in {seconds} s"
            ),
            None,
            None,
        ),
        ProbeOutcome::Failed { why, folder } => {
            let fix = fix(why, known, walls);
            (why.clone(), Some(fix), Some(folder.clone()))
        }
    };
    ProbeFinding {
        agent: agent.clone(),
        ok: matches!(outcome, ProbeOutcome::Answered { .. }),
        what,
        fix,
        folder,
        note: known
            .zip(version.as_ref())
            .and_then(|(known, version)| version.note(known)),
        version,
    }
}

fn fix(why: &str, known: Option<KnownProgram>, walls: Option<&[String]>) -> String {
    let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if let Some(names) = walls.filter(|_| says(&["not logged in"])) {
        let variables = match names {
            [] => "name the variable of its login in `env` of its sandbox".to_owned(),
            names => format!("set {} for the daemon", names.join(" or ")),
        };
        return format!(
            "{variables}: its sandbox hides a login in a file that `reads` does not name"
        );
    }
    if says(&["not logged in"]) {
        let login = known.map(KnownProgram::login);
        return login.unwrap_or_else(|| "log the program in, as the daemon's user".to_owned());
    }
    if says(&["quota is used up"]) {
        return "wait until the quota is renewed, or let another agent review".to_owned();
    }
    if says(&[NO_SERVER]) {
        return "install `settled-mcp` in the directory of `settled`, where every package has it"
            .to_owned();
    }
    if says(&["`leave_out` needs a tree"]) {
        return "let it review a repository with a commit (`workdir`), or set checkout = \"workdir\" to let it read all files there"
            .to_owned();
    }
    if says(&["cannot be started"]) {
        return "install the program, or name it by its whole path in `command`".to_owned();
    }
    if says(&[UNREAD]) {
        return "let it read the folder of its run ({run}), as `settled agent add --replace` writes it; its answer is in the \
                output of its command"
            .to_owned();
    }
    if says(&[WITHOUT_TOOLS]) {
        return "`settled mcp` itself works, so the program did not start it: `settled agent add --mcp --replace` writes the tried \
                command; its output, and for Gemini CLI ~/.gemini/settings.json, show which servers it starts"
            .to_owned();
    }
    if says(&["trust"]) {
        return "start the program once in the folder and trust it".to_owned();
    }
    if says(&[
        "network",
        "lookup address",
        "connection failed",
        "Connection failed",
    ]) {
        return "see whether this machine reaches the program's service; the daemon needs the same proxy variables as you"
            .to_owned();
    }
    if says(&["budget"]) {
        return "the program is slow or waits for somebody: start its command by hand".to_owned();
    }
    "start its command by hand in its workdir; `settled agent add --replace` writes the tried one"
        .to_owned()
}

/// A running daemon; dropping the value ends it.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        // SIGTERM, so that it ends what it started, which takes at most 8 s.
        let asked = Command::new("kill").arg(&pid).status();
        if asked.is_err() {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// Starts the command of a workspace's agent through `settled`.
pub fn probe(settled: &Path, root: &Path, agent: &AgentName) -> std::io::Result<ProbeOutcome> {
    let place = tempfile::Builder::new()
        .prefix("settled-probe-")
        .tempdir()?;
    let mailroom = place.path().join("mailroom");
    let asked = ask(settled, root, agent, place.path(), &mailroom)?;
    Ok(match asked {
        Ok(seconds) => ProbeOutcome::Answered { seconds },
        Err(why) => ProbeOutcome::Failed {
            why,
            folder: place.keep(),
        },
    })
}

/// Sends a request to the agent in a workspace made for it. Returns the seconds until its answer, or the reason why no
/// answer counts.
fn ask(
    settled: &Path,
    root: &Path,
    agent: &AgentName,
    place: &Path,
    mailroom: &Path,
) -> std::io::Result<Result<u64, String>> {
    let name = agent.as_str();
    checked(ours(settled, mailroom).args(["init", "--agents", &format!("{ASKER},{name}")]))?;
    let (config, code) = config(root, name)?;
    let has_tools = TOOLS.iter().any(|part| config.contains(part));
    if has_tools && let Err(why) = has_server(settled, mailroom, name, place)? {
        return Ok(Err(why));
    }
    std::fs::write(mailroom.join(FILE), config)?;
    let log = std::fs::File::create(place.join("daemon.log"))?;
    let _daemon = Serving(
        ours(settled, mailroom)
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?,
    );
    let began = Instant::now();
    // The brief names a changed file and the prompt does not, so an answer with this word shows that the agent read the
    // brief.
    let word = format!("brief-{}", workspace::clock::new_name());
    let body = place.join("body.yaml");
    // As in a review, the agent works in a worktree if there is a commit.
    let head = code.and_then(|code| Repository::at(&code).resolve("HEAD").ok()?);
    let head = head.map_or_else(String::new, |head| format!("declared_head: {head}\n"));
    std::fs::write(
        &body,
        format!(
            "pr: 1\nbranch: probe\ndiff_summary: {TASK}\nchanged_files: [{word}]\nmax_turns_reviewer: 10\n\
             max_runtime_s_reviewer: {SECONDS_MAX}\n{head}"
        ),
    )?;
    let mut answered = None;
    checked(ours(settled, mailroom).args([
        "send",
        "review_request",
        "--agent",
        ASKER,
        "--to",
        name,
        "--body-file",
        &body.display().to_string(),
        "--repo-dir",
        &mailroom.display().to_string(),
    ]))?;
    loop {
        let status = json(ours(settled, mailroom).args(["status", "--json"]))?;
        let review = &status["data"]["reviews"][0];
        match review["phase"].as_str() {
            Some("reviewing") | None if began.elapsed() < Duration::from_secs(SECONDS_MAX + 20) => {
                std::thread::sleep(Duration::from_millis(200));
            }
            Some("approved" | "fixing") if repeats(mailroom, &word)? => {
                // The packet with its findings may appear before the message.
                if has_tools && !has_file(mailroom, &[INBOX], "id: ")? {
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
                if has_tools && has_file(mailroom, &[INBOX], PRINTED)? {
                    return Ok(Err(WITHOUT_TOOLS.to_owned()));
                }
                return Ok(Ok(began.elapsed().as_secs()));
            }
            // The ledger has the answer; its files follow.
            Some("approved" | "fixing")
                if answered.get_or_insert_with(Instant::now).elapsed() < ANSWER_FILES_MAX =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            Some("approved" | "fixing") => {
                return Ok(Err(UNREAD.to_owned()));
            }
            _ => return Ok(Err(cause(review, mailroom)?)),
        }
    }
}

/// Starts the server of the tools and lists them, as a client would. A program without its server answers in its own
/// way, and its output does not say why.
fn has_server(
    settled: &Path,
    mailroom: &Path,
    agent: &str,
    place: &Path,
) -> std::io::Result<Result<(), String>> {
    let frames = place.join("frames.jsonl");
    std::fs::write(&frames, FRAMES)?;
    let output = ours(settled, mailroom)
        .args(["mcp", "--agent", agent])
        // The server ends at the end of the file.
        .stdin(std::fs::File::open(frames)?)
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed.contains("\"tools\":[") {
        return Ok(Ok(()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().next().unwrap_or("no answer").to_owned();
    Ok(Err(format!("{NO_SERVER}: {said}")))
}

/// True if a message of the agent contains this word.
fn repeats(mailroom: &Path, word: &str) -> std::io::Result<bool> {
    has_file(mailroom, &[INBOX, "packets/findings"], word)
}

/// True if a file in one of these folders contains this text.
fn has_file(mailroom: &Path, places: &[&str], text: &str) -> std::io::Result<bool> {
    for place in places {
        let listed = match std::fs::read_dir(mailroom.join(place)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            listed => listed?,
        };
        for file in listed {
            let file = file?.path();
            if file.is_file() && std::fs::read_to_string(&file)?.contains(text) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The reason the review failed: the last failure of the command, or else the reason the review ended.
fn cause(review: &Value, mailroom: &Path) -> std::io::Result<String> {
    if let Some(why) = review["failed"]["why"].as_str() {
        return Ok(why.to_owned());
    }
    Ok(match review["reason"].as_str() {
        Some("reviewer_budget_exceeded") => {
            let spent =
                format!("it gave no answer within its budget of {SECONDS_MAX} s and 10 turns");
            match last_complaint(mailroom)? {
                Some(complaint) => format!("{spent}, {complaint}"),
                None => spent,
            }
        }
        reason => reason.unwrap_or("no answer").to_owned(),
    })
}

/// Returns the failure that an ended command printed: a program that retries forever never ends by itself.
fn last_complaint(mailroom: &Path) -> std::io::Result<Option<String>> {
    let asked = Instant::now();
    loop {
        let folders = folder::all(mailroom)?;
        let end = folders.last().and_then(folder::Folder::end);
        // The daemon ends the review first, and then the command.
        if end.is_some() || asked.elapsed() > ENDING_MAX {
            return Ok(end.and_then(|end| end.said.unreadable));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The agent's section in a config of its own, and its `workdir`, if it names one. Paths in it are relative to the
/// original workspace.
fn config(root: &Path, agent: &str) -> std::io::Result<(String, Option<PathBuf>)> {
    let text = std::fs::read_to_string(root.join(FILE))?;
    let whole: DocumentMut = text.parse().map_err(std::io::Error::other)?;
    let mut own = DocumentMut::new();
    own["agents"] = toml_edit::table();
    let mut section = whole["agents"][agent].clone();
    for key in ["workdir", "prompt"] {
        if let Some(path) = section.get(key).and_then(toml_edit::Item::as_str) {
            let absolute = std::path::absolute(root.join(path))?;
            section[key] = toml_edit::value(absolute.display().to_string());
        }
    }
    // Here this user owns the agent's mailboxes.
    if let Some(section) = section.as_table_like_mut() {
        section.remove("uid");
    }
    let workdir = section.get("workdir").and_then(toml_edit::Item::as_str);
    let workdir = workdir.map(PathBuf::from);
    own["agents"][agent] = section;
    Ok((own.to_string(), workdir))
}

fn ours(settled: &Path, mailroom: &Path) -> Command {
    let mut command = Command::new(settled);
    command
        .env("SETTLED_ROOT", mailroom)
        .env_remove("SETTLED_AGENT")
        .env_remove("SETTLED_RUN");
    command
}

fn checked(command: &mut Command) -> std::io::Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(std::io::Error::other(said))
}

fn json(command: &mut Command) -> std::io::Result<Value> {
    serde_json::from_slice(&checked(command)?).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_logged_in_within_walls_is_told_what_passes_them() {
        let why = "it ended with code 1, it is not logged in: no key";
        let variables = ["KEY".to_owned(), "TOKEN".to_owned()];
        let claude = Some(KnownProgram::Claude);
        assert!(fix(why, claude, None).contains("`claude`"));
        let walled = fix(why, claude, Some(&variables));
        assert!(walled.starts_with("set KEY or TOKEN for the daemon: "));
        assert!(fix(why, claude, Some(&[])).contains("`env` of its sandbox"));
    }

    /// Probes a program that reports these states of the review in turn; true if its daemon still runs.
    fn probed(reviews: &[&str]) -> (ProbeOutcome, bool) {
        let place = tempfile::tempdir().expect("a directory");
        let settled = place.path().join("settled");
        let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/settled");
        std::os::unix::fs::symlink(stand_in, &settled).expect("a link");
        let config = "[agents.codex]\ncommand = [\"true\"]\n";
        std::fs::write(place.path().join(FILE), config).expect("a file");
        let lines: String = reviews.iter().map(|review| format!("{review}\n")).collect();
        std::fs::write(place.path().join("reviews"), lines).expect("a file");
        let codex = "codex".parse().expect("a name");
        let outcome = probe(&settled, place.path(), &codex).expect("the program can be run");
        let pid = std::fs::read_to_string(place.path().join("pid")).expect("it served");
        (outcome, Path::new("/proc").join(pid.trim()).exists())
    }

    #[test]
    fn an_answer_and_its_files_are_waited_for_and_the_daemon_ends_with_the_probe() {
        let (outcome, is_there) = probed(&[
            "null",
            r#"{"phase": "reviewing"}"#,
            r#"{"phase": "fixing"}"#,
            r#"{"phase": "fixing"}"#,
        ]);
        let ProbeOutcome::Answered { seconds } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            seconds < SECONDS_MAX && !is_there,
            "{seconds} s, {is_there}"
        );
    }

    #[test]
    fn a_command_that_failed_is_told_with_the_folder_of_its_probe() {
        let why = "it ended with code 1";
        let failed = format!(r#"{{"phase": "escalated", "failed": {{"why": "{why}"}}}}"#);
        let (outcome, is_there) = probed(&[&failed]);
        let ProbeOutcome::Failed { why: told, folder } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(told == why && !is_there, "{told}, {is_there}");
        let log = folder.join("daemon.log");
        assert!(log.exists(), "{log:?}");
        std::fs::remove_dir_all(folder).expect("it was kept");
    }

    #[test]
    fn the_failure_of_a_command_that_has_ended_is_told_at_once() {
        let mailroom = tempfile::tempdir().expect("a directory");
        let run = folder::Folder::make(mailroom.path(), "1").expect("a folder");
        let end =
            r#"{"how": {"code": 1}, "said": {"text": "", "unreadable": "no key", "turns": 0}}"#;
        std::fs::write(run.path().join("end.json"), end).expect("a file");
        let asked = Instant::now();
        let complaint = last_complaint(mailroom.path()).expect("a readable folder");
        assert_eq!(complaint.as_deref(), Some("no key"));
        assert!(asked.elapsed() < ENDING_MAX / 2);
    }
}
