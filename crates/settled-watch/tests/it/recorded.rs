//! The screen of a recorded workspace: every view on a wide and on a narrow terminal, against `golden/` (`UPDATE=1`
//! rewrites it), and the effect of each key.

mod states;

use chrono::TimeDelta;
use cockpit::needs::{Need, WhoseMove};
use cockpit::words::with_short_commits;
use cockpit::{Follower, Overview};
use inspect::status::fix::Actor;
use message_schema::id::AgentName;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use settled_watch::app::{Asked, Filter, ListRow, Pane};
use settled_watch::{App, Theme, draw};
use tempfile::TempDir;

use super::recorded_workspace::{at, check, workspace};

const PLAIN: Theme = Theme { has_colours: false };

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn spelled(_: Option<&AgentName>, words: &str) -> String {
    format!("settled {words}")
}

/// The model ten hours later, when some deadlines have passed.
fn model(follower: &Follower) -> Overview {
    let mut overview = follower.overview(at(TimeDelta::hours(10)), &spelled);
    "mailroom".clone_into(&mut overview.mailroom);
    overview
}

fn app(follower: &Follower) -> App {
    App::new(model(follower), at(TimeDelta::hours(10)), PLAIN)
}

/// The app on a copy of the workspace, which is removed with the value.
fn opened() -> (TempDir, Follower, App) {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let app = app(&follower);
    (root, follower, app)
}

fn read(follower: &Follower, app: &mut App) {
    let review = app.chosen_review().and_then(|name| follower.key_of(name));
    app.detail = review.and_then(|key| follower.review(key, app.now, &spelled));
}

fn press(app: &mut App, code: KeyCode) -> Asked {
    app.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn buffer(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw::draw(frame, app));
    drawn.expect("a frame").buffer.clone()
}

fn frame(app: &mut App, width: u16, height: u16) -> String {
    let buffer = buffer(app, width, height);
    let rows = buffer.content.chunks(usize::from(width));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    rows.map(|row| row.trim_end().to_owned() + "\n").collect()
}

#[test]
fn every_view_of_every_review_is_drawn_on_wide_and_narrow_terminals() {
    let (root, follower, mut app) = opened();
    let mut text = String::new();
    for row in 0..app.rows().len() {
        read(&follower, &mut app);
        for pane in Pane::ALL {
            // Views of the whole mailroom do not depend on the row.
            let is_of_review = matches!(pane, Pane::Summary | Pane::Threads | Pane::Timeline);
            if !is_of_review && row > 0 {
                continue;
            }
            (app.pane, app.is_in_pane) = (pane, pane != Pane::Summary);
            for (width, height) in [(110, 40), (60, 24)] {
                text += &format!("--- row {row}, {}, {width} x {height}\n", pane.name());
                text += &frame(&mut app, width, height);
            }
        }
        (app.pane, app.is_in_pane) = (Pane::Summary, false);
        press(&mut app, KeyCode::Down);
    }
    check(GOLDEN, "screens.txt", root.path(), &text);
}

#[test]
fn keys_go_through_the_list_and_scroll_the_view_that_has_them() {
    let (_root, _follower, mut app) = opened();
    let last = app.rows().len() - 1;
    assert!((3..10).contains(&last), "{last}");
    for (code, chosen) in [
        (KeyCode::Up, 0),
        (KeyCode::Down, 1),
        (KeyCode::Char('j'), 2),
        (KeyCode::Char('k'), 1),
        (KeyCode::PageDown, last),
        (KeyCode::PageUp, 0),
        (KeyCode::Char(' '), last),
        (KeyCode::Home, 0),
        (KeyCode::End, last),
        (KeyCode::Char('g'), 0),
        (KeyCode::Char('G'), last),
    ] {
        assert_eq!(press(&mut app, code), Asked::Read, "{code:?}");
        assert_eq!(app.chosen(), chosen, "{code:?}");
    }
    for code in [KeyCode::Enter, KeyCode::Char('l'), KeyCode::Right] {
        assert_eq!(press(&mut app, code), Asked::Nothing);
        assert!(app.is_in_pane, "{code:?}");
        for (code, line) in [
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 11),
            (KeyCode::PageUp, 1),
            (KeyCode::Up, 0),
        ] {
            assert_eq!(press(&mut app, code), Asked::Nothing);
            assert_eq!((app.scroll, app.chosen()), (line, last), "{code:?}");
        }
        press(&mut app, KeyCode::Char('h'));
        assert!(!app.is_in_pane);
    }
}

#[test]
fn each_view_has_a_digit_and_tab_opens_the_next() {
    let (_root, _follower, mut app) = opened();
    for (digit, pane) in ('1'..='7').zip(Pane::ALL) {
        app.scroll = 3;
        assert_eq!(press(&mut app, KeyCode::Char(digit)), Asked::Nothing);
        assert_eq!((app.pane, app.is_in_pane, app.scroll), (pane, true, 0));
    }
    for pane in Pane::ALL {
        press(&mut app, KeyCode::Tab);
        assert_eq!(app.pane, pane);
    }
    press(&mut app, KeyCode::Tab);
    assert_eq!(app.pane, Pane::Summary);
    press(&mut app, KeyCode::Char('?'));
    assert_eq!(app.pane, Pane::Help);
    // Escape leaves this view for the review's; a digit beyond the views opens none.
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Char('8'));
    assert_eq!((app.pane, app.is_in_pane), (Pane::Summary, false));
}

#[test]
fn a_search_and_a_filter_leave_rows_out_until_they_are_taken_back() {
    let (_root, _follower, mut app) = opened();
    let all = app.rows().to_vec();
    press(&mut app, KeyCode::Char('/'));
    for letter in "#88 CO".chars() {
        assert_eq!(press(&mut app, KeyCode::Char(letter)), Asked::Read);
    }
    assert!(!app.rows().is_empty() && app.rows().len() < all.len());
    let is_88 = |app: &App| {
        app.chosen_review()
            .is_some_and(|name| name.starts_with("#88"))
    };
    assert!(is_88(&app), "{:?}", app.chosen_review());
    // During a search, the letter of a command is only a letter.
    press(&mut app, KeyCode::Char('q'));
    assert!(app.rows().is_empty() && app.is_typing);
    press(&mut app, KeyCode::Backspace);
    assert!(is_88(&app));
    press(&mut app, KeyCode::Enter);
    assert!(!app.is_typing && is_88(&app));
    assert_eq!(press(&mut app, KeyCode::Esc), Asked::Read);
    assert_eq!(app.rows(), all);
    // Escape also ends a search that is still being typed.
    for code in [KeyCode::Char('/'), KeyCode::Char('x'), KeyCode::Char('x')] {
        press(&mut app, code);
    }
    assert!(app.rows().is_empty());
    assert_eq!(press(&mut app, KeyCode::Esc), Asked::Read);
    assert_eq!((app.is_typing, app.rows()), (false, &all[..]));

    app.agent = Some("claude".to_owned());
    for filter in [Filter::Mine, Filter::Stuck, Filter::All] {
        assert_eq!(press(&mut app, KeyCode::Char('f')), Asked::Read);
        assert_eq!(app.filter, filter);
        let mine = |row: &ListRow| match row {
            ListRow::Need(at) => app.overview.needs[*at].mover.as_str() == "claude",
            ListRow::Review(at) => {
                let row = &app.overview.status.reviews[*at];
                row.author == "claude" || row.reviewer == "claude"
            }
        };
        match filter {
            Filter::Mine => assert_eq!(
                app.rows(),
                all.iter().copied().filter(mine).collect::<Vec<_>>()
            ),
            Filter::Stuck => assert!(app.rows().len() < all.len()),
            Filter::All => assert_eq!(app.rows(), all),
        }
    }
    press(&mut app, KeyCode::Char('f'));
    press(&mut app, KeyCode::Esc);
    assert_eq!((app.filter, app.rows()), (Filter::All, &all[..]));
}

#[test]
fn the_command_of_the_chosen_row_is_copied_and_two_keys_end_the_screen() {
    let (_root, _follower, mut app) = opened();
    let mut copied = 0;
    for _ in 0..app.rows().len() {
        let need = app.chosen_need().and_then(|need| need.fix.as_ref());
        let expected = need.map(|fix| fix.run.clone());
        match press(&mut app, KeyCode::Char('y')) {
            Asked::Copy(run) => {
                assert_eq!(app.notice, Some(format!("copied: {run}")));
                assert_eq!(Some(run), expected);
                copied += 1;
            }
            asked @ (Asked::Nothing | Asked::Quit | Asked::Read) => {
                assert_eq!((asked, expected), (Asked::Nothing, None));
            }
        }
        press(&mut app, KeyCode::Down);
        assert_eq!(app.notice, None);
    }
    assert!(copied > 1, "{copied}");
    assert_eq!(press(&mut app, KeyCode::Char('q')), Asked::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.press(interrupt), Asked::Quit);
    assert_eq!(press(&mut app, KeyCode::Char('c')), Asked::Nothing);
}

/// The review of the chosen row, and what it waits for if the row is a need.
fn chosen(app: &App) -> (Option<String>, Option<String>) {
    let need = match app.rows()[app.chosen()] {
        ListRow::Need(at) => Some(app.overview.needs[at].missing.clone()),
        ListRow::Review(_) => None,
    };
    (app.chosen_review().map(str::to_owned), need)
}

#[test]
fn the_chosen_row_stays_chosen_in_a_newer_model() {
    let (_root, follower, mut app) = opened();
    let now = app.now;
    for row in 1..app.rows().len() {
        app = self::app(&follower);
        for _ in 0..row {
            press(&mut app, KeyCode::Down);
        }
        let before = chosen(&app);
        // The first need is met.
        let mut newer = model(&follower);
        newer.needs.remove(0);
        app.show(newer, now);
        assert_eq!(chosen(&app), before, "row {row}");
        assert_eq!(app.chosen(), row - 1);
    }
}

/// A newer model in which `after` replaces the two needs of the chosen review.
fn shown_needs(after: impl Fn(&[Need; 2]) -> Vec<Need>, chosen: usize) -> (Vec<Need>, usize) {
    let (_root, follower, mut app) = opened();
    let of_review = |need: &&Need| need.review.is_some();
    let first = app.overview.needs.iter().find(of_review);
    let first = first.expect("a need of a review").clone();
    let mut second = first.clone();
    "something else".clone_into(&mut second.missing);
    let both = [first, second];
    let mut before = model(&follower);
    before.needs = both.to_vec();
    let now = app.now;
    app.show(before, now);
    press(&mut app, KeyCode::Home);
    for _ in 0..chosen {
        press(&mut app, KeyCode::Down);
    }
    let mut newer = model(&follower);
    newer.needs = after(&both);
    app.show(newer, now);
    (app.overview.needs.clone(), app.chosen())
}

#[test]
fn of_two_needs_of_a_review_the_chosen_one_stays_chosen_and_else_the_other() {
    // The second one is chosen.
    let (needs, chosen) = shown_needs(|both| both.to_vec(), 1);
    assert_eq!((needs[1].missing.as_str(), chosen), ("something else", 1));
    // The second need has become the first.
    let (needs, chosen) = shown_needs(|[first, second]| vec![second.clone(), first.clone()], 1);
    assert_eq!((needs[0].missing.as_str(), chosen), ("something else", 0));
    // The first need was chosen and is met. The other need comes before the review's own row.
    let (_, chosen) = shown_needs(|[_, second]| vec![second.clone()], 0);
    assert_eq!(chosen, 0);
    // A need of another review that lacks the same is a different need.
    let other = |[first, second]: &[Need; 2]| {
        let mut other = second.clone();
        other.review = Some("#1 claude -> codex".to_owned());
        vec![other, first.clone()]
    };
    let (_, chosen) = shown_needs(other, 1);
    assert_eq!(chosen, 1);
}

#[test]
fn stuck_is_what_waits_for_a_person_or_is_overdue_and_mine_what_an_agent_has_a_part_in() {
    let (_root, follower, mut app) = opened();
    let now = app.now;
    let mut overview = model(&follower);
    overview.needs.clear();
    let reviews = &mut overview.status.reviews;
    assert_eq!(reviews.len(), 3);
    reviews.push(reviews[2].clone());
    for (row, mover, due_at) in [
        (0, "person", None),
        (1, "codex", Some(now - TimeDelta::seconds(1))),
        (2, "codex", Some(now + TimeDelta::seconds(1))),
        (3, "codex", Some(now)),
    ] {
        (reviews[row].mover, reviews[row].due_at) = (Some(mover.to_owned()), due_at);
        "claude".clone_into(&mut reviews[row].author);
        "codex".clone_into(&mut reviews[row].reviewer);
    }
    "gemini".clone_into(&mut reviews[2].author);
    app.show(overview, now);
    for (agent, mine) in [
        (None, vec![0]),
        (Some("claude"), vec![0, 1, 3]),
        (Some("codex"), vec![0, 1, 2, 3]),
        (Some("gemini"), vec![2]),
        (Some("nobody"), vec![]),
    ] {
        app.agent = agent.map(str::to_owned);
        lists(&mut app, mine, vec![0, 1], vec![0, 1, 2, 3]);
    }
}

/// Checks the rows of each filter, which are all needs or all reviews.
fn lists(app: &mut App, mine: Vec<usize>, stuck: Vec<usize>, all: Vec<usize>) {
    for (filter, expected) in [
        (Filter::Mine, mine),
        (Filter::Stuck, stuck),
        (Filter::All, all),
    ] {
        press(app, KeyCode::Char('f'));
        assert_eq!(app.filter, filter);
        let place = |row: &ListRow| match row {
            ListRow::Review(at) | ListRow::Need(at) => *at,
        };
        let listed: Vec<usize> = app.rows().iter().map(place).collect();
        assert_eq!(listed, expected, "{:?}, {filter:?}", app.agent);
    }
}

#[test]
fn needs_of_an_operator_and_of_a_person_are_stuck_and_all_others_once_they_are_overdue() {
    let (_root, follower, mut app) = opened();
    let now = app.now;
    let mut overview = model(&follower);
    overview.status.reviews.clear();
    let some = overview.needs[0].clone();
    let agent = |name| Actor::Agent(AgentName::new(name).expect("a name"));
    let needs = [
        (WhoseMove::Operator, Actor::Operator, None),
        (WhoseMove::Person, Actor::Person, None),
        (WhoseMove::Author, agent("claude"), Some(-1)),
        (WhoseMove::Author, agent("claude"), Some(0)),
        (WhoseMove::Reviewer, agent("codex"), Some(1)),
        (WhoseMove::Sender, agent("claude"), None),
    ];
    let need = |(part, mover, due_s): (_, _, Option<i64>)| Need {
        part,
        mover,
        due_at: due_s.map(|due_s| now + TimeDelta::seconds(due_s)),
        ..some.clone()
    };
    overview.needs = needs.map(need).to_vec();
    app.show(overview, now);
    for (agent, mine) in [
        (None, vec![1]),
        (Some("claude"), vec![2, 3, 5]),
        (Some("codex"), vec![4]),
        (Some("gemini"), vec![]),
    ] {
        app.agent = agent.map(str::to_owned);
        lists(&mut app, mine, vec![0, 1, 2], (0..6).collect());
    }
}

#[test]
fn a_review_is_chosen_by_its_name() {
    let (_root, _follower, mut app) = opened();
    for review in ["#88 codex -> claude", "#86 claude -> codex"] {
        app.choose(review);
        assert_eq!(app.chosen_review(), Some(review));
    }
    // Another name chooses nothing else.
    let chosen = app.chosen();
    app.choose("#89 codex -> claude");
    assert_eq!(app.chosen(), chosen);
}

#[test]
fn a_long_value_is_shown_whole_at_every_width() {
    let (_root, follower, mut app) = opened();
    read(&follower, &mut app);
    app.is_in_pane = true;
    let why = &app.detail.as_ref().expect("a review").why;
    let missing = with_short_commits(why.missing.as_deref().expect("something is missing"));
    let mut of_several = 0;
    for width in 40..78 {
        let frame = frame(&mut app, width, 60);
        let mut lines = frame
            .lines()
            .skip_while(|line| !line.starts_with(" MISSING"));
        let first = lines.next().expect("the value");
        let is_within = |line: &&str| line.chars().count() < usize::from(width);
        let more: Vec<_> = lines
            .take_while(|line| line.starts_with("          "))
            .collect();
        of_several += usize::from(!more.is_empty());
        // The last column stays blank.
        assert!(more.iter().chain([&first]).all(is_within), "{frame}");
        let rows = std::iter::once(&first[8..]).chain(more);
        let words: Vec<_> = rows.flat_map(str::split_whitespace).collect();
        assert_eq!(words.join(" "), missing, "{width} columns");
    }
    assert!(of_several > 10, "{of_several}");
}

#[test]
fn the_chosen_row_is_seen_on_a_terminal_that_is_too_low_for_the_list() {
    let (_root, _follower, mut app) = opened();
    for row in 0..app.rows().len() {
        for height in 14..24 {
            let frame = frame(&mut app, 60, height);
            let mut lines = frame.lines().skip_while(|line| !line.starts_with('▸'));
            assert!(lines.next().is_some(), "row {row}, {height} lines\n{frame}");
            // A need has a second line for the missing thing.
            let is_need = matches!(app.rows()[row], ListRow::Need(_));
            let below = lines.next().unwrap_or_default();
            assert!(
                !is_need || below.starts_with("     "),
                "row {row}, {height} lines\n{frame}"
            );
        }
        press(&mut app, KeyCode::Down);
    }
}

#[test]
fn a_terminal_of_any_size_gets_a_frame() {
    let (_root, follower, mut app) = opened();
    read(&follower, &mut app);
    for pane in Pane::ALL {
        for is_in_pane in [false, true] {
            (app.pane, app.is_in_pane) = (pane, is_in_pane);
            for height in 1..30 {
                for width in [1, 20, 80] {
                    let rows = frame(&mut app, width, height).lines().count();
                    assert_eq!(rows, usize::from(height));
                }
            }
        }
    }
}
