//! What lies ready before the daemon is started and killed: prepared outboxes of every mix, and each
//! step of a whole review, with what came before it already done.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::seed;

use crate::letters::{self, AGENTS, Fate, Letter, Mix};

/// A workspace in which something waits to be done.
pub struct Scene {
    /// Its name in reports.
    pub name: String,
    /// Every letter that was written so far, and what must become of it.
    pub letters: Vec<Letter>,
    mailroom: Mailroom,
}

impl Scene {
    /// One of the mixes: this many letters wait in the outboxes.
    pub fn of_mix(mix: Mix, count: usize) -> Scene {
        let mailroom = Mailroom::new(&AGENTS);
        let letters = mix.letters(count, 1);
        drop_all(mailroom.root(), &letters);
        Scene { name: format!("{mix:?}").to_lowercase(), letters, mailroom }
    }

    /// The steps of a review: its five messages with a findings packet, briefs and turns, the snapshot
    /// and the handoff at the merge; then one whose budget is spent and that a person reopens.
    pub fn of_review() -> Vec<Scene> {
        let steps = Step::all();
        (0..steps.len()).map(|at| Step::scene(&steps, at)).collect()
    }

    /// Makes a copy of the workspace at a path that does not exist yet.
    pub fn lay_out(&self, at: &Path) {
        copy(self.mailroom.root(), at);
    }
}

/// One step: what is written before a run.
struct Step {
    name: &'static str,
    letters: Vec<Letter>,
    /// Files beside the outboxes: path below the root, and text.
    files: Vec<(&'static str, String)>,
}

/// A config under which a merge hands off whatever is left.
const CONFIG: &str = "[handoff]\nmode = \"full\"\ntarget = \"claude\"\n";

impl Step {
    fn all() -> Vec<Step> {
        let [request, feedback, addressed, again, lgtm] = seed::review().map(letter);
        let late = note("note-late");
        let packet = settled_tests::read(settled_tests::repository().join(seed::PACKET));
        vec![
            Step::new(
                "request",
                vec![request, note("note-first")],
                vec![("settled.toml", CONFIG.to_owned())],
            ),
            Step::new(
                "feedback",
                vec![feedback],
                vec![(seed::PACKET, packet), order("turns-1", r#"{"turns": {"pr": "86", "count": 2}}"#)],
            ),
            Step::new(
                "addressed",
                vec![addressed, again, late],
                vec![decision("queue-1", r#"{"queue": "F-003"}"#)],
            ),
            Step::new("approval", vec![lgtm], vec![pull("opened")]),
            Step::new("merge", Vec::new(), vec![pull("merged")]),
            Step::new("next", vec![other_request()], Vec::new()),
            Step::new(
                "budget",
                vec![note("note-last")],
                vec![order("turns-2", r#"{"turns": {"pr": "87", "count": 8}}"#)],
            ),
            Step::new(
                "reopened",
                Vec::new(),
                vec![(
                    ".settled/orders/reopen.json",
                    order_text(
                        "reopen",
                        r#"{"person": {"pr": "87", "by": "ann", "reason": "cut off", "act": "reopen"}}"#,
                    ),
                )],
            ),
        ]
    }

    fn new(name: &'static str, letters: Vec<Letter>, files: Vec<(&'static str, String)>) -> Step {
        Step { name, letters, files }
    }

    /// The workspace in which the step at this place is still to be done.
    fn scene(steps: &[Step], at: usize) -> Scene {
        let mailroom = Mailroom::new(&AGENTS);
        let mut letters = Vec::new();
        for (n, step) in steps[..=at].iter().enumerate() {
            for (path, text) in &step.files {
                mailroom.put(path, text);
                set_age(&mailroom.root().join(path), 0);
            }
            drop_all(mailroom.root(), &step.letters);
            letters.extend(step.letters.iter().cloned());
            if n < at {
                let output = mailroom.once();
                assert!(output.status.success(), "{}: {}", step.name, said(&output));
            }
        }
        Scene { name: format!("review: {}", steps[at].name), letters, mailroom }
    }
}

fn letter(post: seed::Post) -> Letter {
    let seed::Post { from, to, file, text, .. } = post;
    Letter { from, to, file: file.to_owned(), id: seed::id(&text).to_owned(), text, fate: Fate::Accepted }
}

fn note(id: &str) -> Letter {
    let text = seed::note("notification", id, "codex", "claude", "a word beside the review");
    let file = format!("{id}.yaml");
    Letter { from: "codex", to: "claude", file, id: id.to_owned(), text, fate: Fate::Accepted }
}

fn other_request() -> Letter {
    let mut request = Mix::Requests.letters(1, 0).remove(0);
    request.text = request.text.replace("pr: 1\n", "pr: 87\n").replace("\"1\"", "\"87\"");
    request
}

fn order(id: &'static str, event: &str) -> (&'static str, String) {
    let path = if id == "turns-1" { ".settled/orders/turns-1.json" } else { ".settled/orders/turns-2.json" };
    (path, order_text(id, event))
}

fn decision(id: &str, act: &str) -> (&'static str, String) {
    let event = format!(r#"{{"person": {{"pr": "86", "by": "ann", "reason": "later", "act": {act}}}}}"#);
    (".settled/orders/decision.json", order_text(id, &event))
}

fn pull(action: &str) -> (&'static str, String) {
    let event = format!(r#"{{"pull": {{"pr": "86", "action": "{action}"}}}}"#);
    (".settled/orders/pull.json", order_text(&format!("pull-{action}"), &event))
}

fn order_text(id: &str, event: &str) -> String {
    format!(r#"{{"schema_version": 1, "id": "{id}", "asked_at": "2026-02-13T10:20:00Z", "event": {event}}}"#)
}

/// Writes letters as if each had lain for an hour, in their order: nothing is waited for.
fn drop_all(root: &Path, letters: &[Letter]) {
    for (n, letter) in letters.iter().enumerate() {
        letters::post(root, letter);
        set_age(&root.join("agents").join(letter.from).join("outbox").join(&letter.file), n as u64);
    }
}

fn set_age(path: &Path, after_ms: u64) {
    let then = SystemTime::now() - Duration::from_secs(3600) + Duration::from_millis(after_ms * 10);
    let file = std::fs::File::options().write(true).open(path).expect("the file is there");
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
            let file = std::fs::File::options().write(true).open(&target).expect("it was just made");
            file.set_modified(data.modified().expect("it has a time")).expect("a time can be set");
        }
    }
}
