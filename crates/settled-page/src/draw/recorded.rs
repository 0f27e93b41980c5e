//! The pages of a recorded workspace, kept in `tests/golden`; `UPDATE=1` rewrites them.

#[path = "../../../../tests/recorded_workspace.rs"]
mod recorded_workspace;

use axum::http::StatusCode;
use axum::response::Response;
use chrono::TimeDelta;
use cockpit::Follower;
use inspect::status::row::ReviewRow;
use maud::Markup;
use message_schema::id::{AgentName, MessageId};

use self::recorded_workspace::{at, check, workspace};
use super::overview::Asked;
use super::{Look, Outcome, history, overview, plot, refusal, review, unreadable_ledger};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn spelled(_: Option<&AgentName>, words: &str) -> String {
    format!("settled {words}")
}

/// The view ten hours later, for a person who decides or for a reader.
fn look(by: Option<&'static str>) -> Look<'static> {
    Look {
        now: at(TimeDelta::hours(10)),
        spell: &spelled,
        by,
        form: "0f0f",
        order: || MessageId::new("order-1").expect("an id"),
    }
}

fn body(response: Response) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX);
    let bytes = runtime.expect("a runtime").block_on(bytes);
    String::from_utf8(bytes.expect("a body").to_vec()).expect("a text")
}

/// Puts each tag on its own line.
fn lines(page: &str) -> String {
    page.replace("><", ">\n<") + "\n"
}

fn overview_page(follower: &Follower, asked: &Asked) -> Markup {
    let look = look(None);
    let mut overview = follower.overview(look.now, look.spell);
    "mailroom".clone_into(&mut overview.mailroom);
    overview::page(&overview, asked, &look)
}

#[test]
fn the_first_page_shows_who_must_move_and_every_review() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let page = overview_page(&follower, &Asked::default()).into_string();
    check(GOLDEN, "overview.html", root.path(), &lines(&page));
}

#[test]
fn the_reviews_that_are_asked_for_are_listed() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let listed = |q: &str, phase: &str| {
        let asked = Asked {
            q: q.to_owned(),
            phase: phase.to_owned(),
            page: 9,
            ..Asked::default()
        };
        let page = overview_page(&follower, &asked).into_string();
        let named = page.split("data-review=\"").skip(1);
        let named = named.filter_map(|rest| rest.split_once('"'));
        let mut named: Vec<String> = named.map(|(name, _)| name.replace("&gt;", ">")).collect();
        named.sort();
        named
    };
    assert_eq!(listed("", "").len(), 3);
    assert_eq!(listed("#88 CODEX", ""), ["#88 codex -> claude"]);
    assert_eq!(listed("", "approved").len(), 1);
    assert_eq!(listed("nobody", ""), [""; 0]);
}

#[test]
fn a_page_lists_fifty_reviews_and_links_to_the_one_before_and_after() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let look = look(None);
    let mut overview = follower.overview(look.now, look.spell);
    let row = overview.status.reviews[0].clone();
    overview.status.reviews = (1..=120)
        .map(|n| ReviewRow {
            review: format!("#{n} claude -> codex"),
            ..row.clone()
        })
        .collect();
    for (page, first, count, links) in [
        (0, 1, 50, &[2][..]),
        (1, 1, 50, &[2]),
        (2, 51, 50, &[1, 3]),
        (3, 101, 20, &[2]),
        (4, 101, 20, &[2]),
    ] {
        let asked = Asked {
            q: "Claude".to_owned(),
            page,
            ..Asked::default()
        };
        let drawn = overview::page(&overview, &asked, &look).into_string();
        let rows: Vec<&str> = drawn.split("<tr class=\"row\" ").skip(1).collect();
        let named = format!("data-review=\"#{first} claude");
        assert!(rows[0].starts_with(&named), "page {page}: {}", rows[0]);
        assert_eq!(rows.len(), count, "page {page}");
        let linked: Vec<String> = (1..=9)
            .map(|n| (n, format!("/?q=Claude&amp;phase=&amp;page={n}#reviews")))
            .filter(|(_, link)| drawn.contains(link))
            .map(|(n, _): (usize, _)| n.to_string())
            .collect();
        let links: Vec<String> = links.iter().map(usize::to_string).collect();
        assert_eq!(linked, links, "page {page}");
    }
}

#[test]
fn a_reviews_page_shows_its_threads_its_gate_and_what_may_be_decided() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let reviews = follower.status().index.state().reviews();
    let mut text = String::new();
    for (n, (key, _)) in reviews.enumerate() {
        let outcome = Outcome("the phase is <another> one".to_owned());
        let response = review::shown(
            &follower,
            &look((n == 0).then_some("Ann")),
            &key.to_string(),
            (n == 0).then_some(&outcome),
        );
        assert_eq!(response.status(), StatusCode::OK);
        text += &lines(&body(response));
    }
    check(GOLDEN, "reviews.html", root.path(), &text);

    let unknown = review::shown(&follower, &look(None), "#1 claude -> codex", None);
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    check(GOLDEN, "unknown.html", root.path(), &lines(&body(unknown)));
}

#[test]
fn the_history_shows_what_became_of_reviews() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let look = look(None);
    let overview = follower.overview(look.now, look.spell);
    let page = history::page(&overview, &look).into_string();
    check(GOLDEN, "history.html", root.path(), &lines(&page));
}

#[test]
fn who_is_not_let_in_is_told_why_and_so_is_who_cannot_read_the_ledger() {
    let refused = refusal(StatusCode::FORBIDDEN, "<no> session", "Open the link");
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let refused = body(refused);
    for words in [
        "<title>403 · Settled</title>",
        "<h1>Forbidden</h1>",
        "<p>&lt;no&gt; session. Open the link.</p>",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    let troubled = unreadable_ledger("line <3> is torn", "settled doctor").into_string();
    assert!(
        troubled.contains("<p>line &lt;3&gt; is torn</p>"),
        "{troubled}"
    );
    assert!(
        troubled.contains("<code>settled doctor</code>"),
        "{troubled}"
    );
}

#[test]
fn the_longest_bar_takes_the_room_and_the_others_their_share() {
    let rows = [("none", 0), ("some", 5), ("most", 20)];
    let rows = rows.map(|(name, count)| (name.to_owned(), count));
    let drawn = plot::bars("Refusals", "By code", &rows).into_string();
    for (n, (row, width)) in [(0, 0), (1, 80), (2, 320)].into_iter().enumerate() {
        let top = 26 * n + 4;
        let bar = format!("<rect x=\"200\" y=\"{top}\" height=\"16\" width=\"{width}\"></rect>");
        assert!(drawn.contains(&bar), "{row}: {drawn}");
        let number = format!("<text x=\"{}\" y=\"{}\">", 206 + width, top + 13);
        assert!(drawn.contains(&number), "{row}: {drawn}");
        let name = format!("<text x=\"192\" y=\"{}\" text-anchor=\"end\">", top + 13);
        assert!(drawn.contains(&name), "{row}: {drawn}");
    }
    assert!(drawn.contains("viewBox=\"0 0 600 82\""), "{drawn}");
    let empty = plot::bars("Refusals", "By code", &[]).into_string();
    assert!(
        empty.contains("<p>Nothing yet.</p>") && !empty.contains("<svg"),
        "{empty}"
    );
}
