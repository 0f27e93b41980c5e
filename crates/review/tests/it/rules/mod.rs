//! The rules of a review, each with a case on either side.

mod admission;
mod advisory;
mod asked;
mod budgets;
mod deadlines;
mod duplicates;
mod fallback;
mod finished;
mod fixes;
mod gate;
mod handoff;
mod lookup;
mod pairs;
mod people;
mod pulls;
mod rounds;
mod threads;

use crate::table::Table;

type Said = Result<String, Vec<String>>;

fn ok(word: &str) -> Said {
    Ok(word.to_owned())
}

fn refused(codes: &[&str]) -> Said {
    Err(codes.iter().map(|&code| code.to_owned()).collect())
}

/// A table with a P1 raised in round 1.
fn fixing() -> Table {
    let mut table = Table::default();
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(table.feedback(1, "F-001 P1 open"), ok("fixing"));
    table
}

/// A table in round 2, the P1 reported as addressed.
fn second_round() -> Table {
    let mut table = fixing();
    assert_eq!(table.addressed(1, &["F-001"]), ok("addressed"));
    assert_eq!(table.request(), ok("reviewing"));
    table
}
