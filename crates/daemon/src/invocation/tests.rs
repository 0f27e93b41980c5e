//! Checks which requests start when a budget of the day is used up, and when the next day begins.

use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;

use chrono::TimeDelta;
use message_schema::id::{AgentName, CommitSha, PrNumber};
use message_schema::spend::Spend;
use runner::checkout::Checkout;
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

use super::place::CodePlace;
use super::*;

/// A workspace where codex has a command and a budget for the day, and requests wait for it.
struct Waiting {
    root: TempDir,
    mailroom: Mailroom,
    commands: AgentCommands,
}

/// The moment `hours` hours after a midnight.
fn at(hours: u64) -> Moment {
    let midnight = DateTime::from_timestamp(1_771_027_200, 0).expect("an instant");
    Moment {
        mono: hours * 3_600_000,
        utc: midnight + TimeDelta::hours(hours.cast_signed()),
    }
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).expect("a name")
}

fn review(pr: &str) -> ReviewKey {
    let pr = PrNumber::new(pr).expect("a number");
    ReviewKey::new(None, &pr, name("claude"), name("codex"))
}

fn ask(root: &Path, pr: &str, more: &str) {
    let text = format!(
        "id: \"r{pr}\"\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{pr}\"\nsubject: \"r\"\nbody: |\n  \
         pr: {pr}\n  branch: x\n  diff_summary: y\n{more}"
    );
    let path = root.join(format!("agents/claude/outbox/r{pr}.yaml"));
    std::fs::write(&path, text).expect("a message");
    let file = File::options()
        .write(true)
        .open(&path)
        .expect("the message");
    file.set_modified(UNIX_EPOCH)
        .expect("a file's time can be set");
}

impl Waiting {
    fn new(budget: &str) -> Self {
        Self::with(budget, "")
    }

    /// The same with these lines in each request.
    fn with(budget: &str, more: &str) -> Self {
        let config = format!("[budget]\n{budget}\n[agents.codex]\ncommand = [\"true\"]\n");
        Self::under(&config, more)
    }

    /// The same with this config.
    fn under(config: &str, more: &str) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let agents = ["claude", "codex"].map(name);
        workspace::directory::init(root.path(), &agents).expect("a workspace");
        std::fs::write(root.path().join("settled.toml"), config).expect("a config");
        ask(root.path(), "86", more);
        ask(root.path(), "87", more);
        let mailroom = Mailroom::open(root.path()).expect("a start").0;
        let mut waiting = Self {
            root,
            mailroom,
            commands: AgentCommands::default(),
        };
        waiting.mailroom.sweep().expect("a sweep");
        let pass = waiting.mailroom.pass(at(10)).expect("a pass");
        assert_eq!(pass.accepted, 2);
        waiting
    }

    fn spend(&mut self, pr: &str, run: &str, tokens: u64, hours: u64) {
        let report = RunSpend {
            review: review(pr),
            agent: name("codex"),
            run: run.to_owned(),
            spend: Spend::tokens(tokens),
        };
        assert!(record_spend(&mut self.mailroom, &report, at(hours)).expect("a commit"));
    }

    /// The number of starts of each request, after the commands were tended at this hour.
    fn starts(&mut self, hours: u64) -> Vec<u8> {
        self.commands
            .tend(&mut self.mailroom, at(hours), false)
            .expect("a look");
        let open = self.mailroom.open_requests();
        open.map(|(_, _, open)| open.starts).collect()
    }
}

#[test]
fn a_request_waits_for_the_day_to_turn_and_is_started_then() {
    let mut waiting = Waiting::new("per_agent = { tokens = 100 }");
    waiting.spend("86", "1", 100, 11);
    assert_eq!(waiting.starts(12), [0, 0]);
    // They wake up by themselves within the hour.
    assert_eq!(waiting.commands.next_wakeup(), Some(13 * 3_600_000));
    assert_eq!(waiting.starts(23), [0, 0]);
    let started: u8 = waiting.starts(24).iter().sum();
    assert_eq!(started, 1, "one at a time");
    drop(waiting.root);
}

#[test]
fn a_review_that_used_its_budget_up_is_not_started_and_the_other_is() {
    let mut waiting = Waiting::new("per_review = { tokens = 100 }");
    waiting.spend("86", "1", 100, 11);
    assert_eq!(waiting.starts(12), [1], "the other waits no more");
    assert!(waiting.mailroom.review(&review("86")).is_some());
}

#[test]
fn a_repository_that_keeps_git_waiting_keeps_nobody_else_waiting() {
    let head = "  declared_head: \"4b1a7e0c9d3f5a6b8c2e1d0f7a9b3c5d6e8f0a1b\"\n";
    let mut waiting = Waiting::with("per_agent = { tokens = 100 }", head);
    let git = waiting.root.path().join(".git");
    for directory in ["objects", "refs"] {
        std::fs::create_dir_all(git.join(directory)).expect("a directory");
    }
    rustix::fs::mknodat(CWD, git.join("HEAD"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    // Git answers after its time limit only; meanwhile nothing has started, and the loop goes on.
    assert_eq!(waiting.starts(12), [0, 0]);
    assert_eq!(waiting.starts(13), [0, 0]);
    assert!(waiting.commands.next_wakeup().is_some());
    drop(waiting.root);
}

#[test]
fn no_more_commands_run_at_once_than_the_agent_and_the_machine_may_have() {
    for (of_agent, of_all, expected) in [(1, 4, 1), (2, 1, 1), (2, 2, 2)] {
        let config = format!(
            "[runner]\nconcurrent = {of_all}\n[agents.codex]\ncommand = [\"true\"]\nconcurrent = {of_agent}\n"
        );
        let mut waiting = Waiting::under(&config, "");
        let started: u8 = waiting.starts(11).iter().sum();
        assert_eq!(started, expected, "{of_agent} of {of_all}");
        waiting.commands.stop();
    }
}

#[test]
fn validation_commands_run_on_a_commit_only_if_there_are_any_and_they_have_time() {
    let commit = CommitSha::new("4b1a7e0c9d3f5a6b8c2e1d0f7a9b3c5d6e8f0a1b").expect("a commit");
    for (commands, seconds, expected) in [
        (r#"["make", "make test"]"#, 60, Some((2, 60))),
        (r#"["make"]"#, 0, None),
        ("[]", 60, None),
    ] {
        let config = format!(
            "[gate]\nvalidation_commands = {commands}\n[runner]\nvalidation_s = {seconds}\n"
        );
        let waiting = Waiting::under(&config, "");
        let (root, key) = (waiting.root.path(), review("86"));
        let mut place = CodePlace {
            workdir: root.to_owned(),
            checkout: Some(Checkout::of(root, "run-1", root, (None, commit.clone()))),
        };
        let (config, review) = (waiting.mailroom.config(), waiting.mailroom.review(&key));
        let review = review.expect("a review");
        let found = |place: &CodePlace| {
            let found = start::validation(config, &key, review, place);
            found.map(|found| (found.commands.len(), found.seconds_max))
        };
        assert_eq!(found(&place), expected, "{commands} in {seconds} s");
        place.checkout = None;
        assert_eq!(found(&place), None, "no commit");
    }
}

#[test]
fn a_prompt_is_made_of_the_agent_s_own_template_or_of_the_built_in_one() {
    let config = "[agents.codex]\ncommand = [\"true\"]\n\
                  [agents.claude]\ncommand = [\"true\"]\nprompt = \"claude.md\"\n";
    let waiting = Waiting::under(config, "");
    let template = |agent: &str| {
        let agent = &waiting.mailroom.config().agents[&name(agent)];
        start::template(waiting.root.path(), agent).map_err(|error| error.to_string())
    };
    assert_eq!(template("codex"), Ok(runner::prompt::BUILT_IN.to_owned()));
    let error = template("claude").expect_err("there is no file yet");
    assert!(error.starts_with("the prompt's template: "), "{error}");
    std::fs::write(waiting.root.path().join("claude.md"), "Review {brief}.").expect("a file");
    assert_eq!(template("claude"), Ok("Review {brief}.".to_owned()));
}
