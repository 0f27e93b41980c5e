//! A process that logs: each format of a line, and what a reader of its standard error gets that falls behind.

use std::io::{
    BufRead as _, BufReader, PipeReader, Read as _, Seek as _, Write as _, pipe, stdin, stdout,
};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use logs::LogFormat;
use serde_json::Value;

/// The variable with the format in which this program logs as a child of itself.
const FORMAT: &str = "LOGS_TEST_FORMAT";

/// The bytes that a pipe holds.
const PIPE: usize = 16 * PAGE;

/// The bytes of one write into it.
const PAGE: usize = 4096;

/// The child: starts the log and obeys the lines of its standard input.
#[test]
#[ignore = "the other tests start it as a process"]
fn child() {
    let formats = [LogFormat::Text, LogFormat::Json, LogFormat::Journald];
    let asked = std::env::var(FORMAT).expect("the other tests set it");
    logs::start(formats.into_iter().find(|format| format.word() == asked));
    for line in stdin().lines() {
        let line = line.expect("a line");
        match line.parse::<usize>() {
            Ok(len) => tracing::info!("{}", "x".repeat(len)),
            Err(_) => say_everything(),
        }
        writeln!(stdout(), "{line} is logged").expect("somebody reads");
    }
}

/// Logs every level and every type of field.
fn say_everything() {
    tracing::error!(
        word = "a-b_c./:@+,9",
        other = "two words",
        none = "",
        "it failed\n<0>"
    );
    tracing::warn!(yes = true, less = -3, more = 7_u64, path = ?"a\"b", "odd \u{202e}");
    tracing::info!(place = %"a=b", "said");
    tracing::debug!("details");
    tracing::trace!("never");
}

/// A process that logs.
struct Logger {
    process: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Logger {
    /// Starts one whose standard error is this, which may be called the journal's.
    fn start(format: &str, stderr: impl Into<Stdio>, journal: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .env(FORMAT, format)
            .env("SETTLED_LOG", "debug")
            .env_remove("JOURNAL_STREAM")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        if let Some(journal) = journal {
            command.env("JOURNAL_STREAM", journal);
        }
        let mut process = command.spawn().expect("this program can be run");
        let (tell, answers) = channel();
        let stdout = BufReader::new(process.stdout.take().expect("it was piped"));
        // On a thread, so that a logger that waits for its reader fails the test instead of blocking it.
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        let orders = process.stdin.take().expect("it was piped");
        Self {
            process,
            orders,
            answers,
        }
    }

    /// Has it log something, and waits until it is done.
    fn log(&mut self, what: &str) {
        writeln!(self.orders, "{what}").expect("it reads");
        let done = format!("{what} is logged");
        loop {
            let line = self.answers.recv_timeout(Duration::from_secs(20));
            if line
                .expect("the logger waits for no reader")
                .ends_with(&done)
            {
                return;
            }
        }
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Everything that is logged in a format; `journal` names the stream of the journal after the file's own name.
fn everything(format: &str, journal: Option<fn(&str) -> String>) -> String {
    let mut file = tempfile::tempfile().expect("a file");
    let data = file.metadata().expect("a file");
    let own = format!("{}:{}", data.dev(), data.ino());
    let journal = journal.map(|name| name(&own));
    let stderr = file.try_clone().expect("a second handle");
    Logger::start(format, stderr, journal.as_deref()).log("everything");
    file.rewind().expect("a file");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("the log");
    text
}

const JOURNALD: &str = r#"<3>it failed\n<0> word=a-b_c./:@+,9 other="two words" none=""
<4>odd \u{202e} yes=true less=-3 more=7 path="\"a\\\"b\""
<6>said place="a=b"
<7>details
"#;

#[test]
fn the_journal_gets_priorities_words_as_they_are_and_all_else_in_quotes() {
    let text = everything("journald", None);
    assert_eq!(text, JOURNALD);
}

#[test]
fn a_journal_that_reads_standard_error_gets_its_own_format_unasked() {
    let journals = everything("unknown", Some(str::to_owned));
    assert!(journals.starts_with("<3>it failed"), "{journals}");
    let people = everything("unknown", Some(|own| format!("{own}0")));
    let first = people.lines().next().unwrap_or_default();
    let (time, said) = first.split_once(" ERROR ").expect("a level");
    assert!(time.ends_with('Z'), "{first}");
    let fields = r#"it failed\n<0> word="a-b_c./:@+,9" other="two words" none="""#;
    assert_eq!(said, fields);
    let people = everything("text", Some(str::to_owned));
    assert!(people.contains(" ERROR it failed"), "{people}");
}

#[test]
fn a_program_gets_an_object_on_each_line_with_the_level_and_the_time() {
    let text = everything("json", None);
    assert!(text.contains(r"odd \u202e"), "a trap in a line: {text}");
    let lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("an object");
        let time = line.as_object_mut().expect("an object").remove("time");
        let time = time.as_ref().and_then(Value::as_str).expect("a time");
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        line
    });
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            serde_json::json!({
                "level": "error", "message": "it failed\n<0>", "word": "a-b_c./:@+,9", "other": "two words", "none": "",
            }),
            serde_json::json!({
                "level": "warn", "message": "odd \u{202e}", "yes": true, "less": -3, "more": 7, "path": "\"a\\\"b\"",
            }),
            serde_json::json!({"level": "info", "message": "said", "place": "a=b"}),
            serde_json::json!({"level": "debug", "message": "details"}),
        ]
    );
}

#[test]
fn the_count_of_lost_lines_is_a_line_of_each_format() {
    let said = "lines of the log were lost: nobody read them";
    assert_eq!(logs::lost(LogFormat::Text, 3), format!("3 {said}\n"));
    assert_eq!(logs::lost(LogFormat::Journald, 3), format!("<4>3 {said}\n"));
    let json: Value = serde_json::from_str(&logs::lost(LogFormat::Json, 3)).expect("an object");
    assert_eq!(
        (&json["level"], &json["message"]),
        (&"warn".into(), &said.into())
    );
    assert_eq!(json["lost"], 3);
}

/// Reads this many bytes of the log.
fn read(log: &mut PipeReader, bytes: usize) -> String {
    let mut read = vec![0; bytes];
    log.read_exact(&mut read).expect("the log");
    String::from_utf8(read).expect("text")
}

/// Takes a third of a second: a reader that has kept up so far gets a tenth to make room, three times.
#[test]
fn a_reader_that_falls_behind_loses_lines_and_is_told_how_many() {
    let (mut reader, writer) = pipe().expect("a pipe");
    let mut logger = Logger::start("journald", writer, None);
    // A line of one page, and one of more pages than the pipe has.
    let (page, long) = ((PAGE - 4).to_string(), (20 * PAGE - 4).to_string());
    let mut expect = |text: &str| assert_eq!(read(&mut reader, text.len()), text);
    let line = |len: usize| format!("<6>{}\n", "x".repeat(len));
    let lost = |count| logs::lost(LogFormat::Journald, count);
    let fill = |logger: &mut Logger| (0..16).for_each(|_| logger.log(&page));

    fill(&mut logger);
    logger.log("1");
    logger.log("2");
    expect(&line(PAGE - 4).repeat(16));
    logger.log("3");
    expect(&(lost(2) + &line(3)));
    logger.log("4");
    expect(&line(4));

    // The end of a long line is lost, and so is the next line; what comes then begins on a line of its own.
    logger.log(&long);
    logger.log("5");
    expect(&line(20 * PAGE)[..PIPE]);
    logger.log("6");
    expect(&format!("\n{}{}", lost(2), line(6)));

    // A long line comes with the count of those before it, and then its own end is lost.
    fill(&mut logger);
    logger.log("7");
    expect(&line(PAGE - 4).repeat(8));
    logger.log(&long);
    expect(&line(PAGE - 4).repeat(8));
    let begin = lost(1) + &line(20 * PAGE);
    expect(&begin[..8 * PAGE]);
    logger.log("8");
    expect(&format!("\n{}{}", lost(1), line(8)));
}
