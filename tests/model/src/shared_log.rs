//! A few hosts and one log, in every order of their steps: append, lose the request or the answer, arrive late or twice,
//! append again, follow, be killed. The log keeps the contract of `spool::log`, with a batch as one number. A host
//! keeps the daemon's rule: it does not judge while the outcome of an append is unknown, and judges a rejected batch
//! again.

use stateright::{Model, Property};

/// A batch: the host and file that it judges, and the length of the log on which it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JudgedFile {
    host: usize,
    file: u8,
    after: usize,
    /// The number of times the host was killed before: ids and times differ between its lives.
    life: u8,
}

/// The state of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostView {
    /// Its mirror.
    mirror: Vec<JudgedFile>,
    /// The append with an unknown outcome.
    unknown: Option<JudgedFile>,
    /// The number of times it was killed.
    life: u8,
}

/// The log, the batches on their way to it, and the hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Everything {
    log: Vec<JudgedFile>,
    late: Vec<JudgedFile>,
    hosts: Vec<HostView>,
    kills_left: u8,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A host judges its next file, or sends the same batch again, and the append has this fate.
    Append(usize, Fate),
    /// A late batch arrives.
    Arrive(usize),
    /// A host adopts the next batch of the log.
    Follow(usize),
    /// A host is killed and forgets an append with an unknown outcome.
    Kill(usize),
}

/// The fate of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It arrives, and so does the answer.
    Answered,
    /// It arrives and the answer is lost.
    AnswerLost,
    /// It never arrives.
    Lost,
    /// It arrives after other steps.
    Late,
    /// It arrives, so does the answer, and it arrives again after other steps.
    Twice,
}

const FATES: [Fate; 5] = [
    Fate::Answered,
    Fate::AnswerLost,
    Fate::Lost,
    Fate::Late,
    Fate::Twice,
];

/// A flaw put into a host or the log on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing is broken.
    Nothing,
    /// The log appends without checking its end.
    NoFence,
    /// After a rejection a host sends its old batch for the new end, without judging again.
    NotJudgedAgain,
    /// A host takes an unanswered append as committed.
    UnknownIsCommitted,
}

/// The walk through all of it.
pub struct SharedLog {
    /// The flaw.
    pub flaw: Flaw,
    /// The number of hosts.
    pub hosts: usize,
    /// The number of files that each host has to judge.
    pub files: u8,
}

impl SharedLog {
    /// Appends a batch if it fits the end of the log; returns whether the log has it.
    fn put(&self, log: &mut Vec<JudgedFile>, batch: JudgedFile) -> bool {
        if batch.after == log.len() || self.flaw == Flaw::NoFence {
            log.push(batch);
            return true;
        }
        log.get(batch.after) == Some(&batch)
    }

    /// The batch that a host sends next: the one with the unknown outcome, or its next file, judged on its mirror.
    fn next_batch(&self, host: usize, view: &HostView) -> Option<JudgedFile> {
        if let Some(unknown) = view.unknown {
            return Some(unknown);
        }
        let is_judged = |file: u8| {
            let mut known = view.mirror.iter();
            known.any(|batch| batch.host == host && batch.file == file)
        };
        let file = (0..self.files).find(|file| !is_judged(*file))?;
        let after = view.mirror.len();
        let life = view.life;
        Some(JudgedFile {
            host,
            file,
            after,
            life,
        })
    }

    fn append(&self, all: &mut Everything, host: usize, fate: Fate) -> Option<()> {
        let batch = self.next_batch(host, &all.hosts[host])?;
        let view_of_host = &mut all.hosts[host];
        let is_there = match fate {
            Fate::Lost => false,
            Fate::Late => {
                all.late.push(batch);
                false
            }
            Fate::Answered | Fate::AnswerLost | Fate::Twice => self.put(&mut all.log, batch),
        };
        if fate == Fate::Twice {
            all.late.push(batch);
        }
        // Any of them may arrive next, so their order must not distinguish states.
        all.late.sort_unstable();
        let is_answered = matches!(fate, Fate::Answered | Fate::Twice);
        view_of_host.unknown = match (is_answered, self.flaw) {
            (true, Flaw::NotJudgedAgain) if !is_there => {
                let after = all.log.len();
                Some(JudgedFile { after, ..batch })
            }
            // Committed: the mirror adopts it like any other. Rejected: judge it again on the new records.
            (true, _) => None,
            (false, Flaw::UnknownIsCommitted) => {
                view_of_host.mirror.push(batch);
                None
            }
            (false, _) => Some(batch),
        };
        Some(())
    }
}

impl Model for SharedLog {
    type State = Everything;
    type Action = Step;

    fn init_states(&self) -> Vec<Everything> {
        let view = HostView {
            mirror: Vec::new(),
            unknown: None,
            life: 0,
        };
        vec![Everything {
            log: Vec::new(),
            late: Vec::new(),
            hosts: vec![view; self.hosts],
            kills_left: 1,
        }]
    }

    fn actions(&self, all: &Everything, steps: &mut Vec<Step>) {
        for host in 0..all.hosts.len() {
            steps.extend(FATES.map(|fate| Step::Append(host, fate)));
            steps.push(Step::Follow(host));
            if all.kills_left > 0 {
                steps.push(Step::Kill(host));
            }
        }
        steps.extend((0..all.late.len()).map(Step::Arrive));
    }

    fn next_state(&self, all: &Everything, step: Step) -> Option<Everything> {
        let mut next = all.clone();
        match step {
            Step::Append(host, fate) => self.append(&mut next, host, fate)?,
            Step::Arrive(at) => {
                let batch = next.late.remove(at);
                self.put(&mut next.log, batch);
            }
            Step::Follow(host) => {
                let view = &mut next.hosts[host];
                // Adopt nothing while the outcome of the own append is unknown.
                let batch = next
                    .log
                    .get(view.mirror.len())
                    .filter(|_| view.unknown.is_none());
                view.mirror.push(*batch?);
            }
            Step::Kill(host) => {
                next.kills_left -= 1;
                next.hosts[host].unknown = None;
                next.hosts[host].life += 1;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("every file is judged once", |_, all: &Everything| {
                let mut judged: Vec<_> = all
                    .log
                    .iter()
                    .map(|batch| (batch.host, batch.file))
                    .collect();
                judged.sort_unstable();
                judged.windows(2).all(|pair| pair[0] != pair[1])
            }),
            Property::always(
                "every batch was judged on what it follows",
                |_, all: &Everything| {
                    all.log
                        .iter()
                        .enumerate()
                        .all(|(at, batch)| batch.after == at)
                },
            ),
            Property::always(
                "every mirror is the log's beginning",
                |_, all: &Everything| {
                    all.hosts
                        .iter()
                        .all(|view| all.log.starts_with(&view.mirror))
                },
            ),
            Property::sometimes("all files are judged", |model: &Self, all: &Everything| {
                all.log.len() == model.hosts * usize::from(model.files)
                    && all
                        .hosts
                        .iter()
                        .all(|view| view.mirror.len() == all.log.len())
            }),
        ]
    }

    fn within_boundary(&self, all: &Everything) -> bool {
        // Two late batches are enough for each to overtake the other.
        all.late.len() <= 2 && all.log.len() <= self.hosts * usize::from(self.files) + 1
    }
}
