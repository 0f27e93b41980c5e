//! The history of the mailroom as labelled plots, and a comparison of the reviewers.

use cockpit::Overview;
use maud::{Markup, html};

use super::plot::bars;
use super::{Frame, Look, one_line, page as whole};

/// The number of days shown.
const DAYS: usize = 30;

pub(crate) fn page(overview: &Overview, look: &Look<'_>) -> Markup {
    let history = &overview.history;
    let newest = history.days.len().saturating_sub(DAYS);
    let days = &history.days[newest..];
    let of_days = |count: fn(&cockpit::history::DayCount) -> u64| -> Vec<(String, u64)> {
        days.iter()
            .map(|day| (day.day.to_string(), count(day)))
            .collect()
    };
    let named = |map: &std::collections::BTreeMap<String, u64>| -> Vec<(String, u64)> {
        let mut rows: Vec<_> = map
            .iter()
            .map(|(name, count)| (one_line(name), *count))
            .collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rows.truncate(DAYS);
        rows
    };
    let rounds: Vec<(String, u64)> = history
        .rounds_to_approval
        .iter()
        .map(|(rounds, count)| match rounds {
            1 => ("1 round".to_owned(), *count),
            _ => (format!("{rounds} rounds"), *count),
        })
        .collect();
    let waited: Vec<(String, u64)> = history
        .waited_s
        .iter()
        .map(|(side, seconds)| ((*side).to_owned(), seconds / 60))
        .collect();
    let parts = html! {
        h1 { "History" }
        (bars("Reviews opened a day", "How many reviews were opened on each of the last days with any, UTC.", &of_days(|day| day.opened)))
        (bars("Approvals a day", "How many reviews were approved on each of these days, UTC.", &of_days(|day| day.approved)))
        (bars("Escalations a day", "How many reviews were handed to a person on each of these days, UTC.", &of_days(|day| day.escalated)))
        (bars("Rounds to approval", "Number of approvals by rounds needed.", &rounds))
        (bars("Minutes by who was waited for", "How long all reviews together waited for each side, without the waits that go on.", &waited))
        (bars("Refusals by code", "How many messages were refused, by the code of the refusal.", &named(&history.refusals)))
        section #reviewers aria-labelledby="reviewers-h" {
            h2 #reviewers-h { "Reviewers compared" }
            p { "A finding is proven if its author reported it as fixed and no person called it off." }
            table {
                thead { tr {
                    th scope="col" { "Reviewer" } th scope="col" { "First answers that approve" }
                    th scope="col" { "Findings" } th scope="col" { "Blocking" } th scope="col" { "Proven" }
                    th scope="col" { "Raised again" } th scope="col" { "Minutes to answer" }
                } }
                tbody { @for score in &history.reviewers {
                    @let minutes = score.answered_s / 60 / score.answers.max(1);
                    tr {
                        th scope="row" data-label="Reviewer" { (one_line(&score.reviewer)) }
                        td data-label="First answers that approve" { (score.first_approvals) " of " (score.first_verdicts) }
                        td data-label="Findings" { (score.findings) }
                        td data-label="Blocking" { (score.blocking) }
                        td data-label="Proven" { (score.proven) }
                        td data-label="Raised again" { (score.reopened) }
                        td data-label="Minutes to answer" { (minutes) }
                    }
                } }
            }
        }
    };
    let frame = Frame {
        title: "History",
        seq: overview.head.seq,
        serving: overview.status.serving,
        outcome: None,
        is_typed_in: false,
    };
    whole(&frame, look, &parts)
}
