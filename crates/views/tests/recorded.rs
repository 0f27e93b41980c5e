//! The texts of a recorded workspace on a wide and a narrow screen, against `golden/`: the board, what each review
//! waits for, the threads of one, an agent's home, reviews and brief, the newest decisions, the life of a message, the
//! refusals and the check of the ledger. `UPDATE=1` rewrites them.

#[path = "../../../tests/recorded_workspace.rs"]
mod recorded_workspace;

use std::fs;
use std::path::Path;

use chrono::TimeDelta;
use inspect::ledger::WrongRecord;
use inspect::log::LogLine;
use inspect::status::WorkspaceStatus;
use inspect::status::overview::{ListedReviews, PairRow, Removable, Status};
use inspect::status::threads::Histories;
use inspect::{ledger, trace, unjudged};
use judgement::brief::HeldThread;
use mailbox::compose::ask;
use mailbox::compose::words_from::WordsFrom;
use mailbox::mailboxes::{AgentMailboxes, MailboxPlace};
use mailbox::my_reviews::{self, Move};
use mailbox::said::Said;
use message_schema::Report;
use message_schema::id::{AgentName, MessageId};
use message_schema::packet::{Action, Severity};
use review::Policy;
use screen::Screen;
use spool::Agreement;
use views::home::{Home, RefusedMessage};
use views::inbox::Waiting;
use views::ledger::LedgerView;
use workspace::index;

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
fn the_table_drops_its_runs_then_its_ages_and_shortens_names_last() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let mut status = Status::of(&status, None, ListedReviews::Current);
    let row = &mut status.reviews[0];
    row.review = "owner/repository#86 a-long-author -> a-long-reviewer".to_owned();
    row.mover = Some("a-long-reviewer-of-another-machine".to_owned());
    let table = |width| {
        let board = views::board::text(&status, at(TimeDelta::zero()), Screen::plain(width));
        let rows = board.lines().filter(|line| !line.starts_with(' '));
        rows.take(4).collect::<Vec<_>>().join("\n") + "\n"
    };
    let whole = table(500).lines().map(screen::cells).max();
    let whole = whole.expect("a table");
    let mut text = String::new();
    for width in [whole, whole - 1, 72, 71, 60] {
        text += &format!("--- {width} columns\n{}", table(width));
    }
    check(GOLDEN, "table.txt", root.path(), &text);
}

#[test]
fn a_pair_is_shown_with_its_iteration_and_what_runs_or_can_be_resumed() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let mut status = Status::of(&status, None, ListedReviews::Current);
    let now = at(TimeDelta::zero());
    let pair = |pair: &str, reviewer: Option<&str>, state, since| PairRow {
        pair: pair.to_owned(),
        author: "claude".to_owned(),
        reviewer: reviewer.map(str::to_owned),
        state,
        iteration: 2,
        iterations: 5,
        since,
        seconds_left: 60,
    };
    let began = Some(now - TimeDelta::seconds(90));
    status.pairs = vec![
        pair("one", Some("codex"), "writing", began),
        pair("two", None, "waiting", None),
        pair("three", Some("codex"), "failed", began),
    ];
    let board = views::board::text(&status, now, Screen::plain(WIDTHS[0]));
    let pairs: Vec<&str> = board
        .lines()
        .filter(|line| line.contains("iteration"))
        .collect();
    assert_eq!(
        pairs,
        [
            "one: claude and codex, iteration 2 of 5, writing for 90 s",
            "two: claude, iteration 2 of 5, waiting",
            "three: claude and codex, iteration 2 of 5, interrupted, can be resumed",
        ],
        "{board}"
    );
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
        let mut threads = histories.threads(key, review, &key.pr.to_string(), &spelled);
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
        if threads.threads.is_empty() {
            continue;
        }
        // A round earlier replies are left, and what is legal may depend on the stance.
        threads.round_of_generation = 1;
        for (thread, left) in threads.threads.iter_mut().zip(1..) {
            thread.replies_left = left;
            thread.legal.insert("accepts", vec!["resolve"]);
        }
        let earlier = views::threads::text(&threads, Screen::plain(WIDTHS[0]));
        text += &format!("--- a round earlier\n{earlier}");
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
            let said = Said::read(root.path(), &me, &ask.brief.author, &ask.brief.pr);
            text += &views::brief::text(&ask, &said, Screen::plain(100));
            text += &format!("{:#}\n", views::brief::in_json(&ask, &said));
        }
    }
    check(GOLDEN, "agents.txt", root.path(), &text);
}

#[test]
fn a_brief_says_which_thread_takes_no_reply_and_that_a_person_holds_up_an_lgtm() {
    let root = workspace();
    let (me, now) = (agent("codex"), at(TimeDelta::zero()));
    let asks = ask::open(root.path(), &me, now).expect("a policy");
    let mut ask = asks.into_iter().next().expect("an open request");
    ask.brief.last_round = false;
    ask.brief.open_threads[1]
        .legal
        .seeks_change
        .to_mut()
        .push(Action::Reply);
    let mut text = String::new();
    for (lgtm_possible, is_held) in [(true, false), (false, false), (true, true), (false, true)] {
        ask.brief.lgtm_possible = lgtm_possible;
        let held = is_held.then(|| HeldThread {
            id: "F-3".parse().expect("an id"),
            severity: Severity::P1,
            title: None,
            state: "held: vetoed".into(),
        });
        ask.brief.held_threads = held.into_iter().collect();
        let brief = views::brief::text(&ask, &Said::default(), Screen::plain(WIDTHS[0]));
        text += &format!("--- lgtm possible: {lgtm_possible}, held: {is_held}\n{brief}");
    }
    check(GOLDEN, "brief.txt", root.path(), &text);
}

/// The situation of an agent, with at most two messages of each place.
fn home(root: &Path, name: &str) -> Home {
    let me = agent(name);
    let status = WorkspaceStatus::read(root).expect("a workspace");
    let mailboxes = AgentMailboxes::new(root, &me);
    let first = |place| mailboxes.first_messages(place, 2).expect("a mailbox");
    let ((taken, taken_count), (inbox, inbox_count)) =
        (first(MailboxPlace::Taken), first(MailboxPlace::Inbox));
    let (outbox, unjudged) = unjudged::in_outbox(root, &me, 9);
    Home {
        agent: name.to_owned(),
        root: root.display().to_string(),
        serving: None,
        inbox: Waiting {
            agent: name.to_owned(),
            waiting: inbox_count,
            taken: taken_count,
            messages: taken.into_iter().chain(inbox).collect(),
        },
        unjudged,
        outbox,
        refused: Vec::new(),
        reviews: Some(my_reviews::of(status.index.state(), &me)),
    }
}

fn refused() -> RefusedMessage {
    RefusedMessage {
        file: "fb-86-2.yaml".to_owned(),
        code: "action_illegal",
        summary: "`reply` is not legal on thread `F-1`\u{202e}".to_owned(),
    }
}

#[test]
fn a_home_shows_the_mail_the_agents_own_messages_and_whose_move_each_review_is() {
    let root = workspace();
    let outbox = root.path().join("agents/claude/outbox");
    for (name, text) in [
        ("draft.txt", ""),
        ("n-2.yaml", "id: n-2\nfrom: claude\n"),
        ("n-3.yaml", "[\n"),
    ] {
        fs::write(outbox.join(name), text).expect("a file");
    }
    let mut homes: Vec<Home> = ["claude", "codex", "gemini"]
        .map(|name| home(root.path(), name))
        .into();
    let reviews = homes[0].reviews.as_mut().expect("its reviews");
    reviews[0].whose = Move::Person;
    homes[1].refused = vec![refused()];
    homes[2].reviews = None;
    let mut nothing = home(root.path(), "gemini");
    nothing.inbox.messages.clear();
    (nothing.inbox.waiting, nothing.inbox.taken) = (0, 0);
    nothing.reviews = Some(Vec::new());
    homes.push(nothing);
    let mut text = String::new();
    for home in homes {
        for width in WIDTHS {
            let said = home.text(at(TimeDelta::zero()), Screen::plain(width));
            text += &format!("--- {width} columns\n{said}");
        }
    }
    check(GOLDEN, "home.txt", root.path(), &text);
}

#[test]
fn an_agent_has_to_act_on_mail_its_move_a_faulty_message_and_a_refusal() {
    let root = workspace();
    let quiet = || {
        let mut home = home(root.path(), "claude");
        home.inbox.messages.clear();
        assert!(!home.outbox.is_empty(), "a message without a mistake waits");
        let reviews = home.reviews.as_mut().expect("its reviews");
        assert!(!reviews.is_empty(), "it waits for others");
        reviews
            .iter_mut()
            .for_each(|mine| mine.whose = Move::Theirs);
        home
    };
    let acts = |change: fn(&mut Home)| {
        let mut home = quiet();
        change(&mut home);
        home.has_to_act()
    };
    assert!(!acts(|_| {}));
    assert!(!acts(|home| home.reviews = None));
    assert!(acts(|home| {
        let mailboxes = AgentMailboxes::new(Path::new(&home.root), &agent("claude"));
        home.inbox.messages = mailboxes.messages(MailboxPlace::Inbox).expect("its mail");
    }));
    assert!(acts(|home| {
        home.reviews.as_mut().expect("its reviews")[1].whose = Move::Yours;
    }));
    assert!(acts(|home| home.outbox[0]
        .errors
        .push("expired".to_owned())));
    assert!(acts(|home| home.refused.push(refused())));
}

#[test]
fn decisions_have_a_line_each_and_on_a_narrow_screen_a_short_one() {
    let root = workspace();
    let mut decisions = Vec::new();
    spool::read_ledger(root.path(), &mut |entry| {
        let (record, _) = index::decision(entry)?;
        decisions.push(LogLine::of(entry, record));
        Ok(())
    })
    .expect("a ledger");
    let mut text = String::new();
    for width in [200, WIDTHS[1]] {
        let said = views::decisions::text(&decisions, Screen::plain(width));
        text += &format!("--- {width} columns{said}");
    }
    check(GOLDEN, "decisions.txt", root.path(), &text);
    assert_eq!(views::decisions::text(&[], Screen::plain(200)), "");
}

#[test]
fn a_message_has_a_step_a_line_with_its_evidence_below() {
    let root = workspace();
    let mut text = String::new();
    for id in ["req-87", "fb-86", "bad-1", "n-1", "never"] {
        let id: MessageId = id.parse().expect("an id");
        let life = views::trace::text(&trace::of(root.path(), &id, None));
        text += &format!("--- {id}\n{life}");
    }
    check(GOLDEN, "trace.txt", root.path(), &text);
}

#[test]
fn a_refusal_has_a_line_for_each_violation_and_what_is_legal_where_no_fix_says_it() {
    let root = workspace();
    let mut text = String::new();
    for file in ["claude/dead_letter/bad-1", "codex/dead_letter/fb-86-2"] {
        let path = root.path().join(format!("agents/{file}.report.yaml"));
        let report = Report::from_yaml(&fs::read(path).expect("a report")).expect("a report");
        let mut unfixed = report.clone();
        unfixed.violations[0].fix = None;
        let last = Report {
            retryable: false,
            ..report.clone()
        };
        for (what, report) in [
            ("as it is", report),
            ("without a fix", unfixed),
            ("final", last),
        ] {
            let flags = [("to".to_owned(), "--to".to_owned())];
            let told = views::posted::refusal_text(&report, WordsFrom::Flags, &flags);
            text += &format!("--- {file}, {what}\n{told}\n");
        }
    }
    check(GOLDEN, "refusals.txt", root.path(), &text);
}

#[test]
fn the_check_of_a_ledger_says_how_far_it_is_whole_and_which_snapshot_agrees() {
    let root = workspace();
    let mut check = ledger::check(root.path(), &[]).expect("a ledger");
    check.snapshots = vec![
        (4, Agreement::Agrees),
        (5, Agreement::Differs),
        (6, Agreement::Contradicts("record 6".to_owned())),
        (
            7,
            Agreement::PassedOver("it is of a newer version".to_owned()),
        ),
    ];
    let mut text = String::new();
    for wrong in [
        None,
        Some(WrongRecord {
            first: 6,
            last: 7,
            what: "x".to_owned(),
        }),
    ] {
        check.wrong = wrong;
        let view = LedgerView::of(&check);
        let json = serde_json::to_string_pretty(&view).expect("plain values");
        text += &format!("{}{json}\n", view.text());
    }
    self::check(GOLDEN, "ledger.txt", root.path(), &text);
}
