//! One review: who must move and what is missing, its way through the rounds, its threads with the words of both
//! agents, what runs out, the gate clause by clause, and everything that happened.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use cockpit::gate::{ClauseState, GateView};
use cockpit::timeline::{RoundStop, RoundView};
use cockpit::{Follower, ReviewDetail};
use inspect::status::threads::ThreadView;
use maud::{Markup, html};
use message_schema::line::counted;

use super::{
    Frame, Look, Outcome, address, ago, bar, brief, command, instant, many_lines, one_line,
    page as whole, prose, time_left, unknown,
};
use workspace::orders::TEXT_MAX;

/// The decisions about a whole review: the form's value, and the label.
const ON_REVIEW: [(&str, &str); 3] = [
    ("reopen", "Reopen it for the agents"),
    ("grant", "Grant one more round"),
    ("cancel", "Cancel the open request"),
];

/// The decisions about a thread: the form's value, and the label.
const ON_THREAD: [(&str, &str); 4] = [
    ("resolve", "Resolve"),
    ("hold", "Hold for people"),
    ("release", "Release to the agents"),
    ("queue", "Queue for the merge"),
];

/// Draws a review's page, with the outcome of an order.
pub(crate) fn shown(
    follower: &Follower,
    look: &Look<'_>,
    key: &str,
    outcome: Option<&Outcome>,
) -> Response {
    let detail = follower
        .key_of(key)
        .and_then(|key| follower.review(key, look.now, look.spell));
    match detail {
        Some(detail) => {
            let serving = follower.status().serving;
            page(&detail, serving, look, outcome).into_response()
        }
        None => (StatusCode::NOT_FOUND, unknown(look)).into_response(),
    }
}

fn page(
    detail: &ReviewDetail,
    serving: Option<bool>,
    look: &Look<'_>,
    outcome: Option<&Outcome>,
) -> Markup {
    let (row, why) = (&detail.row, &detail.why);
    let mover = row.mover.as_deref().unwrap_or("nobody");
    let parts = html! {
        h1 { (prose(&row.review)) }
        section #next aria-labelledby="next-h" data-review=(row.review) data-phase=(row.phase) data-mover=(mover)
            data-round=(format!("{}/{}", row.round_of_generation, row.rounds)) {
            h2 #next-h {
                @match detail.mover() {
                    Some(mover) => { strong .mover { (one_line(&mover)) } " must move" },
                    None => "Nobody has to move",
                }
            }
            p .missing {
                @match &why.missing {
                    Some(missing) => { span .label { "Missing: " } (brief(missing)) },
                    None => "Nothing is missing.",
                }
            }
            @if !why.fixes.is_empty() {
                ul .plain { @for fix in &why.fixes {
                    li { (one_line(fix.actor.as_str())) ": " (one_line(&fix.effect)) br; (command(fix)) }
                } }
            }
            p {
                "Phase " strong { (row.phase) }
                @if let Some(reason) = &row.reason { ": " (one_line(reason)) }
                ", round " (row.round_of_generation) " of " (row.rounds) ", for " (ago(row.since, look.now)) ". "
                @if let Some(due) = row.due_at { (time_left(due, row.wait_s, look.now)) }
            }
            p .otherwise {
                "If nobody acts, settled " (one_line(&why.otherwise))
                @if let Some(at) = why.otherwise_at { " at " (instant(at)) }
                "."
            }
            (change(detail))
        }
        section #rounds aria-labelledby="rounds-h" {
            h2 #rounds-h { "Rounds" }
            @for round in &detail.rounds { (way(round)) }
        }
        section #threads aria-labelledby="threads-h" {
            h2 #threads-h { "Threads" }
            @if detail.threads.threads.is_empty() { p { "There are none." } }
            @for thread in &detail.threads.threads { (of_thread(thread, &row.review, look)) }
        }
        section #budgets aria-labelledby="budgets-h" {
            h2 #budgets-h { "What runs out" }
            ul .plain { @for supply in &detail.budgets {
                @let left = supply.left_at(look.now);
                @let text = format!("{}: {left} of {} left", supply.of, supply.whole);
                li { (text) @if supply.ends_at.is_some() { " (seconds)" } " " (bar(left, supply.whole, &text)) }
            } }
            @for usage in &detail.usage {
                p { (one_line(&usage.agent)) " reports " (usage.input_tokens) " tokens read, "
                    (usage.output_tokens) " written, " (format!("{:.0}", usage.wall_time_s)) " s, $"
                    (format!("{:.2}", usage.cost_usd)) " in " (counted(usage.messages.try_into().unwrap_or(usize::MAX), "message", "messages"))
                    " (nobody checks it)." }
            }
        }
        (gate(&detail.gate))
        section #timeline aria-labelledby="timeline-h" {
            h2 #timeline-h { "Everything that happened" }
            @for round in detail.rounds.iter().rev() { (events(round)) }
        }
        @if look.by.is_some() { (decide(&row.review, look)) }
    };
    let frame = Frame {
        title: &row.review,
        seq: detail.seq,
        serving,
        outcome: outcome.map(|outcome| (outcome, address(&row.review))),
        is_typed_in: look.by.is_some(),
    };
    whole(&frame, look, &parts)
}

fn change(detail: &ReviewDetail) -> Markup {
    let change = &detail.change;
    html! {
        p .change {
            @if let Some(branch) = &change.branch { "Branch " code { (one_line(branch)) } " " }
            @if let Some(head) = &change.head { "head " code { (one_line(head)) } " " }
            @if let Some(base) = &change.base { "base " code { (one_line(base)) } }
        }
        @if let Some(summary) = &change.summary { blockquote .words { (many_lines(summary)) } }
    }
}

fn way(round: &RoundView) -> Markup {
    html! {
        h3 { "Round " (round.round)
            @if round.generation > 1 { " (generation " (round.generation) ")" } }
        ol .stops { @for stop in &round.stops { (of_stop(stop)) } }
    }
}

fn of_stop(stop: &RoundStop) -> Markup {
    html! {
        li .came[stop.at.is_some()] {
            @if stop.at.is_some() { "● " } @else { "○ " }
            (stop.stop)
            @if stop.threads > 0 { " (" (counted(stop.threads, "thread", "threads")) ")" }
            @match stop.at {
                Some(at) => { " " (instant(at)) }
                None => " pending",
            }
        }
    }
}

fn of_thread(thread: &ThreadView, review: &str, look: &Look<'_>) -> Markup {
    let words = [
        ("Evidence", &thread.evidence),
        ("The reviewer recommends", &thread.recommendation),
        ("The author reports", &thread.reported),
    ];
    html! {
        article .thread .blocks[thread.blocking] data-key=(thread.id) {
            h3 {
                (thread.severity) " " (one_line(&thread.id)) " · " (thread.state_in_words())
                @if thread.blocking { " · blocks" }
            }
            @if let Some(title) = &thread.title { p { strong { (one_line(title)) } } }
            p {
                @if let Some(file) = &thread.file {
                    code { (one_line(file)) @if let Some(lines) = &thread.lines { ":" (one_line(lines)) } } " · "
                }
                (thread.stance_in_words())
                @if thread.state == "open" { " · " (counted(thread.replies_left.into(), "reply", "replies")) " left" }
                @if thread.reopened { " · raised again" }
            }
            @for (who, text) in words {
                @if let Some(text) = text { p .label { (who) ":" } blockquote .words { (many_lines(text)) } }
            }
            details data-key="history" {
                summary { "History of " (one_line(&thread.id)) }
                ol .plain { @for act in &thread.history {
                    li { (one_line(&act.at)) " " (one_line(&act.actor)) ": " (act.act) " in round " (act.round) }
                } }
            }
            @if look.by.is_some() {
                details data-key="decide" {
                    summary { "Decide about " (one_line(&thread.id)) }
                    (form(review, Some(&thread.id), &ON_THREAD, look))
                }
            }
        }
    }
}

fn gate(gate: &GateView) -> Markup {
    html! {
        section #gate aria-labelledby="gate-h" {
            h2 #gate-h { "Gate" }
            @let (state, verdict) = gate.verdict();
            p #verdict { strong { (sign(state)) " The gate " (verdict) "." } }
            @if let Some(check) = &gate.check {
                p { "settled gate check of " code { (brief(&check.head)) } ": "
                    @if check.passes { "✓ passes" } @else { "✕ does not pass" } }
            }
            table {
                thead { tr { th scope="col" { "Clause" } th scope="col" { "State" } th scope="col" { "Why" } } }
                tbody { @for clause in &gate.clauses {
                    tr data-clause=(clause.clause) data-state=(clause.is.word()) {
                        th scope="row" data-label="Clause" { (clause.clause) }
                        td data-label="State" { (sign(clause.is)) " " (clause.is.word().replace('_', " ")) }
                        td data-label="Why" { (brief(&clause.what)) }
                    }
                } }
            }
            @if !gate.in_the_way.is_empty() {
                p { "In the way:" }
                ul .plain { @for what in &gate.in_the_way { li { (brief(what)) } } }
            }
        }
    }
}

fn sign(state: ClauseState) -> &'static str {
    match state {
        ClauseState::Met => "✓",
        ClauseState::Broken => "✕",
        ClauseState::Pending => "–",
    }
}

fn events(round: &RoundView) -> Markup {
    html! {
        h3 { "In round " (round.round) }
        ol .log { @for event in round.events.iter().rev() {
            li data-record=(event.seq) {
                (instant(event.at)) " " strong { (one_line(&event.actor)) } " " (event.kind)
                @if event.count > 1 { " ×" (event.count) }
                ": " (brief(&event.what))
                @if event.threads > 0 { " (" (counted(event.threads, "thread", "threads")) ")" }
            }
        } }
    }
}

fn decide(review: &str, look: &Look<'_>) -> Markup {
    html! {
        section #decide aria-labelledby="decide-h" {
            h2 #decide-h { "Decide" }
            (form(review, None, &ON_REVIEW, look))
        }
    }
}

fn form(
    review: &str,
    thread: Option<&str>,
    decisions: &[(&'static str, &'static str)],
    look: &Look<'_>,
) -> Markup {
    html! {
        form method="post" action="/act" .decide {
            input type="hidden" name="form" value=(look.form);
            input type="hidden" name="order" value=((look.order)());
            input type="hidden" name="key" value=(review);
            @if let Some(thread) = thread { input type="hidden" name="thread" value=(thread); }
            label { "Decision " select name="act" {
                @for (word, text) in decisions { option value=(word) { (text) } }
            } }
            label { "Why? " input type="text" name="reason" required maxlength=(TEXT_MAX) autocomplete="off"; }
            button type="submit" { "Decide" }
        }
    }
}
