//! What the recorded workspace lacks: each case changes its model and is drawn with the styles of its cells, against
//! `golden/states.txt`.

use chrono::{DateTime, TimeDelta, Utc};
use cockpit::agents::RunView;
use inspect::status::hosts::{HostRow, LastHeard};
use inspect::status::threads::ThreadView;
use ratatui::buffer::Cell;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};
use settled_watch::app::Pane;
use settled_watch::{App, Theme};

use super::{GOLDEN, buffer, frame, opened, press, read};
use crate::recorded_workspace::check;

/// A change of the model, and the sizes in which it is drawn.
type Case = (&'static str, fn(&mut App), &'static [(u16, u16)]);

const CASES: [Case; 15] = [
    ("runs and hosts", runs_and_hosts, &[(120, 40)]),
    ("threads", threads_at_a_glance, &[(60, 36), (78, 44)]),
    ("threads with their words", threads, &[(60, 36)]),
    ("events", events, &[(60, 36)]),
    ("all events", all_events, &[(60, 36)]),
    ("budgets", budgets, &[(80, 40)]),
    ("phases", phases, &[(60, 30), (160, 40)]),
    ("few rows", few_rows, &[(110, 40), (149, 40), (150, 40)]),
    ("no need", no_need, &[(60, 14)]),
    ("no review", no_review, &[(60, 14)]),
    ("those of a person", mine, &[(60, 14)]),
    ("a search that begins", typing, &[(60, 14)]),
    ("nothing matches", nothing_matches, &[(60, 14)]),
    ("scrolled", scrolled, &[(60, 16), (60, 7), (60, 6), (60, 5)]),
    ("scrolled to the end", scrolled_to_the_end, &[(60, 16)]),
];

#[test]
fn what_the_recorded_workspace_lacks_is_drawn_as_well() {
    let mut text = String::new();
    let mut last = None;
    for (name, change, sizes) in CASES {
        for (width, height) in sizes {
            let (root, follower, mut app) = opened();
            app.theme = Theme { has_colours: true };
            app.choose("#86 claude -> codex");
            read(&follower, &mut app);
            change(&mut app);
            text += &format!("--- {name}, {width} x {height}\n");
            text += &styled(&mut app, *width, *height);
            last = Some(root);
        }
    }
    let root = last.expect("there are cases");
    check(GOLDEN, "states.txt", root.path(), &text);
}

/// The frame, and below each row the styles of its cells, if any.
fn styled(app: &mut App, width: u16, height: u16) -> String {
    let buffer = buffer(app, width, height);
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(width)) {
        let words: String = row.iter().map(Cell::symbol).collect();
        let styles: String = row.iter().map(style).collect();
        text += format!("  {words}").trim_end();
        text += "\n";
        if !styles.trim().is_empty() {
            text += &format!("| {}\n", styles.trim_end());
        }
    }
    text
}

fn style(cell: &Cell) -> char {
    let is_bold = cell.modifier.contains(Modifier::BOLD);
    if cell.modifier.contains(Modifier::REVERSED) {
        return 'R';
    }
    match (cell.fg, is_bold) {
        (Color::Reset, false) => ' ',
        (Color::Reset, true) => 'h',
        (Color::Indexed(196), true) => 'A',
        (Color::Indexed(130), false) => 'c',
        (Color::Indexed(28), false) => 'w',
        (Color::Indexed(243), false) => 'a',
        other => panic!("{other:?} is the style of nothing"),
    }
}

fn show(app: &mut App, pane: Pane) {
    (app.pane, app.is_in_pane) = (pane, true);
}

fn runs_and_hosts(app: &mut App) {
    let now = app.now;
    let run = |is_running, ended: Option<&str>, last_words: &str| RunView {
        id: "run".to_owned(),
        review: "#86 claude -> codex".to_owned(),
        program: "codex".to_owned(),
        since: now - TimeDelta::minutes(3),
        is_running,
        ended: ended.map(str::to_owned),
        turns: None,
        last_words: last_words.to_owned(),
    };
    let some = app.overview.agents[0].clone();
    app.overview.agents = [
        (1, run(true, None, "reading src/parse.rs")),
        (0, run(false, None, "")),
        (0, run(false, Some("exit code 0"), "done")),
        (0, run(false, Some("signal 9"), "")),
    ]
    .map(|(dead_letters, run)| {
        let mut agent = some.clone();
        (agent.dead_letters, agent.run) = (dead_letters, Some(run));
        agent
    })
    .to_vec();
    app.overview.status.hosts = vec![
        host("ci", Some((3_700, "in_step")), now),
        host("laptop", Some((4, "in_step")), now),
        host("old", Some((4, "in_step")), now),
        host("repository", None, now),
        host("slow", Some((8, "waiting")), now),
        host("tower", Some((4, "in_step")), now),
    ];
    app.overview.status.hosts[3].agents.clear();
    show(app, Pane::Agents);
}

/// A host that shares the ledger, with a heartbeat some seconds ago.
fn host(name: &str, heard: Option<(i64, &str)>, now: DateTime<Utc>) -> HostRow {
    let heard = heard.map(|(ago, state)| LastHeard {
        at: now - TimeDelta::seconds(ago),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: state.to_owned(),
        behind: 0,
        clock_ahead_ms: 0,
    });
    HostRow {
        name: name.to_owned(),
        is_this: name == "tower",
        agents: vec!["codex".parse().expect("a name")],
        version: env!("CARGO_PKG_VERSION").to_owned(),
        key: "ed25519:00".to_owned(),
        is_retired: name == "old",
        last_record: None,
        last_at: None,
        heard,
    }
}

/// Threads in every state, the titles of different lengths.
fn change_threads(app: &mut App) {
    let states = [
        ("open", true),
        ("open", false),
        ("resolved", true),
        ("resolved", false),
        ("held (veto)", true),
        ("held (person)", false),
        ("deferred", true),
        ("deferred", false),
    ];
    let thread = |(n, (state, blocking)): (usize, (&'static str, bool))| ThreadView {
        id: format!("F-{n}"),
        severity: "P1",
        blocking,
        state,
        resolved_by: (state == "resolved" && blocking).then_some("silence"),
        title: Some("a title"[..n.min(7)].to_owned()),
        file: Some("src/parse_the_header.rs".to_owned()),
        lines: Some("10-12".to_owned()),
        evidence: None,
        recommendation: None,
        reported: None,
        opened_in: 1,
        stance: "seeks_change",
        round_count: 0,
        replies: 1,
        replies_left: 2,
        reopened: n == 1,
        legal: Default::default(),
        person: Vec::new(),
        history: Vec::new(),
    };
    let detail = app.detail.as_mut().expect("a review");
    detail.threads.threads = states.into_iter().enumerate().map(thread).collect();
    detail.gate.clauses.clear();
    for round in &mut detail.rounds {
        round.events.clear();
    }
}

fn threads_at_a_glance(app: &mut App) {
    change_threads(app);
    show(app, Pane::Summary);
}

fn threads(app: &mut App) {
    change_threads(app);
    show(app, Pane::Threads);
}

/// Three turns, an approval, an escalation; and a feedback without findings, as the daemon writes.
fn events(app: &mut App) {
    let detail = app.detail.as_mut().expect("a review");
    detail.threads.threads.clear();
    detail.gate.clauses.clear();
    for round in &mut detail.rounds {
        for stop in &mut round.stops {
            stop.threads = 0;
        }
    }
    let events = &mut detail.rounds.last_mut().expect("a round").events;
    let some = events[1].clone();
    for (kind, phase, count) in [
        ("turns", None, 3),
        ("review_lgtm", Some("approved"), 1),
        ("deadline", Some("escalated"), 1),
    ] {
        let mut event = some.clone();
        (event.kind, event.phase, event.count) = (kind, phase, count);
        event.what = match phase {
            Some(phase) => format!("{phase}, in more words than there is room for"),
            None => "counted".to_owned(),
        };
        events.push(event);
    }
    show(app, Pane::Summary);
}

fn all_events(app: &mut App) {
    events(app);
    show(app, Pane::Timeline);
}

/// One that has just ended, an overdue one, and one with time left.
fn budgets(app: &mut App) {
    let now = app.now;
    let detail = app.detail.as_mut().expect("a review");
    detail.threads.threads.clear();
    detail.gate.clauses.clear();
    let some = detail.budgets[0].clone();
    detail.budgets = [0, -1, 90]
        .map(|left_s| {
            let mut budget = some.clone();
            (budget.left, budget.whole) = (None, 180);
            budget.ends_at = Some(now + TimeDelta::seconds(left_s));
            budget
        })
        .to_vec();
    for (name, input_tokens) in [
        ("claude", 7),
        ("a-name-that-reaches-the-end-of-it", 1_000_000),
    ] {
        detail.usage.push(cockpit::words::ReportedUsage {
            agent: name.to_owned(),
            messages: 1,
            input_tokens,
            output_tokens: 5,
            wall_time_s: 1.0,
            cost_usd: 0.1,
        });
    }
    show(app, Pane::Summary);
}

fn phases(app: &mut App) {
    let some = app.overview.status.reviews[0].clone();
    app.overview.status.reviews = [
        ("approved", Some(true)),
        ("approved", Some(false)),
        ("approved", None),
        ("escalated", None),
        ("closed", None),
        ("reviewing", None),
        ("fixing", None),
    ]
    .map(|(phase, stale)| {
        let mut row = some.clone();
        (row.phase, row.stale) = (phase, stale);
        row
    })
    .to_vec();
    list_anew(app);
}

/// Goes through the filters, which lists the rows of a changed model.
fn list_anew(app: &mut App) {
    for _ in 0..3 {
        press(app, KeyCode::Char('f'));
    }
}

fn few_rows(app: &mut App) {
    app.overview.needs.truncate(3);
    app.overview.status.reviews.truncate(2);
    list_anew(app);
}

fn no_need(app: &mut App) {
    app.overview.needs.clear();
    list_anew(app);
}

fn no_review(app: &mut App) {
    app.overview.needs.clear();
    app.overview.status.reviews.clear();
    app.detail = None;
    list_anew(app);
}

fn mine(app: &mut App) {
    press(app, KeyCode::Char('f'));
}

fn typing(app: &mut App) {
    press(app, KeyCode::Char('/'));
}

fn nothing_matches(app: &mut App) {
    for code in [KeyCode::Char('/'), KeyCode::Char('~'), KeyCode::Enter] {
        press(app, code);
    }
}

fn scrolled(app: &mut App) {
    show(app, Pane::Summary);
    app.scroll = 3;
}

fn scrolled_to_the_end(app: &mut App) {
    show(app, Pane::Summary);
    app.scroll = usize::MAX;
}

#[test]
fn keys_and_views_are_named_as_far_as_there_is_room_for_whole_names() {
    let (_root, _follower, mut app) = opened();
    let last_row = |app: &mut App, width| {
        let frame = frame(app, width, 24);
        frame.lines().last().expect("a row").to_owned()
    };
    for is_in_pane in [false, true] {
        app.is_in_pane = is_in_pane;
        let keys = last_row(&mut app, 200);
        let keys: Vec<&str> = keys.split("   ").collect();
        assert_eq!(keys.len(), 8, "{keys:?}");
        for width in 1..110 {
            let fits = |count: &usize| cells(&keys[..*count].join("   ")) <= width.into();
            let count = (0..=8).rev().find(fits).expect("no key fits always");
            assert_eq!(
                last_row(&mut app, width),
                keys[..count].join("   "),
                "{width} columns"
            );
        }
    }
    let name = |(n, pane): (usize, &Pane)| {
        if *pane == Pane::Summary {
            format!("[{n} {}]", pane.name())
        } else {
            format!(" {n} {} ", pane.name())
        }
    };
    let names: Vec<String> = (1..).zip(&Pane::ALL).map(name).collect();
    for width in 2..110 {
        let row = |count: &usize| format!("──{}", names[..*count].concat());
        let fits = |row: &String| cells(row) <= width.into();
        let row = (0..=7).rev().map(|count| row(&count)).find(fits);
        let row = row.expect("two cells fit always");
        let rest = usize::from(width) - cells(&row);
        let frame = frame(&mut app, width, 24);
        assert_eq!(
            frame.lines().find(|line| line.starts_with('─')),
            Some((row + &"─".repeat(rest)).trim_end())
        );
    }
}

/// The cells of a text without wide characters.
fn cells(text: &str) -> usize {
    text.chars().count()
}
