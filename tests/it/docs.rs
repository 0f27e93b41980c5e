//! The documents keep their word: every command in them runs, every output they show is the real one, every link and
//! path exists, and every code, command and key is explained.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use clap::CommandFactory as _;
use message_schema::Code;
use message_schema::Finder;
use rustix::process::{Pid, Signal, kill_process};
use settled::cli::SettledCli;
use settled_tests::mailroom::{said, settled};
use settled_tests::markdown::{self, Block};
use settled_tests::{binaries, broker, golden, list, read, repository, wait};
use tempfile::TempDir;

/// The README's way to start a program that a newcomer has not built yet.
const FROM_SOURCE: &str = "cargo run -p settled -- ";

/// The most blocks that may not run: the README's command for this very test.
const UNRUN_MAX: usize = 1;

fn pages() -> Vec<PathBuf> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let root = ["README.md", "CONTRIBUTING.md"].map(|name| repository().join(name));
    root.into_iter()
        .chain(list(repository().join("docs")).into_iter().filter(is_page))
        .collect()
}

fn name(page: &Path) -> String {
    page.strip_prefix(repository())
        .expect("a page of the repository")
        .display()
        .to_string()
}

/// A reader who follows a page from top to bottom in an empty directory.
struct Reader {
    directory: TempDir,
    /// The directory for temporary files of commands, such as the folder of a failed probe.
    temporary: TempDir,
    /// The running daemons, each with its root, in the order of their starts.
    daemons: Vec<(Child, String)>,
    broker: Option<Child>,
    /// The real ports of the page's broker: for clients, and for its monitoring page.
    broker_ports: [u16; 2],
    /// The lines that set variables for the rest of the page.
    exports: String,
    /// The start of the first command.
    began: Option<Instant>,
}

impl Reader {
    fn new() -> Self {
        Self {
            directory: settled_tests::scratch(),
            temporary: settled_tests::scratch(),
            daemons: Vec::new(),
            broker: None,
            broker_ports: free_ports(),
            exports: String::new(),
            began: None,
        }
    }

    fn bash(&self, script: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command
            .args([
                "-euo",
                "pipefail",
                "-c",
                &format!("{}{script}", self.exports),
            ])
            .current_dir(self.directory.path())
            .env(
                "PATH",
                format!("{}:{path}", binaries::directory().display()),
            )
            .env("TMPDIR", self.temporary.path())
            .env_remove("COLUMNS")
            .env_remove("SETTLED_ROOT")
            .env_remove("SETTLED_AGENT")
            .stdin(Stdio::null());
        command
    }

    /// Runs a block to its end and waits until the daemon has judged the messages it wrote.
    fn run(&mut self, script: &str) -> Output {
        let output = self.bash(script).output().expect("bash can be run");
        self.exports.extend(
            script
                .lines()
                .filter(|line| line.starts_with("export "))
                .map(|line| format!("{line}\n")),
        );
        if let Some((_, root)) = self.daemons.last() {
            wait::until("the mailroom to be idle", || {
                self.status(root)["waiting"] == 0
            });
        }
        output
    }

    /// Starts the broker of a page about hosts.
    fn start_broker(&mut self, script: &str) {
        let path = broker::program();
        let path = path.parent().expect("a program is in a directory");
        let script = format!("PATH=\"$PATH:{}\" exec {}", path.display(), script.trim());
        let broker = self.bash(&script).stderr(Stdio::null()).spawn();
        self.broker = Some(broker.expect("bash can be run"));
        wait::until("the broker to answer", || {
            let [clients, _] = self.broker_ports;
            TcpStream::connect(("127.0.0.1", clients)).is_ok()
        });
    }

    /// Starts a block that serves, instead of the previous daemon or beside it.
    fn start(&mut self, script: &str, is_beside: bool) {
        if !is_beside {
            self.stop_last();
        }
        let words: Vec<&str> = script.split_whitespace().collect();
        let root = words.get(2).expect("settled up ROOT").to_string();
        let mut command = self.bash(&format!("exec {}", script.trim()));
        let daemon = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash can be run");
        self.daemons.push((daemon, root.clone()));
        wait::until(&format!("`{}` to serve", script.trim()), || {
            self.status(&root)["serving"] == true
        });
    }

    fn status(&self, root: &str) -> serde_json::Value {
        let output = settled()
            .args(["status", "--json", root])
            .current_dir(self.directory.path())
            .output()
            .expect("settled");
        let mut answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_default();
        answer["data"].take()
    }

    /// Interrupts the daemon of this root.
    fn stop(&mut self, root: &str) {
        let at = self.daemons.iter().position(|(_, served)| served == root);
        let at = at.unwrap_or_else(|| panic!("nothing serves {root}"));
        interrupt(self.daemons.remove(at));
    }

    fn stop_last(&mut self) {
        self.daemons.pop().into_iter().for_each(interrupt);
    }

    fn stop_all(&mut self) {
        self.daemons.drain(..).for_each(interrupt);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let daemons = self.daemons.iter_mut().map(|(daemon, _)| daemon);
        for process in daemons.chain(&mut self.broker) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn interrupt((mut daemon, root): (Child, String)) {
    kill_process(Pid::from_child(&daemon), Signal::INT).expect("the daemon still runs");
    let status = daemon.wait().expect("it is our child");
    assert!(status.success(), "the daemon of {root} ended with {status}");
}

/// Ports on which nobody listens at the moment.
fn free_ports() -> [u16; 2] {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}

/// The directions in a comment before a block, separated by `; `, which the site does not show.
#[derive(Default)]
struct Directions {
    /// `stop ROOT`: stops these daemons first.
    stops: Vec<String>,
    /// `beside …`: serves beside the other daemons instead of replacing the last one.
    is_beside: bool,
    /// `until …`: runs the block again until it prints the text after it.
    is_repeated: bool,
    /// `within N s`: the block ends within this time of the page's first command.
    limit: Option<Duration>,
}

impl Directions {
    fn read(comment: &str) -> Self {
        let mut directions = Self::default();
        for (verb, rest) in comment.split("; ").filter_map(|part| part.split_once(' ')) {
            match verb {
                "stop" => directions.stops.push(rest.to_owned()),
                "beside" => directions.is_beside = true,
                "until" => directions.is_repeated = true,
                "within" => {
                    let seconds = rest.strip_suffix(" s").and_then(|rest| rest.parse().ok());
                    let seconds = seconds.expect("`within N s`");
                    directions.limit = Some(Duration::from_secs(seconds));
                }
                _ => {}
            }
        }
        directions
    }
}

/// True if the block runs until something stops it.
fn serves(script: &str) -> bool {
    let command = script.trim();
    !command.contains('\n')
        && !command.contains("--once")
        && ["settled up ", "settled serve "]
            .iter()
            .any(|start| command.starts_with(start))
}

/// Follows a page; returns the number of blocks that did not run.
fn follow(page: &Path) -> usize {
    let mut reader = Reader::new();
    if page.ends_with("incidents.md") {
        // The page names files of the sources below `tests`.
        let tests = reader.directory.path().join("tests");
        std::os::unix::fs::symlink(repository().join("tests"), tests).expect("linked");
    }
    let mut unrun = 0;
    let mut last: Option<String> = None;
    let blocks = markdown::blocks(&read(page));
    for (index, block) in blocks.iter().enumerate() {
        let place = format!("{}:{}", name(page), block.line);
        let comment = block.comment.as_deref().unwrap_or_default();
        match block.info.as_str() {
            "sh" => {
                let shown = blocks.get(index + 1);
                let shown = shown.filter(|next| next.info == "text" && next.follows_a_block);
                last = follow_block(&mut reader, block, shown, &place);
            }
            "sh no-run" => {
                assert!(
                    comment.starts_with("not run: "),
                    "{place}: a comment says why it is not run"
                );
                unrun += 1;
            }
            "text" if block.follows_a_block => {
                let (text, said) = (&block.text, last.take().unwrap_or_default());
                assert!(
                    markdown::shows(text, &said),
                    "{place} shows\n{text}but this came out\n{said}"
                );
            }
            "text" | "yaml" | "toml" | "json" | "rust" | "mermaid" => {}
            other => panic!("{place}: nobody checks a block of `{other}`"),
        }
    }
    reader.stop_all();
    unrun
}

/// Runs a block or starts what it serves; returns the output of a command.
fn follow_block(
    reader: &mut Reader,
    block: &Block,
    shown: Option<&Block>,
    place: &str,
) -> Option<String> {
    // The programs are built before the first command runs.
    binaries::directory();
    reader.began.get_or_insert_with(Instant::now);
    let directions = Directions::read(block.comment.as_deref().unwrap_or_default());
    for root in &directions.stops {
        reader.stop(root);
    }
    let [clients, monitor] = reader.broker_ports;
    let script = block
        .text
        .replace(FROM_SOURCE, "settled ")
        .replace("127.0.0.1:4222", &format!("127.0.0.1:{clients}"))
        .replace("127.0.0.1:8222", &format!("127.0.0.1:{monitor}"));
    if script.starts_with("nats-server ") {
        reader.start_broker(&script);
        return None;
    }
    if serves(&script) {
        reader.start(&script, directions.is_beside);
        return None;
    }
    let mut run = || {
        let output = reader.run(&script);
        assert!(
            output.status.success(),
            "{place}: {}\n{script}",
            said(&output)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut said = run();
    if directions.is_repeated {
        let shown = shown.expect("a block that is repeated has a text after it");
        wait::until(&format!("{place} to show\n{}", shown.text), || {
            let holds = markdown::shows(&shown.text, &said);
            if !holds {
                said = run();
            }
            holds
        });
    }
    if let Some(limit) = directions.limit {
        let took = reader.began.expect("a command has run").elapsed();
        assert!(took < limit, "{place}: it ended after {took:?}");
    }
    Some(said)
}

#[test]
fn every_command_in_the_readme_works_and_shows_what_came_out() {
    assert_eq!(follow(&repository().join("README.md")), UNRUN_MAX);
}

#[test]
fn every_command_in_the_other_documents_works_and_shows_what_came_out() {
    let readme = repository().join("README.md");
    for page in pages().iter().filter(|page| **page != readme) {
        assert_eq!(
            follow(page),
            0,
            "{} has a block that is not run",
            name(page)
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        let text = read(&page);
        for link in markdown::links(&text) {
            if link.starts_with("http") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let directory = page.parent().expect("a page is in a directory");
            let target = if path.is_empty() {
                page.clone()
            } else {
                directory.join(path)
            };
            assert!(
                target.exists(),
                "{} links to {link}, which does not exist",
                name(&page)
            );
            if !anchor.is_empty() {
                let anchors = markdown::anchors(&read(&target));
                assert!(
                    anchors.iter().any(|name| name == anchor),
                    "{} links to {link}: {anchors:?}",
                    name(&page)
                );
            }
        }
    }
}

/// The site consists of `docs` only, so a link out of it would be dead.
#[test]
fn every_link_of_a_page_of_the_site_stays_on_the_site() {
    let docs = repository().join("docs");
    for page in pages().iter().filter(|page| page.starts_with(&docs)) {
        for link in markdown::links(&read(page)) {
            assert!(
                !link.starts_with("../"),
                "{} links to {link}, which is not in docs/; name the file by its path",
                name(page)
            );
        }
    }
}

#[test]
fn every_page_is_in_the_contents_of_the_site_once() {
    let contents = markdown::links(&read(repository().join("docs/SUMMARY.md")));
    for page in pages() {
        let name = name(&page);
        let Some(file) = name
            .strip_prefix("docs/")
            .filter(|file| *file != "SUMMARY.md")
        else {
            continue;
        };
        let times = contents.iter().filter(|link| *link == file).count();
        assert_eq!(times, 1, "docs/SUMMARY.md links {times} times to {file}");
    }
}

/// Only the source has the codes of alerts: no command lists them.
#[test]
fn every_alert_has_its_row_in_the_protocol() {
    let source = read(repository().join("crates/review-words/src/alert.rs"));
    let (_, codes) = source.split_once("fn code(&self)").expect("the codes");
    let (codes, _) = codes.split_once("fn thread(&self)").expect("what follows");
    let codes: Vec<&str> = codes.split('"').skip(1).step_by(2).collect();
    assert!(codes.len() > 10, "{codes:?}");
    let protocol = read(repository().join("docs/protocol.md"));
    let (_, alerts) = protocol.split_once("**Alerts.**").expect("the alerts");
    let (alerts, _) = alerts.split_once("\n## ").expect("the next section");
    for code in codes {
        assert!(alerts.contains(&format!("`{code}`")), "{code} has no row");
    }
}

#[test]
fn every_path_of_the_repository_that_is_named_exists() {
    for page in pages() {
        for span in markdown::code_spans(&read(&page)) {
            let is_path = ["crates/", "tests/", "docs/", "schemas/", "xtask/", ".ci/"]
                .iter()
                .any(|d| span.starts_with(d));
            if is_path && !span.contains(['<', '*', ' ']) {
                assert!(
                    repository().join(&span).exists(),
                    "{} names `{span}`",
                    name(&page)
                );
            }
        }
    }
}

/// Blocks run; commands within the prose are only looked up.
#[test]
fn every_command_of_hosts_that_a_page_names_has_its_help() {
    let mut seen = 0;
    for page in pages() {
        for span in markdown::code_spans(&read(&page)) {
            let Some(words) = span.strip_prefix("settled host ") else {
                continue;
            };
            let mut words = words.split_whitespace();
            let command = words.next().expect("a command");
            let help = Command::new(binaries::settled())
                .args(["host", command, "--help"])
                .output()
                .expect("settled runs");
            assert!(help.status.success(), "{} names `{span}`", name(&page));
            let help = String::from_utf8_lossy(&help.stdout);
            for option in words.filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{} names `{span}`", name(&page));
            }
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} commands");
}

#[test]
fn every_code_is_on_the_page_of_codes() {
    golden::check_file(&repository().join("docs/codes.md"), &codes());
}

#[test]
fn the_page_of_states_is_what_settled_prints() {
    let printed = Command::new(binaries::settled())
        .arg("states")
        .output()
        .expect("settled runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    golden::check_file(&repository().join("docs/states.md"), &printed);
}

/// The page, printed from the code.
fn codes() -> String {
    let mut page = String::from(
        "# Codes\n\n\
         The reasons for refusals and warnings, in one list for `validate-message` and the daemon. A code\n\
         never changes its meaning. A report gives its code in `refused` and in each of the `violations`.\n\
         The tests print this page from `crates/message-schema/src/code.rs`.\n\n\
         `settled explain CODE` says when a code happens and what to do, with an example that yields it and\n\
         a corrected example. It prints the page of that name in `crates/validate-message/codes`,\n\
         which `settled simulate` plays.\n\n\
         *File*: found in the file and the packet it names, so `validate-message` finds it too. *Daemon*:\n\
         found only by the daemon, which knows the review and the workspace.\n\n\
         | code | found from | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let finder = match code.finder() {
            Finder::Validator => "file",
            Finder::Daemon => "daemon",
        };
        page += &format!("| `{code}` | {finder} | {} |\n", code.sentence());
    }
    page
}

#[test]
fn every_command_has_its_place_in_the_page_of_commands() {
    let page = read(repository().join("docs/cli.md"));
    let headings = markdown::anchors(&page);
    let commands = SettledCli::command();
    let mut all: Vec<String> = Vec::new();
    for command in commands.get_subcommands().filter(|it| !it.is_hide_set()) {
        all.push(command.get_name().to_owned());
        let of_people = ["review", "thread"].contains(&command.get_name());
        let below = command.get_subcommands().filter(|_| of_people);
        all.extend(below.map(|below| format!("{}-{}", command.get_name(), below.get_name())));
    }
    for command in all {
        let anchor = format!("settled-{command}");
        let has_place = headings.iter().any(|heading| heading.starts_with(&anchor));
        assert!(
            has_place,
            "docs/cli.md has no heading for `settled {command}`"
        );
    }
}

#[test]
fn every_key_of_the_config_is_in_the_page_of_operations() {
    let page = read(repository().join("docs/operations.md"));
    let mut reader = Reader::new();
    assert!(
        reader
            .run("settled init ./mailroom --agents claude,codex")
            .status
            .success()
    );
    let template = read(reader.directory.path().join("mailroom/settled.toml"));
    let keys = template
        .lines()
        .filter_map(|line| line.strip_prefix("#: "))
        .filter_map(|line| line.split_once(" ="));
    let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
    assert!(keys.len() >= 6, "the template shows its keys: {keys:?}");
    for key in keys {
        assert!(
            page.contains(&format!("{key}`")),
            "docs/operations.md does not explain `{key}`"
        );
    }
    reader.stop_all();
}
