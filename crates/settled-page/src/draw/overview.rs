//! The whole mailroom on one page: first who must move, then all reviews, then the rest.

use chrono::{DateTime, Utc};
use cockpit::agents::AgentRow;
use cockpit::needs::Need;
use cockpit::{Overview, Urgency};
use inspect::status::hosts::HostRow;
use inspect::status::row::ReviewRow;
use maud::{Markup, html};
use message_schema::id::AgentName;
use message_schema::line::counted;
use review::Phase;

use super::{
    Frame, Look, ago, brief, command, instant, link, one_line, page as whole, prose, query,
    time_left,
};
use serde::Deserialize;

/// The most needs on a page; the rest are counted.
const NEEDS_MAX: usize = 40;

/// The number of reviews on a page.
const REVIEWS: usize = 50;

/// The most problems, tasks and findings shown.
const ROWS_MAX: usize = 40;

/// The query of a browser.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// The review, as a row names it.
    pub(crate) key: String,
    /// Shows reviews whose row contains this.
    pub(crate) q: String,
    /// Shows reviews in this phase.
    pub(crate) phase: String,
    /// The page of the list, from 1.
    pub(crate) page: usize,
}

pub(crate) fn page(overview: &Overview, asked: &Asked, look: &Look<'_>) -> Markup {
    let status = &overview.status;
    let needs = &overview.needs;
    let head = &overview.head;
    let parts = html! {
        h1 { (one_line(&overview.mailroom)) }
        p #summary {
            (counted(status.reviews.len(), "review", "reviews")) " · "
            strong { (counted(needs.len(), "needs", "need")) " somebody" } " · "
            "ledger " span .seq { (head.seq) }
            @if head.is_chained { " ✓ chained" } @else { " ✕ chain broken" }
            " · " (status.accepted) " accepted, " (status.refused) " refused, " (status.waiting) " not judged yet"
        }
        section #needs aria-labelledby="needs-h" {
            h2 #needs-h { "Needs somebody" }
            @if needs.is_empty() { p { "Nobody has to move." } }
            ol .needs { @for need in needs.iter().take(NEEDS_MAX) { (of_need(need, look.now)) } }
            @if needs.len() > NEEDS_MAX {
                p { "and " (needs.len() - NEEDS_MAX) " more: " code { ((look.spell)(None, "problems")) } }
            }
        }
        (reviews(overview, asked, look.now))
        section #agents aria-labelledby="agents-h" {
            h2 #agents-h { "Agents" }
            ul .plain { @for agent in &overview.agents { (of_agent(agent, look.now)) } }
        }
        @if !status.hosts.is_empty() {
            section #hosts aria-labelledby="hosts-h" {
                h2 #hosts-h { "Hosts that share the ledger" }
                ul .plain { @for host in &status.hosts { (of_host(host, look.now)) } }
            }
        }
        @if !overview.problems.is_empty() {
            section #problems aria-labelledby="problems-h" {
                h2 #problems-h { "Problems and their fix" }
                ul .plain { @for problem in overview.problems.iter().take(ROWS_MAX) {
                    li {
                        strong { (problem.kind.word()) } " " (prose(&problem.what))
                        " " (command(&problem.fix))
                    }
                } }
            }
        }
        @if !overview.queue.is_empty() {
            section #queue aria-labelledby="queue-h" {
                h2 #queue-h { "Findings with a person" }
                ul .plain { @for finding in overview.queue.iter().take(ROWS_MAX) {
                    li {
                        (finding.severity) " " strong { (one_line(&finding.id)) } " " (finding.state) " · "
                        (link(&finding.review)) " "
                        @if let Some(title) = &finding.title { (one_line(title)) }
                        " " (command(&finding.fix))
                    }
                } }
            }
        }
        @if !overview.tasks.is_empty() {
            section #tasks aria-labelledby="tasks-h" {
                h2 #tasks-h { "Handed off by merges" }
                ul .plain { @for task in overview.tasks.iter().take(ROWS_MAX) {
                    li {
                        strong { (one_line(&task.task)) } " to " (one_line(&task.target))
                        " from pull request " (one_line(&task.pr)) ": " (counted(task.findings.len(), "finding", "findings"))
                        @if let Some(by) = &task.claimed_by { ", claimed by " (link(by)) }
                    }
                } }
            }
        }
        section #log aria-labelledby="log-h" {
            h2 #log-h { "Newest decisions" }
            ol .log { @for line in overview.decisions.iter().rev() {
                li data-seq=(line.seq) { code { (line.text().trim()) } }
            } }
            p { "Chain ends with " code .digest { (head.digest) } "." }
        }
    };
    let frame = Frame {
        title: &overview.mailroom,
        seq: head.seq,
        serving: status.serving,
        outcome: None,
        is_typed_in: false,
    };
    whole(&frame, look, &parts)
}

fn of_need(need: &Need, now: DateTime<Utc>) -> Markup {
    html! {
        li .need data-key=(need.review.as_deref().unwrap_or(&need.missing)) .{ "part-" (need.part.word()) } .pressing[need.urgency(now).is_some_and(is_pressing)] {
            p .who { strong .mover { (one_line(&need.part.of_mover(&need.mover))) } " must move "
                @if let Some(review) = &need.review { "on " (link(review)) }
            }
            p .missing { span .label { "Missing: " } (brief(&need.missing)) }
            p .time {
                @if let Some(due) = need.due_at { (time_left(due, need.wait_s, now)) " · " }
                @if let Some(since) = need.since { "waiting for " (ago(since, now)) }
            }
            @if let Some(fix) = &need.fix { p .fix { (command(fix)) } }
        }
    }
}

fn is_pressing(urgency: Urgency) -> bool {
    match urgency {
        Urgency::Calm => false,
        Urgency::Soon | Urgency::Over => true,
    }
}

fn reviews(overview: &Overview, asked: &Asked, now: DateTime<Utc>) -> Markup {
    let rows = &overview.status.reviews;
    let words = asked.q.to_lowercase();
    let found: Vec<&ReviewRow> = rows
        .iter()
        .filter(|row| asked.phase.is_empty() || row.phase == asked.phase)
        .filter(|row| row.review.to_lowercase().contains(&words))
        .collect();
    let pages = found.len().div_ceil(REVIEWS).max(1);
    let page = asked.page.clamp(1, pages);
    let to = |page: usize| {
        let (q, phase) = (query(&asked.q), query(&asked.phase));
        format!("/?q={q}&phase={phase}&page={page}#reviews")
    };
    html! {
        section #reviews aria-labelledby="reviews-h" {
            h2 #reviews-h { "Reviews" }
            form method="get" action="/" role="search" {
                label { "Search " input type="search" name="q" value=(asked.q); }
                label { "Phase " select name="phase" {
                    option value="" selected[asked.phase.is_empty()] { "all" }
                    @for phase in Phase::WORDS { option value=(phase) selected[asked.phase == phase] { (phase) } }
                } }
                button type="submit" { "Show" }
            }
            p { (found.len()) " of " (rows.len()) ", page " (page) " of " (pages) }
            table {
                thead { tr {
                    th scope="col" { "Review" } th scope="col" { "Phase" } th scope="col" { "Who must move" }
                    th scope="col" { "Round" } th scope="col" { "Open threads" } th scope="col" { "Time" }
                } }
                tbody { @for row in found.iter().skip((page - 1) * REVIEWS).take(REVIEWS) { (of_row(row, overview.need_of(&row.review), now)) } }
            }
            nav aria-label="Pages of reviews" {
                @if page > 1 { a href=(to(page - 1)) rel="prev" { "Previous" } }
                " "
                @if page < pages { a href=(to(page + 1)) rel="next" { "Next" } }
            }
        }
    }
}

fn of_row(row: &ReviewRow, need: Option<&Need>, now: DateTime<Utc>) -> Markup {
    let mover = row.mover.as_deref().unwrap_or("nobody");
    html! {
        tr .row data-review=(row.review) data-phase=(row.phase) data-mover=(mover)
            data-round=(format!("{}/{}", row.round_of_generation, row.rounds)) {
            th scope="row" data-label="Review" { (link(&row.review)) }
            td data-label="Phase" .{ "phase-" (row.phase) } {
                (row.phase)
                @if let Some(reason) = &row.reason { ": " (one_line(reason)) }
                @if row.stale == Some(true) { " (for an older commit)" }
            }
            td data-label="Who must move" {
                @match need { Some(need) => (one_line(&need.part.of_mover(&need.mover))), None => (mover) }
            }
            td data-label="Round" { (row.round_of_generation) " of " (row.rounds) }
            td data-label="Open threads" { (row.open_threads)
                @if !row.blockers.is_empty() { ", blocking " (row.blockers.iter().map(|id| one_line(id)).collect::<Vec<_>>().join(", ")) }
            }
            td data-label="Time" {
                @match row.due_at {
                    Some(due) => (time_left(due, row.wait_s, now)),
                    None => { "since " (ago(row.since, now)) }
                }
            }
        }
    }
}

fn of_agent(agent: &AgentRow, now: DateTime<Utc>) -> Markup {
    html! {
        li {
            strong { (one_line(&agent.agent)) }
            @if let Some(vendor) = &agent.vendor { " (" (one_line(vendor)) ")" }
            ": " (counted(agent.owed, "review waits", "reviews wait")) " for it"
            @if agent.waiting > 0 { ", " (agent.waiting) " in its outbox" }
            @if agent.dead_letters > 0 { ", " (counted(agent.dead_letters, "dead letter", "dead letters")) }
            @if let Some(run) = &agent.run {
                br;
                (one_line(&run.program)) " for " (one_line(&run.review)) ", "
                @if run.is_running { "running for " (ago(run.since, now)) } @else {
                    "started " (instant(run.since))
                    @if let Some(ended) = &run.ended { ", " (one_line(ended)) }
                }
                @if !run.last_words.is_empty() { br; q .words { (one_line(&run.last_words)) } }
            }
        }
    }
}

fn of_host(host: &HostRow, now: DateTime<Utc>) -> Markup {
    let agents: Vec<&str> = host.agents.iter().map(AgentName::as_str).collect();
    html! {
        li data-host=(host.name) {
            strong { (one_line(&host.name)) }
            @if host.is_this { " (this one)" }
            @if host.is_retired { ": key retired" } @else {
                ": home of " @if agents.is_empty() { "no agent" } @else { (one_line(&agents.join(", "))) }
                @if let Some(at) = host.last_at { ", last record " (ago(at, now)) " ago" }
                @if let Some(heard) = &host.heard { ", " (one_line(&heard.describe(now))) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use inspect::status::hosts::LastHeard;

    use super::*;

    #[test]
    fn a_host_is_shown_with_its_agents_and_what_was_heard_of_it() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(1_000);
        let mut host = HostRow {
            name: "laptop".to_owned(),
            is_this: false,
            agents: vec![AgentName::new("codex").expect("a name")],
            version: "0.1.0".to_owned(),
            key: "ed25519:00".to_owned(),
            is_retired: false,
            last_record: Some(4),
            last_at: Some(now - TimeDelta::seconds(40)),
            heard: Some(LastHeard {
                at: now - TimeDelta::seconds(4),
                version: "0.2.0".to_owned(),
                state: "waiting".to_owned(),
                behind: 7,
                clock_ahead_ms: 0,
            }),
        };
        let shown = of_host(&host, now).into_string();
        let expected = "<li data-host=\"laptop\"><strong>laptop</strong>: home of codex, last record 40 s ago, \
                        heard 4 s ago, waiting, 7 records behind, version 0.2.0</li>";
        assert_eq!(shown, expected);
        host.heard = None;
        host.is_retired = true;
        let shown = of_host(&host, now).into_string();
        assert!(shown.ends_with("</strong>: key retired</li>"), "{shown}");
    }
}
