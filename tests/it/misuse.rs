//! Agents' mistakes, played from a text file with the real commands: each refusal names its correction, the correction
//! is accepted at the first try, and the test counts what agents read on the way.
//!
//! `SETTLED_MISUSE_PROGRAM` plays the same file with another `settled` and only counts.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what was read is counted in the output of the test, and shown if asked for"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{binaries, read, repository, write};

/// The most characters that an agent reads in the four reviews: 60 % of the 30 489 and 24 723 that the same file took
/// before refusals were cut down to their correction and acceptances named the next command (commit 9f60b9d1).
const AUTHOR_MAX: usize = 18_293;
const REVIEWER_MAX: usize = 14_833;

/// The most that an agent reads in both files: 60 % of the 75 000 and 115 000 characters that two agents read in four
/// reviews with version 0.1. They ran more commands than the files do: `docs/performance.md` says how comparable that
/// is.
const AUTHOR_SESSION_MAX: usize = 45_000;
const REVIEWER_SESSION_MAX: usize = 69_000;

/// The expected result of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// A refusal, and a correction follows.
    Mistake,
    /// A success.
    Right,
    /// A success: the correction of the mistake above, tried with `--dry-run`. Its output does not count: an agent
    /// would have sent it, and the file continues from before it.
    Retry,
    /// A refusal without a correction.
    Hopeless,
}

struct Player {
    mailroom: Mailroom,
    program: PathBuf,
    files: tempfile::TempDir,
    /// The characters that each agent has read.
    read: BTreeMap<String, usize>,
    commands: usize,
    is_count: bool,
    /// The number of mistakes with a correction, and how many the agent's next message corrected.
    mistakes: usize,
    mended: usize,
    /// The mistake above, whose correction has to follow at once.
    pending: Option<(String, String)>,
    /// The last quotation in the last refusal.
    quoted: String,
    wrong: Vec<String>,
}

impl Player {
    fn run(&mut self, agent: &str, args: &[String]) -> Output {
        let output = self.try_it(agent, args);
        let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count();
        let count = count(&output.stdout) + count(&output.stderr);
        *self.read.entry(agent.to_owned()).or_default() += count;
        self.commands += 1;
        output
    }

    fn try_it(&self, agent: &str, args: &[String]) -> Output {
        let output = Command::new(&self.program)
            .args(args)
            .env("SETTLED_ROOT", self.mailroom.root())
            .env("SETTLED_AGENT", agent)
            .env("COLUMNS", "100")
            .current_dir(self.files.path())
            .output()
            .expect("settled can be run");
        if std::env::var_os("SETTLED_MISUSE_SHOW").is_some() {
            eprintln!("{agent}$ settled {}\n{}", args.join(" "), said(&output));
        }
        output
    }

    /// The messages in the agent's inbox, the newest last; does not count as reading.
    fn inbox(&self, agent: &str) -> Vec<String> {
        let output = Command::new(&self.program)
            .args(["inbox", "--json"])
            .env("SETTLED_ROOT", self.mailroom.root())
            .env("SETTLED_AGENT", agent)
            .output()
            .expect("settled can be run");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        let messages = answer["data"]["messages"].as_array().expect("a list");
        messages
            .iter()
            .filter_map(|message| message["id"].as_str().map(str::to_owned))
            .collect()
    }

    /// Does what an agent does to learn its state: runs the commands, and reads and puts away the messages they name.
    fn look(&mut self, agent: &str) {
        for _ in 0..20 {
            let output = self.run(agent, &[]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let next = text
                .lines()
                .find_map(|line| line.strip_prefix("next: settled "));
            let words: Vec<String> = next
                .unwrap_or_default()
                .split_whitespace()
                .take_while(|word| *word != "#")
                .map(str::to_owned)
                .collect();
            match words.first().map(String::as_str) {
                Some("show") => {
                    self.run(agent, &words);
                    let done = ["done".to_owned(), words[1].clone()];
                    self.run(agent, &done);
                }
                Some("done") => {
                    self.run(agent, &words);
                }
                Some(_) | None => return,
            }
        }
    }

    fn play(&mut self, text: &str) {
        let mut lines = text.lines();
        let mut last_id = String::new();
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix("file ") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "end").collect();
                write(self.files.path().join(name), &(body.join("\n") + "\n"));
                continue;
            }
            let (agent, rest) = line.split_once(' ').expect("an agent and a mark");
            if let Some(rest) = rest.strip_prefix("drop ") {
                let hopeless = rest.split_once(" ~~ ");
                let (name, words) = hopeless
                    .or_else(|| rest.split_once(" :: "))
                    .unwrap_or((rest, ""));
                let mark = match (words, hopeless) {
                    ("", _) => Mark::Right,
                    (_, Some(_)) => Mark::Hopeless,
                    (_, None) => Mark::Mistake,
                };
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "end").collect();
                self.follow(agent, line, mark);
                self.drop_by_hand(agent, name, &(body.join("\n") + "\n"), words);
                continue;
            }
            if rest == "?" {
                last_id = self.inbox(agent).pop().unwrap_or(last_id);
                self.look(agent);
                continue;
            }
            let (mark, rest) = rest.split_once(' ').expect("a mark and a command");
            let (rest, words) = rest.split_once(" :: ").unwrap_or((rest, ""));
            let (rest, exit) = rest.split_once(" = ").unwrap_or((rest, "0"));
            let mark = match mark {
                "!" => Mark::Mistake,
                ">" => Mark::Right,
                "=" => Mark::Retry,
                "~" => Mark::Hopeless,
                other => panic!("no mark: {other}"),
            };
            let args: Vec<String> = rest
                .replace("$QUOTED", &self.quoted)
                .split(' ')
                .map(|word| word.replace("$ID", &last_id))
                .collect();
            self.follow(agent, line, mark);
            let output = match mark {
                Mark::Retry => self.try_it(agent, &args),
                Mark::Mistake | Mark::Right | Mark::Hopeless => self.run(agent, &args),
            };
            let printed = said(&output);
            if let Some(quoted) = printed.rsplit('`').nth(1).filter(|_| mark == Mark::Mistake) {
                quoted.clone_into(&mut self.quoted);
            }
            self.judge(line, mark, &output, exit, words);
            if mark == Mark::Right {
                self.put_away(agent, &output);
            }
        }
    }

    /// Checks that the correction of a mistake is the next act of its agent.
    fn follow(&mut self, agent: &str, line: &str, mark: Mark) {
        let is_correction = match mark {
            Mark::Right | Mark::Retry => true,
            Mark::Mistake | Mark::Hopeless => false,
        };
        match self.pending.take() {
            Some((who, mistake)) => {
                assert!(
                    is_correction && who == agent,
                    "no correction follows: {mistake}"
                );
                // A failure ends the test.
                self.mended += 1;
            }
            None => assert_ne!(mark, Mark::Retry, "no mistake is before: {line}"),
        }
        if mark == Mark::Mistake {
            self.mistakes += 1;
            self.pending = Some((agent.to_owned(), line.to_owned()));
        }
    }

    /// Writes a message into the agent's own outbox, and reads the notice if it is refused.
    fn drop_by_hand(&mut self, agent: &str, name: &str, text: &str, words: &str) {
        let mailbox = |place: &str| self.mailroom.agent(agent, place);
        let (outbox, sent) = (mailbox("outbox"), mailbox("sent"));
        write(outbox.join(name), text);
        if words.is_empty() {
            settled_tests::wait::until("the message is accepted", || sent.join(name).exists());
            return;
        }
        let notices = settled_tests::wait::for_some("the notice of the refusal", || {
            Some(self.notices(agent)).filter(|notices| !notices.is_empty())
        });
        for id in notices {
            let output = self.run(agent, &["show".to_owned(), id.clone()]);
            if !said(&output).contains(words) {
                self.wrong
                    .push(format!("{agent} drop {name}\n{}", said(&output)));
            }
            self.run(agent, &["done".to_owned(), id]);
        }
        self.expect_right();
    }

    fn expect_right(&self) {
        assert!(
            self.is_count || self.wrong.is_empty(),
            "{}",
            self.wrong.join("\n")
        );
    }

    /// Does what an acceptance suggests last: puts away the answered message.
    fn put_away(&mut self, agent: &str, output: &Output) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in text.lines() {
            if let Some(words) = line.strip_prefix("next: settled done ") {
                let names = words.split_whitespace().take_while(|word| *word != "#");
                let args: Vec<String> = ["done"]
                    .into_iter()
                    .chain(names)
                    .map(str::to_owned)
                    .collect();
                self.run(agent, &args);
            }
        }
    }

    fn judge(&mut self, line: &str, mark: Mark, output: &Output, exit: &str, words: &str) {
        let text = said(output);
        let code = output
            .status
            .code()
            .map_or_else(String::new, |code| code.to_string());
        let is_right = match mark {
            Mark::Right | Mark::Retry => code == exit,
            Mark::Mistake | Mark::Hopeless => code != "0" && text.contains(words),
        };
        if !is_right {
            self.wrong.push(format!("{line}\n{text}"));
        }
        // After a refusal without a correction an agent looks up the code.
        let explain = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("try: settled explain "));
        if let Some(explain) = explain {
            let agent = line.split(' ').next().expect("an agent").to_owned();
            let code = explain.split(' ').next().unwrap_or_default().to_owned();
            self.run(&agent, &["explain".to_owned(), code]);
        }
        // The agent also reads and puts away every refusal that came by mail.
        if !matches!(mark, Mark::Right | Mark::Retry) {
            let agent = line.split(' ').next().expect("an agent").to_owned();
            for id in self.notices(&agent) {
                self.run(&agent, &["show".to_owned(), id.clone()]);
                self.run(&agent, &["done".to_owned(), id]);
            }
        }
        self.expect_right();
    }

    fn notices(&self, agent: &str) -> Vec<String> {
        let directory = self.mailroom.agent(agent, "inbox");
        let is_notice = |id: &String| {
            settled_tests::list(&directory)
                .iter()
                .filter(|path| path.is_file())
                .any(|path| {
                    let text = read(path);
                    text.contains(id.as_str()) && text.contains("from: settled")
                })
        };
        self.inbox(agent).into_iter().filter(is_notice).collect()
    }
}

fn play(file: &Path) -> Player {
    let other = std::env::var_os("SETTLED_MISUSE_PROGRAM").map(PathBuf::from);
    let mut player = Player {
        mailroom: Mailroom::new(&["claude", "codex"]),
        program: other.clone().unwrap_or_else(binaries::settled),
        files: settled_tests::scratch(),
        read: BTreeMap::new(),
        commands: 0,
        is_count: other.is_some(),
        mistakes: 0,
        mended: 0,
        pending: None,
        quoted: String::new(),
        wrong: Vec::new(),
    };
    let mut daemon = Command::new(&player.program)
        .args(["serve"])
        .arg(player.mailroom.root())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("settled can be run");
    settled_tests::wait::until("the daemon serves", || {
        spool::is_served(player.mailroom.root()) == Some(true)
    });
    player.play(&read(file));
    assert_eq!(player.pending, None, "no correction follows");
    let _ = daemon.kill();
    let _ = daemon.wait();
    player
}

impl Player {
    fn of(&self, agent: &str) -> usize {
        self.read.get(agent).copied().unwrap_or_default()
    }

    fn report(&self, file: &str) {
        println!(
            "{file}: {} commands, {} mistakes that can be mended, {} of them mended by the first retry; characters read: \
             author {}, reviewer {}; {} not answered as written down",
            self.commands,
            self.mistakes,
            self.mended,
            self.of("claude"),
            self.of("codex"),
            self.wrong.len()
        );
        self.wrong.iter().for_each(|wrong| println!("- {wrong}"));
    }
}

#[test]
fn every_mistake_is_answered_with_what_mends_it_and_little_is_read() {
    let [reviews, session] = ["review.txt", "session.txt"].map(|file| {
        let player = play(&repository().join("tests/misuse").join(file));
        player.report(file);
        player
    });
    if reviews.is_count {
        return;
    }
    for player in [&reviews, &session] {
        assert_eq!(player.mended, player.mistakes, "mended by the first retry");
    }
    let whole = |agent: &str| reviews.of(agent) + session.of(agent);
    for (what, read, max) in [
        (
            "the author in the reviews",
            reviews.of("claude"),
            AUTHOR_MAX,
        ),
        (
            "the reviewer in the reviews",
            reviews.of("codex"),
            REVIEWER_MAX,
        ),
        ("the author", whole("claude"), AUTHOR_SESSION_MAX),
        ("the reviewer", whole("codex"), REVIEWER_SESSION_MAX),
    ] {
        println!("{what}: {read} characters, at most {max}");
        assert!(read <= max, "{what} read {read} characters");
    }
}
