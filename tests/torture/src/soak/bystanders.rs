//! The traffic besides reviews: mail between agents, careless writers, and around the daemon reloads, a reader of its
//! metrics, news of pull requests and decisions of people. Commands run on threads of their own, so that they delay no
//! agent.

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
    /// Merge or close the pull request.
    End(u64),
    /// Push new commits to it.
    Push(u64),
    /// Reopen the review as a person.
    Reopen(u64),
    /// Approve as a person what no agent may.
    Approve(u64),
    /// Read the problems as a person.
    Look,
}

/// The number of parallel commands: on a busy machine each takes a second, and a soak escalates several reviews a
/// second.
const THREADS: usize = 4;

/// The threads that run the commands.
pub(super) struct Errands<'scope> {
    tell: Option<Sender<Errand>>,
    done: Receiver<u64>,
    /// The number of unfinished errands.
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

    /// Queues an errand.
    pub(super) fn ask(&self, errand: Errand) {
        let tell = self.tell.as_ref().expect("it ends with `finish`");
        self.left.fetch_add(1, Ordering::Relaxed);
        tell.send(errand)
            .expect("the threads hear until they are told of the end");
    }

    /// Counts the errands that wait or run, since one of them may reopen a review.
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Returns the reviews that a person has reopened since the last call.
    pub(super) fn reopened(&self) -> Vec<u64> {
        self.done.try_iter().collect()
    }

    /// Waits for all errands and returns the unexpected answers.
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

/// Runs errands until there are no more; reports reopened reviews and returns the unexpected answers.
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
        // Exit codes 1 and 3: the command does not fit the review's phase. 2: the config is invalid at the moment.
        if !matches!(output.status.code(), Some(0..=3 | 6)) {
            wrong.push(format!("{errand:?}: {}", said(&output)));
        }
        if let (Errand::Reopen(pr), Some(0)) = (errand, output.status.code()) {
            // After the end of the soak nobody receives it.
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

/// Writes mail that moves no review: a note, the same bytes again, or something careless.
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

/// Makes the daemon reload its config with another warning time, or an invalid config if `warn_s` is `None`.
pub(super) fn reload(root: &Path, beside: &Path, daemon: Pid, warn_s: Option<u64>) {
    let text = warn_s.map_or("[rounds]\nmax = 9\n".to_owned(), |warn_s| {
        cast::config(beside, warn_s)
    });
    let temporary = beside.join("settled.toml.new");
    write(&temporary, &text);
    std::fs::rename(&temporary, root.join("settled.toml")).expect("both lie on one file system");
    kill_process(daemon, Signal::HUP).expect("the daemon runs");
}
