//! The texts of a recorded workspace on a wide and a narrow screen, against `golden/`: the board, what each review
//! waits for, the threads of one, an agent's reviews and a brief. `UPDATE=1` rewrites them.

#[path = "../../../tests/recorded_workspace.rs"]
mod recorded_workspace;

use chrono::TimeDelta;
use inspect::status::WorkspaceStatus;
use inspect::status::overview::{ListedReviews, Removable, Status};
use inspect::status::threads::Histories;
use mailbox::compose::ask;
use mailbox::my_reviews;
use mailbox::said::Said;
use message_schema::id::AgentName;
use review::Policy;
use screen::Screen;

use self::recorded_workspace::{at, check, workspace};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// A width that every line fits, and a narrow one.
const WIDTHS: [usize; 2] = [120, 60];

fn spelled(_: Option<&AgentName>, words: &str) -> String {
    format!("settled {words}")
}

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

#[test]
fn the_board_shows_each_review_what_runs_out_and_what_waits() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let removable = Removable {
        files: 3,
        bytes: 2_048,
    };
    let status = Status::of(&status, Some(removable), ListedReviews::Current);
    let mut text = String::new();
    for (width, hours) in [(WIDTHS[0], 0), (WIDTHS[1], 0), (WIDTHS[0], 1_000)] {
        let board = views::board::text(&status, at(TimeDelta::hours(hours)), Screen::plain(width));
        text += &format!("--- {width} columns, after {hours} h\n{board}");
    }
    check(GOLDEN, "board.txt", root.path(), &text);
}

#[test]
fn each_review_says_what_it_waits_for() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let mut text = String::new();
    for (key, review) in status.index.state().reviews() {
        for (width, hours, serving) in [
            (WIDTHS[0], 0, Some(true)),
            (WIDTHS[1], 0, Some(false)),
            (WIDTHS[0], 1_000, None),
        ] {
            let now = at(TimeDelta::hours(hours));
            let why = status.why(key, review, &Policy::default(), now, &spelled);
            let why = views::why::text(&why, serving, now, Screen::plain(width));
            text += &format!("--- {width} columns, after {hours} h, served: {serving:?}\n{why}");
        }
    }
    check(GOLDEN, "why.txt", root.path(), &text);
}

#[test]
fn threads_show_what_was_said_and_what_may_be_done() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let reviews: Vec<_> = status.index.state().reviews().collect();
    let mut histories = Histories::of(reviews.iter().map(|(key, _)| *key));
    spool::read_ledger(root.path(), &mut |entry| {
        histories.note(entry).map_err(Into::into)
    })
    .expect("a ledger");
    let mut text = String::new();
    for (key, review) in reviews {
        let mut threads = histories.tell(key, review, true, &spelled);
        let said = Said::read(root.path(), &key.reviewer, &key.author, &key.pr);
        for thread in &mut threads.threads {
            let finding = said.findings.get(&thread.id);
            thread.evidence = finding.and_then(|finding| finding.evidence.clone());
            thread.recommendation = finding.and_then(|finding| finding.recommendation.clone());
            thread.reported = said.reported(&thread.id);
        }
        for width in WIDTHS {
            text += &format!(
                "--- {width} columns\n{}",
                views::threads::text(&threads, Screen::plain(width))
            );
        }
    }
    check(GOLDEN, "threads.txt", root.path(), &text);
}

#[test]
fn an_agent_sees_its_reviews_and_what_is_asked_of_it() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let mut text = String::new();
    for name in ["claude", "codex", "gemini"] {
        let me = agent(name);
        text += &format!("--- {name}\n");
        for mine in my_reviews::of(status.index.state(), &me) {
            for hours in [0, 1_000] {
                text += &(views::review_line::line(&mine, at(TimeDelta::hours(hours))) + "\n");
            }
        }
        for ask in ask::open(root.path(), &me, at(TimeDelta::zero())).expect("a policy") {
            let said = Said::read(root.path(), &me, &ask.author, &ask.pr);
            text += &views::brief::text(&ask, &said, Screen::plain(100));
            text += &format!("{:#}\n", views::brief::in_json(&ask, &said));
        }
    }
    check(GOLDEN, "agents.txt", root.path(), &text);
}
