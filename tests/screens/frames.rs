//! The frames of the screen in every state of a review and at every width.

use chrono::{DateTime, TimeDelta, Utc};
use inspect::status::hosts::{HostRow, LastHeard};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use settled_tests::golden;
use settled_watch::app::{Asked, Pane};
use settled_watch::draw::draw;
use settled_watch::{App, Theme};

use super::stage::{Stage, read};
use super::states::{
    addressed, approved, dead_letters, escalated, fixing, held, hostile, nearly_over, opened,
    overdue, quota, several, taken, thousand,
};

/// The sizes of terminals: a phone over ssh, the default, half of a wide screen, and all of it.
const SIZES: [(u16, u16); 4] = [(60, 24), (80, 24), (120, 40), (200, 50)];

/// Returns a frame as text.
pub(crate) fn frame(app: &mut App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen of memory");
    terminal
        .draw(|frame| draw(frame, app))
        .expect("memory takes it");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(screen::cells(symbol)).unwrap_or(1).max(1);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn check(name: &str, stage: &Stage, prepare: fn(&mut App)) {
    let mut all = String::new();
    for (width, height) in SIZES {
        let mut app = stage.app();
        prepare(&mut app);
        let text = frame(&mut app, width, height);
        let is_steering = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_steering), "{name} at {width}: {text:?}");
        assert!(!text.contains(['\u{202e}', '\u{2066}']), "{name}: {text:?}");
        all += &format!("# {width} x {height}\n{text}\n");
    }
    golden::check(&format!("watch-{name}.txt"), &all);
}

#[test]
fn every_state_of_a_review_says_who_must_move_and_what_is_missing() {
    type State = (&'static str, fn(Stage) -> Stage);
    let states: [State; 14] = [
        ("empty", |stage| stage),
        ("open", opened),
        ("taken", taken),
        ("fixing", fixing),
        ("nearly-over", nearly_over),
        ("addressed", addressed),
        ("held", held),
        ("escalated", escalated),
        ("approved", approved),
        ("overdue", overdue),
        ("dead-letters", dead_letters),
        ("quota", quota),
        ("hostile", hostile),
        ("several", several),
    ];
    for (name, state) in states {
        let stage = state(Stage::new());
        check(name, &stage, |_| ());
        // The default terminal shows the model's own words.
        let mut app = stage.app();
        let need = app.chosen_need().cloned();
        let text = frame(&mut app, 80, 24);
        if let Some(need) = need {
            assert!(text.contains(need.mover.as_str()), "{name}: {text}");
            let begin: String = need.missing.chars().take(30).collect();
            assert!(name == "hostile" || text.contains(&begin), "{name}: {text}");
        }
    }
}

#[test]
fn a_thousand_reviews_are_listed_in_the_order_of_their_deadlines() {
    check("thousand", &thousand(Stage::new()), |app| {
        for _ in 0..37 {
            app.press(key(KeyCode::PageDown));
        }
    });
}

/// A host that shares the ledger, with a heartbeat some seconds ago.
fn host(name: &str, agent: &str, heard: Option<(i64, &str)>, now: DateTime<Utc>) -> HostRow {
    let heard = heard.map(|(ago, status)| LastHeard {
        at: now - TimeDelta::seconds(ago),
        version: "0.1.0".to_owned(),
        state: status.to_owned(),
        behind: u64::from(status != "in_step") * 7,
        clock_ahead_ms: if status == "in_step" { 100 } else { -9_000 },
    });
    HostRow {
        name: name.to_owned(),
        is_this: name == "tower",
        agents: vec![agent.parse().expect("a name")],
        version: "0.1.0".to_owned(),
        key: "ed25519:00".to_owned(),
        is_retired: name == "old",
        last_record: Some(4),
        last_at: Some(now - TimeDelta::seconds(90)),
        heard,
    }
}

#[test]
fn the_hosts_that_share_the_ledger_are_listed_below_the_agents() {
    check("hosts", &opened(Stage::new()), |app| {
        let now = app.now;
        app.overview.status.hosts = vec![
            host("ci", "pi", Some((3_700, "in_step")), now),
            host("laptop", "codex", Some((4, "in_step")), now),
            host("old", "gemini", None, now),
            host("repository", "amp", None, now),
            host("slow", "qwen", Some((8, "waiting")), now),
            host("tower", "claude", None, now),
        ];
        app.pane = Pane::Agents;
        app.is_in_pane = true;
    });
}

#[test]
fn each_pane_fills_the_screen() {
    let stage = addressed(Stage::new());
    for pane in Pane::ALL {
        let mut all = String::new();
        for (width, height) in [(60, 24), (120, 40)] {
            let mut app = stage.app();
            let at = Pane::ALL
                .iter()
                .position(|known| *known == pane)
                .expect("one of all");
            app.press(key(KeyCode::Char(char::from(
                b'1' + u8::try_from(at).expect("seven"),
            ))));
            all += &format!("# {width} x {height}\n{}\n", frame(&mut app, width, height));
        }
        golden::check(&format!("watch-pane-{}.txt", pane.name()), &all);
    }
}

#[test]
fn a_narrow_pane_breaks_its_lines_and_cuts_none() {
    let stage = held(Stage::new());
    for (pane, texts) in [
        (Pane::Timeline, ["I look at it myself", "-> fixing round 1"]),
        (
            Pane::History,
            [
                "1 opened, 0 approved, 1 to a person, 0 closed",
                "0 proven, 0 reopened; answers after",
            ],
        ),
        (
            Pane::Help,
            [
                "threads, timeline, agents, history, problems, keys",
                "a reviewer must move",
            ],
        ),
    ] {
        let mut app = stage.app();
        app.pane = pane;
        app.is_in_pane = true;
        let text = frame(&mut app, 60, 100);
        let flat: Vec<&str> = text.split_whitespace().collect();
        for words in texts {
            assert!(flat.join(" ").contains(words), "{words}\n{text}");
        }
    }
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn type_in(app: &mut App, text: &str) {
    for letter in text.chars() {
        app.press(key(KeyCode::Char(letter)));
    }
}

#[test]
fn keys_choose_search_filter_and_copy() {
    let stage = several(Stage::new());
    let mut app = stage.app();
    // First who must move: a person, then the author, then the reviewer; then all three reviews.
    let movers: Vec<&str> = app
        .overview
        .needs
        .iter()
        .map(|need| need.mover.as_str())
        .collect();
    assert_eq!(movers, ["person", "claude", "codex"]);
    assert_eq!(app.rows().len(), 6);
    let Asked::Copy(command) = app.press(key(KeyCode::Char('y'))) else {
        panic!("a command is copied");
    };
    assert_eq!(command, "settled review reopen 91");
    assert_eq!(app.press(key(KeyCode::Down)), Asked::Read);
    assert_eq!(app.chosen_review(), Some("#86 claude -> codex"));
    app.press(key(KeyCode::Char('f')));
    assert_eq!(app.rows().len(), 2, "without an agent, mine is a person's");
    app.press(key(KeyCode::Esc));
    type_in(&mut app, "/#93");
    assert_eq!(app.rows().len(), 2);
    assert_eq!(app.chosen_review(), Some("#93 claude -> codex"));
    // A newer model keeps the chosen row.
    let (follower, now) = (stage.follower(), stage.now());
    app.press(key(KeyCode::Esc));
    app.choose("#93 claude -> codex");
    app.show(follower.overview(now, &super::stage::spell), now);
    read(&mut app, &follower, now);
    assert_eq!(app.chosen_review(), Some("#93 claude -> codex"));
    assert_eq!(app.detail.as_ref().expect("a review").row.pr, "93");
    assert_eq!(app.press(key(KeyCode::Char('q'))), Asked::Quit);
}

/// Without colours nothing is lost: each state has a shape and words.
#[test]
fn nothing_is_told_by_colour_alone() {
    let stage = several(Stage::new());
    let mut coloured = stage.app();
    let mut plain = stage.app();
    plain.theme = Theme { has_colours: false };
    assert_eq!(frame(&mut coloured, 120, 40), frame(&mut plain, 120, 40));
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a screen of memory");
    terminal
        .draw(|frame| draw(frame, &mut plain))
        .expect("memory takes it");
    let cells = terminal.backend().buffer().content();
    let is_coloured = |cell: &Cell| cell.fg != Color::Reset;
    assert!(!cells.iter().any(is_coloured));
}

/// The picture of docs/watch.md.
#[test]
fn the_picture_in_the_documents_is_this_screen() {
    let stage = several(Stage::new());
    let mut app = stage.app();
    app.choose("#86 claude -> codex");
    read(&mut app, &stage.follower(), stage.now());
    let mut terminal = Terminal::new(TestBackend::new(100, 38)).expect("a screen of memory");
    terminal
        .draw(|frame| draw(frame, &mut app))
        .expect("memory takes it");
    let picture = settled_tests::repository().join("docs/watch.svg");
    golden::check_file(&picture, &svg(terminal.backend().buffer()));
}

/// Draws a screen as a picture, each row in pieces of the same style.
pub(crate) fn svg(buffer: &Buffer) -> String {
    let Rect { width, height, .. } = buffer.area;
    let (wide, high) = (
        f32::from(width) * 8.4 + 20.0,
        f32::from(height) * 19.0 + 20.0,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" role=\"img\" \
         aria-label=\"settled watch\">\n<rect width=\"100%\" height=\"100%\" fill=\"#14181f\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n"
    );
    for y in 0..height {
        let mut x = 0;
        while x < width {
            let look = look(&buffer[(x, y)]);
            let begin = x;
            let mut text = String::new();
            while x < width && self::look(&buffer[(x, y)]) == look {
                text += buffer[(x, y)].symbol();
                x += 1;
            }
            if text.trim().is_empty() && !look.1 {
                continue;
            }
            let down = f32::from(y) * 19.0 + 24.0;
            let across =
                |column: usize| f32::from(u16::try_from(column).unwrap_or(u16::MAX)) * 8.4 + 10.0;
            let fill = if look.1 {
                let (top, at) = (down - 14.0, across(begin.into()));
                let length = across(x.into()) - at;
                svg += &format!(
                    "<rect x=\"{at}\" y=\"{top}\" width=\"{length}\" height=\"19\" fill=\"#aab4c0\"/>\n"
                );
                "#14181f"
            } else {
                look.0
            };
            // Some programs draw blanks around a text and others do not, which would stretch it.
            let shown = text.trim();
            let begin =
                usize::from(begin) + screen::cells(&text) - screen::cells(text.trim_start());
            let (at, length) = (across(begin), across(screen::cells(shown)) - 10.0);
            let weight = if look.2 { " font-weight=\"bold\"" } else { "" };
            let text = shown
                .replace(' ', "\u{a0}")
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            svg += &format!(
                "<text x=\"{at}\" y=\"{down}\" textLength=\"{length}\" fill=\"{fill}\"{weight}>{text}</text>\n"
            );
        }
    }
    svg + "</g>\n</svg>\n"
}

/// The colour of a cell, and whether it is reversed and bold.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every colour that the screen does not use is drawn as plain text"
)]
fn look(cell: &Cell) -> (&'static str, bool, bool) {
    let colour = match cell.fg {
        Color::Indexed(196) => "#ff6b6b",
        Color::Indexed(130) => "#e0a458",
        Color::Indexed(28) => "#7ee2a8",
        Color::Indexed(243) => "#8b95a1",
        _ => "#e6e9ed",
    };
    let has = |modifier| cell.modifier.contains(modifier);
    (colour, has(Modifier::REVERSED), has(Modifier::BOLD))
}
