//! The course of a soak: turns of all agents one after the other, and recurring steps at their times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use settled_tests::mailroom::{Daemon, Mailroom};
use settled_tests::wait;

use super::authors::{Authors, Case};
use super::bystanders::{self, Errand, Errands};
use super::desk::Desk;
use super::judge::Sample;
use super::samples::Looker;
use super::{Plan, cast, reviewers, verdict};
use crate::dice::Dice;

/// The most open reviews.
const OPEN_MAX: usize = 40;

/// The most reviews that wait for a person to reopen them.
const HANDED_OVER: usize = 8;

/// The most commands of people that wait: the reviews they are about stay in memory, so a queue that grew for hours would
/// look like a daemon that forgets nothing.
const ERRANDS_MAX: usize = 100;

/// The most files in the outboxes before the writers pause: a busy machine slows the daemon more than its writers.
const BACKLOG: usize = 60;

/// The pause between two turns, which leaves the processor to others.
const PAUSE: Duration = Duration::from_millis(25);

/// The time after which an author gives its review up, because something it sent was refused.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time the last reviews may take: two starts, each with mail to wait for and a command to end, on a busy
/// machine.
const DRAIN: Duration = Duration::from_secs(120);

/// The period of each recurring step.
const RELOAD: Duration = Duration::from_secs(5);
const ERRAND: Duration = Duration::from_millis(1_500);
const HALVES: Duration = Duration::from_millis(400);
const WORD: Duration = Duration::from_secs(60);

/// The next time of each recurring step.
#[derive(Debug, Default)]
struct Due {
    look: Duration,
    reload: Duration,
    errand: Duration,
    halves: Duration,
    word: Duration,
}

/// A soak in progress.
pub(super) struct Run<'a> {
    plan: Plan,
    pub(super) desk: Desk,
    authors: Authors,
    /// Reviews that a person was asked to reopen.
    asked_for: BTreeMap<u64, Case>,
    looker: &'a Looker,
    daemon: Pid,
    beside: PathBuf,
    pub(super) samples: Vec<Sample>,
    since: Instant,
    reloads: u64,
    due: Due,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        plan: Plan,
        mailroom: &Mailroom,
        daemon: &Daemon,
        looker: &'a Looker,
        beside: &Path,
    ) -> Self {
        Self {
            plan,
            desk: Desk::new(mailroom.root(), Dice::new(plan.seed)),
            authors: Authors::default(),
            asked_for: BTreeMap::new(),
            looker,
            daemon: daemon.pid(),
            beside: beside.to_owned(),
            samples: Vec::new(),
            since: Instant::now(),
            reloads: 0,
            due: Due::default(),
        }
    }

    /// Lets everybody work until the time is over.
    pub(super) fn go_on(&mut self, errands: &Errands<'_>, told: &dyn Fn(&Sample)) {
        while self.since.elapsed() < self.plan.length {
            if self.desk.unjudged() < BACKLOG && errands.left() < ERRANDS_MAX {
                if self.authors.cases.len() < OPEN_MAX && self.desk.chance(25) {
                    self.authors.ask(&mut self.desk);
                }
                if self.desk.chance(20) {
                    bystanders::write_mail(&mut self.desk);
                }
            }
            self.turn();
            self.keep_hours(errands);
            let now = self.since.elapsed();
            if now >= self.due.look {
                self.due.look = now + self.plan.look;
                self.samples.extend(self.looker.look());
            }
            if now >= self.due.word {
                self.due.word = now + WORD;
                self.samples.last().into_iter().for_each(told);
            }
            wait::a_moment(PAUSE);
        }
    }

    /// Opens nothing more and waits until every review has ended; returns the time it took, or the reviews left.
    pub(super) fn drain(
        &mut self,
        mailroom: &Mailroom,
        errands: &Errands<'_>,
    ) -> Result<Duration, String> {
        let closed = Instant::now();
        self.reload(false);
        // A short run may have ended no pull request in the middle of its review by chance.
        for pr in self.authors.cases.keys().rev().take(3) {
            errands.ask(Errand::End(*pr));
        }
        // On a busy machine people's commands queue for minutes, and each may reopen a review.
        while errands.left() > 0 {
            self.turn();
            self.desk.finish_halves();
            wait::a_moment(PAUSE);
        }
        let began = Instant::now();
        let mut next = Duration::ZERO;
        loop {
            self.turn();
            self.desk.finish_halves();
            if began.elapsed() >= next {
                let open = verdict::open(mailroom);
                if open.is_empty() && self.desk.unjudged() == 0 && errands.left() == 0 {
                    return Ok(closed.elapsed());
                }
                if began.elapsed() > DRAIN {
                    return Err(format!(
                        "{open:?}, {} files in outboxes",
                        self.desk.unjudged()
                    ));
                }
                // Do not wait for an author's hours: end its pull request.
                let authors = open.iter().filter(|review| review.is_authors_move);
                let late = began.elapsed() > Duration::from_secs(5);
                authors
                    .filter(|_| late)
                    .for_each(|review| errands.ask(Errand::End(review.pr)));
                next = began.elapsed() + Duration::from_secs(2);
            }
            wait::a_moment(PAUSE);
        }
    }

    /// Lets every played agent read its mail and answer.
    fn turn(&mut self) {
        for agent in cast::PLAYED {
            for came in self.desk.take(agent) {
                reviewers::answer(&mut self.desk, &self.authors, &came);
            }
        }
        for agent in cast::AUTHORS {
            for came in self.desk.take(agent) {
                self.authors.hear(&mut self.desk, &came);
            }
        }
    }

    fn keep_hours(&mut self, errands: &Errands<'_>) {
        let now = self.since.elapsed();
        if now >= self.due.halves {
            self.due.halves = now + HALVES;
            self.desk.finish_halves();
            self.authors.give_up(PATIENCE);
        }
        if now >= self.due.reload {
            self.reloads += 1;
            let holds = self.reloads % 4 != 3;
            self.reload(holds);
            // Replace an invalid config soon.
            self.due.reload = now + if holds { RELOAD } else { RELOAD / 10 };
        }
        if now >= self.due.errand {
            self.due.errand = now + ERRAND;
            self.send_errands(errands);
        }
        for pr in errands.reopened() {
            if let Some(case) = self.asked_for.remove(&pr) {
                self.authors.next_generation(&mut self.desk, pr, case);
            }
        }
    }

    fn reload(&mut self, holds: bool) {
        bystanders::reload(
            self.desk.root(),
            &self.beside,
            self.daemon,
            holds.then_some(30 + self.reloads % 2),
        );
    }

    fn send_errands(&mut self, errands: &Errands<'_>) {
        for pr in self.authors.forsaken.drain(..) {
            errands.ask(Errand::End(pr));
        }
        match self.desk.dice.roll(4) {
            0 => {
                if let Some((pr, case)) = self.authors.handed_over.pop() {
                    self.asked_for.insert(pr, case);
                    errands.ask(Errand::Reopen(pr));
                }
            }
            1 => errands.ask(Errand::Push(self.authors.some_pr(&mut self.desk))),
            2 => errands.ask(Errand::End(self.authors.some_pr(&mut self.desk))),
            _ => errands.ask(Errand::Look),
        }
        // A person approves the others: a waiting review stays in memory, and an unattended workspace grows with them.
        let over = HANDED_OVER.min(self.authors.handed_over.len());
        for (pr, _) in self.authors.handed_over.drain(over..) {
            errands.ask(Errand::Approve(pr));
        }
    }
}
