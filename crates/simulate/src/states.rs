//! Prints `docs/states.md` from the code: tries each input in each phase under the real rules, and lists the legal
//! actions on a thread and the bounds.

mod bounds;
mod probe;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use review::Phase;

use self::probe::{Input, Probe, StartState};

/// Returns the page in Markdown.
pub fn page() -> String {
    let results: Vec<(StartState, Vec<(Input, String)>)> = StartState::ALL
        .into_iter()
        .map(|start| {
            (
                start,
                Input::ALL
                    .into_iter()
                    .map(|input| (input, outcome(start, input)))
                    .collect(),
            )
        })
        .collect();
    let mut page = String::from(
        "# States\n\nPrinted by `settled states`: every cell below was found by trying it with the rules that the daemon\n\
         runs. A test keeps this page equal to the print. [protocol.md](protocol.md) defines the words,\n[termination.md](termination.md) explains why every review ends.\n\n",
    );
    page += &diagram(&results);
    page += "\n## What a message does\n\nA phase is the review's phase afterwards; a `code` is the reason for the refusal.\n\n";
    page += &matrix(&results, &Input::MESSAGES);
    page += "\n## What else moves a review\n\n\"-\" means that nothing changes; a `code` is the reason why the daemon declines it.\n\n";
    page += &matrix(&results, &Input::EVENTS);
    page += "\n## Who moves, and until when\n\n";
    page += &movers();
    page += &threads::section();
    page += &bounds::section();
    page
}

/// The result of one input in one state.
fn outcome(start: StartState, input: Input) -> String {
    let mut probe = Probe::at(start);
    probe.try_input(input)
}

fn matrix(results: &[(StartState, Vec<(Input, String)>)], columns: &[Input]) -> String {
    let mut text = String::from("| phase |");
    for input in columns {
        let _ = write!(text, " {} |", input.title());
    }
    text += &format!("\n|---|{}\n", "---|".repeat(columns.len()));
    for (start, outcomes) in results {
        let _ = write!(text, "| {} |", start.title());
        for (_, outcome) in outcomes.iter().filter(|(input, _)| columns.contains(input)) {
            let _ = write!(text, " {outcome} |");
        }
        text.push('\n');
    }
    text
}

/// The phases and the inputs that lead from one to another.
fn diagram(results: &[(StartState, Vec<(Input, String)>)]) -> String {
    let mut edges: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (start, outcomes) in results {
        for (input, outcome) in outcomes {
            let from = start.phase();
            let is_move = Phase::WORDS.contains(&outcome.as_str())
                && (from != outcome || from == "reviewing");
            if is_move && input.is_edge() {
                edges
                    .entry((from, outcome))
                    .or_default()
                    .insert(input.edge());
            }
        }
    }
    let mut text = String::from("```mermaid\nstateDiagram-v2\n");
    for ((from, to), inputs) in edges {
        let from = if from == "none" { "[*]" } else { from };
        let words: Vec<&str> = inputs.into_iter().collect();
        let _ = writeln!(text, "    {from} --> {to}: {}", words.join(", "));
    }
    text + "```\n"
}

fn movers() -> String {
    let mut text =
        String::from("| phase | who moves | the daemon's deadline | run |\n|---|---|---|---|\n");
    for start in StartState::ALL {
        let probe = Probe::at(start);
        let Some(review) = probe.review() else {
            continue;
        };
        let deadline = review.deadline().map_or("none", |(_, which)| which.word());
        let mover = match review.mover() {
            review::Side::Author => "author",
            review::Side::Reviewer => "reviewer",
            review::Side::Person => "a person",
            review::Side::Nobody => "nobody",
        };
        let _ = writeln!(
            text,
            "| {} | {mover} | {deadline} | {} |",
            start.title(),
            review.run().word()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_of_states_is_what_the_rules_give() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
        let kept = std::fs::read_to_string(kept).expect("the page is there");
        let given = page();
        let mut lines = given.lines().zip(kept.lines());
        let other = lines.find(|(given, kept)| given != kept);
        assert_eq!(other, None, "what the rules give, and what the page says");
        assert_eq!(given.lines().count(), kept.lines().count());
    }
}
