//! The messages that agents write under torture, and the required fate of each. Every mix is made from a number, so
//! that a failing run can be repeated.

use std::path::Path;

use settled_tests::seed;

/// The required fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The daemon accepts it, and each recipient gets it once.
    Accepted,
    /// The daemon refuses it and puts it into `dead_letter/` beside its report.
    Refused,
    /// It repeats an earlier message word for word: the daemon only puts it away.
    Duplicate,
}

/// One file in an outbox.
#[derive(Clone, Debug)]
pub struct Message {
    /// The agent whose outbox it goes into.
    pub from: &'static str,
    /// Its recipient.
    pub to: &'static str,
    /// The file's name, unique within a mix.
    pub file: String,
    /// The message's id; empty for a file without one.
    pub id: String,
    /// Its bytes.
    pub text: String,
    /// The required fate.
    pub fate: Fate,
}

/// The kinds of messages in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Notes of several sizes between two agents.
    Notes,
    /// Requests, each of its own review: every one also makes a brief.
    Requests,
    /// Files that are refused: each makes a report, most also a notice.
    Refusals,
    /// All of these, and repeated messages.
    Several,
}

/// The agents of every mix. A reader empties codex's inbox while the daemon works; claude's fills up.
pub const AGENTS: [&str; 2] = ["claude", "codex"];

impl Mix {
    /// Every mix.
    pub const ALL: [Mix; 4] = [Mix::Notes, Mix::Requests, Mix::Refusals, Mix::Several];

    /// Makes `count` messages; those of another `lot` have other names and ids.
    pub fn messages(self, count: usize, lot: u64) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::with_capacity(count);
        for n in 0..count {
            let message = match self {
                Mix::Notes => note(n, lot),
                Mix::Requests => request(n, lot),
                Mix::Refusals => refusal(n, lot),
                Mix::Several => match n % 4 {
                    0 => note(n, lot),
                    1 => request(n, lot),
                    2 => refusal(n, lot),
                    _ => repeat(&messages[n - 3], n, lot),
                },
            };
            messages.push(message);
        }
        messages
    }
}

/// Writes a message into its outbox the way a careful writer does: under a temporary name, then renamed.
pub fn post(root: &Path, message: &Message) {
    let outbox = root.join("agents").join(message.from).join("outbox");
    let temporary = outbox.join(format!(".{}.part", message.file));
    settled_tests::write(&temporary, &message.text);
    std::fs::rename(&temporary, outbox.join(&message.file))
        .expect("both names lie in one directory");
}

fn pair(n: usize) -> (&'static str, &'static str) {
    if n.is_multiple_of(3) {
        ("codex", "claude")
    } else {
        ("claude", "codex")
    }
}

fn note(n: usize, lot: u64) -> Message {
    let (from, to) = pair(n);
    let id = format!("note-{lot}-{n:05}");
    let body = "a line of the note\n".repeat(n * 7 % 60) + &id;
    let text = seed::note("notification", &id, from, to, &body);
    Message {
        from,
        to,
        file: format!("{id}.yaml"),
        id,
        text,
        fate: Fate::Accepted,
    }
}

fn request(n: usize, lot: u64) -> Message {
    let id = format!("request-{lot}-{n:05}");
    let pr = lot * 100_000 + n as u64 + 1;
    let body = format!(
        "pr: {pr}\nbranch: claude/change-{pr}\ndiff_summary: \"Change {pr}\"\nmax_turns_reviewer: 8\nmax_runtime_s_reviewer: 86400"
    );
    let text = seed::review_message(
        "review_request",
        &id,
        "claude",
        "codex",
        &pr.to_string(),
        &body,
    );
    Message {
        from: "claude",
        to: "codex",
        file: format!("{id}.yaml"),
        id,
        text,
        fate: Fate::Accepted,
    }
}

fn refusal(n: usize, lot: u64) -> Message {
    let (from, to) = pair(n);
    let id = format!("wrong-{lot}-{n:05}");
    let whole = seed::note("notification", &id, from, to, "a body");
    let text = match n % 5 {
        0 => whole.replace(&format!("from: {from}"), "from: somebody"),
        1 => whole.replace("priority: P2", "priority: urgent"),
        2 => whole.replace(&format!("to: {to}"), "to: nobody"),
        // It waits five seconds for its packet unless it is older; later ones to the same recipient wait behind it.
        3 => {
            let body = format!(
                "findings_packet: packets/findings/none-{id}.yaml\nround: 1\nblocking_count: 0"
            );
            seed::review_message("review_feedback", &id, from, to, "1", &body)
        }
        _ => "x".to_owned(),
    };
    Message {
        from,
        to,
        file: format!("{id}.yaml"),
        id,
        text,
        fate: Fate::Refused,
    }
}

fn repeat(of: &Message, n: usize, lot: u64) -> Message {
    Message {
        file: format!("repeat-{lot}-{n:05}.yaml"),
        fate: Fate::Duplicate,
        ..of.clone()
    }
}
