//! Draws the model as markup. Texts of agents are escaped where they would end a line, reverse it or steer a terminal,
//! and `maud` escapes the rest: no text becomes markup.

pub(crate) mod history;
pub(crate) mod overview;
mod plot;
#[cfg(test)]
mod recorded;
pub(crate) mod review;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use cockpit::Urgency;
use cockpit::words::with_short_commits;
use inspect::status::fix::{FixCommand, Spell};
use maud::{DOCTYPE, Markup, html};
use message_schema::id::MessageId;
use message_schema::line;
use workspace::clock;

/// The arrow between the author and the reviewer in a review's name.
const ARROW: &str = "->";

/// The most characters of a text that a page shows; the commands show all of it.
const TEXT_MAX: usize = 2_000;

/// The context in which every page is drawn.
pub(crate) struct Look<'a> {
    /// The time at which it is drawn.
    pub(crate) now: DateTime<Utc>,
    /// Spells a command.
    pub(crate) spell: &'a Spell<'a>,
    /// The person who decides; `None` if the page is read-only.
    pub(crate) by: Option<&'a str>,
    /// The token that every form carries.
    pub(crate) form: &'a str,
    /// Makes the id of the order that a form gives, so that a form that is sent twice gives one order.
    pub(crate) order: fn() -> MessageId,
}

/// The reason why a decision was not recorded, for the person who tried.
#[derive(Debug)]
pub(crate) struct Outcome(pub(crate) String);

/// The frame around the parts of a page.
struct Frame<'a> {
    title: &'a str,
    /// The last record shown.
    seq: u64,
    serving: Option<bool>,
    /// The reason why a decision was not recorded, and the address of the same page without it.
    outcome: Option<(&'a Outcome, String)>,
    /// True if a person may be typing: such a page does not reload by itself when scripts are off.
    is_typed_in: bool,
}

/// Draws a page around its parts.
fn page(frame: &Frame<'_>, look: &Look<'_>, parts: &Markup) -> Markup {
    let Frame {
        title,
        seq,
        serving,
        outcome,
        is_typed_in,
    } = frame;
    let home = outcome.as_ref().map(|(_, home)| home);
    let serving = *serving;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (one_line(title)) " · Settled" }
                link rel="icon" href="/page.svg" type="image/svg+xml";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
                @if !is_typed_in { noscript { meta http-equiv="refresh" content="10"; } }
            }
            body {
                a .skip href="#content" { "Skip to the content" }
                header {
                    nav aria-label="Pages" {
                        a href="/" { "Mailroom" }
                        " "
                        a href="/history" { "History" }
                    }
                    p #live role="status" data-daemon=(daemon_word(serving)) { (daemon_text(serving)) }
                    @if let Some(by) = look.by {
                        p .acting { "You decide as " strong { (one_line(by)) } "." }
                    }
                    @if let Some((Outcome(what), _)) = outcome {
                        p #outcome role="alert" { strong { "Nothing was decided." } " " (one_line(what)) }
                    }
                    @if *is_typed_in {
                        noscript { p { "Reload the page to see what is new." } }
                    }
                }
                main #content data-seq=(seq) data-home=[home] { (parts) }
                footer {
                    p { "Drawn " (instant(look.now)) " from ledger record " span .seq { (seq) } "." }
                }
            }
        }
    }
}

fn daemon_word(serving: Option<bool>) -> &'static str {
    match serving {
        Some(true) => "serving",
        Some(false) => "stopped",
        None => "unknown",
    }
}

fn daemon_text(serving: Option<bool>) -> &'static str {
    match serving {
        Some(true) => "● The daemon serves.",
        Some(false) => "✕ The daemon is stopped: no mail is judged or delivered.",
        None => "? This user cannot see whether a daemon serves.",
    }
}

/// Answers a request that gets no page: the status, why, and what to do.
pub(crate) fn refusal(status: StatusCode, why: &str, fix: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Refused");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (status.as_str()) " · Settled" } }
            body { main {
                h1 { (title) }
                p { (one_line(why)) ". " (fix) "." }
            } }
        }
    };
    (status, page).into_response()
}

/// Draws the page for an unreadable ledger.
pub(crate) fn unreadable_ledger(what: &str, command: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content="10";
                title { "Trouble · Settled" }
            }
            body { main {
                h1 { "The ledger cannot be read" }
                p { (one_line(what)) }
                p { code { (command) } }
            } }
        }
    }
}

/// Draws the page for a review that does not exist.
pub(crate) fn unknown(look: &Look<'_>) -> Markup {
    let parts = html! {
        h1 { "There is no such review" }
        p { a href="/" { "All reviews" } }
    };
    let frame = Frame {
        title: "No such review",
        seq: 0,
        serving: None,
        outcome: None,
        is_typed_in: false,
    };
    page(&frame, look, &parts)
}

/// Escapes and cuts a text, on one line.
fn one_line(text: &str) -> String {
    cut(&line::escaped(text))
}

/// Escapes and cuts a text, keeping its line breaks.
fn many_lines(text: &str) -> String {
    let lines: Vec<String> = line::lines(text).map(line::escaped).collect();
    cut(&lines.join("\n"))
}

fn cut(text: &str) -> String {
    let more = text.chars().count().saturating_sub(TEXT_MAX);
    if more == 0 {
        return text.to_owned();
    }
    let shown: String = text.chars().take(TEXT_MAX).collect();
    format!("{shown}… ({more} characters more)")
}

/// Percent-encodes a value for the query of a link.
fn query(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns the address of a review's page.
pub(crate) fn address(review: &str) -> String {
    format!("/review?key={}", query(review))
}

fn link(review: &str) -> Markup {
    html! { a .review href=(address(review)) { (prose(review)) } }
}

/// Draws a text on one line; its arrows do not break at the end of a line.
fn prose(text: &str) -> Markup {
    let text = one_line(text);
    html! {
        @for (n, part) in text.split(ARROW).enumerate() {
            @if n > 0 { span .arrow { (ARROW) } }
            (part)
        }
    }
}

/// Like [`prose`], with shortened commits; the whole text is the title.
fn brief(text: &str) -> Markup {
    let short = with_short_commits(text);
    html! {
        @if short == text { (prose(text)) } @else { span title=(one_line(text)) { (prose(&short)) } }
    }
}

fn instant(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (at.format("%Y-%m-%d %H:%M:%S")) " UTC" } }
}

/// Formats the time since an instant; zero for a future one.
fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    clock::span((now - at).max(chrono::TimeDelta::zero()))
}

/// Draws the time left of a wait, in words and as a bar.
fn time_left(due: DateTime<Utc>, whole_s: Option<u64>, now: DateTime<Utc>) -> Markup {
    let left = (due - now).max(chrono::TimeDelta::zero());
    let (look, text) = match Urgency::of(due, whole_s, now) {
        Urgency::Calm => ("calm", format!("{} left", clock::span(left))),
        Urgency::Soon => ("soon", format!("Only {} left", clock::span(left))),
        Urgency::Over => ("over", format!("Overdue for {}", clock::span(now - due))),
    };
    html! {
        span .left .(look) { (text) }
        @if let Some(whole) = whole_s {
            " " (bar(left.num_seconds().unsigned_abs(), whole, &text))
        }
    }
}

fn bar(left: u64, whole: u64, label: &str) -> Markup {
    html! { progress max=(whole.max(1)) value=(left.min(whole)) aria-label=(label) {} }
}

/// Draws a command, with a button that copies it where scripts run.
fn command(fix: &FixCommand) -> Markup {
    html! {
        span .command {
            code { (one_line(&fix.run)) }
            @if fix.fill.is_empty() {
                button .copy type="button" hidden data-copy=(fix.run) { "Copy" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_turned_around_or_too_long_is_shown_as_it_is_written() {
        assert_eq!(one_line("a\u{202e}b\nc"), "a\\u{202e}b\\nc");
        assert_eq!(many_lines("a\n\u{1b}[31mb"), "a\n\\u{1b}[31mb");
        let long = one_line(&"x".repeat(100_000));
        assert!(
            long.ends_with("… (98000 characters more)"),
            "{}",
            long.len()
        );
    }

    #[test]
    fn an_arrow_stays_whole_and_a_commit_is_in_the_title() {
        let arrow = r#"#86 claude <span class="arrow">-&gt;</span> codex"#;
        assert_eq!(prose("#86 claude -> codex").into_string(), arrow);
        assert_eq!(brief("no <commit>").into_string(), "no &lt;commit&gt;");
        let commit = "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21";
        assert_eq!(
            brief(commit).into_string(),
            format!(r#"<span title="{commit}">9b2f41c07de1</span>"#)
        );
    }

    #[test]
    fn a_deadline_in_minutes_looks_and_reads_different_from_one_in_a_day() {
        let now = DateTime::UNIX_EPOCH;
        let left =
            |s| time_left(now + chrono::TimeDelta::seconds(s), Some(86_400), now).into_string();
        assert!(left(82_800).starts_with(r#"<span class="left calm">23 h left</span>"#));
        assert!(left(240).starts_with(r#"<span class="left soon">Only 4 min left</span>"#));
        assert!(left(-240).starts_with(r#"<span class="left over">Overdue for 4 min</span>"#));
    }

    #[test]
    fn a_query_holds_any_key() {
        assert_eq!(query("#86 a -> b&c"), "%2386%20a%20-%3E%20b%26c");
    }
}
