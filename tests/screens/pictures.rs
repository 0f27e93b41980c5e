//! Twenty mailrooms with a review of #86, as pictures for people who do not know the project: who must move on #86, and
//! what is missing? `tests/browser/judged` makes the pictures; the right answers are the model's own words.

use std::path::{Path, PathBuf};
use std::process::Command;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use settled_tests::write;
use settled_watch::App;
use settled_watch::draw::draw;

use super::frames::svg;
use super::stage::{Stage, read};
use super::states::{
    addressed, among_others, approved, asked_again, dead_letters, escalated, fixing, held,
    nearly_over, opened, outdated, overdue, quota, taken, unread,
};

/// The review that the questions are about.
const ASKED: &str = "#86 claude -> codex";

/// A config that requires evidence of reading for an approval.
const STRICT: &str = "[gate]\nevidence = \"require\"\n";

struct Picture {
    state: fn(Stage) -> Stage,
    config: &'static str,
    /// True if other reviews wait for somebody else.
    is_crowded: bool,
    shown: Shown,
}

#[derive(Clone, Copy)]
enum Shown {
    /// The terminal, with this many columns and rows.
    Terminal(u16, u16),
    /// The terminal with another review chosen.
    TerminalAt(u16, u16, &'static str),
    /// The page of all reviews, in this kind of browser.
    Mailroom(&'static str),
    /// The page of the review.
    Review(&'static str),
}

fn pictures() -> [Picture; 20] {
    use Shown::{Mailroom, Review, Terminal, TerminalAt};
    let picture = |state, is_crowded, shown| Picture {
        state,
        config: "",
        is_crowded,
        shown,
    };
    let strict = |picture| Picture {
        config: STRICT,
        ..picture
    };
    [
        picture(opened, true, Terminal(100, 38)),
        picture(taken, false, Terminal(80, 24)),
        picture(fixing, true, Terminal(120, 40)),
        picture(addressed, false, Terminal(80, 24)),
        picture(escalated, true, TerminalAt(120, 40, "#93 claude -> codex")),
        picture(overdue, false, Terminal(80, 24)),
        picture(dead_letters, true, Terminal(100, 32)),
        picture(quota, true, Terminal(60, 24)),
        picture(outdated, true, Terminal(120, 40)),
        strict(picture(unread, true, Terminal(120, 40))),
        picture(opened, true, Mailroom("light")),
        picture(fixing, true, Review("light")),
        picture(escalated, true, Mailroom("dark")),
        strict(picture(unread, false, Review("light"))),
        picture(nearly_over, true, Mailroom("light")),
        picture(asked_again, true, Review("phone")),
        picture(overdue, false, Mailroom("light")),
        picture(held, false, Review("dark")),
        picture(approved, true, Review("light")),
        picture(dead_letters, true, Mailroom("phone")),
    ]
}

/// The right answer, in the words of the model.
fn answer(app: &App) -> String {
    let mut needs = app.overview.needs.iter();
    match needs.find(|need| need.review.as_deref() == Some(ASKED)) {
        Some(need) => format!(
            "who: {}; missing: {}",
            need.part.of_mover(&need.mover),
            need.missing
        ),
        None => "who: nobody; missing: nothing".to_owned(),
    }
}

fn copy(root: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(root).arg(to).status();
    assert!(copied.expect("cp can be run").success());
}

/// Every picture has an answer, and every answer that distinguishes pictures occurs.
#[test]
fn the_pictures_for_strangers_are_about_every_mover() {
    let mut movers = Vec::new();
    for picture in pictures() {
        let stage = stage_of(&picture, 1_770_976_800);
        movers.push(answer(&stage.app()));
    }
    for who in [
        "who: person",
        "who: claude (author)",
        "who: codex (reviewer)",
        "who: operator",
        "who: nobody",
    ] {
        let count = movers.iter().filter(|mover| mover.starts_with(who)).count();
        assert!(count > 0, "{who}: {movers:#?}");
    }
}

fn stage_of(picture: &Picture, begin: i64) -> Stage {
    let stage = Stage::begun(begin, picture.config);
    let is_served = !std::ptr::fn_addr_eq(picture.state, overdue as fn(Stage) -> Stage);
    let stage = (picture.state)(stage);
    if picture.is_crowded && is_served {
        among_others(stage)
    } else {
        stage
    }
}

/// Writes the pictures of the terminal, and the workspaces for those of the page.
#[test]
#[ignore = "writes into the directory that PICTURES names; tests/browser/judged runs it"]
fn writes_the_pictures_for_strangers() {
    let into =
        PathBuf::from(std::env::var_os("PICTURES").expect("tests/browser/judged says where"));
    std::fs::create_dir_all(&into).expect("a directory");
    let mut answers =
        "# Who must move on #86, and what is missing?\n\nIn the words of `settled why`.\n\n"
            .to_owned();
    for (n, picture) in pictures().iter().enumerate() {
        let name = format!("{:02}", n + 1);
        // The page shows the time left from now, so everything ends now.
        let lasts = stage_of(picture, 1_770_976_800).seconds();
        let mut stage = stage_of(picture, workspace::clock::now().timestamp() - lasts);
        let mut app = stage.app();
        answers += &format!("- {name}: {}\n", answer(&app));
        let (page, look) = match picture.shown {
            Shown::Terminal(width, height) => {
                terminal(
                    &mut app,
                    &stage,
                    ASKED,
                    (width, height),
                    &into.join(format!("{name}.svg")),
                );
                continue;
            }
            Shown::TerminalAt(width, height, chosen) => {
                terminal(
                    &mut app,
                    &stage,
                    chosen,
                    (width, height),
                    &into.join(format!("{name}.svg")),
                );
                continue;
            }
            Shown::Mailroom(look) => ("mailroom", look),
            Shown::Review(look) => ("review", look),
        };
        let serves = app.overview.status.serving == Some(true);
        stage.nobody_serves(0);
        copy(stage.root(), &into.join(format!("{name}-mailroom")));
        let asked = json!({"page": page, "look": look, "serves": serves, "review": ASKED});
        write(into.join(format!("{name}.json")), &asked.to_string());
    }
    write(into.join("answers.md"), &answers);
}

fn terminal(app: &mut App, stage: &Stage, chosen: &str, size: (u16, u16), file: &Path) {
    app.choose(chosen);
    read(app, &stage.follower(), stage.now());
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a screen of memory");
    terminal
        .draw(|frame| draw(frame, app))
        .expect("memory takes it");
    write(file, &svg(terminal.backend().buffer()));
}
