//! The workspaces in which the daemon is started and killed: prepared outboxes of every mix, and each step of a whole
//! review with the earlier steps done.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::seed;

use crate::messages::{self, AGENTS, Fate, Message, Mix};

/// A workspace in which work waits for the daemon.
pub struct Scene {
    /// Its name in reports.
    pub name: String,
    /// Every message written so far, with its required fate.
    pub messages: Vec<Message>,
    /// The ids of the orders given so far.
    pub orders: Vec<&'static str>,
    mailroom: Mailroom,
}

impl Scene {
    /// Makes the scene in which `count` messages of a mix wait in the outboxes.
    pub fn of_mix(mix: Mix, count: usize) -> Scene {
        let mailroom = Mailroom::new(&AGENTS);
        let messages = mix.messages(count, 1);
        drop_all(mailroom.root(), &messages);
        Scene {
            name: format!("{mix:?}").to_lowercase(),
            messages,
            orders: Vec::new(),
            mailroom,
        }
    }

    /// Makes the steps of a review: its five messages with a findings packet, briefs and turns, the snapshot and the
    /// handoff at the merge; then a review whose budget runs out and that a person reopens.
    pub fn of_review() -> Vec<Scene> {
        let steps = Step::all();
        (0..steps.len()).map(|at| Step::scene(&steps, at)).collect()
    }

    /// Copies the workspace to a path that does not exist yet.
    pub fn lay_out(&self, at: &Path) {
        copy(self.mailroom.root(), at);
    }
}

/// One step: what is written before a run.
struct Step {
    name: &'static str,
    messages: Vec<Message>,
    /// Files outside the outboxes: path below the root, and text.
    files: Vec<(&'static str, String)>,
    orders: Vec<Order>,
}

/// An order to the daemon from a person or a runner: its id, and the event as JSON.
type Order = (&'static str, &'static str);

/// A config under which a merge hands off every remaining finding.
const CONFIG: &str = "[handoff]\nmode = \"full\"\ntarget = \"claude\"\n";

const TURN: Order = ("turn-1", r#"{"turns": {"pr": "86", "count": 1}}"#);
const QUEUE: Order = (
    "queue-1",
    r#"{"person": {"pr": "86", "by": "ann", "reason": "later", "act": {"queue": "F-003"}}}"#,
);
const OPENED: Order = ("pull-1", r#"{"pull": {"pr": "86", "action": "opened"}}"#);
const MERGED: Order = ("pull-2", r#"{"pull": {"pr": "86", "action": "merged"}}"#);
const LAST_TURNS: Order = ("turn-2", r#"{"turns": {"pr": "87", "count": 8}}"#);
const REOPEN: Order = (
    "reopen-1",
    r#"{"person": {"pr": "87", "by": "ann", "reason": "cut off", "act": "reopen"}}"#,
);

impl Step {
    fn all() -> Vec<Step> {
        let [request, feedback, addressed, again, lgtm] = seed::review().map(message);
        let packet = settled_tests::read(settled_tests::repository().join(seed::PACKET));
        let step = |name, messages: &[&Message], orders: &[Order]| Step {
            name,
            messages: messages.iter().map(|message| (*message).clone()).collect(),
            files: Vec::new(),
            orders: orders.to_vec(),
        };
        let config = vec![("settled.toml", CONFIG.to_owned())];
        vec![
            Step {
                files: config,
                ..step("request", &[&request, &note("note-first")], &[TURN])
            },
            Step {
                files: vec![(seed::PACKET, packet)],
                ..step("feedback", &[&feedback], &[QUEUE])
            },
            step(
                "addressed",
                &[&addressed, &again, &note("note-late")],
                &[OPENED],
            ),
            step("approval", &[&lgtm], &[]),
            step("merge", &[], &[MERGED]),
            step("next", &[&other_request()], &[]),
            step("budget", &[&note("note-last")], &[LAST_TURNS]),
            step("reopened", &[], &[REOPEN]),
        ]
    }

    /// The workspace before step `at`.
    fn scene(steps: &[Step], at: usize) -> Scene {
        let mailroom = Mailroom::new(&AGENTS);
        let mut messages = Vec::new();
        let mut orders = Vec::new();
        for (n, step) in steps[..=at].iter().enumerate() {
            step.prepare(&mailroom);
            messages.extend(step.messages.iter().cloned());
            orders.extend(step.orders.iter().map(|(id, _)| *id));
            if n < at {
                let output = mailroom.once();
                assert!(output.status.success(), "{}: {}", step.name, said(&output));
            }
        }
        Scene {
            name: format!("review: {}", steps[at].name),
            messages,
            orders,
            mailroom,
        }
    }

    fn prepare(&self, mailroom: &Mailroom) {
        for (path, text) in &self.files {
            mailroom.put(path, text);
            set_age(&mailroom.root().join(path), 0);
        }
        for (id, event) in &self.orders {
            let text = format!(
                r#"{{"schema_version": 1, "id": "{id}", "asked_at": "2026-02-13T10:20:00Z", "event": {event}}}"#
            );
            std::fs::create_dir_all(mailroom.root().join(".settled/orders"))
                .expect("a directory can be made");
            mailroom.put(&format!(".settled/orders/{id}.json"), &text);
        }
        drop_all(mailroom.root(), &self.messages);
    }
}

fn message(post: seed::Post) -> Message {
    let seed::Post {
        from,
        to,
        file,
        text,
        ..
    } = post;
    Message {
        from,
        to,
        file: file.to_owned(),
        id: seed::id(&text).to_owned(),
        text,
        fate: Fate::Accepted,
    }
}

fn note(id: &str) -> Message {
    let text = seed::note(
        "notification",
        id,
        "codex",
        "claude",
        "a word beside the review",
    );
    let file = format!("{id}.yaml");
    Message {
        from: "codex",
        to: "claude",
        file,
        id: id.to_owned(),
        text,
        fate: Fate::Accepted,
    }
}

/// The request of another review, for pull request 87.
fn other_request() -> Message {
    let mut request = Mix::Requests.messages(1, 0).remove(0);
    request.text = request
        .text
        .replace("pr: 1\n", "pr: 87\n")
        .replace("\"1\"", "\"87\"");
    request
}

/// Writes messages, the times of their content in order.
fn drop_all(root: &Path, messages: &[Message]) {
    for (n, message) in messages.iter().enumerate() {
        messages::post(root, message);
        set_age(
            &root
                .join("agents")
                .join(message.from)
                .join("outbox")
                .join(&message.file),
            n as u64,
        );
    }
}

fn set_age(path: &Path, after_ms: u64) {
    let then = SystemTime::now() - Duration::from_secs(3600) + Duration::from_millis(after_ms * 10);
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("the file is there");
    file.set_modified(then).expect("a file's time can be set");
}

/// Copies a tree of directories and regular files, with the files' times.
pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory can be made");
    let permissions = from.metadata().expect("it is there").permissions();
    std::fs::set_permissions(to, permissions).expect("permissions can be set");
    for path in settled_tests::list(from) {
        let target: PathBuf = to.join(path.file_name().expect("an entry has a name"));
        let data = path.symlink_metadata().expect("it is there");
        if data.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a file can be copied");
            let file = std::fs::File::options()
                .write(true)
                .open(&target)
                .expect("it was just made");
            file.set_modified(data.modified().expect("it has a time"))
                .expect("a time can be set");
        }
    }
}
