//! When the daemon has something to do: each of its duties with the time it is due. Knows no clock: the
//! time is handed in, in milliseconds of a clock that never goes back.

/// What the daemon does by the clock, in the order in which it is done when several are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Looks through every outbox, whatever the watcher says.
    Sweep,
    /// Judges, commits and delivers what is there, keeps deadlines, and tends the commands of agents.
    Pass,
    /// Makes what was delivered survive a power cut.
    Checkpoint,
    /// Gives the supervisor a sign of life.
    Beat,
}

impl Duty {
    const ALL: [Self; 4] = [Self::Sweep, Self::Pass, Self::Checkpoint, Self::Beat];
}

/// The times of all duties.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    at: [Option<u64>; Duty::ALL.len()],
    /// Before this time no pass is made: the disk is full and left alone.
    resting_until: u64,
}

impl Schedule {
    /// Sets or clears the time of a duty.
    pub(crate) fn set(&mut self, duty: Duty, at: Option<u64>) {
        self.at[duty as usize] = at;
    }

    /// Has a duty done at this time if it would be later, or never.
    pub(crate) fn no_later(&mut self, duty: Duty, at: u64) {
        let known = &mut self.at[duty as usize];
        *known = Some(known.map_or(at, |known| known.min(at)));
    }

    /// Makes no pass before this time, and looks through the outboxes first.
    pub(crate) fn rest_until(&mut self, at: u64) {
        self.resting_until = at;
        self.no_later(Duty::Sweep, at);
    }

    /// When a duty is due; nothing while it need not be done.
    pub(crate) fn at(&self, duty: Duty) -> Option<u64> {
        let at = self.at[duty as usize];
        match duty {
            Duty::Pass => at.map(|at| at.max(self.resting_until)),
            Duty::Sweep | Duty::Checkpoint | Duty::Beat => at,
        }
    }

    /// What is due, in the order in which it is done.
    pub(crate) fn due(&self, now: u64) -> Vec<Duty> {
        let duties = Duty::ALL.into_iter();
        duties.filter(|duty| self.is_due(*duty, now)).collect()
    }

    /// Whether a duty is due, also after another duty has put it off.
    pub(crate) fn is_due(&self, duty: Duty, now: u64) -> bool {
        self.at(duty).is_some_and(|at| at <= now)
    }

    /// When anything is due next.
    pub(crate) fn next(&self) -> Option<u64> {
        Duty::ALL.into_iter().filter_map(|duty| self.at(duty)).min()
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
