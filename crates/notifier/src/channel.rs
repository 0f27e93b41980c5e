//! The programs that carry notices: the operator's own, `curl` for a webhook, `notify-send` for the desktop. None gets
//! a secret as an argument, because every user of the machine can read arguments.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, kill_process_group};
use workspace::config::NotifySection;

use crate::notice::{Kind, Notice};
use crate::sign::signature;

/// The time a program has to carry one notice.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time that `curl` gives the receiver, in seconds: less than ours, so that it can report the time-out.
const WEBHOOK_S: u64 = 20;

/// The time between two checks whether a program has ended.
const POLL: Duration = Duration::from_millis(10);

/// One way to tell people something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The operator's program with its arguments; it reads the notice from standard input.
    Command(Vec<String>),
    /// An address that receives the notice as signed JSON.
    Webhook {
        /// The address.
        address: String,
        /// The file with the secret.
        secret: PathBuf,
    },
    /// The desktop of the user who runs the notifier.
    Desktop,
}

/// The reason why a notice did not arrive, as far as we can tell.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The program cannot be started.
    #[error("cannot start `{program}`: {source}")]
    Unstarted {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The program failed.
    #[error("`{program}` ended with {status}")]
    Failed {
        /// The program.
        program: String,
        /// The exit status.
        status: std::process::ExitStatus,
    },
    /// The program did not end in time.
    #[error("`{program}` did not end within {} s", PATIENCE.as_secs())]
    TooLong {
        /// The program.
        program: String,
    },
    /// The receiver of a webhook did not answer with success.
    #[error("the webhook answered with status {0}, expected 200 to 299")]
    Answer(String),
    /// The secret of a webhook cannot be read.
    #[error("the webhook's secret {}: {source}", path.display())]
    Secret {
        /// Its file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file of the secret is empty.
    #[error("the webhook's secret {} is empty", .0.display())]
    NoSecret(PathBuf),
}

/// The channels that the config names.
pub fn channels(root: &Path, section: &NotifySection) -> Vec<Channel> {
    let command = (!section.command.is_empty()).then(|| Channel::Command(section.command.clone()));
    let webhook = section.webhook.clone().map(|address| Channel::Webhook {
        address,
        secret: root.join(&section.webhook_secret_file),
    });
    let desktop = section.desktop.then_some(Channel::Desktop);
    [command, webhook, desktop].into_iter().flatten().collect()
}

impl Channel {
    /// Returns the word for it, also used in the name of its cursor.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Webhook { .. } => "webhook",
            Self::Desktop => "desktop",
        }
    }

    /// Carries a notice. Without an error, its receiver has it.
    pub fn send(&self, root: &Path, notice: &Notice, now: DateTime<Utc>) -> Result<(), SendError> {
        match self {
            Self::Command(words) => {
                let mut command = Command::new(&words[0]);
                command
                    .args(&words[1..])
                    .current_dir(root)
                    .env("SETTLED_NOTICE_ID", &notice.id)
                    .env("SETTLED_NOTICE_KIND", notice.kind.word())
                    .stdout(Stdio::null());
                ran(command, &(notice.json() + "\n")).map(drop)
            }
            Self::Webhook { address, secret } => webhook(address, secret, notice, now),
            Self::Desktop => {
                let mut command = Command::new("notify-send");
                command
                    .args([
                        "--app-name=settled",
                        "--urgency",
                        urgency(notice.kind),
                        "--",
                    ])
                    .args(["Settled", &markup_escaped(&notice.text)])
                    .stdout(Stdio::null());
                ran(command, "").map(drop)
            }
        }
    }
}

fn webhook(
    address: &str,
    secret: &Path,
    notice: &Notice,
    now: DateTime<Utc>,
) -> Result<(), SendError> {
    let key = std::fs::read(secret).map_err(|source| SendError::Secret {
        path: secret.to_owned(),
        source,
    })?;
    let key = key.trim_ascii();
    if key.is_empty() {
        return Err(SendError::NoSecret(secret.to_owned()));
    }
    let (body, seconds) = (notice.json(), now.timestamp());
    let signature = signature(key, &notice.id, seconds, &body);
    // The address may hold a secret too, so all of it goes through standard input. `-q` ignores the user's settings.
    let settings = [
        ("url", address),
        ("request", "POST"),
        ("proto", "=http,https"),
        ("output", "/dev/null"),
        ("write-out", "%{http_code}"),
        ("max-time", &WEBHOOK_S.to_string()),
        ("header", "Content-Type: application/json"),
        ("header", &format!("Idempotency-Key: {}", notice.id)),
        ("header", &format!("Settled-Timestamp: {seconds}")),
        ("header", &format!("Settled-Signature: {signature}")),
        ("data-raw", &body),
    ];
    let settings = settings
        .map(|(name, value)| format!("{name} = \"{}\"\n", curl_escaped(value)))
        .concat();
    let mut curl = Command::new("curl");
    curl.args([
        "-q",
        "--silent",
        "--show-error",
        "--globoff",
        "--config",
        "-",
    ])
    .stdout(Stdio::piped());
    let status = ran(curl, &settings)?;
    if status.len() == 3 && status.starts_with('2') {
        Ok(())
    } else {
        Err(SendError::Answer(status))
    }
}

/// Escapes a value without line breaks for double quotes in a config of `curl`.
fn curl_escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

fn urgency(kind: Kind) -> &'static str {
    match kind {
        Kind::DaemonStopped => "critical",
        Kind::Escalated | Kind::ThreadHeld | Kind::Test => "normal",
    }
}

/// Escapes a text for a desktop, which interprets some markup.
fn markup_escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Runs a program that has to succeed, and returns what it printed.
fn ran(command: Command, input: &str) -> Result<String, SendError> {
    ran_within(PATIENCE, command, input)
}

fn ran_within(patience: Duration, mut command: Command, input: &str) -> Result<String, SendError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let unstarted = |source| SendError::Unstarted {
        program: program.clone(),
        source,
    };
    // A process group of its own can be killed as a whole; otherwise each attempt would leave behind what its shell
    // started.
    command.stdin(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(unstarted)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input may still succeed. The notice fits into a pipe, so this does not
        // block.
        let _ = stdin.write_all(input.as_bytes());
    }
    let ended = ended(&mut child, patience);
    let status = ended.ok_or_else(|| SendError::TooLong {
        program: program.clone(),
    })?;
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        let _ = stdout.read_to_string(&mut said);
    }
    if status.success() {
        Ok(said.trim().to_owned())
    } else {
        Err(SendError::Failed { program, status })
    }
}

/// The exit status of a program; `None` if it had to be killed.
fn ended(child: &mut Child, patience: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < patience {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(POLL);
    }
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
    None
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended_with_everything_it_started() {
        let (mut ours, theirs) = UnixStream::pair().expect("two ends");
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "sleep 60 & sleep 60"]);
        hangs.stderr(OwnedFd::from(theirs));
        let sent = ran_within(Duration::from_millis(300), hangs, "");
        assert!(matches!(sent, Err(SendError::TooLong { .. })), "{sent:?}");
        // The read ends once no process holds the other end.
        let patience = Some(Duration::from_secs(20));
        ours.set_read_timeout(patience).expect("a time-out");
        assert_eq!(ours.read(&mut [0]).expect("nobody is left"), 0);
    }

    #[test]
    fn a_value_cannot_leave_its_quotes() {
        assert_eq!(curl_escaped(r#"a "b" \c"#), r#"a \"b\" \\c"#);
    }

    #[test]
    fn only_a_daemon_that_stopped_is_critical_on_a_desktop() {
        for kind in [Kind::Escalated, Kind::ThreadHeld, Kind::Test] {
            assert_eq!(urgency(kind), "normal", "{kind:?}");
        }
        assert_eq!(urgency(Kind::DaemonStopped), "critical");
    }

    #[test]
    fn a_desktop_gets_no_markup() {
        assert_eq!(markup_escaped("<b>&"), "&lt;b&gt;&amp;");
    }
}
