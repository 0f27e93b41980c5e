//! Starts an agent's command once, in a workspace of its own, with a request that asks for nothing but an answer. The
//! daemon, the brief, the prompt and the reading of the answer are the real ones.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use git::Repository;
use message_schema::id::AgentName;
use review_words::failure::FailureCause;
use runner::folder;
use runner::stream::cause::{Cause, ProgramFailure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spool::dirs;
use toml_edit::DocumentMut;
use workspace::config::{self, FILE};

use crate::section::KnownProgram;
use crate::version::Versions;

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

/// The time that a probe waits for the daemon's next step.
struct Patience {
    /// For the end of the review: the daemon keeps the command to its budget, and ends the review after it.
    review: Duration,
    /// For an answer's files after its record.
    files: Duration,
    /// For the end of a command after that of its review.
    ending: Duration,
}

const PATIENCE: Patience = Patience {
    review: Duration::from_secs(SECONDS_MAX + 20),
    files: Duration::from_secs(5),
    ending: Duration::from_secs(10),
};

/// The request as one line of YAML.
const TASK: &str = "\"A probe: there is nothing to review, and nothing to change. Answer by response_schema with one finding of \
                    severity P3, whose title and file are the one changed file that the brief names.\"";

/// The seconds that a program may take.
pub const SECONDS_MAX: u64 = 120;

/// The fix for a failure without a known cause.
const BY_HAND: &str =
    "start its command by hand in its workdir; `settled agent add --replace` writes the tried one";

/// Words with which programs say that the user has not trusted the folder they start in.
const NO_FOLDER_TRUST: [&str; 4] = [
    "trusted directory",
    "trusted folder",
    "trusted workspace",
    "trust this folder",
];

/// Words with which programs say that they cannot reach their service.
const NO_SERVICE: [&str; 4] = [
    "network",
    "lookup address",
    "connection failed",
    "certificate",
];

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
        /// The reason.
        why: ProbeFailure,
        /// The folder of the probe, with everything that the command was given and printed.
        folder: PathBuf,
    },
}

/// The reason that no answer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeFailure {
    /// The server of the tools does not start. Holds its first line of output.
    NoServer(String),
    /// The answer lacks the word of the brief.
    Unread,
    /// The agent is set up with the tools of `settled mcp` and did not use them.
    WithoutTools,
    /// `leave_out` needs a tree, and there is no commit to make one of. Holds the daemon's words.
    NoTree(String),
    /// The budget was used up. Holds the failure that the program printed before its end.
    OverBudget(Option<ProgramFailure>),
    /// The command failed. Holds the cause and the sentence that the daemon recorded.
    Run(FailureCause, String),
    /// The review ended otherwise, with this reason.
    Ended(String),
}

impl fmt::Display for ProbeFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer(said) => write!(out, "`settled mcp` lists no tools: {said}"),
            Self::Unread => out.write_str(
                "it answered, but not what its brief asks for: it may have read nothing",
            ),
            Self::WithoutTools => out.write_str(
                "it answered, but not by the tools of `settled mcp`, with which it is set up",
            ),
            Self::OverBudget(complaint) => {
                write!(
                    out,
                    "it gave no answer within its budget of {SECONDS_MAX} s and 10 turns"
                )?;
                match complaint {
                    Some(ProgramFailure { why, .. }) => write!(out, ", {why}"),
                    None => Ok(()),
                }
            }
            Self::NoTree(why) | Self::Run(_, why) | Self::Ended(why) => out.write_str(why),
        }
    }
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
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "spool::path_text::serialize_if_any"
    )]
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
            (why.to_string(), Some(fix), Some(folder.clone()))
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

fn fix(why: &ProbeFailure, known: Option<KnownProgram>, walls: Option<&[String]>) -> String {
    let fix = match why {
        ProbeFailure::NoServer(_) => {
            "install `settled-mcp` in the directory of `settled`, where every package has it"
        }
        ProbeFailure::Unread => {
            "let it read the folder of its run ({run}), as `settled agent add --replace` writes it; its answer is in the \
             output of its command"
        }
        ProbeFailure::WithoutTools => {
            "`settled mcp` itself works, so the program did not start it: `settled agent add --mcp --replace` writes the tried \
             command; its output, and for Gemini CLI ~/.gemini/settings.json, show which servers it starts"
        }
        ProbeFailure::NoTree(_) => {
            "let it review a repository with a commit (`workdir`), or set checkout = \"workdir\" to let it read all files there"
        }
        ProbeFailure::Run(FailureCause::NotLoggedIn, _)
        | ProbeFailure::OverBudget(Some(ProgramFailure {
            cause: Some(Cause::NotLoggedIn),
            ..
        })) => return login(known, walls),
        ProbeFailure::Run(FailureCause::Quota, _)
        | ProbeFailure::OverBudget(Some(ProgramFailure {
            cause: Some(Cause::Quota { .. }),
            ..
        })) => "wait until the quota is renewed, or let another agent review",
        ProbeFailure::Run(FailureCause::Missing, _) => {
            "install the program, or name it by its whole path in `command`"
        }
        ProbeFailure::OverBudget(complaint) => complaint
            .as_ref()
            .and_then(|complaint| fix_by_words(&complaint.why))
            .unwrap_or("the program is slow or waits for somebody: start its command by hand"),
        ProbeFailure::Run(
            FailureCause::Untold
            | FailureCause::GaveUp
            | FailureCause::Crashed
            | FailureCause::Unreadable
            | FailureCause::ProviderUnavailable,
            why,
        ) => fix_by_words(why).unwrap_or(BY_HAND),
        ProbeFailure::Ended(_) => BY_HAND,
    };
    fix.to_owned()
}

/// The fix for a program that is not logged in.
fn login(known: Option<KnownProgram>, walls: Option<&[String]>) -> String {
    let Some(names) = walls else {
        let login = known.map(KnownProgram::login);
        return login.unwrap_or_else(|| "log the program in, as the daemon's user".to_owned());
    };
    let variables = match names {
        [] => "name the variable of its login in `env` of its sandbox".to_owned(),
        names => format!("set {} for the daemon", names.join(" or ")),
    };
    format!("{variables}: its sandbox hides a login in a file that `reads` does not name")
}

/// The fix for a failure that only the program's own words explain.
fn fix_by_words(why: &str) -> Option<&'static str> {
    let why = why.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if says(&NO_FOLDER_TRUST) {
        return Some("start the program once in the folder and trust it");
    }
    says(&NO_SERVICE).then_some(
        "see whether this machine reaches the program's service; the daemon needs the same variables for proxies and \
         certificates as you",
    )
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
    probe_within(settled, root, agent, &PATIENCE)
}

fn probe_within(
    settled: &Path,
    root: &Path,
    agent: &AgentName,
    patience: &Patience,
) -> std::io::Result<ProbeOutcome> {
    let place = tempfile::Builder::new()
        .prefix("settled-probe-")
        .tempdir()?;
    let mailroom = place.path().join("mailroom");
    let asked = ask(settled, root, agent, place.path(), &mailroom, patience)?;
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
    patience: &Patience,
) -> std::io::Result<Result<u64, ProbeFailure>> {
    let name = agent.as_str();
    checked(ours(settled, mailroom).args(["init", "--agents", &format!("{ASKER},{name}")]))?;
    let OwnConfig {
        text: config,
        workdir,
        leaves_out,
    } = own_config(root, name)?;
    let has_tools = TOOLS.iter().any(|part| config.contains(part));
    if has_tools && let Err(why) = has_server(settled, mailroom, name, place)? {
        return Ok(Err(why));
    }
    std::fs::write(mailroom.join(FILE), config)?;
    let _daemon = serve(settled, mailroom, place)?;
    // As in a review, the agent works in a worktree if there is a commit.
    let head = workdir.and_then(|code| Repository::at(&code).resolve("HEAD").ok()?);
    let request = ProbeRequest {
        settled,
        mailroom,
        word: format!("brief-{}", workspace::clock::new_name()),
        has_tools,
        lacks_tree: leaves_out && head.is_none(),
        began: Instant::now(),
    };
    let head = head.map_or_else(String::new, |head| format!("declared_head: {head}\n"));
    request.send(name, &place.join("body.yaml"), &head)?;
    request.await_answer(patience)
}

fn serve(settled: &Path, mailroom: &Path, place: &Path) -> std::io::Result<Serving> {
    let log = std::fs::File::create(place.join("daemon.log"))?;
    let daemon = ours(settled, mailroom)
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    Ok(Serving(daemon))
}

/// A request to the agent that is probed.
struct ProbeRequest<'p> {
    settled: &'p Path,
    mailroom: &'p Path,
    /// The brief names a changed file and the prompt does not, so an answer with this word shows that the agent read the
    /// brief.
    word: String,
    has_tools: bool,
    /// True if the agent needs a worktree and no commit gives it one.
    lacks_tree: bool,
    began: Instant,
}

impl ProbeRequest<'_> {
    fn send(&self, to: &str, body: &Path, head: &str) -> std::io::Result<()> {
        let word = &self.word;
        std::fs::write(
            body,
            format!(
                "pr: 1\nbranch: probe\ndiff_summary: {TASK}\nchanged_files: [{word}]\nmax_turns_reviewer: 10\n\
                 max_runtime_s_reviewer: {SECONDS_MAX}\n{head}"
            ),
        )?;
        checked(ours(self.settled, self.mailroom).args([
            "send",
            "review_request",
            "--agent",
            ASKER,
            "--to",
            to,
            "--body-file",
            &body.display().to_string(),
            "--repo-dir",
            &self.mailroom.display().to_string(),
        ]))?;
        Ok(())
    }

    fn await_answer(&self, patience: &Patience) -> std::io::Result<Result<u64, ProbeFailure>> {
        let mailroom = self.mailroom;
        let mut answered = None;
        loop {
            let status = json(ours(self.settled, mailroom).args(["status", "--json"]))?;
            let review = &status["data"]["reviews"][0];
            match review["phase"].as_str() {
                Some("reviewing") | None if self.began.elapsed() < patience.review => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                Some("approved" | "fixing") if self.has_answer()? => {
                    if self.has_tools && has_file(mailroom, &[&inbox()], PRINTED)? {
                        return Ok(Err(ProbeFailure::WithoutTools));
                    }
                    return Ok(Ok(self.began.elapsed().as_secs()));
                }
                // The ledger has the answer; its files follow.
                Some("approved" | "fixing")
                    if answered.get_or_insert_with(Instant::now).elapsed() < patience.files =>
                {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Some("approved" | "fixing") => return Ok(Err(ProbeFailure::Unread)),
                _ => {
                    let why = failure(review, self.lacks_tree, mailroom, patience.ending)?;
                    return Ok(Err(why));
                }
            }
        }
    }

    /// True if the files of the answer are there. The packet with its findings may appear before the message, which says
    /// whether the tools were used.
    fn has_answer(&self) -> std::io::Result<bool> {
        Ok(repeats(self.mailroom, &self.word)?
            && (!self.has_tools || has_file(self.mailroom, &[&inbox()], "id: ")?))
    }
}

/// Starts the server of the tools and lists them, as a client would. A program without its server answers in its own
/// way, and its output does not say why.
fn has_server(
    settled: &Path,
    mailroom: &Path,
    agent: &str,
    place: &Path,
) -> std::io::Result<Result<(), ProbeFailure>> {
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
    Ok(Err(ProbeFailure::NoServer(said)))
}

/// True if a message of the agent contains this word.
fn repeats(mailroom: &Path, word: &str) -> std::io::Result<bool> {
    let packets = dirs::of_packets(dirs::FINDINGS);
    has_file(mailroom, &[&inbox(), &packets], word)
}

/// The inbox that receives the answer.
fn inbox() -> String {
    dirs::of_agent(ASKER, dirs::INBOX)
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

/// The reason the review failed: the last failure of the command, or else the reason the review ended. With
/// `lacks_tree`, the command may never have started.
fn failure(
    review: &Value,
    lacks_tree: bool,
    mailroom: &Path,
    ending_max: Duration,
) -> std::io::Result<ProbeFailure> {
    let failed = &review["failed"];
    if let Some(why) = failed["why"].as_str() {
        let why = why.to_owned();
        // A command that was not prepared has no folder.
        if lacks_tree && failed["folder"].is_null() {
            return Ok(ProbeFailure::NoTree(why));
        }
        let cause = FailureCause::deserialize(&failed["cause"]).unwrap_or_default();
        return Ok(ProbeFailure::Run(cause, why));
    }
    Ok(match review["reason"].as_str() {
        Some("reviewer_budget_exceeded") => {
            ProbeFailure::OverBudget(last_complaint(mailroom, ending_max)?)
        }
        reason => ProbeFailure::Ended(reason.unwrap_or("no answer").to_owned()),
    })
}

/// Returns the failure that an ended command printed: a program that retries forever never ends by itself.
fn last_complaint(
    mailroom: &Path,
    ending_max: Duration,
) -> std::io::Result<Option<ProgramFailure>> {
    let asked = Instant::now();
    loop {
        let folders = folder::all(mailroom)?;
        let end = folders.last().and_then(folder::Folder::end);
        // The daemon ends the review first, and then the command.
        if end.is_some() || asked.elapsed() > ending_max {
            let said = end.map(|end| end.said);
            return Ok(said.and_then(|said| {
                said.unreadable.map(|reason| ProgramFailure {
                    why: reason.to_string(),
                    cause: reason.cause(),
                })
            }));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A config with one agent.
struct OwnConfig {
    text: String,
    /// The agent's `workdir`, if its section names one.
    workdir: Option<PathBuf>,
    /// True if the section has a `leave_out`.
    leaves_out: bool,
}

/// The agent's section in a config of its own. Paths in the original are relative to its workspace, so they become
/// absolute.
fn own_config(root: &Path, agent: &str) -> std::io::Result<OwnConfig> {
    let text = config::read_text(&root.join(FILE))?;
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
    let leaves_out = section
        .get("leave_out")
        .and_then(toml_edit::Item::as_array)
        .is_some_and(|paths| !paths.is_empty());
    own["agents"][agent] = section;
    Ok(OwnConfig {
        text: own.to_string(),
        workdir,
        leaves_out,
    })
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
