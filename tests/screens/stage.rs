//! A workspace whose daemon is in this process and acts when the test says so, at instants set by the test, so that
//! every frame is reproducible.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use chrono::{DateTime, TimeDelta, Utc};
use cockpit::Follower;
use daemon::mailroom::Mailroom;
use daemon::schedule::Wakeup;
use message_schema::id::{AgentName, MessageId};
use review::{Event, Which};
use settled_watch::{App, Theme};
use tempfile::TempDir;
use workspace::clock::Moment;
use workspace::orders::{self, Order};
use workspace::{directory, shell};

/// The default beginning, in seconds since 1970: 2026-02-13T10:00:00Z.
const BEGIN: i64 = 1_770_976_800;

pub(crate) struct Stage {
    root: TempDir,
    /// The beginning, in seconds since 1970.
    begin: i64,
    /// `None` while no daemon serves.
    mailroom: Option<Mailroom>,
    second: i64,
    count: usize,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::begun(BEGIN, "")
    }

    /// Makes a workspace that begins at an instant, with more in its config.
    pub(crate) fn begun(begin: i64, config: &str) -> Self {
        let root = settled_tests::scratch();
        let agents = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        directory::init(root.path(), &agents).expect("a workspace");
        let limits = format!("[limits]\nopen_reviews = 200000\nfiles_per_hour = 250000\n{config}");
        std::fs::write(root.path().join("settled.toml"), limits).expect("a config");
        let mailroom = Some(Mailroom::open(root.path()).expect("a start").0);
        Self {
            root,
            begin,
            mailroom,
            second: 0,
            count: 0,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.moment().utc
    }

    /// Returns the seconds since it began.
    pub(crate) fn seconds(&self) -> i64 {
        self.second
    }

    fn moment(&self) -> Moment {
        let begin = DateTime::<Utc>::from_timestamp(self.begin, 0).expect("an instant");
        Moment {
            mono: self.second.unsigned_abs() * 1_000,
            utc: begin + TimeDelta::seconds(self.second),
        }
    }

    /// Lets time pass while the daemon keeps deadlines.
    pub(crate) fn wait(&mut self, seconds: i64) {
        self.second += seconds;
        self.turn();
    }

    /// Lets time pass without a daemon.
    pub(crate) fn nobody_serves(&mut self, seconds: i64) {
        if let Some(mut mailroom) = self.mailroom.take() {
            mailroom.close();
        }
        self.second += seconds;
    }

    /// Writes a file that looks an hour old.
    fn lay(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
        let finished = UNIX_EPOCH + Duration::from_secs((self.begin - 3_600).unsigned_abs());
        let file = File::options().write(true).open(&path).expect("the file");
        file.set_modified(finished).expect("a time can be set");
    }

    /// Puts a message into an outbox without judging it.
    pub(crate) fn lay_message(&mut self, from: &str, kind: &str, pr: u32, more: &str, body: &str) {
        self.count += 1;
        let to = if from == "claude" { "codex" } else { "claude" };
        let body: String = body.lines().map(|line| format!("  {line}\n")).collect();
        let text = format!(
            "id: \"msg-{from}-{:04}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{pr}\"\nsubject: \"{kind} (#{pr})\"\n{more}body: |\n{body}",
            self.count
        );
        let path = format!("agents/{from}/outbox/{:04}.yaml", self.count);
        self.lay(&path, &text);
    }

    pub(crate) fn send(&mut self, from: &str, kind: &str, pr: u32, body: &str) {
        self.lay_message(from, kind, pr, "", body);
        self.turn();
    }

    pub(crate) fn request(&mut self, pr: u32) {
        let body = format!(
            "pr: {pr}\nbranch: claude/empty-diff\ndeclared_head: 9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21\n\
             diff_summary: Says what the reviewer does with an empty diff.\nmax_turns_reviewer: 8\nmax_runtime_s_reviewer: 600\n"
        );
        self.send("claude", "review_request", pr, &body);
    }

    /// Sends a feedback with these findings, written as in the packet.
    pub(crate) fn feedback(&mut self, pr: u32, round: u32, blocking: u32, findings: &str) {
        let packet = format!("packets/findings/pr{pr}_r{round}.yaml");
        let text = format!(
            "packet_id: pr{pr}_r{round}\nsource_review_packet: x\nreviewer: codex\nround: {round}\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsummary:\n  verdict: changes_requested\n  \
             blocking_count: {blocking}\n  non_blocking_count: 1\nfindings:\n{findings}"
        );
        self.lay(&packet, &text);
        let usage = "model: gpt-5\nturns: 5\ninput_tokens: 182000\noutput_tokens: 12000\nwall_time_s: 500.0\nest_cost_usd: 0.42\n";
        let body =
            format!("findings_packet: {packet}\nround: {round}\nblocking_count: {blocking}\n");
        self.lay_message("codex", "review_feedback", pr, usage, &body);
        self.turn();
    }

    /// Escalates the review as its reviewer, in these words.
    pub(crate) fn gives_up(&mut self, pr: u32, why: &str) {
        let packet = format!("packets/findings/pr{pr}_r1.yaml");
        let text = format!(
            "packet_id: pr{pr}_r1\nsource_review_packet: x\nreviewer: codex\nround: 1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsummary:\n  verdict: changes_requested\n  \
             blocking_count: 1\n  non_blocking_count: 0\nfindings:\n  - id: F-001\n    severity: P1\n    \
             blocking: true\n    status: open\n    title: Not read to the end\n    recommendation: Ask again.\n"
        );
        self.lay(&packet, &text);
        let body = format!(
            "findings_packet: {packet}\nround: 1\nblocking_count: 1\nescalation: \"{why}\"\n"
        );
        self.send("codex", "review_feedback", pr, &body);
    }

    pub(crate) fn order(&mut self, event: Event) {
        self.count += 1;
        let id = MessageId::new(format!("order-{}", self.count)).expect("an id");
        let order = Order::new(id, self.moment().utc, event);
        orders::write(self.root.path(), &order).expect("an order");
        if let Some(mailroom) = &mut self.mailroom {
            mailroom.hint_order();
        }
        self.turn();
    }

    /// Lets the daemon do everything there is to do.
    pub(crate) fn turn(&mut self) {
        let now = self.moment();
        let Some(mailroom) = &mut self.mailroom else {
            return;
        };
        mailroom.sweep().expect("a sweep");
        mailroom.pass(now).expect("a pass");
        while mailroom.schedule(now).at(Wakeup::Look).is_some() {
            mailroom.pass(now).expect("a pass");
        }
        mailroom.keep_deadlines(now.utc, now).expect("deadlines");
        mailroom.pass(now).expect("a pass");
        mailroom.finish(now).expect("deliveries");
    }

    pub(crate) fn follower(&self) -> Follower {
        Follower::open(self.root()).expect("a ledger")
    }

    /// Returns the screen as it is when somebody opens it.
    pub(crate) fn app(&self) -> App {
        let follower = self.follower();
        let mut app = App::new(
            follower.overview(self.now(), &spell),
            self.now(),
            Theme { has_colours: true },
        );
        // The workspace's path differs between runs.
        app.overview.mailroom = "mailroom".to_owned();
        read(&mut app, &follower, self.now());
        app
    }
}

/// Reads the chosen review, as the program does.
pub(crate) fn read(app: &mut App, follower: &Follower, now: DateTime<Utc>) {
    let key = app.chosen_review().and_then(|name| follower.key_of(name));
    app.detail = key.and_then(|key| follower.review(key, now, &spell));
}

/// Spells commands for a workspace that the environment names.
pub(crate) fn spell(agent: Option<&AgentName>, words: &str) -> String {
    shell::settled(words, None, agent)
}

pub(crate) fn which(pr: u32) -> Which {
    Which {
        pr: pr.to_string().parse().expect("a number"),
        repo: None,
        reviewer: Some("codex".parse().expect("a name")),
    }
}
