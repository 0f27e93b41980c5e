//! The number of files that came out of one outbox within the last hour, accepted or refused: a count per minute, so
//! that its cost does not grow with the number of files.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::AgentName;
use serde::{Deserialize, Serialize};

/// The window, in minutes.
const WINDOW_MIN: i64 = 60;

/// The files that came out of every outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRate(pub BTreeMap<AgentName, MinuteCounts>);

/// The minutes since 1970 in which files came, with their number, oldest first.
pub type MinuteCounts = VecDeque<(i64, u32)>;

impl FileRate {
    /// Counts one file and forgets the minutes more than an hour old. After a clock is set back, it keeps counting in
    /// the minute it had reached.
    pub fn count(&mut self, outbox: &AgentName, at: DateTime<Utc>) {
        if !self.0.contains_key(outbox) {
            self.0.insert(outbox.clone(), VecDeque::new());
        }
        let minutes = self.0.get_mut(outbox).expect("it was there or was put in");
        let minute = minutes
            .back()
            .map_or(minute(at), |(last, _)| minute(at).max(*last));
        match minutes.back_mut() {
            Some((last, count)) if *last == minute => *count = count.saturating_add(1),
            Some(_) | None => minutes.push_back((minute, 1)),
        }
        while minutes
            .front()
            .is_some_and(|(first, _)| *first <= minute - WINDOW_MIN)
        {
            minutes.pop_front();
        }
    }

    /// Counts the files in the hour before `now`, to the minute.
    pub fn in_the_last_hour(&self, outbox: &AgentName, now: DateTime<Utc>) -> u64 {
        self.counted(outbox, now)
            .map(|(_, count)| u64::from(count))
            .sum()
    }

    /// Returns the time at which fewer than `limit` files will be in the window, if nothing else comes.
    pub fn is_below_at(&self, outbox: &AgentName, limit: u64, now: DateTime<Utc>) -> DateTime<Utc> {
        let mut left = self.in_the_last_hour(outbox, now);
        for (counted, count) in self.counted(outbox, now) {
            left -= u64::from(count);
            if left < limit {
                return DateTime::from_timestamp((counted + WINDOW_MIN) * 60, 0).unwrap_or(now);
            }
        }
        now + TimeDelta::hours(1)
    }

    fn counted(&self, outbox: &AgentName, now: DateTime<Utc>) -> impl Iterator<Item = (i64, u32)> {
        let minutes = self.0.get(outbox).into_iter().flatten().copied();
        minutes.filter(move |(counted, _)| *counted > minute(now) - WINDOW_MIN)
    }
}

fn minute(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_for_an_hour_and_the_count_costs_nothing() {
        let agent = AgentName::new("claude").expect("a name");
        let at = |seconds| DateTime::from_timestamp(seconds, 0).expect("an instant");
        let mut rate = FileRate::default();
        for second in 0..7_200 {
            rate.count(&agent, at(second));
        }
        assert_eq!(rate.in_the_last_hour(&agent, at(7_199)), 3_600);
        assert_eq!(rate.0[&agent].len(), 60);
        assert_eq!(rate.is_below_at(&agent, 3_600, at(7_199)), at(7_200));
        assert_eq!(rate.in_the_last_hour(&agent, at(7_200)), 3_540);
        assert_eq!(rate.is_below_at(&agent, 1, at(7_199)), at(10_740));
        assert_eq!(rate.is_below_at(&agent, 3_540, at(7_199)), at(7_260));
        assert_eq!(rate.is_below_at(&agent, 0, at(7_199)), at(10_799), "never");
        assert_eq!(rate.in_the_last_hour(&agent, at(10_800)), 0);
        rate.count(&agent, at(60));
        assert_eq!(
            rate.in_the_last_hour(&agent, at(7_199)),
            3_601,
            "a clock set back forgets nothing"
        );
    }
}
