//! The traffic in a workspace beside its reviews: mail between agents, careless writers, and at the daemon's side
//! reloads, a reader of its counts, news of pull requests and decisions of people. What takes a command is done on
//! threads of its own, so that it holds up no agent.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{seed, write};

use super::cast;
use super::desk::Desk;

/// A command that a bystander gives the daemon.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errand {
    /// The pull request is merged or closed.
    End(u64),
    /// It has new commits.
    Push(u64),
    /// A person opens the review again.
    Reopen(u64),
    /// A person approves what no agent may.
    Approve(u64),
    /// A person looks at the problems.
    Look,
}

/// Commands that run at a time: on a busy machine each takes a second, and a soak hands several reviews a second to people.
const THREADS: usize = 4;

/// The threads that run the commands.
pub(super) struct Errands<'scope> {
    tell: Option<Sender<Errand>>,
    done: Receiver<u64>,
    /// Errands that have not been run to their end.
    left: Arc<AtomicUsize>,
    threads: Vec<ScopedJoinHandle<'scope, Vec<String>>>,
}

impl<'scope> Errands<'scope> {
    /// Starts the threads, which run each errand they get.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        mailroom: &'env Mailroom,
    ) -> Self {
        let (tell, asked) = channel::<Errand>();
        let (say, done) = channel();
        let asked = Arc::new(Mutex::new(asked));
        let left = Arc::new(AtomicUsize::new(0));
        let start = |_| {
            let (asked, say, left) = (Arc::clone(&asked), say.clone(), Arc::clone(&left));
            scope.spawn(move || run_all(mailroom, &asked, &say, &left))
        };
        Self {
            tell: Some(tell),
            done,
            left: Arc::clone(&left),
            threads: (0..THREADS).map(start).collect(),
        }
    }

    /// Asks for something.
    pub(super) fn ask(&self, errand: Errand) {
        let tell = self.tell.as_ref().expect("it ends with `finish`");
        self.left.fetch_add(1, Ordering::Relaxed);
        tell.send(errand)
            .expect("the threads hear until they are told of the end");
    }

    /// Counts the errands that wait or run. One of them may open a review again.
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Reviews that a person has opened again since.
    pub(super) fn reopened(&self) -> Vec<u64> {
        self.done.try_iter().collect()
    }

    /// Waits for all that was asked, and says what was answered wrong.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.tell = None;
        let threads = self.threads.into_iter();
        threads
            .flat_map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    }
}

/// Runs errands until no more are asked for, says which reviews were opened again, and returns what was answered wrong.
fn run_all(
    mailroom: &Mailroom,
    asked: &Mutex<Receiver<Errand>>,
    say: &Sender<u64>,
    left: &AtomicUsize,
) -> Vec<String> {
    let next = || asked.lock().expect("no holder panics").recv();
    let mut wrong = Vec::new();
    while let Ok(errand) = next() {
        let output = run(mailroom, errand);
        // Exit codes 1 and 3 say that the command does not fit the review's phase, 2 that the config is inconsistent just
        // now.
        if !matches!(output.status.code(), Some(0..=3 | 6)) {
            wrong.push(format!("{errand:?}: {}", said(&output)));
        }
        if let (Errand::Reopen(pr), Some(0)) = (errand, output.status.code()) {
            // Nobody listens any more once the soak ends.
            let _ = say.send(pr);
        }
        left.fetch_sub(1, Ordering::Relaxed);
    }
    wrong
}

fn run(mailroom: &Mailroom, errand: Errand) -> std::process::Output {
    match errand {
        Errand::End(pr) => {
            let how = if pr % 2 == 0 { "merged" } else { "closed" };
            mailroom.run(&["pr", how, &pr.to_string()])
        }
        Errand::Push(pr) => {
            mailroom.run(&["pr", "synchronize", &pr.to_string(), "--head", "fedcba9"])
        }
        Errand::Reopen(pr) => mailroom.at_terminal(
            &["review", "reopen", &pr.to_string(), "--by", "ann"],
            "once more",
        ),
        Errand::Approve(pr) => mailroom.at_terminal(
            &["review", "approve", &pr.to_string(), "--by", "ann"],
            "good enough",
        ),
        Errand::Look => mailroom.run(&["problems"]),
    }
}

/// Mail that moves no review: a note, the same bytes again, or what somebody careless writes.
pub(super) fn write_mail(desk: &mut Desk) {
    let names = cast::names();
    let from = names[desk.dice.below(names.len())];
    let to = if from == "rita" { "rob" } else { "rita" };
    let id = desk.id("note");
    let kind = ["notification", "question", "brainstorm_request"][desk.dice.below(3)];
    let length = desk.dice.below(60);
    let note = seed::note(
        kind,
        &id,
        from,
        to,
        &("a line of it\n".repeat(length) + &id),
    );
    let careless = desk.dice.roll(24);
    let text = match careless {
        0 => note.replace(&format!("from: {from}"), "from: somebody"),
        1 => note.replace("priority: P2", "priority: urgent"),
        2 => note.replace(&format!("to: {to}"), "to: nobody"),
        3 => "Looks good to me!\n".to_owned(),
        4 => note[..note.len() / 2].to_owned(),
        5 => note.replace("subject:", "to: rob\nsubject:"),
        6 => seed::review_message(
            "review_lgtm",
            &id,
            from,
            to,
            "999999",
            "quality_gate_result: pass\nmerge_ready: true",
        ),
        7 => note.replace("body:", "colour: blue\nbody:"),
        _ => note,
    };
    desk.post(from, &id, &text);
    if careless == 8 {
        desk.post(from, &format!("{id}-again"), &text);
    }
}

/// Has the daemon reload its config with another warning time; without one, with an invalid config.
pub(super) fn reload(root: &Path, beside: &Path, daemon: Pid, warn_s: Option<u64>) {
    let text = warn_s.map_or("[rounds]\nmax = 9\n".to_owned(), |warn_s| {
        cast::config(beside, warn_s)
    });
    let temporary = beside.join("settled.toml.new");
    write(&temporary, &text);
    std::fs::rename(&temporary, root.join("settled.toml")).expect("both lie on one file system");
    kill_process(daemon, Signal::HUP).expect("the daemon runs");
}
