//! Keeps the time of each duty of the daemon and of each wakeup of its mailroom. It reads no clock: callers pass the
//! time in milliseconds of a monotonic clock.

use std::collections::BTreeMap;

/// A duty that the clock drives; duties that are due together are done in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Duty {
    /// Takes the hints of throttled directories, which do not wake the daemon.
    Hints,
    /// Lists every outbox, with or without events.
    Sweep,
    /// Judges, commits and delivers, keeps deadlines, and tends the commands of agents.
    Pass,
    /// Makes deliveries survive a power cut.
    Checkpoint,
    /// Gives the supervisor a sign of life.
    Beat,
}

/// Work that the mailroom continues by the clock, without any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wakeup {
    /// Looks at a file in an outbox; at time 0, a file waits for its turn.
    Look,
    /// Processes orders that were held up.
    Orders,
    /// Retries a mailbox that could not be written.
    Retry,
    /// Ends a wait.
    Deadline,
    /// Lists an outbox that the last sweep skipped.
    Sweep,
    /// Reads the log that several hosts share.
    Log,
}

/// The times of duties or wakeups; a duty without one need not be done.
#[derive(Debug)]
pub struct Schedule<D> {
    at: BTreeMap<D, u64>,
    not_before: BTreeMap<D, u64>,
}

impl<D> Default for Schedule<D> {
    fn default() -> Self {
        Self {
            at: BTreeMap::new(),
            not_before: BTreeMap::new(),
        }
    }
}

impl<D: Copy + Ord> Schedule<D> {
    /// Sets or clears the time of a duty.
    pub fn set(&mut self, duty: D, at: Option<u64>) {
        match at {
            Some(at) => self.at.insert(duty, at),
            None => self.at.remove(&duty),
        };
    }

    /// Moves a duty to this time, if it is due later or not at all.
    pub fn no_later(&mut self, duty: D, at: u64) {
        let known = self.at.entry(duty).or_insert(at);
        *known = at.min(*known);
    }

    /// Keeps a duty from being due before this time, even if an earlier time is set for it.
    pub fn not_before(&mut self, duty: D, at: u64) {
        self.not_before.insert(duty, at);
    }

    /// The time at which a duty is due; none if it need not be done.
    pub fn at(&self, duty: D) -> Option<u64> {
        let at = *self.at.get(&duty)?;
        let earliest = self.not_before.get(&duty);
        Some(earliest.map_or(at, |earliest| at.max(*earliest)))
    }

    /// The duties that are due, in their order.
    pub fn due(&self, now: u64) -> Vec<D> {
        let duties = self.at.keys().copied();
        duties.filter(|duty| self.is_due(*duty, now)).collect()
    }

    /// True if a duty is due. A duty that was just done may have postponed it.
    pub fn is_due(&self, duty: D, now: u64) -> bool {
        self.at(duty).is_some_and(|at| at <= now)
    }

    /// The next time at which any duty is due.
    pub fn next(&self) -> Option<u64> {
        self.at.keys().filter_map(|duty| self.at(*duty)).min()
    }
}

impl Schedule<Duty> {
    /// Makes no pass before this time, because the disk is full, and sweeps first.
    pub(crate) fn rest_until(&mut self, at: u64) {
        self.not_before(Duty::Pass, at);
        self.no_later(Duty::Sweep, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duties_are_due_in_their_order_and_the_first_time_wakes() {
        let mut schedule = Schedule::default();
        assert_eq!((schedule.next(), schedule.due(u64::MAX)), (None, vec![]));
        schedule.set(Duty::Pass, Some(5));
        schedule.set(Duty::Sweep, Some(7));
        schedule.no_later(Duty::Sweep, 9);
        schedule.no_later(Duty::Checkpoint, 6);
        assert_eq!(schedule.next(), Some(5));
        assert_eq!(schedule.due(5), [Duty::Pass]);
        assert_eq!(schedule.due(7), [Duty::Sweep, Duty::Pass, Duty::Checkpoint]);
        schedule.set(Duty::Pass, None);
        assert_eq!(schedule.due(6), [Duty::Checkpoint]);
    }

    #[test]
    fn nothing_is_judged_while_a_full_disk_rests_and_a_sweep_goes_first() {
        let mut schedule = Schedule::default();
        schedule.set(Duty::Sweep, Some(2_000));
        schedule.rest_until(1_000);
        schedule.no_later(Duty::Pass, 0);
        assert_eq!(schedule.due(999), []);
        assert_eq!(schedule.next(), Some(1_000));
        assert_eq!(schedule.due(1_000), [Duty::Sweep, Duty::Pass]);
    }
}
