//! No case passes on a log that breaks the case's claim.

use std::panic::{AssertUnwindSafe, catch_unwind};

use log_suite::{Bench, ModelBench, cases};
use spool::log::{Appended, Head, Log, LogError, OnChange, Signed};

/// The fault of a log.
#[derive(Clone, Copy)]
enum Fault {
    /// It fails every call.
    IsBroken,
    /// It acknowledges every batch.
    AcknowledgesAll,
}

/// A bench whose log has a fault.
struct WrongBench(ModelBench, Fault);

struct WrongLog(Box<dyn Log>, Fault);

impl WrongLog {
    fn fault(&self) -> Result<(), LogError> {
        match self.1 {
            Fault::IsBroken => {
                let what = "nothing works".to_owned();
                Err(LogError::Broken { what })
            }
            Fault::AcknowledgesAll => Ok(()),
        }
    }
}

impl Log for WrongLog {
    fn head(&mut self) -> Result<Head, LogError> {
        self.fault()?;
        self.0.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        self.fault()?;
        // A batch that is too large is still refused, and an unreachable log still fails.
        self.0.append(batch).map(|_| Appended::Committed)
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.fault()?;
        self.0.follow(from)
    }

    fn on_change(&mut self, on_change: OnChange) {
        self.0.on_change(on_change);
    }

    fn poll_ms(&self) -> u64 {
        self.0.poll_ms()
    }
}

impl Bench for WrongBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Box::new(WrongLog(self.0.connect(), self.1))
    }

    fn restart(&mut self) {
        self.0.restart();
    }

    fn cut_off(&mut self) {
        self.0.cut_off();
    }

    fn join(&mut self) {
        self.0.join();
    }

    fn batch_bytes_max(&self) -> usize {
        self.0.batch_bytes_max()
    }

    fn lose_tail(&mut self, batches: usize) {
        self.0.lose_tail(batches);
    }

    fn lose_one(&mut self, batch: usize) {
        self.0.lose_one(batch);
    }

    fn replace_last(&mut self, with: &Signed) {
        self.0.replace_last(with);
    }
}

/// Returns the cases that pass nevertheless.
fn passed(fault: Fault) -> Vec<&'static str> {
    let mut passed = Vec::new();
    for (name, case) in cases::all() {
        let mut bench = WrongBench(ModelBench::default(), fault);
        if catch_unwind(AssertUnwindSafe(|| case(&mut bench))).is_ok() {
            passed.push(name);
        }
    }
    passed
}

#[test]
fn all_cases_are_listed() {
    assert_eq!(cases::all().len(), cases::count());
}

#[test]
fn no_case_passes_without_a_log_that_answers() {
    assert_eq!(passed(Fault::IsBroken), [""; 0]);
}

#[test]
fn a_log_that_acknowledges_everything_passes_no_case_about_what_is_moved() {
    let passed = passed(Fault::AcknowledgesAll);
    let moved = [
        "a_batch_for_a_past_end_is_moved",
        "a_batch_for_a_future_end_is_moved",
        "a_batch_behind_another_record_of_the_same_number_is_moved",
        "a_second_first_batch_is_moved",
        "a_moved_batch_leaves_nothing",
        "a_moved_batch_that_is_judged_again_is_committed",
        "of_two_hosts_one_wins",
        "two_hosts_in_many_rounds_make_one_chain",
        "another_batch_at_a_taken_place_is_moved",
        "unknown_that_did_not_land_before_others_is_moved",
        "an_append_that_arrives_late_changes_nothing",
        "a_restart_after_a_batch_was_moved",
        "behind_a_lost_tail_nothing_is_accepted",
    ];
    for name in moved {
        assert!(!passed.contains(&name), "{name}");
    }
    // The fault concerns only moved batches: the other cases pass.
    assert_eq!(passed.len() + moved.len(), cases::count(), "{passed:?}");
}
