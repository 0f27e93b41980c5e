//! Prints the bounds of a review in messages, turns and seconds, from the constants of the rules.

use std::fmt::Write as _;

use message_schema::envelope::Priority;
use message_schema::limit::{Rounds, RuntimeBudget, TurnBudget};
use review::{
    ATTEMPTS, FIX_REVIEWS_MAX, GENERATIONS_MAX, GIVEN_BACK_PER_DAY, ITERATIONS, REPLIES_MAX,
    SUPERSESSIONS, messages_max, patience,
};

pub(super) fn section() -> String {
    let mut text = String::from(
        "\n## Bounds\n\nBetween two decisions of a person, per generation:\n\n\
         | rounds.max | messages accepted | without replacements | cycles of a thread | turns, by default | turns, at most |\n\
         |---|---|---|---|---|---|\n",
    );
    for rounds in 1..=Rounds::MAX.get() {
        let limit = Rounds::new(rounds.into()).expect("within the range");
        let plain = messages_max(limit) - u32::from(SUPERSESSIONS) * u32::from(rounds);
        let _ = writeln!(
            text,
            "| {rounds} | {} | {plain} | {rounds} | {} | {} |",
            messages_max(limit),
            u32::from(rounds) * u32::from(TurnBudget::default().get()),
            u32::from(rounds) * u32::from(TurnBudget::MAX.get())
        );
    }
    text += "\nSeconds of a round until the daemon ends it: the time to take the request, the runtime, the author's time.\n\n\
             | priority | to take | runtime, by default | runtime, at most | author | a round, at most |\n|---|---|---|---|---|---|\n";
    for priority in [Priority::P0, Priority::P1, Priority::P2, Priority::P3] {
        let wait = patience(priority).num_seconds();
        let most = 2 * wait + i64::from(RuntimeBudget::MAX.get());
        let _ = writeln!(
            text,
            "| {priority} | {wait} | {} | {} | {wait} | {most} |",
            RuntimeBudget::default().get(),
            RuntimeBudget::MAX.get()
        );
    }
    let _ = write!(
        text,
        "\n| what | at most |\n|---|---|\n\
         | generations of a pull request, over all its reviewers | {GENERATIONS_MAX} |\n\
         | messages accepted over the life of a pull request, {} rounds each | {} |\n\
         | refused responses in a round | {ATTEMPTS} |\n\
         | replacements of a request in a round | {SUPERSESSIONS} |\n\
         | replies on a thread | {REPLIES_MAX} |\n\
         | times a resolved thread is opened again | 1 |\n\
         | reviews of a fix pull request | {FIX_REVIEWS_MAX} |\n\
         | reopens and grants by people, per pull request and 24 hours | {GIVEN_BACK_PER_DAY} |\n\
         | iterations of a pair of commands | {ITERATIONS} |\n",
        Rounds::MAX,
        u32::from(GENERATIONS_MAX) * messages_max(Rounds::MAX)
    );
    text
}
