//! Finds whose clock is wrong among the hosts that share a ledger: by the log's own clock, or by what most hosts' clocks
//! say. A clock that is far ahead would move every later record and deadline, because no record may be older than the one
//! before it. So its host records nothing, and no host takes over what such a host records, until the clocks have caught up.

use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use spool::HostName;
use workspace::clock::Moment;
use workspace::heartbeat::CLOCKS_APART_MAX;
use workspace::operator_alerts::{Alert, AlertKind, Alerts};

use super::SharedLedger;

/// The farthest that a clock may be ahead before its records count as wrong. A smaller error stops no host.
const AHEAD_MAX: TimeDelta = TimeDelta::minutes(5);

/// The time by which clocks are judged, as its lead over this host's clock.
enum Reference {
    /// The log's clock.
    Log(TimeDelta),
    /// The clock that most hosts agree on.
    Most(TimeDelta),
    /// No more than half of the hosts agree.
    Unknown,
}

impl Reference {
    /// Finds it among the leads of the other hosts' clocks over this one's.
    fn of(log: Option<TimeDelta>, others: &[TimeDelta]) -> Reference {
        if let Some(log) = log {
            return Reference::Log(log);
        }
        if others.is_empty() {
            return Reference::Unknown;
        }
        let clocks = || others.iter().copied().chain([TimeDelta::zero()]);
        let agree = |clock: TimeDelta| clocks().filter(|other| !apart(*other - clock)).count();
        let most = clocks().max_by_key(|clock| agree(*clock));
        let most = most.filter(|clock| 2 * agree(*clock) > others.len() + 1);
        most.map_or(Reference::Unknown, Reference::Most)
    }

    /// Says how a clock with this lead over this host's differs; none within the tolerance.
    fn differs(&self, clock: TimeDelta) -> Option<String> {
        let (by, whose) = match self {
            Reference::Log(by) => (*by, "the brokers'"),
            Reference::Most(by) => (*by, "most hosts'"),
            Reference::Unknown => (TimeDelta::zero(), "this host's"),
        };
        let ahead = clock - by;
        let way = if ahead > TimeDelta::zero() {
            "ahead of"
        } else {
            "behind"
        };
        let seconds = rounded(ahead.num_seconds().abs());
        apart(ahead).then(|| format!("more than {seconds} s {way} {whose} clock"))
    }
}

fn apart(ahead: TimeDelta) -> bool {
    ahead.abs() > CLOCKS_APART_MAX
}

impl SharedLedger {
    /// Notes a record of another host, which came at `now` and raised the time of the last record from `before`.
    pub(crate) fn note_time(&mut self, host: &HostName, before: DateTime<Utc>, now: DateTime<Utc>) {
        let at = self.last.at;
        // A record that only keeps the time of the one before it says nothing about its host.
        if *host != self.sharing.host && at > before {
            self.record_ahead = (at - now > CLOCKS_APART_MAX).then(|| (host.clone(), at));
        }
    }

    /// The leads over this host's clock, of the hosts that are heard now.
    fn leads(&self, now: DateTime<Utc>) -> Vec<(&HostName, TimeDelta)> {
        let fleet = &self.sharing.fleet;
        let heard = self.heartbeats.clocks(now);
        heard
            .filter(|(host, _)| fleet.key(host).is_some())
            .collect()
    }

    /// The time by the clocks that this host can compare its own with: the log's and most hosts', whichever is later. One
    /// of the two may be wrong, and a host that agrees with the other has no reason to stop.
    fn compared(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let log = self.sharing.log.clock_ahead_ms();
        let others: Vec<TimeDelta> = self.leads(now).iter().map(|(_, by)| *by).collect();
        let most = match Reference::of(None, &others) {
            Reference::Most(by) => Some(by),
            Reference::Log(_) | Reference::Unknown => None,
        };
        let leads = log.map(TimeDelta::milliseconds).into_iter().chain(most);
        leads.max().map(|by| now + by)
    }

    /// The reason that this host must not record anything by its clock.
    pub(crate) fn clock_too_far_ahead(&self, now: DateTime<Utc>) -> Option<String> {
        let ahead = now - self.compared(now)?;
        (ahead > AHEAD_MAX).then(|| {
            let minutes = AHEAD_MAX.num_minutes();
            format!(
                "this host's clock is more than {minutes} minutes ahead of the others', and its records would be too: set it"
            )
        })
    }

    /// The latest time that a record of another host may have now. A clock of this host that is behind is no reason to
    /// wait if the log's or most hosts' is not.
    pub(crate) fn latest_record(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let compared = self.compared(now);
        now.max(compared.unwrap_or(now)) + AHEAD_MAX
    }

    /// The time by which this host fires deadlines: not before one has come by the other clocks too.
    pub(crate) fn deadline_clock(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let compared = self.compared(now);
        now.min(compared.unwrap_or(now))
    }

    /// Tells operators whose clock is wrong; `ledger` is the place of the alert.
    pub(crate) fn compare_clocks(&self, alerts: &mut Alerts, ledger: PathBuf, moment: Moment) {
        let said = self.wrong_clocks(moment.utc);
        if said.is_empty() {
            alerts.clear(|alert| alert.kind == AlertKind::HostClock);
        } else {
            alerts.raise(Alert {
                kind: AlertKind::HostClock,
                path: ledger,
                what: said.join("; "),
            });
        }
    }

    /// One sentence for each clock that is wrong, or that may be.
    fn wrong_clocks(&self, now: DateTime<Utc>) -> Vec<String> {
        let log = self.sharing.log.clock_ahead_ms();
        let heard = self.leads(now);
        let others: Vec<TimeDelta> = heard.iter().map(|(_, ahead)| *ahead).collect();
        let reference = Reference::of(log.map(TimeDelta::milliseconds), &others);
        let fix = |by_itself: &'static str| match reference {
            Reference::Log(_) | Reference::Most(_) => by_itself,
            Reference::Unknown => "one of the two clocks is wrong",
        };
        let mut said = Vec::new();
        if let Some(differs) = reference.differs(TimeDelta::zero()) {
            said.push(format!("this host's clock is {differs}: set it"));
        }
        for (host, ahead) in &heard {
            if let Some(differs) = reference.differs(*ahead) {
                let fix = fix("set it there");
                said.push(format!("the clock of host {host} is {differs}: {fix}"));
            }
        }
        if let Some((host, at)) = &self.record_ahead
            && *at > now
            && heard.iter().all(|(known, _)| *known != host)
            && let Some(differs) = reference.differs(*at - now)
        {
            let fix = fix("set the clock there");
            said.push(format!(
                "records of host {host} are {differs}: {fix}; records keep the later time meanwhile"
            ));
        }
        said
    }
}

/// The smallest step of a clock to report, in seconds: a clock that drifts is not reported with every record.
fn rounded(seconds: i64) -> i64 {
    let steps = [3_600, 600, 60, 30, 10, 5];
    let step = steps.into_iter().find(|step| seconds >= *step);
    step.unwrap_or(CLOCKS_APART_MAX.num_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the warnings about this host's clock and about the others, which are given as leads over it.
    fn said(log: Option<i64>, others: &[i64]) -> Vec<Option<String>> {
        let others: Vec<_> = others.iter().map(|s| TimeDelta::seconds(*s)).collect();
        let reference = Reference::of(log.map(TimeDelta::seconds), &others);
        let all = [TimeDelta::zero()].into_iter().chain(others);
        all.map(|clock| reference.differs(clock)).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_clock_that_differs_from_the_log_or_from_most_is_the_wrong_one() {
        assert_eq!(said(None, &[]), [None]);
        assert_eq!(said(None, &[2, -2]), [None, None, None]);
        let ahead = "more than 60 s ahead of most hosts' clock";
        assert_eq!(said(None, &[0, 90]), [None, None, some(ahead)]);
        let behind = "more than 60 s behind most hosts' clock";
        assert_eq!(said(None, &[90, 91]), [some(behind), None, None]);
        // Two hosts: only the log knows.
        let ahead = "more than 60 s ahead of this host's clock";
        assert_eq!(said(None, &[90]), [None, some(ahead)]);
        let ahead = "more than 60 s ahead of the brokers' clock";
        assert_eq!(said(Some(0), &[90]), [None, some(ahead)]);
        let behind = "more than 60 s behind the brokers' clock";
        assert_eq!(said(Some(90), &[90]), [some(behind), None]);
        assert_eq!(said(Some(2), &[]), [None]);
    }
}
